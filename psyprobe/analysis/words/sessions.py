"""Merge the sessions of a person into one result, and estimate the error of their screens.

A session on another screen or at another distance may lie higher or lower as a whole. How far is
estimated from the sessions' own curves, and its answers are moved by it before all are taken
together.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from psyprobe._typing import BoolArray, FloatArray
from psyprobe.analysis.words.trial_table import (
    arrange_trials,
    is_in_words,
    trial_count,
    trials,
)
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonMapping
from psyprobe.observers.human_screen import Screen

if TYPE_CHECKING:
    import xarray as xr

#: Standard deviation between sessions on different screens, log10.
_BETWEEN_SCREENS = 0.05
#: Attributes that a result of sessions on several screens does not have.
_SINGLE_SESSION = (
    "design_estimates",
    "observer_card",
    "display",
    "delivery",
    "size",
    "ppd",
)


@dataclass(frozen=True)
class SessionRecord:
    """One session of a person."""

    #: Its own random name.
    identifier: str
    screen: Screen
    #: Answers in it.
    trials: int


def person_of(result: xr.Dataset) -> str:
    """Read the pseudonym of the person who answered; "" for other observers."""
    return str(_read_options(result).get("person", ""))


def sessions_of(result: xr.Dataset) -> tuple[SessionRecord, ...]:
    """List the sessions of a person in a result; none for other observers."""
    if "sessions" in result.attrs:
        entries = json.loads(result.attrs["sessions"])
        return tuple(
            SessionRecord(
                entry["session"], Screen.from_dict(entry["screen"]), entry["trials"]
            )
            for entry in entries
        )
    options = _read_options(result)
    if "person" not in options:
        return ()
    count = trial_count(result) if is_in_words(result) else int(result["trials"].sum())
    return (
        SessionRecord(options["session"], Screen.from_dict(options["screen"]), count),
    )


def is_remote(result: xr.Dataset) -> bool:
    """Tell whether a person answered elsewhere, on an uncalibrated screen."""
    return any(session.screen.light == "remote" for session in sessions_of(result))


def _read_options(result: xr.Dataset) -> JsonMapping:
    """Read the options of the observer's card from a result."""
    options = json.loads(str(result.attrs.get("observer_card", "{}"))).get(
        "options", {}
    )
    return options if isinstance(options, dict) else {}


def part_of(result: xr.Dataset) -> str | None:
    """Return what tells apart whose sessions can be merged; None if no person answered."""
    person = person_of(result)
    return f"{person} {result.attrs['experiment_digest']}" if person else None


def merge_sessions(results: Sequence[xr.Dataset]) -> xr.Dataset:
    """Merge a person's sessions in one experiment along the dimension `session`.

    Parameters
    ----------
    results : sequence of xarray.Dataset
        Of which `part_of` is the same; a session that comes twice counts once.

    Returns
    -------
    xarray.Dataset
        Its attribute `sessions` lists session, screen and number of answers of each. Those that say
        something of one session alone are left out: `design_estimates`, and what belongs to the
        screen where there were several.
    """
    import xarray as xr

    sessions: dict[str, SessionRecord] = {}
    parts = []
    for table in map(trials, results):
        numbers = table["session"].values.astype(int)
        for number, session in enumerate(sessions_of(table)):
            if session.identifier in sessions:
                # The same session, from two files.
                continue
            rows = table.isel(trial=np.flatnonzero(numbers == number))
            session_numbers = np.full(rows.sizes["trial"], float(len(sessions)))
            session_attributes = {"units": "1", "long_name": "Session, from 0"}
            parts.append(
                rows.assign(session=(("trial",), session_numbers, session_attributes))
            )
            sessions[session.identifier] = session
    if len(parts) == 1:
        return results[0]
    merged = xr.concat(
        parts, "trial", combine_attrs="override", coords="minimal", compat="override"
    )
    card = json.loads(str(results[0].attrs["observer_card"]))
    card["options"] = {"person": person_of(results[0])}
    entries = [
        {
            "session": session.identifier,
            "screen": session.screen.to_dict(),
            "trials": session.trials,
        }
        for session in sessions.values()
    ]
    screens = {session.screen for session in sessions.values()}
    dropped = ("design_estimates",) if len(screens) == 1 else _SINGLE_SESSION
    attributes = {
        name: value for name, value in results[0].attrs.items() if name not in dropped
    }
    merged.attrs = {
        **attributes,
        "observer_card": json.dumps(card),
        "sessions": json.dumps(entries),
    }
    return arrange_trials(merged)


