"""A twin of each probe and observer kind, registered from outside, gives all that the built-in gives.

Whatever differs is a place in the code that asks for a name.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

import psyprobe as pp
from psyprobe.analysis.score import score_table
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment, load_experiment
from psyprobe.observers import list_observers, load_observer
from psyprobe.observers.registry import takes_option
from psyprobe.observers.simulated.serving import SimulatedServer
from psyprobe.probes import load_probe, probe_summary
from psyprobe.probes.results import score_layers, scoreboard

PAGES = tomllib.loads(
    files("psyprobe.observers").joinpath("kinds.toml").read_text("utf-8")
)
#: All but that of files, whose name is the file.
KINDS = [prefix for prefix in PAGES if not prefix.startswith("FILE")]
PROBES = {
    "detection": "psyprobe.probes.detection",
    "discrimination": "psyprobe.probes.discrimination",
    "acuity": "psyprobe.probes.acuity",
    "matching": "psyprobe.probes.matching",
    "yes_no": "psyprobe.probes.words.schedule:yes_no",
    "two_interval": "psyprobe.probes.words.schedule:two_interval",
    "orientation": "psyprobe.probes.words.schedule:orientation",
    "orientation_4": "psyprobe.probes.words.schedule:orientation_4",
}
#: Another package: it loads what the built-in loads, under names of its own.
TWIN_KINDS = """
import functools
from dataclasses import replace
import tomllib
from importlib import import_module
from importlib.resources import files
from psyprobe.observers import ObserverKind

PAGES = tomllib.loads(files("psyprobe.observers").joinpath("kinds.toml").read_text("utf-8"))

def kind_of(prefix):
    page = dict(PAGES[prefix])
    module = import_module(f"psyprobe.observers.{page.pop('module')}")
    named = {key: getattr(module, page[key]) for key in ("load", "options", "rows") if key in page}
    page["form"] = f"twinof{page['form']}"
    if "rows" in named:
        listed = named["rows"]
        named["rows"] = lambda: [replace(row, name=f"twinof{row.name}") for row in listed()]
    named["load"] = renamed(named["load"])
    return ObserverKind(f"twinof{prefix}", **{**page, **named, "requires": tuple(page.get("requires", ()))})

def renamed(load):
    @functools.wraps(load)
    def loaded(*arguments, **options):
        observer = load(*arguments, **options)
        observer.card = replace(observer.card, name=f"twinof{observer.card.name}")
        return observer

    return loaded

def __getattr__(name):
    return kind_of(name)
"""
SHORT = {"levels.frequency.values": [2, 4]}
#: A short experiment of each probe: a page of the catalogue, what is changed in it, and who is asked.
ASKED: dict[str, tuple[str, dict[str, Any], str]] = {
    "detection": ("gabor_achromatic", {"levels.contrast.n": 5}, "pixels"),
    "discrimination": ("contrast_discrimination", {}, "castlecsf"),
    "acuity": ("acuity_achromatic", {}, "pixels"),
    "matching": ("contrast_matching", {}, "pixels"),
    "yes_no": (
        "hernandez2025",
        {"asking.prompts": "base", **SHORT},
        "simulated:watson-malo",
    ),
    "two_interval": (
        "hernandez2025",
        {"asking.prompts": "two_image", **SHORT},
        "simulated:watson-malo",
    ),
    "orientation": ("orientation_csf", SHORT, "simulated:castlecsf"),
    "orientation_4": (
        "orientation_csf",
        {"asking.prompts": "orientation_4", **SHORT},
        "simulated:castlecsf",
    ),
}


@pytest.fixture(autouse=True)
def twins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package with all twins."""
    site = tmp_path / "site"
    about = site / "twins-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "twin_kinds.py").write_text(TWIN_KINDS, encoding="utf-8")
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: twins\nVersion: 1.0\n"
    )
    lines = [
        f'{name} = ProbeKind("{place}", "{probe_summary(name)}")'
        for name, place in PROBES.items()
    ]
    text = "\n".join(["from psyprobe.probes import ProbeKind", *lines, ""])
    (site / "twin_probes.py").write_text(text, encoding="utf-8")
    probes = "".join(f"twinof{name} = twin_probes:{name}\n" for name in PROBES)
    kinds = "".join(f"twinof{prefix} = twin_kinds:{prefix}\n" for prefix in KINDS)
    points = f"[psyprobe.probes]\n{probes}[psyprobe.observers]\n{kinds}"
    (about / "entry_points.txt").write_text(points, encoding="utf-8")
    monkeypatch.syspath_prepend(site)


def plain(text: str) -> str:
    """Take the names of twins, and with them widths, digests and times, out of a text."""
    text = re.sub(r" {2,}|-{3,}", " ", text)
    text = re.sub(r"\b[0-9a-f]{8,64}\b", "#", text.replace("twinof", ""))
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.+]+", "TIME", text)


def attributes(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: plain(str(value)) for name, value in values.items()}


