"""Results of every probe by the conventions of xarray and CF: levels are dimensions, units parse,
flags decode, and NetCDF gives them back unchanged.
"""

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
from psyprobe.analysis import arrange_trials, chat_csf, flag_words, trials
from psyprobe.experiment import load_experiment
from psyprobe.probes import probe_names
from tests.item_pages import run_page, write_page

GABOR = {
    "kind": "gabor",
    "parameters": {
        "frequency": 4,
        "contrast": 0.1,
        "luminance": 100,
        "radius": 0.2,
        "size": 32,
        "ppd": 30,
    },
}
#: Units that UDUNITS knows, as far as results use them.
UNITS = {
    "1",
    "degree",
    "degrees",
    "cycle",
    "cycles",
    "cd",
    "m",
    "cm",
    "mm",
    "s",
    "ms",
    "Hz",
    "K",
    "%",
}


def of_encoder(name: str) -> xr.Dataset:
    pages = {
        "detection": "gabor_achromatic",
        "discrimination": "contrast_discrimination",
        "acuity": "acuity_achromatic",
        "matching": "contrast_matching",
    }
    page = load_experiment(pages[name])
    small = (
        {"stimulus": GABOR, "levels.frequency": {"values": [4, 8]}}
        if name == "detection"
        else {}
    )
    return pp.run(
        page.with_settings(small) if small else page, "pixels", progress=False
    )


FOUR_DIRECTIONS = {
    "label": "orientation",
    "values": [0, 90, 135, 45],
    "names": ["vertical", "horizontal", "rising", "falling"],
}


def in_words(name: str, folder: Path, **changes: Any) -> xr.Dataset:
    """Two frequencies and three contrasts, each asked twice."""
    prompts = {"yes_no": "base", "two_interval": "two_image"}.get(name, name)
    page = folder / "words.toml"
    page.write_text(
        'title = "Words"\n'
        f'probe = "{name}"\n'
        'stimulus = { kind = "gabor", parameters = '
        "{ frequency = 4, contrast = 0.1, luminance = 100, radius = 0.2, size = 32, ppd = 30 } }\n"
        "levels = { frequency.values = [4, 8], contrast.values = [0.01, 0.1, 0.4] }\n"
        f'asking = {{ prompts = "{prompts}", readout = "text", repeats = 2, catch = 0.1 }}\n'
        "display = { peak = 400 }\n",
        encoding="utf-8",
    )
    experiment = load_experiment(page)
    if name == "identify":
        changes = {"options": FOUR_DIRECTIONS} | changes
    if changes:
        experiment = experiment.with_settings(changes)
    return pp.run(experiment, "simulated:watson-malo", progress=False)


def of_items(name: str, folder: Path) -> xr.Dataset:
    """Two questions of a benchmark, or two photographs."""
    rng = np.random.default_rng(0)
    (folder / "ref").mkdir()
    (folder / "dis").mkdir()
    for kind in ("ref", "dis"):
        for item in ("one.png", "two.png"):
            pixels = rng.integers(0, 256, (48, 48, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / kind / item)
    look = pp.observer(lambda images, prompt: "A", name="looks")
    if name == "corruption_profile":
        page = write_page(
            folder / "page.toml",
            name,
            folder / "ref",
            corruptions=["jpeg", "white_noise"],
            seed=1,
        )
        return run_page(page, pp.load_observer("pixels"))
    if name == "r_bench":
        rows = ["name,question,choice,answer,type,score,distortion,strength"]
        rows += [
            f"{item},Which colour is it?,A.red; B.green,A,MCQ,,{number},2"
            for number, item in ((1, "one.png"), (2, "two.png"))
        ]
        (folder / "items.csv").write_text("\n".join(rows), encoding="utf-8")
        return run_page(write_page(folder / "page.toml", name, folder), look)
    questions = [
        {
            "question_id": number,
            "image": f"ref/{item}",
            "question": "Is it red?\nPlease answer yes or no.",
            "answer": "yes",
            "type": "y/n-s",
            "level": "low",
            "id": number,
        }
        for number, item in ((1, "one.png"), (2, "two.png"))
    ]
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    (folder / "questions.json").write_text(lines, encoding="utf-8")
    page = write_page(folder / "page.toml", name, folder, questions=["questions.json"])
    return run_page(page, look)


def result_of(name: str, folder: Path) -> xr.Dataset:
    if name in ("detection", "discrimination", "acuity", "matching"):
        return of_encoder(name)
    if name in ("yes_no", "two_interval", "orientation", "orientation_4", "identify"):
        return in_words(name, folder)
    return of_items(name, folder)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, xr.Dataset]:
    """A small result of every probe."""
    return {
        name: result_of(name, tmp_path_factory.mktemp(name)) for name in probe_names()
    }


