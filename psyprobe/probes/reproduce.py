"""A result run again from what it holds, and what differs then."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe.analysis.measures import join_measures
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.experiment import Experiment, read_experiment
from psyprobe.experiment.experiment import experiment_from_text
from psyprobe.files.listing import frame_of
from psyprobe.files.terminal import printable_line
from psyprobe.observers.protocol import Card
from psyprobe.probes import load_probe
from psyprobe.probes.experiments import load_results, observer_for, run_experiment

if TYPE_CHECKING:
    import pandas as pd
    import xarray

#: Attributes of a result that are tables: entries are compared one by one.
_TABLES = ("observer_card", "software", "display")


@dataclass(frozen=True)
class Difference:
    """Something that is not as it was."""

    #: A variable of the result, or what stands in its attributes.
    what: str
    before: str
    now: str
    #: Largest difference of numbers, in the unit of the variable; None for all else.
    largest: float | None = None

    def __str__(self) -> str:
        if self.largest is not None:
            return (
                f"{self.what}: differs by up to {self.largest:.3g} ({self.before} then, "
                f"{self.now} now)"
            )
        return f"{self.what}: {self.before} then, {self.now} now"


@dataclass(frozen=True)
class Reproduction:
    """What came of running a result again; it prints as lines."""

    experiment: str
    observer: str
    #: Numbers and texts that came out.
    responses: tuple[Difference, ...]
    #: How they came about: page, card, display, software, server.
    circumstances: tuple[Difference, ...]

    @property
    def same(self) -> bool:
        """Whether every number and every text came out as it was."""
        return not self.responses

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON can hold it."""
        return {**asdict(self), "same": self.same}

    def to_frame(self) -> pd.DataFrame:
        """One row a difference, of responses first and then of circumstances."""
        return frame_of((*self.responses, *self.circumstances))

    def __str__(self) -> str:
        found = "same" if self.same else "not the same"
        lines = [f"{self.experiment} with {self.observer}: every number and text is the {found}"]
        if not self.same:
            lines = [
                f"{self.experiment} with {self.observer}: {len(self.responses)} variables are "
                "not the same"
            ]
        return "\n".join(
            [*lines, *(f"  {each}" for each in (*self.responses, *self.circumstances))]
        )


def reproduce(
    result: str | Path,
    *,
    experiment: str | Path | None = None,
    observer: Any = None,
    **options: Any,
) -> Reproduction:
    """Run a result again from what it holds, into a store that is forgotten, and compare.

    Parameters
    ----------
    result : str or Path
        ``.nc`` that `psyprobe run` wrote, or the ``.json`` beside it.
    experiment : str or Path, optional
        The page; by default the text that the result holds, which finds its own files beside the
        result.
    observer : str or observer, optional
        Who is asked; by default the one of the result, which must still be the same.
    **options
        Of `load_observer`.

    Returns
    -------
    Reproduction
        What differs.

    Raises
    ------
    InputError
        The result does not hold what it takes, a file that its page names is gone, or the observer
        of its name is another one now.
    PsyprobeError
        The observer cannot be had.
    """
    path = Path(result)
    if path.suffix not in (".nc", ".json"):
        raise InputError(
            f"{path} is no result; give RESULT.nc that run wrote, or the RESULT.json beside it"
        )
    if path.suffix == ".json" and not path.with_suffix(".nc").exists():
        raise InputError(
            f"{path} holds scores only, and the result {path.stem}.nc is not beside it; give that"
        )
    (before,) = load_results(path.with_suffix(".nc"))
    page = _page(before, path.parent, experiment)
    who = _observer(before, page, observer, options)
    size = before.attrs.get("batch_size")
    now = run_experiment(
        page,
        who,
        batch_size=None if size is None else int(size),
        score_only=_score_only(before, page),
    )
    return Reproduction(
        str(before.attrs["experiment"]),
        str(before.attrs.get("observer", "")),
        tuple(_responses(before, now)),
        tuple(_circumstances(_attributes(before), _attributes(now))),
    )


def _page(result: xarray.Dataset, folder: Path, given: str | Path | None) -> Experiment:
    name, text = (result.attrs.get(key) for key in ("experiment", "experiment_toml"))
    if given is not None:
        page = read_experiment(given)
    elif not isinstance(name, str) or not isinstance(text, str):
        raise InputError(
            "the result does not hold the page of its experiment; give it with --experiment"
        )
    else:
        try:
            page = experiment_from_text(text, name, folder)
        except InputError as error:
            raise InputError(
                f"{error}; files that a page names are looked for beside the result; give "
                "--experiment"
            ) from None
    varied = json.loads(result.attrs.get("variants", "{}"))
    return page.with_variants(varied) if varied else page