def check_alike(result: xr.Dataset, twin: xr.Dataset, folder: Path) -> None:
    """Compare results, scores, tables, scoreboards, figures' data and reports."""
    assert attributes(twin.attrs) == attributes(result.attrs)
    xr.testing.assert_equal(
        twin.assign_coords(observer=plain(str(twin["observer"].item()))), result
    )
    for name, variable in result.variables.items():
        assert attributes(twin[name].attrs) == attributes(variable.attrs)
    scores, twin_scores = score_layers(result), score_layers(twin)
    assert twin_scores
    for one, other in zip(scores, twin_scores, strict=True):
        assert plain(json.dumps(other.to_dict())) == plain(json.dumps(one.to_dict()))
        assert plain(other.to_frame().to_csv()) == plain(one.to_frame().to_csv())
    for format in ("text", "markdown", "latex", "csv", "json"):
        assert plain(score_table(twin_scores, format)) == plain(
            score_table(scores, format)
        )
        assert plain(_scoreboard(twin, format)) == plain(_scoreboard(result, format))
    assert _parts(twin) == _parts(result)
    pages = [
        pp.report([one], folder / name) for name, one in (("a", result), ("b", twin))
    ]
    page, twin_page = (plain(path.read_text(encoding="utf-8")) for path in pages)
    assert twin_page == page


def _scoreboard(result: xr.Dataset, format: str) -> str:
    try:
        return scoreboard([result]).table(format)
    except InputError as error:
        return str(error)


def _parts(result: xr.Dataset) -> list[str]:
    """The figures and tables that a report shows, as their data."""
    report = getattr(load_probe(str(result.attrs["probe"])), "report", None)
    return (
        []
        if report is None
        else [plain(repr(asdict(part))) for part in report([result])]
    )


@pytest.mark.parametrize("probe", ASKED)
def test_a_probe(probe: str, tmp_path: Path) -> None:
    name, changes, observer = ASKED[probe]
    experiment = load_experiment(name).with_settings({"probe": probe, **changes})
    result = pp.run(experiment, observer, progress=False)
    twin = pp.run(
        experiment.with_settings({"probe": f"twinof{probe}"}), observer, progress=False
    )
    check_alike(result, twin, tmp_path)


def check_twin(page: Experiment, name: str, folder: Path, **options: Any) -> None:
    """Run a page with an observer and with its twin, and compare all that comes of it."""
    observers = (load_observer(each, **options) for each in (name, f"twinof{name}"))
    results = [pp.run(page, observer, progress=False) for observer in observers]
    check_alike(*results, folder)


@pytest.fixture
def pictures() -> Experiment:
    """A page for observers with features or differences."""
    return load_experiment("gabor_achromatic").with_settings(
        {"levels.contrast.n": 3, **SHORT}
    )


@pytest.fixture
def questions() -> Experiment:
    """A page for observers that answer."""
    return load_experiment("hernandez2025").with_settings(
        {"asking.prompts": "base", "levels.contrast.n": 3, **SHORT}
    )


@pytest.mark.parametrize("observer", ["pixels", "castlecsf", "cvvdp"])
def test_an_observer_without_weights(
    observer: str, pictures: Experiment, tmp_path: Path
) -> None:
    if observer == "cvvdp":
        pytest.importorskip("pycvvdp", reason="the metrics extra is not installed")
    check_twin(pictures, observer, tmp_path)


def test_an_encoder(
    encoder_name: str,
    encoder_options: dict[str, Any],
    pictures: Experiment,
    tmp_path: Path,
) -> None:
    if encoder_name.startswith("torch:"):
        encoder_options["input_size"] = 224
    check_twin(pictures, encoder_name, tmp_path, **encoder_options)


def test_an_observer_that_answers(questions: Experiment, tmp_path: Path) -> None:
    check_twin(questions, "simulated:watson-malo", tmp_path)


def test_a_served_model(questions: Experiment, tmp_path: Path) -> None:
    served = load_observer("simulated:watson-malo")
    with SimulatedServer(served) as server:
        check_twin(
            questions, f"openai:{server.model}", tmp_path, base_url=server.base_url
        )


def test_a_chat_model_in_this_process(
    questions: Experiment, chat_folders: Callable[[str], Path], tmp_path: Path
) -> None:
    check_twin(
        questions, f"transformers:{chat_folders('llava')}", tmp_path, device="cpu"
    )


@pytest.mark.parametrize("prefix", KINDS)
def test_a_kind_is_listed_and_takes_options_as_its_twin_does(prefix: str) -> None:
    rows, twin_rows = (
        list_observers(f"{name}*") for name in (prefix, f"twinof{prefix}")
    )
    own = [row for row in rows if re.split(r"[:?]", row.name)[0] == prefix]
    theirs = [
        row for row in twin_rows if re.split(r"[:?]", row.name)[0] == f"twinof{prefix}"
    ]
    assert [replace(row, name=plain(row.name)) for row in theirs] == own and own
    for option in ("layers", "input", "device", "dtype", "weights", "seed", "base_url"):
        assert takes_option(f"twinof{prefix}:x", option) == takes_option(
            f"{prefix}:x", option
        )
