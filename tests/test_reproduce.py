"""A result run again: the same, or what differs and by how much, or what is missing in one line."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from small_experiment import write_experiment

import psyprobe as pp
from psyprobe.cli import main
from psyprobe.errors import InputError
from psyprobe.probes.experiments import run
from psyprobe.probes.reproduce import reproduce

Output = pytest.CaptureFixture[str]


def written(
    folder: Path, name: str = "result", observer: Any = "pixels", **options: Any
) -> tuple[Path, xarray.Dataset]:
    result = run(write_experiment(folder), observer, **options)
    result.to_netcdf(folder / "result.nc", engine="scipy")
    return folder / "result.nc", result


def test_the_same_comes_out_again(tmp_path: Path, capsys: Output) -> None:
    path, _ = written(tmp_path, batch_size=3, variants={"phase": [0, 90]})
    capsys.readouterr()
    assert main(["reproduce", str(path)]) == 0
    assert (
        capsys.readouterr().out
        == "small with pixels: every number and text is the same\n"
    )
    path, _ = written(tmp_path, score_only=True)
    path.with_suffix(".json").write_text("[]")
    assert main(["reproduce", str(path.with_suffix(".json")), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["same"] is True


def test_what_differs_is_told_with_its_size_and_the_versions(
    tmp_path: Path, capsys: Output
) -> None:
    path, result = written(tmp_path)
    response = result["response_angular"].copy()
    place = np.unravel_index(np.argmax(response.values), response.shape)
    response.values[place] += 0.125
    software = json.loads(result.attrs["software"]) | {"numpy": "1.0"}
    changed = result.assign(response_angular=response).assign_attrs(
        software=json.dumps(software)
    )
    changed.to_netcdf(path, engine="scipy")
    reproduction = reproduce(path)
    (difference,) = reproduction.responses
    assert difference.what.startswith(
        "response_angular (1 of "
    ) and difference.largest == pytest.approx(0.125, abs=1e-12)
    assert [
        (circumstance.what, circumstance.before)
        for circumstance in reproduction.circumstances
    ] == [("software numpy", "1.0")]
    capsys.readouterr()
    assert main(["reproduce", str(path)]) == 1
    output = capsys.readouterr().out
    assert "differs by up to 0.125" in output and "software numpy: 1.0 then" in output
    # Another version alone moves no number.
    result.assign_attrs(software=json.dumps(software)).to_netcdf(path, engine="scipy")
    assert main(["reproduce", str(path)]) == 0


def test_an_observer_without_a_name_is_given(tmp_path: Path) -> None:
    def flat(factor: float, images: np.ndarray) -> np.ndarray:
        return (images.reshape(len(images), -1) - 0.4) * np.linspace(
            1, factor, images[0].size
        )

    path, _ = written(tmp_path, observer=pp.observer(partial(flat, 2.0), name="mine"))
    with pytest.raises(InputError, match="mine"):
        reproduce(path)
    assert reproduce(path, observer=pp.observer(partial(flat, 2.0), name="mine")).same
    other = reproduce(path, observer=pp.observer(partial(flat, 3.0), name="mine"))
    assert not other.same and all(difference.largest for difference in other.responses)


def test_a_server_s_words_are_compared_word_for_word(tmp_path: Path) -> None:
    page = tmp_path / "words.toml"
    page.write_text(
        'title = "words"\nprobe = "yes_no"\n'
        'stimulus = { kind = "gabor", parameters = '
        "{ frequency = 2, contrast = 0.1, luminance = 40, radius = 0.1, size = 32 } }\n"
        "levels = { frequency.values = [2, 4], contrast.values = [0.01, 0.05, 0.2] }\n"
        'asking = { prompts = ["Do you see a pattern?"], repeats = 1 }\ndisplay = { peak = '
        "186.8805 }\n"
    )
    result = run(page, "simulated:watson-malo")
    result.to_netcdf(tmp_path / "words.nc", engine="scipy")
    assert reproduce(tmp_path / "words.nc").same
    result["text"].values.flat[0] = "Perhaps."
    result.to_netcdf(tmp_path / "words.nc", engine="scipy")
    (difference,) = reproduce(tmp_path / "words.nc").responses
    assert (
        difference.what.startswith("text (1 of ") and difference.before == "'Perhaps.'"
    )


def card_of(result: xarray.Dataset, **changes: Any) -> xarray.Dataset:
    return result.assign_attrs(
        observer_card=json.dumps(json.loads(result.attrs["observer_card"]) | changes)
    )


def test_what_is_missing_is_one_line(tmp_path: Path, capsys: Output) -> None:
    path, result = written(tmp_path)
    page, elsewhere = tmp_path / "small_gabors.toml", tmp_path / "elsewhere.toml"
    cases = {
        "another card": (
            card_of(result, weights_digest="0" * 64),
            "weights_digest: " + "0" * 60,
        ),
        "no page": (_without(result, "experiment_toml"), "--experiment"),
        "a page of nothing": (result.assign_attrs(experiment_toml="= ="), "no TOML"),
        "no such observer": (card_of(result, name="nobody:mine"), "nobody"),
    }
    for name, (changed, message) in cases.items():
        changed.to_netcdf(path, engine="scipy")
        capsys.readouterr()
        assert main(["reproduce", str(path)]) == 2, name
        err = capsys.readouterr().err
        assert message in err and err.count("\n") == 1 and len(err) < 400, (name, err)
    result.to_netcdf(path, engine="scipy")
    page.rename(elsewhere)
    for arguments, message in (
        ([str(path)], "small_gabors"),
        ([str(tmp_path / "absent.nc")], "absent.nc"),
        ([str(tmp_path / "absent.json")], "holds scores only"),
        ([str(page)], "is no result"),
    ):
        assert main(["reproduce", *arguments]) == 2
        err = capsys.readouterr().err
        assert message in err and err.count("\n") == 1 and len(err) < 400, err


def _without(result: xarray.Dataset, name: str) -> xarray.Dataset:
    changed = result.copy()
    del changed.attrs[name]
    return changed
