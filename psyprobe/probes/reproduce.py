"""Run a result again from its own contents, and report the differences."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe.analysis.measures import join_measures
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.experiment import Experiment, load_experiment
from psyprobe.experiment.experiment import experiment_from_text
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.listing import frame_of
from psyprobe.files.netcdf import as_text
from psyprobe.files.terminal import printable_line
from psyprobe.observers.protocol import Card
from psyprobe.probes import load_probe
from psyprobe.probes.experiments import load_results, observer_for, run_experiment

if TYPE_CHECKING:
    import pandas as pd
    from xarray import Dataset

#: Attributes of a result that are tables, whose entries are compared one by one.
_TABLES = ("observer_card", "software", "display")


@dataclass(frozen=True)
class Difference:
    """A variable or attribute that differs between a result and its repeat."""

    #: Name of the variable, or of the attribute and its entry.
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
    """The differences between a result and its repeat; it prints as lines."""

    experiment: str
    observer: str
    #: Differences of numbers and texts.
    responses: tuple[Difference, ...]
    #: Differences of their origin: page, card, display, software, server.
    circumstances: tuple[Difference, ...]

    @property
    def same(self) -> bool:
        """Tell whether every number and text is the same."""
        return not self.responses

    def to_dict(self) -> JsonObject:
        """Return all fields, and "same", as JSON values."""
        return {**asdict(self), "same": self.same}

    def to_frame(self) -> pd.DataFrame:
        """Convert the differences to a pandas table, of responses first."""
        return frame_of((*self.responses, *self.circumstances))

    def __str__(self) -> str:
        verdict = "every number and text is the same"
        if not self.same:
            verdict = f"{len(self.responses)} variables are not the same"
        lines = [f"{self.experiment} with {self.observer}: {verdict}"]
        lines += [
            f"  {difference}" for difference in (*self.responses, *self.circumstances)
        ]
        return "\n".join(lines)


def reproduce(
    result: str | Path,
    *,
    experiment: str | Path | None = None,
    observer: Any = None,
    **options: Any,
) -> Reproduction:
    """Run a result again from its own contents, without a store, and compare the two.

    Parameters
    ----------
    result : str or Path
        The ``.nc`` file that `psyprobe run` wrote, or the ``.json`` file beside it.
    experiment : str or Path, optional
        The page; by default the text in the result, whose files are looked for beside the result.
    observer : str or observer, optional
        The observer; by default that of the result, which must still be the same.
    **options
        Options of `load_observer`.

    Returns
    -------
    Reproduction
        The differences.

    Raises
    ------
    InputError
        The result lacks its page, a file that the page names is missing, or the observer of that
        name has changed.
    PsyprobeError
        The observer cannot be loaded.
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
    page = _load_page(before, path.parent, experiment)
    participant = _load_observer(before, page, observer, options)
    size = before.attrs.get("batch_size")
    repeat = run_experiment(
        page,
        participant,
        batch_size=None if size is None else int(size),
        score_only=is_score_only(before, page),
    )
    return Reproduction(
        str(before.attrs["experiment"]),
        str(before.attrs.get("observer", "")),
        tuple(_compare_variables(before, repeat)),
        tuple(_compare_tables(_attributes(before), _attributes(repeat))),
    )


def _load_page(
    result: Dataset, folder: Path, replacement: str | Path | None
) -> Experiment:
    """Load the experiment that a result holds, or a replacement of it."""
    name, text = (result.attrs.get(key) for key in ("experiment", "experiment_toml"))
    if replacement is not None:
        page = load_experiment(replacement)
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
    return page.with_variants(varied) if varied or page.variants else page


def is_score_only(result: Dataset, page: Experiment) -> bool:
    """Tell whether a result's run showed only what its score needs."""
    if "score" not in load_probe(page.probe).SECTIONS:
        return False
    return "response" not in join_measures(result) or any(
        result.sizes.get(name, len(values)) != len(values)
        for name, values in page.levels.items()
    )


