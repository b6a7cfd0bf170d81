"""Where stages are trained, what the score says of it, and checks before any number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from noting import same_bytes
from test_decided import right_half, write

import psyprobe as pp
from psyprobe.errors import ConditionWarning, InputError
from psyprobe.observers.decisions.pictures import natural_picture
from psyprobe.observers.decisions.recipe import PROTOCOLS
from psyprobe.observers.decisions.stages import Stage, train_comparer
from psyprobe.observers.decisions.training import correct_share

ONE_FREQUENCY = ("values = [2, 4]", "values = [2]")


def sentence(result: Any) -> str:
    """Return the text of a score on one line."""
    return " ".join(str(pp.score(result)).split())


@pytest.mark.parametrize("train", ["each", "high", "natural"])
def test_half_of_the_pixels_transfer_half_of_the_energy_and_pictures_less(
    tmp_path: Path, train: str
) -> None:
    """A detector of more contrast in general is a poor template of a Gabor."""
    half = pp.observer(right_half, name="right half", version="1")
    observer = pp.decide(half, stage="template", train=train, pairs=16)
    page = write(tmp_path, ONE_FREQUENCY, ("repeats = 40", "repeats = 24"))
    result = pp.run(page, observer)
    text = sentence(result)
    assert PROTOCOLS[train] in text
    assert f"(train = '{train}')" in text
    (point,) = pp.score(result).curve
    assert point.efficiency is not None
    if train == "natural":
        assert point.efficiency.efficiency is None or point.efficiency.efficiency < 0.4
    else:
        assert point.efficiency.low < 0.5 < point.efficiency.high
    if train == "each":
        # A stage for each contrast, trained there alone.
        stages = json.loads(result.attrs["training"])
        levels = [stage["level"] for stage in stages]
        assert levels == pytest.approx(np.geomspace(0.004, 0.06, 5))
        assert [stage["contrasts"] for stage in stages] == [[c] for c in levels]


def test_a_stage_that_knows_the_contrast_serves_no_adaptive_design(
    tmp_path: Path,
) -> None:
    page = write(tmp_path, ("repeats = 40", 'design = "quest_plus"'))
    with pytest.raises(InputError, match="which that design has yet to find"):
        pp.run(page, pp.decide("pixels", train="each", pairs=16))


def test_pictures_teach_contrast_and_no_directions(tmp_path: Path) -> None:
    page = write(
        tmp_path,
        ('"two_interval"', '"orientation"'),
        ('"two_image"', '"orientation"'),
    )
    with pytest.raises(InputError, match="which of two grey pictures has more"):
        pp.run(page, pp.decide("pixels", train="natural", pairs=16))


def test_natural_pictures_have_equal_energy_in_every_octave() -> None:
    spectra = [abs(np.fft.fft2(natural_picture((64, 64), seed))) for seed in range(40)]
    power = np.mean([s**2 / np.sum(s**2) for s in spectra], axis=0)
    radius = np.hypot(*np.meshgrid(*[np.fft.fftfreq(64, 1 / 64)] * 2))
    octaves = [power[(radius >= r) & (radius < 2 * r)].sum() for r in (4, 8, 16)]
    assert octaves == pytest.approx([np.mean(octaves)] * 3, rel=0.1)


def test_contrast_is_learned_in_the_energy_of_pictures() -> None:
    """Squares tell contrast whatever the picture; nothing linear does."""
    generator = np.random.default_rng(3)
    lesser = generator.normal(size=(300, 6))
    tests = generator.normal(size=(300, 6))
    shares = {
        name: np.mean(
            train_comparer(name, 1.6 * lesser, lesser).variables(1.6 * tests)
            > train_comparer(name, 1.6 * lesser, lesser).variables(tests)
        )
        for name in ("lda", "quadratic")
    }
    assert shares["quadratic"] > 0.99
    assert 0.3 < shares["lda"] < 0.7


def test_a_signal_that_shows_without_contrast_is_refused(tmp_path: Path) -> None:
    """A pedestal that its kind draws at any contrast would pass for sensitivity."""
    (tmp_path / "standing.py").write_text(
        """
from psyprobe.stimulus import Gabor

class Standing(Gabor):
    "A Gabor on a brighter field, from which its reference is told at any contrast."
    @property
    def offset(self):
        return 0.02
    def paint(self, amplitude, offset, backend):
        return super().paint(amplitude, offset * 1.03, backend)
    def reference(self):
        return Gabor(**{name: getattr(self, name) for name in (
            "frequency", "radius", "luminance", "size", "ppd")}, contrast=0.0)
