"""The pages of docs/own_experiments.md run as they stand, and find what is true of what they
show."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from PIL import Image

import psyprobe as pp
from psyprobe.cli import main
from psyprobe.errors import ConditionWarning, InputError
from psyprobe.experiment import load_experiment
from psyprobe.human import castle_csf
from psyprobe.running.task import stimulus_axis_of
from psyprobe.stimulus import registry

ROOT = Path(__file__).resolve().parents[1]
FILES = dict(
    re.findall(
        r"^```\w+ \((\S+\.\w+)\)\n(.*?)^```",
        (ROOT / "docs" / "own_experiments.md").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
)
OURS = (
    "orientation_discrimination",
    "contrast_discrimination",
    "gabor_masked_orientation",
)
SIMULATED = "simulated:watson-malo"


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(registry, "KINDS", registry.KINDS.copy())
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def run(page: Path, observer: Any = "pixels", **options: Any) -> xr.Dataset:
    return pp.run(page, observer, progress=False, **options)


def response(result: xr.Dataset) -> xr.DataArray:
    return result["response_angular"].squeeze("layer")


def test_every_page_has_at_most_ten_lines() -> None:
    pages = {
        name: len(text.splitlines())
        for name, text in FILES.items()
        if name.endswith(".toml")
    }
    assert len(pages) == 9 and max(pages.values()) <= 10


def test_orientation_discrimination(pages: Path) -> None:
    result = run(pages / "orientation.toml")
    responses = response(result)
    assert responses.dims == ("frequency", "orientation_difference")
    assert responses["orientation_difference"].attrs["units"] == "degree"
    assert (
        responses.isel(orientation_difference=slice(0, 6)).diff(
            "orientation_difference"
        )
        > 0
    ).all()
    # The finer the stripes, the more a turn changes the image.
    assert (responses.isel(orientation_difference=0).diff("frequency") > 0).all()
    assert (
        responses.sel(frequency=3.5, orientation_difference=1, method="nearest")[
            "frequency"
        ]
        == 4
    )
    with pytest.raises(InputError, match="there is no human reference"):
        pp.score(result)
    pp.plot(result)


def test_contrast_discrimination_against_own_data(pages: Path) -> None:
    result = run(pages / "pedestals.toml")
    assert result["response_angular"].dims[-2:] == ("contrast", "contrast_difference")
    np.testing.assert_allclose(
        1 / result["human_sensitivity"], [0.010, 0.006, 0.012, 0.035]
    )
    thresholds = result["scored_contrast_difference"].isel(multiplier=2)
    np.testing.assert_allclose(thresholds, [0.010, 0.006, 0.012, 0.035])
    assert pp.score(result).score.slices.monotonicity == 1
    page = pages / "pedestals.toml"
    page.write_text(
        page.read_text().replace("luminance = 50", "luminance = 20, frequency = 2"),
        encoding="utf-8",
    )
    with pytest.warns(ConditionWarning) as warned:
        run(page, score_only=True)
    assert [str(warning.message) for warning in warned] == [
        "pedestals: my_dipper.csv: people were measured at luminance 20 cd/m², the stimulus has "
        "50 cd/m²",
        "pedestals: my_dipper.csv: people were measured at frequency 2 cpd, the stimulus has 4 cpd",
    ]


def test_a_mask_of_another_orientation(pages: Path) -> None:
    result = run(pages / "masked.toml")
    assert result["response_angular"].dims[-2:] == ("mask_orientation", "contrast")
    display, stimulus_set = pp.Display(), pp.load_stimulus("gabor_masked")
    for place in (
        {"mask_orientation": 0, "contrast": 0},
        {"mask_orientation": 1, "contrast": 5},
    ):
        responses = response(result).isel(place)
        spec = stimulus_set.spec(
            mask_orientation=responses["mask_orientation"].item(),
            contrast=responses["contrast"].item(),
        )
        test, mask = (
            display.encode(stimulus.draw()).ravel().astype(float)
            for stimulus in (spec, spec.changed(contrast=0))
        )
        assert responses.item() == pytest.approx(
            pp.angular_distance(test, mask), rel=1e-5
        )
    pp.plot(result)


@pytest.mark.parametrize("name", OURS)
def test_pages_of_the_catalogue(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = pp.run(name, "pixels", progress=False)
    by = stimulus_axis_of(result).name
    assert (response(result).isel({by: slice(0, 5)}).diff(by) > 0).all()
    assert main(["list", "experiments"]) == 0
    assert name in capsys.readouterr().out


def test_thresholds_on_an_oblique_mask_are_those_measured_there() -> None:
    result = pp.run(
        "gabor_masked_orientation", "pixels", score_only=True, progress=False
    )
    np.testing.assert_allclose(
        1 / result["human_sensitivity"][[0, -1]],
        [0.02218982341458965, 0.13812474625902557],
    )
    assert pp.score(result).alignment.score.slices.monotonicity == 1


def test_phase_of_a_chat_model(pages: Path) -> None:
    result = run(pages / "phase.toml", SIMULATED)
    assert (
        set(np.unique(result["phase"])) == {0, 90}
        and result["phase"].attrs["units"] == "degree"
    )
    score = pp.score(result)
    assert score.human == "" and [point.value for point in score.curve] == [0, 90]
    assert all(point.usable for point in score.curve)
    pp.plot(result)


def test_size_of_a_chat_model(pages: Path) -> None:
    score = pp.score(run(pages / "size.toml", SIMULATED))
    people = castle_csf(2, luminance=40, area=[0.2, 0.8], direction="achromatic")
    assert score.human == "castle_csf" and "castleCSF" in str(score)
    np.testing.assert_allclose(
        [point.human for point in score.curve], people, rtol=1e-9
    )
    small, large = (point.sensitivity for point in score.curve)
    assert small < large


def test_luminance_of_a_chat_model(pages: Path) -> None:
    result = run(pages / "luminance.toml", SIMULATED)
    score = pp.score(result)
    people = castle_csf(2, luminance=[10, 40], area=np.pi, direction="achromatic")
    np.testing.assert_allclose(
        [point.human for point in score.curve], people, rtol=1e-9
    )
    labels = [line.get_label() for line in pp.plot(result).lines]
    assert "Human (castleCSF)" in labels


def test_colour_of_a_chat_model(pages: Path) -> None:
    def red_or_green(images: list[Any], prompt: str) -> str:
        return "Yes" if (images[0][..., 0] - images[0][..., 1]).std() > 0.03 else "No"

    result = run(pages / "colour.toml", pp.observer(red_or_green))
    score = pp.score(result)
    people = castle_csf([0.5, 1, 2], luminance=40, area=np.pi, direction="red_green")
    np.testing.assert_allclose(
        [point.human for point in score.curve], people, rtol=1e-9
    )
    # Its threshold is in the drive, and so the same at every frequency.
    assert np.ptp([point.sensitivity for point in score.curve]) < 3
    page = pages / "colour.toml"
    page.write_text(re.sub("human .*\n", "", page.read_text()), encoding="utf-8")
    # The usual curve is achromatic, and says nothing of colour.
    assert pp.score(run(page, pp.observer(red_or_green))).human == ""


def test_own_kind_and_own_csf(pages: Path) -> None:
    result = run(pages / "checks.toml")
    assert result["check"].attrs["units"] == "degree"
    np.testing.assert_allclose(
        result["human_sensitivity"], 50 * np.array([0.1 / 0.2, 0.3 / 0.4, 1 / 1.1])
    )
    assert pp.score(result).score.slices.monotonicity == 1
    spec = load_experiment(pages / "checks.toml").spec(check=0.3)
    assert spec.draw().measure()["contrast"].passed


def test_observers_concatenate(pages: Path) -> None:
    flat = pp.observer(lambda images: images.mean(axis=(1, 2)), name="mean colour")
    results = [
        run(pages / "checks.toml", observer).squeeze("layer", drop=True)
        for observer in ("pixels", flat)
    ]
    joined = xr.concat(results, "observer")
    response = joined["response_angular"].sel(check=0.25, method="nearest")
    assert response["check"] == 0.3 and set(response.dims) >= {"observer", "contrast"}
    assert joined["observer"].values.tolist() == ["pixels", "mean colour"]


def colour_set(folder: Path) -> None:
    """Two pairs of images of one colour, with a yes/no question about each."""
    rows = []
    for pair, colours in {1: ("red", "green"), 2: ("green", "red")}.items():
        for kind, colour in zip("se", colours, strict=True):
            image = np.zeros((16, 16, 3), dtype=np.uint8)
            image[..., ("red", "green").index(colour)], image[0, 0] = 200, pair
            Image.fromarray(image).save(folder / f"{pair}_{kind}.png")
            name = f"{pair}_{kind}.png"
            question = {
                "question": "Is it red?\nPlease answer yes or no.",
                "answer": "yes" if colour == "red" else "no",
            }
            rows.append(
                {
                    "question_id": len(rows),
                    "id": pair,
                    "type": f"y/n-{kind}",
                    "level": "low",
                    "image": name,
                }
                | question
            )
    (folder / "questions.json").write_text(
        "\n".join(map(json.dumps, rows)), encoding="utf-8"
    )


OBSERVER = """
import psyprobe as pp
from psyprobe.observers import register_observer