@dataclass(frozen=True)
class ScreenError:
    """Error of thresholds that stays with the screens: standard deviations, log10 contrast."""

    #: Shared by all thresholds.
    offset: float
    #: Error of each threshold, the offset included.
    total: FloatArray
    #: Whether a threshold lies where an unmeasured panel's single steps decide, so that little is
    #: claimed of it.
    unsure: BoolArray


def screen_error(
    screens: Sequence[Screen],
    weights: Sequence[float],
    threshold: FloatArray,
    *,
    of_contrast: bool = True,
    in_noise: bool = False,
) -> ScreenError:
    """Estimate how much uncertain screen calibration adds to the intervals of mean thresholds.

    Parameters
    ----------
    screens : sequence of Screen
        Of sessions, or of people; equal ones share their error, others have errors of their own,
        which average out.
    weights : sequence of float
        With which they enter the mean.
    threshold : ndarray
        log10 contrast, or of the size of letters.
    of_contrast : bool
        Whether of contrast, which depends on the screen's light; a size depends on the distance.
    in_noise : bool
        Whether noise of a stated density spreads each contrast over many steps of the panel.
    """
    share: dict[Hashable, float] = {}
    by_light: dict[Hashable, Screen] = {}
    for screen, weight in zip(screens, weights, strict=True):
        # Another distance or another fit of the card is no other light.
        known = (screen.light, screen.size, screen.device_pixel_ratio)
        light: Hashable = (screen.display, *known) if of_contrast else screen
        by_light[light] = screen
        share[light] = share.get(light, 0.0) + weight / sum(weights)
    shares = np.array(list(share.values()))
    offsets = np.array(
        [
            screen.offset if of_contrast else screen.frequency_sd
            for screen in by_light.values()
        ]
    )
    sd = np.repeat(offsets[:, None], len(threshold), axis=1)
    if of_contrast and not in_noise:
        sd = np.array(
            [screen.threshold_sd(10.0**threshold) for screen in by_light.values()]
        )
    return ScreenError(
        offset=float(np.sqrt(sum((shares * offsets) ** 2))),
        total=np.sqrt(((shares[:, None] * sd) ** 2).sum(axis=0)),
        unsure=np.asarray((sd > offsets[:, None]).any(axis=0)),
    )


def session_offsets(
    level: FloatArray, variance: FloatArray, screens: Sequence[Screen]
) -> FloatArray:
    """Estimate how far the thresholds of each session lie above the mean, log10 units.

    Parameters
    ----------
    level : ndarray, shape (S,)
        Mean log10 sensitivity of each session by itself.
    variance : ndarray, shape (S,)
        Of these, by the answers.
    screens : sequence of Screen
        Of the sessions; those of one screen have one offset.

    Returns
    -------
    ndarray, shape (S,)
        The best linear prediction where offsets are normal with mean 0 and a standard deviation of
        0.05; 0 where all sat at one screen.

    Examples
    --------
    >>> from psyprobe.light.display import Display
    >>> display = Display(peak=200)
    >>> screens = [
    ...     Screen(pitch=0.265, distance=distance, display=display)
    ...     for distance in (900, 1000)
    ... ]
    >>> session_offsets(np.array([2.0, 1.9]), np.array([0.0, 0.0]), screens).round(3).tolist()
    [-0.05, 0.05]
    """
    if len(level) != len(screens):
        raise InputError(
            f"{len(screens)} screens do not fit {len(level)} sessions; give one for each"
        )
    distinct = list(dict.fromkeys(screens))
    if len(distinct) == 1:
        return np.zeros(len(level))
    number = np.array([distinct.index(screen) for screen in screens])
    means = np.empty((2, len(distinct)))
    for i in range(len(distinct)):
        members = number == i
        precision = 1 / np.maximum(variance[members], 1e-12)
        means[:, i] = precision @ level[members] / precision.sum(), 1 / precision.sum()
    weight = 1 / (_BETWEEN_SCREENS**2 + means[1])
    centre = weight @ means[0] / weight.sum()
    above = _BETWEEN_SCREENS**2 * weight * (means[0] - centre)
    return np.asarray(-above[number])
