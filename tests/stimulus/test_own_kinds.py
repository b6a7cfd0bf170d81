"""A kind of one's own with parameters of its own, from a file and from a package, is a kind as all
others are."""

from __future__ import annotations

import importlib.metadata
import json
import pickle
import re
from dataclasses import FrozenInstanceError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from psyprobe.cli import main
from psyprobe.errors import InputError, UnknownNameError
from psyprobe.stimulus import (
    Specification,
    broken_kinds,
    level_of,
    registry,
    specification_from_dict,
    with_levels,
)
from psyprobe.stimulus.catalogue import load_stimulus

DOCS = Path(__file__).parents[2] / "docs"
(SOURCE,) = re.findall(
    r"```python \(my_kinds\.py\)\n(.*?)```",
    (DOCS / "tutorial_stimulus.md").read_text(encoding="utf-8"),
    re.S,
)
PAGE = next(
    block
    for block in re.findall(
        r"```toml\n(.*?)```", (DOCS / "stimuli.md").read_text(encoding="utf-8"), re.S
    )
    if "my_kinds.py:Plaid" in block
)


@pytest.fixture(autouse=True)
def kinds_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "KINDS", registry.KINDS.copy())


@pytest.fixture
def page(tmp_path: Path) -> Path:
    (tmp_path / "my_kinds.py").write_text(SOURCE, encoding="utf-8")
    path = tmp_path / "plaids.toml"
    path.write_text(PAGE, encoding="utf-8")
    return path


class Points(list[Any]):
    """Entry points of installed packages."""

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            importlib.metadata,
            "entry_points",
            lambda group: self if group == registry.GROUP else [],
        )


def broken() -> Any:
    raise ImportError("no module named\n'nothing'")


def whole_life(spec: Specification) -> None:
    """Drawn, measured, changed, written down: with an own parameter of an own unit."""
    stimulus = spec.draw()
    assert stimulus.batch == () and stimulus.luminance.mean() == pytest.approx(
        100, rel=0.01
    )
    certificate = stimulus.measure()
    assert certificate.passed and certificate["contrast"].delivered == pytest.approx(
        0.5, rel=1e-12
    )
    assert (level_of(spec, "spread").unit, level_of(spec, "spread").label) == (
        "deg",
        "Angle between the gratings",
    )
    narrow = with_levels(spec, spread=[30.0, 60.0])
    assert (
        narrow.batch == (2,)
        and narrow.digest != spec.digest
        and narrow.draw().measure().passed
    )
    assert (
        specification_from_dict(spec.to_dict())
        == spec
        == pickle.loads(pickle.dumps(spec))
    )
    with pytest.raises(
        InputError, match="spread is 200 deg; it must be >= 0 and <= 180 deg"
    ):
        with_levels(spec, spread=200)
    with pytest.raises(UnknownNameError, match="did you mean 'spread'"):
        with_levels(spec, sprad=20)
    half = type(spec)(frequency=4.0, contrast=0.25, spread=90.0).draw().luminance  # type: ignore[call-arg]
    np.testing.assert_allclose(half - 100, (stimulus.luminance - 100) / 2, atol=1e-12)
    red_green = spec.changed(direction="red_green", contrast=0.02).draw()
    assert red_green.space == "lms" and red_green.measure()["contrast"].passed


def test_a_kind_that_is_decorated_as_a_dataclass_is_the_same(page: Path) -> None:
    file = page.with_name("my_kinds.py")
    decorated = SOURCE.replace(
        "\nclass Plaid",
        "\nfrom dataclasses import dataclass\n\n"
        "@dataclass(frozen=True, eq=False, repr=False, kw_only=True)\nclass Plaid",
    )
    file.write_text(decorated, encoding="utf-8")
    plaid = load_stimulus(page).spec()
    whole_life(plaid)
    with pytest.raises(FrozenInstanceError):
        plaid.spread = 10.0  # type: ignore[attr-defined]


def test_a_kind_in_a_file_beside_the_page(page: Path) -> None:
    stimulus_set = load_stimulus(page)
    assert (
        stimulus_set.levels["spread"].tolist() == [30, 60, 90, 120]
        and level_of(stimulus_set.spec(), "spread").unit == "deg"
    )
    whole_life(stimulus_set.spec())
    batch = stimulus_set.spec(spread=stimulus_set.levels["spread"])
    np.testing.assert_allclose(
        batch.draw().pixels[2], stimulus_set.spec().draw().pixels, rtol=1e-12
    )