def _score_only(result: xarray.Dataset, page: Experiment) -> bool:
    """Whether only what the score needs was shown: then levels that figures need are not there."""
    if "score" not in load_probe(page.probe).SECTIONS:
        return False
    known = {name: len(values) for name, values in page.levels.items() if name in result.sizes}
    return "response" not in join_measures(result) or any(
        result.sizes[name] != count for name, count in known.items()
    )


def _observer(
    result: xarray.Dataset, page: Experiment, given: Any, options: Mapping[str, Any]
) -> Any:
    if given is not None or "observer_card" not in result.attrs:
        return observer_for(page, given, **options)
    card = Card.from_dict(json.loads(result.attrs["observer_card"]))
    known = {"random_weights": True} if card.random_weights else {}
    who = observer_for(page, card.name, **known, **options)
    if who.card.digest != card.digest and not options:
        who = _with_options(page, card, who, known)
    if who.card.digest != card.digest:
        changed = _told(card.to_dict(), who.card.to_dict(), ("device", "software", "weights"))
        raise InputError(
            f"{card.name} is not the observer of the result any more: "
            f"{'; '.join(map(str, changed))}"[:240]
            + "; give what it was loaded with, --observer-option NAME=VALUE, or another --observer"
        )
    return who


def _with_options(page: Experiment, card: Card, plain: Any, known: Mapping[str, Any]) -> Any:
    """The observer with what its card says that it was loaded with, as far as its kind takes
    that.
    """
    asked = {
        name: value for name, value in card.options.items() if plain.card.options.get(name) != value
    }
    if card.features != plain.card.features:
        asked["layers"] = card.features
    if card.input != plain.card.input:
        asked["input"] = card.input
    try:
        return observer_for(page, card.name, **known, **asked)
    except (PsyprobeError, TypeError):
        return plain


def _responses(before: xarray.Dataset, now: xarray.Dataset) -> Iterator[Difference]:
    for name in sorted({*map(str, before.variables), *map(str, now.variables)}):
        if name not in before.variables or name not in now.variables:
            there = ["there" if name in one.variables else "not there" for one in (before, now)]
            yield Difference(name, there[0], there[1])
            continue
        one = before[name].values
        other = now[name].values
        if one.shape != other.shape:
            yield Difference(name, f"shape {one.shape}", f"shape {other.shape}")
        elif one.dtype.kind in "fiub" and other.dtype.kind in "fiub":
            yield from _numbers(name, one.astype(float), other.astype(float))
        elif (apart := one.astype(str) != other.astype(str)).any():
            texts = [repr(printable_line(str(each[apart].flat[0]))[:40]) for each in (one, other)]
            yield Difference(f"{name} ({int(apart.sum())} of {one.size})", texts[0], texts[1])


def _numbers(
    name: str, one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]
) -> Iterator[Difference]:
    apart = ~((one == other) | (np.isnan(one) & np.isnan(other)))
    if not apart.any():
        return
    told = f"{name} ({int(apart.sum())} of {one.size})"
    size = np.where(apart, np.abs(one - other), 0)
    place = np.unravel_index(int(np.argmax(np.where(np.isnan(size), np.inf, size))), size.shape)
    largest = float(size[place])
    values = [f"{each[place]:.17g}" for each in (one, other)]
    yield Difference(told, values[0], values[1], largest if np.isfinite(largest) else None)


def _attributes(result: xarray.Dataset) -> dict[str, Any]:
    told = {
        name: value
        for name, value in result.attrs.items()
        if name not in ("experiment_toml", "psyprobe_version")
    }
    return told | {name: json.loads(told[name]) for name in _TABLES if name in told}


def _circumstances(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Difference]:
    for name in sorted({*before, *now}):
        one = before.get(name)
        other = now.get(name)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            yield from _told(one, other, (), name)
        elif str(one) != str(other):
            yield Difference(name, _short(one), _short(other))


def _told(
    before: Mapping[str, Any], now: Mapping[str, Any], but: tuple[str, ...], table: str = ""
) -> list[Difference]:
    """Entries of a table that differ; what is not there is none."""
    return [
        Difference(f"{table} {name}".strip(), _short(before.get(name)), _short(now.get(name)))
        for name in sorted({*before, *now} - set(but))
        if before.get(name) != now.get(name)
    ]


def _short(value: Any) -> str:
    return printable_line(str(value))[:60]