def written(result: xr.Dataset, path: Path) -> xr.Dataset:
    result.to_netcdf(path, engine="scipy")
    with xr.open_dataset(path, engine="scipy") as file:
        return file.load()


@pytest.mark.parametrize("name", probe_names())
def test_every_result_is_selected_by_its_levels(
    name: str, results: dict[str, xr.Dataset]
) -> None:
    result = results[name]
    levels = json.loads(result.attrs.get("levels", "[]")) or ["item"]
    if name == "corruption_profile":
        levels = ["photograph", "dimension", "strength"]
    for level in levels:
        value = result[level].values[-1]
        part = result.sel({level: value})
        assert part[level].values == value and level not in part.dims
    if name == "matching":
        assert float(result.sel(frequency=5, method="nearest")["frequency"]) > 0
    elif "frequency" in levels:
        assert result.sel(frequency=4)["frequency"] == 4


@pytest.mark.parametrize("name", probe_names())
def test_every_result_comes_back_from_netcdf(
    name: str, results: dict[str, xr.Dataset], tmp_path: Path
) -> None:
    result = results[name]
    reloaded = written(result, tmp_path / "result.nc")
    assert all(not index.nlevels > 1 for index in result.indexes.values())
    assert set(reloaded.dims) == set(result.dims)
    for variable in result.variables:
        if result[variable].dtype.kind in "fiub":
            np.testing.assert_array_equal(
                reloaded[variable].values, result[variable].values
            )
            assert reloaded[variable].dtype.kind == result[variable].dtype.kind, (
                variable
            )
        else:
            np.testing.assert_array_equal(
                reloaded[variable].values.astype(str),
                result[variable].values.astype(str),
            )
        assert {*result[variable].attrs} == {*reloaded[variable].attrs}, variable


def parses(units: str) -> bool:
    """Say whether units are products of powers of UDUNITS' names, divided at most once."""
    numerator, _, denominator = units.partition("/")
    factors = [*numerator.split(), *denominator.split()]
    matches = [re.fullmatch(r"([A-Za-z%]+|1)(-?\d+)?", factor) for factor in factors]
    return bool(factors) and all(match and match[1] in UNITS for match in matches)


def test_the_parser_of_units_knows_right_from_wrong() -> None:
    assert all(
        map(
            parses,
            ("1", "degree", "cycles/degree", "cd m-2", "degree2", "degree-1", "s"),
        )
    )
    assert not any(
        map(parses, ("", "cpd", "log10 contrast", "1 / (cpd)", "cd/m²", "angle / pi"))
    )


@pytest.mark.parametrize("name", probe_names())
def test_every_unit_parses_and_every_flag_decodes(
    name: str, results: dict[str, xr.Dataset]
) -> None:
    result = results[name]
    tables = [result]
    if "trial_number" in result:
        tables.append(chat_csf(result, resamples=20))
    for table in tables:
        for variable in table.data_vars:
            attributes = table[variable].attrs
            assert parses(attributes["units"]) and attributes["long_name"], variable
            if "flag_meanings" in attributes:
                assert table[variable].dtype == np.int8
                assert set(flag_words(table[variable]).ravel()) <= {
                    *attributes["flag_meanings"].split()
                }


@pytest.mark.parametrize(
    "name", ["yes_no", "two_interval", "orientation", "orientation_4", "identify"]
)
def test_a_table_of_trials_and_back(name: str, results: dict[str, xr.Dataset]) -> None:
    result = results[name]
    table = trials(result)
    xr.testing.assert_identical(arrange_trials(table), result)
    assert table.sizes["trial"] == int((result["trial_number"] >= 0).sum()) + (
        int((result["catch_trial_number"] >= 0).sum())
        if "catch_trial_number" in result
        else 0
    )
    assert trials(table) is table and trials(xr.Dataset()).sizes == {}
    frame = table.to_dataframe()
    assert frame["response"].notna().any() and frame["catch"].dtype == bool
    assert result["repeat"].dtype.kind == "i" and result.sel(repeat=1).sizes == {
        dim: size for dim, size in result.sizes.items() if dim != "repeat"
    }


def test_contrasts_of_an_adaptive_design_are_a_variable(tmp_path: Path) -> None:
    result = in_words(
        "yes_no",
        tmp_path,
        **{"asking.design": "quest_plus", "asking.options": {"n_max": 12}},
    )
    assert result["contrast"].dims == ("prompt", "frequency", "repeat")
    was_asked = result["trial_number"] >= 0
    assert np.isfinite(result["contrast"].values[was_asked.values]).all()
    assert np.isnan(result["contrast"].values[~was_asked.values]).all()