@register_observer("looks", form="looks", summary="sees whether red outweighs green", ability="answer")
def load(name):
    def answer(images, prompt):
        red = images[0][..., 0].mean() > images[0][..., 1].mean()
        return ("A" if red else "B") if "letter" in prompt else ("Yes" if red else "No")

    return pp.observer(answer, name="looks")
"""


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """An observer that commands know by its name."""
    from psyprobe.observers import registry as observers

    monkeypatch.setattr(observers, "_KINDS", observers._KINDS.copy())
    exec(OBSERVER, {})


@pytest.mark.usefixtures("looks")
@pytest.mark.needs("tasks/mvp_bench")
def test_a_set_of_mvp_bench(pages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (pages / "my_bench").mkdir()
    colour_set(pages / "my_bench")
    command = [
        "run",
        str(pages / "my_bench.toml"),
        "--observer",
        "looks",
        "--output",
        str(pages / "out"),
    ]
    assert (
        main([*command, "--plan"]) == 0
        and "4 questions about 4 images" in capsys.readouterr().out
    )
    assert main(command) == 0
    assert "100" in capsys.readouterr().out
    assert main(["score", str(pages / "out" / "runs.sqlite"), "--scoreboard"]) == 0
    assert {path.suffix for path in (pages / "out").glob("my_bench-looks*")} >= {
        ".nc",
        ".json",
    }


@pytest.mark.usefixtures("looks")
@pytest.mark.needs("tasks/r_bench")
def test_a_set_of_r_bench(pages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = pages / "set"
    rows = ["name,question,choice,answer,type,score,distortion,strength"]
    for i, (name, light, key) in enumerate(
        (("one.png", (200, 60, 60), "A"), ("two.png", (60, 200, 60), "B"))
    ):
        for kind, part in (("ref", 1), ("dis", 2)):
            (folder / kind).mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (48, 48), tuple(c // part for c in light)).save(
                folder / kind / name
            )
        rows.append(f"{name},Which colour is it?,A.red; B.green,{key},MCQ,,{i + 1},2")
    (folder / "items.csv").write_text("\n".join(rows), encoding="utf-8")
    text = (
        FILES["my_bench.toml"]
        .replace("mvp_bench", "r_bench", 1)
        .replace('items = "my_bench"', 'items = "set"')
    )
    page = pages / "robust.toml"
    page.write_text(
        text.replace('parser = "rule"', 'mcq_rule = "letter"'), encoding="utf-8"
    )
    command = ["run", str(page), "--observer", "looks", "--output", str(pages / "out")]
    assert (
        main([*command, "--plan"]) == 0
        and "4 questions about 4 images" in capsys.readouterr().out
    )
    assert main(command) == 0
    assert "looks" in capsys.readouterr().out
    (result,) = pp.load_results(pages / "out" / "runs.sqlite")
    assert result["answer_dis"].values.tolist() == ["A", "B"]
    assert main(["score", str(pages / "out" / "runs.sqlite"), "--scoreboard"]) == 0
    assert "1.0000" in capsys.readouterr().out
    figure = pages / "board.png"
    assert (
        main(
            [
                "plot",
                str(pages / "out" / "runs.sqlite"),
                "--scoreboard",
                "heat-map",
                "-o",
                str(figure),
            ]
        )
        == 0
    )
    assert figure.stat().st_size > 5000
