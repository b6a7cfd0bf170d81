"""Does contrast sensitivity predict robustness: observers for whom it does, and for whom it does
not; octave bands."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from chat_results import FREQUENCIES, chat_result, log_thresholds

import psyprobe as pp
from psyprobe.analysis.words.robustness import csf_robustness
from psyprobe.cli import main
from psyprobe.corruption.apply import write_png
from psyprobe.errors import InputError
from psyprobe.experiment import load_experiment
from psyprobe.observers.chat.protocol import Answer, Answering, Inquiry
from psyprobe.observers.protocol import Card
from psyprobe.tasks.r_bench.bands import link_results, octave_band, write_bands
from psyprobe.tasks.r_bench.items import write_items

BANDS = (1.0, 2.0, 4.0, 8.0, 16.0)


def measured(rho: float, models: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Log sensitivities, and shares of right answers to 2,000 items a band whose logits correlate
    with them by rho."""
    rng = np.random.default_rng(seed)
    scatter, other = rng.normal(size=(2, models, len(BANDS)))
    logit = 0.5 * (rho * scatter + np.sqrt(1 - rho**2) * other)
    return 1.8 + 0.3 * scatter, rng.binomial(2000, 1 / (1 + np.exp(-logit))) / 2000


@pytest.mark.parametrize("rho", [0.9, 0.0])
def test_finds_the_correlation_it_was_given_within_its_interval(rho: float) -> None:
    names = [f"m{i}" for i in range(12)]
    covered, surprising, runs = 0, 0, 12
    for seed in range(runs):
        robustness = csf_robustness(
            names, BANDS, *measured(rho, 12, seed), resamples=200, seed=seed
        )
        links = {link.over: link for link in robustness.links}
        for over in ("all", "models", "bands"):
            link = links[over]
            covered += link.low <= rho <= link.high
            surprising += link.p < 0.05
    # 95 % intervals hold the truth in about 34 of 36; without a link p is below 0.05 in about 2.
    assert covered >= 30
    assert surprising == 3 * runs if rho else surprising <= 6


def test_what_bands_share_is_not_taken_for_the_models_own() -> None:
    rng = np.random.default_rng(3)
    shape = np.array([2.0, 2.3, 2.2, 1.9, 1.4])
    log_s = shape + rng.normal(0, 0.1, (10, 5))
    accuracy = 0.3 + 0.2 * shape + rng.normal(0, 0.02, (10, 5))
    links = {
        link.over: link
        for link in csf_robustness([*map(str, range(10))], BANDS, log_s, accuracy).links
    }
    assert links["all"].r > 0.9 and abs(links["models"].r) < 0.35
    assert links["models"].low < 0 < links["models"].high and links["models"].p > 0.05
    assert links["bands"].p < 0.03


def test_bands_add_up_to_the_image() -> None:
    rng = np.random.default_rng(1)
    image = (128 + rng.normal(0, 12, (64, 64, 3))).clip(0, 255).round().astype(np.uint8)
    mean = image.mean(axis=(0, 1))
    parts = [
        octave_band(image, centre, 32).astype(float) - mean
        for centre in 2.0 ** np.arange(-2, 6)
    ]
    assert np.abs(sum(parts) + mean - image).max() <= 0.5 * len(parts)
    x = np.arange(64) / 32
    for frequency, gain in ((4, 1.0), (8, 0.0), (2, 0.0)):
        grating = np.broadcast_to(
            (128 + 100 * np.sin(2 * np.pi * frequency * x))[None, :, None], (64, 64, 3)
        )
        band = octave_band(grating.round().astype(np.uint8), 4, 32)
        assert np.abs(band - (128 + gain * (grating - 128))).max() <= 1.5


def write_small_set(folder: Path, count: int) -> None:
    """Noise of 24 px in multiple choice whose key is always A."""
    for part in ("ref", "dis"):
        (folder / part).mkdir(parents=True)
    rows = []
    for i in range(count):
        image = np.random.default_rng(i).integers(0, 256, (24, 24, 3)).astype(np.uint8)
        for part in ("ref", "dis"):
            write_png(image, folder / part / f"{i}.png")
        row = {
            "name": f"{i}.png",
            "question": "Which?",
            "choice": "A. one; B. two",
            "answer": "A",
            "type": "MCQ",
        }
        rows.append(
            row
            | {
                "score": "",
                "distortion": 1,
                "strength": 1,
                "reference": f"{i}.png",
                "simulated": 0,
            }
        )
    write_items(folder, rows)


class Seeing(Answering):
    """Answers A, which is the key, about a share of the images that its sight of their band sets; B
    otherwise."""

    images_at_once = None

    def __init__(self, name: str, sight: dict[float, float]) -> None:
        self.card, self.sight, self.band = Card(name, "answer"), sight, 0.0

    def _reply(self, inquiry: Inquiry) -> Answer:
        image = np.asarray(inquiry.images[0], dtype=np.float64)
        place = np.random.default_rng(int(image.sum() * 1e4) % 2**32).random()
        return Answer("A" if place < self.sight[self.band] else "B")


@pytest.mark.parametrize("true", [True, False])
def test_one_command_from_results_to_correlation_and_figure(
    true: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_small_set(tmp_path / "set", 60)
    pages = write_bands(tmp_path / "set", tmp_path / "bands", [2.0, 4.0, 8.0], 32)
    assert load_experiment(pages[0]).options == {"band": 2.0}
    rng = np.random.default_rng(7)
    files = []
    for i in range(4):
        shift = rng.normal(0, 0.25, len(FREQUENCIES))
        thresholds = log_thresholds() - shift
        curve = chat_result(
            thresholds, observer=f"model-{i}", readout="p_yes", repeats=3, seed=i
        )
        files.append(tmp_path / f"csf_{i}.nc")
        curve.to_netcdf(files[-1], engine="scipy")
        sensitivity_shift = shift if true else rng.normal(0, 0.25, len(FREQUENCIES))
        sight = {
            band: float(
                np.clip(0.5 + sensitivity_shift[FREQUENCIES.index(band)], 0.02, 0.98)
            )
            for band in (2.0, 4.0, 8.0)
        }
        observer = Seeing(f"model-{i}", sight)
        for page, band in zip(pages, (2.0, 4.0, 8.0), strict=True):
            observer.band = band
            result = pp.run(page, observer, progress=False)
            files.append(tmp_path / f"{i}_{page.stem}.nc")
            result.to_netcdf(files[-1], engine="scipy")
    command = [
        "r-bench",
        "csf",
        *map(str, files),
        "--output",
        str(tmp_path / "out"),
        "--json",
    ]
    assert main(command) == 0
    printed = json.loads(capsys.readouterr().out)
    link = next(entry for entry in printed["links"] if entry["over"] == "models")
    assert (link["r"] > 0.5) == true and link["low"] <= link["r"] <= link["high"]
    assert (tmp_path / "out" / "csf_robustness.png").stat().st_size > 5000
    with pytest.raises(
        InputError, match="two results of contrast sensitivity of model-0"
    ):
        link_results([curve.assign_attrs(observer="model-0")] * 2)


@pytest.mark.parametrize(("bands", "ppd"), [([40.0], 64), ([4.0, 4.0], 64), ([1.0], 0)])
def test_bands_that_cannot_be(bands: list[float], ppd: float, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give each once, above 0"):
        write_bands(tmp_path, tmp_path / "out", bands, ppd)