def test_a_kind_from_an_entry_point(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plaid = type(load_stimulus(page).spec())
    Points([SimpleNamespace(name="plaid", load=lambda: plaid)]).install(monkeypatch)
    spec = specification_from_dict({"kind": "plaid", "frequency": 4.0, "contrast": 0.5})
    assert spec.kind == "plaid" and broken_kinds() == {}
    whole_life(spec)
    with pytest.raises(UnknownNameError, match="did you mean 'plaid'"):
        specification_from_dict({"kind": "plad"})


def test_a_sum_with_a_kind_of_ones_own(page: Path) -> None:
    masked = page.with_name("masked.toml")
    masked.write_text(
        'title = "On a plaid"\nkind = "gabor"\n[parameters]\nfrequency = 4.0\ncontrast = 0.1\n'
        '[parts.plaid]\nkind = "my_kinds.py:Plaid"\nfrequency = 2.0\ncontrast = 0.2\n',
        encoding="utf-8",
    )
    spec = load_stimulus(masked).spec(plaid_spread=40.0)
    assert (
        spec.value("plaid_spread") == 40.0
        and spec.draw().measure()["part 2 contrast"].passed
    )
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert "my_kinds.py" in json.dumps(load_stimulus(masked).content())


def test_the_digest_is_of_what_the_file_says_not_of_where_it_lies(
    page: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("my_kinds.py", "plaids.toml"):
        (elsewhere / name).write_text(
            (tmp_path / name).read_text(encoding="utf-8"), encoding="utf-8"
        )
    first = load_stimulus(page)
    assert load_stimulus(elsewhere / "plaids.toml").spec().digest == first.spec().digest
    assert load_stimulus(elsewhere / "plaids.toml").content() == first.content()
    (elsewhere / "my_kinds.py").write_text(
        SOURCE.replace("/ 2)", "/ 2.0)"), encoding="utf-8"
    )
    assert load_stimulus(elsewhere / "plaids.toml").spec().digest != first.spec().digest


def test_a_broken_package_is_one_line_and_touches_nothing_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    points = [
        SimpleNamespace(name="broken", load=broken),
        SimpleNamespace(name="no_class", load=lambda: 3),
        SimpleNamespace(name="gabor", load=lambda: Specification),
    ]
    Points(points).install(monkeypatch)
    assert load_stimulus("gabor_achromatic").spec().draw().measure().passed
    reasons = broken_kinds()
    where = f"test_own_kinds.py, line {broken.__code__.co_firstlineno + 1}: "
    assert reasons["broken"] == f"{where}ImportError: no module named 'nothing'"
    assert set(reasons) == {"broken", "no_class", "gabor"} and not any(
        "\n" in why for why in reasons.values()
    )
    with pytest.raises(
        InputError,
        match=r"'broken' of an installed package does not load: .*ImportError: no module",
    ):
        specification_from_dict({"kind": "broken"})
    assert main(["list", "stimuli"]) == 0
    assert f"cannot run here: {reasons['broken']}" in capsys.readouterr().out


def test_data_runs_no_file(page: Path, tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text("raise SystemExit('run')", encoding="utf-8")
    with pytest.raises(InputError, match="runs only where a stimulus page names it"):
        specification_from_dict({"kind": f"{tmp_path}/evil.py:Plaid", "contrast": 1})


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("nowhere.py:Plaid", "cannot be read: No such file"),
        ("my_kinds.py:Plad", "defines no 'Plad'"),
        ("my_kinds.py:np", "a kind is a class that inherits"),
        (
            "fails.py:Plaid",
            "fails.py cannot be imported: fails.py, line 1: ZeroDivisionError",
        ),
    ],
)
def test_a_file_that_has_no_such_kind(page: Path, kind: str, message: str) -> None:
    page.with_name("fails.py").write_text("1 / 0", encoding="utf-8")
    page.write_text(PAGE.replace("my_kinds.py:Plaid", kind), encoding="utf-8")
    with pytest.raises(InputError, match=message) as error:
        load_stimulus(page)
    assert "\n" not in str(error.value)