def _load_observer(
    result: Dataset, page: Experiment, replacement: Any, options: JsonMapping
) -> Any:
    """Load the observer that a result names, refusing one whose card has changed."""
    if replacement is not None or "observer_card" not in result.attrs:
        return observer_for(page, replacement, **options)
    card = Card.from_dict(json.loads(result.attrs["observer_card"]))
    weight_options = {"random_weights": True} if card.random_weights else {}
    participant = observer_for(page, card.name, **weight_options, **options)
    if participant.card.digest != card.digest and not options:
        participant = _with_options(page, card, participant, weight_options)
    if participant.card.digest != card.digest:
        ignored = ("device", "software", "weights")
        changed = _compare_tables(card.to_dict(), participant.card.to_dict(), ignored)
        raise InputError(
            f"{card.name} is not the observer of the result any more: "
            f"{'; '.join(map(str, changed))}"[:240]
            + "; give what it was loaded with, --observer-option NAME=VALUE, or another --observer"
        )
    return participant


def _with_options(
    page: Experiment, card: Card, plain_observer: Any, weight_options: JsonMapping
) -> Any:
    """Load the observer with the options on its card; if that fails, return the plain one."""
    recorded_options = {
        name: value
        for name, value in card.options.items()
        if plain_observer.card.options.get(name) != value
    }
    if "batch_norm" in set(plain_observer.card.options) - set(card.options):
        recorded_options["batch_norm"] = "separate"  # as before they were folded
    if card.features != plain_observer.card.features:
        recorded_options["layers"] = card.features
    if card.input != plain_observer.card.input:
        recorded_options["input"] = card.input
    try:
        return observer_for(page, card.name, **weight_options, **recorded_options)
    except (PsyprobeError, TypeError):
        return plain_observer


def _compare_variables(before: Dataset, repeat: Dataset) -> Iterator[Difference]:
    """Iterate over the variables in which two results differ."""
    for name in sorted({*map(str, before.variables), *map(str, repeat.variables)}):
        if name not in before.variables:
            yield Difference(name, "not there", "there")
        elif name not in repeat.variables:
            yield Difference(name, "there", "not there")
        elif before[name].shape != repeat[name].shape:
            before_shape = f"shape {before[name].shape}"
            yield Difference(name, before_shape, f"shape {repeat[name].shape}")
        else:
            yield from _compare_values(name, before[name].values, repeat[name].values)


def _compare_values(name: str, before: Any, repeat: Any) -> Iterator[Difference]:
    """Yield how many values of a variable differ, and the largest difference."""
    numeric = before.dtype.kind in "fiub" and repeat.dtype.kind in "fiub"
    before = before.astype(float) if numeric else as_text(before)
    repeat = repeat.astype(float) if numeric else as_text(repeat)
    differs = before != repeat
    if numeric:
        differs &= ~(np.isnan(before) & np.isnan(repeat))
    if not differs.any():
        return
    label = f"{name} ({int(differs.sum())} of {before.size})"
    if not numeric:
        first = printable_line(before[differs][0])[:40]
        second = printable_line(repeat[differs][0])[:40]
        yield Difference(label, repr(first), repr(second))
        return
    size = np.where(differs, np.abs(before - repeat), 0)
    index = np.unravel_index(
        np.argmax(np.where(np.isnan(size), np.inf, size)), size.shape
    )
    largest = float(size[index]) if np.isfinite(size[index]) else None
    yield Difference(label, f"{before[index]:.17g}", f"{repeat[index]:.17g}", largest)


def _attributes(result: Dataset) -> JsonObject:
    """Return a result's attributes, with tables among them entry by entry."""
    attributes: JsonObject = {}
    for name, value in result.attrs.items():
        if name in _TABLES:
            table = json.loads(value)
            attributes |= {f"{name} {key}": entry for key, entry in table.items()}
        elif name not in ("experiment_toml", "psyprobe_version"):
            attributes[name] = str(value)
    return attributes


def _compare_tables(
    before: JsonMapping, repeat: JsonMapping, ignored: tuple[str, ...] = ()
) -> Iterator[Difference]:
    """Iterate over the entries that differ between two tables."""
    for name in sorted({*before, *repeat} - set(ignored)):
        first = before.get(name)
        second = repeat.get(name)
        if first != second:
            yield Difference(name, _shorten(first), _shorten(second))


def _shorten(value: Any) -> str:
    """Make a value one printable line of up to 60 characters."""
    return printable_line(str(value))[:60]