"""
    )
    page = write(
        tmp_path,
        ONE_FREQUENCY,
        ('"gabor"', '"standing.py:Standing"'),
        ("[noise]\ndensity = 1e-5\n", ""),
    )
    with pytest.raises(InputError, match="something beside its contrast gives it away"):
        pp.run(page, pp.decide("pixels", stage="template", pairs=16))


def test_the_share_of_right_answers_counts_ties_by_chance() -> None:
    detector = Stage(np.array([[1.0]]), np.zeros(1))
    features = np.random.default_rng(1).normal(size=(20, 1))
    assert correct_share(detector, [features, features]) == 0.5
    assert correct_share(detector, [features + 9, features]) == 1
    identifier = Stage(np.eye(3), np.zeros(3))
    rows = np.random.default_rng(2).normal(size=(20, 3))
    assert correct_share(identifier, [rows] * 3) == pytest.approx(1 / 3)
    assert correct_share(identifier, [rows + 9 * row for row in np.eye(3)]) == 1


def folding(limit: float) -> Any:
    """Make an encoder whose features fold back beyond a response, as where units saturate."""
    grating = np.cos(2 * np.pi * 2 * (np.arange(32) - 15.5) / 16)

    def encode(images: Any) -> Any:
        response = (images[..., 1] @ grating).mean(axis=1, keepdims=True)
        return limit - np.abs(limit - response)

    return pp.observer(encode, name="folding", version="1")


def test_right_answers_that_fall_with_contrast_have_no_threshold(
    tmp_path: Path,
) -> None:
    page = write(tmp_path, ONE_FREQUENCY, ("to = 0.06, n = 5", "to = 0.4, n = 7"))
    page.write_text(page.read_text().replace("1e-5", "1e-6"))
    result = pp.run(page, pp.decide(folding(0.0774), stage="template", pairs=16))
    shares = result["response"].mean(["prompt", "repeat"]).squeeze()
    assert shares.max() > 0.95 and float(shares[-1]) < 0.6, shares.values
    csf = pp.analysis.words.csf.chat_csf(result)
    assert np.isnan(csf["threshold"].values).all()
    assert "right answers fall towards higher contrast" in sentence(result)


def test_a_top_below_95_in_100_is_told(tmp_path: Path) -> None:
    """An encoder that sees nothing in every third image, by its noise, never comes near 1."""

    def encode(images: Any) -> Any:
        rows = right_half(images)
        blind = np.floor(np.abs(images).sum(axis=(1, 2, 3)) * 1e4) % 3 == 0
        return np.where(blind[:, None], rows.mean(axis=1, keepdims=True), rows)

    encoder = pp.observer(encode, name="lapsing", version="1")
    page = write(tmp_path, ONE_FREQUENCY, ("to = 0.06, n = 5", "to = 0.4, n = 6"))
    result = pp.run(page, pp.decide(encoder, stage="template", pairs=16))
    assert "psychometric functions end at 0.9" in sentence(result)


class Backwards:
    """An executor that asks the batches of each round last first."""

    def put(self, answer: Any, observers: Any, agenda: Any) -> Any:
        """Ask all batches in reverse order."""
        return answer(observers, [*agenda][::-1])


def test_any_order_of_batches_gives_the_same_bytes(tmp_path: Path) -> None:
    page = write(tmp_path, ONE_FREQUENCY, ("repeats = 40", "repeats = 2"))
    observer = pp.decide("pixels", stage="template", pairs=16)
    alone = pp.run(page, observer)
    assert same_bytes(alone, pp.run(page, observer, executor=Backwards()), tmp_path)


def test_two_intervals_of_the_same_field_have_no_efficiency(tmp_path: Path) -> None:
    """A mask of noise is one field for both intervals, whose difference is the bare signal."""
    band = "[stimulus.parts.mask]\nkind = 'noise'\nfrequency = 4\ncontrast = 0.05\n"
    page = write(
        tmp_path,
        ONE_FREQUENCY,
        ("[noise]\ndensity = 1e-5\n", band),
        ("repeats = 40", "repeats = 8"),
    )
    observer = pp.decide("pixels", stage="template", pairs=16)
    with pytest.warns(ConditionWarning, match="both intervals show the same noise"):
        result = pp.run(page, observer)
    assert all(point.efficiency is None for point in pp.score(result).curve)
    assert "efficiency is not defined" in sentence(result)
