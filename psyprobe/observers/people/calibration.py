"""Check what a page measured of the screen in front of a person, and make a `Screen` of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.light.display import Display
from psyprobe.observers.human_screen import Screen
from psyprobe.observers.people.by_eye import (
    CARD_MM,
    blind_spot_distance,
    exponent_by_eye,
    pixel_pitch,
)

#: Greatest difference between two fits of the card, as a share of their mean.
_CARD_SPREAD = 0.01
#: Greatest difference between the distances by blind spot and by tape, as a share: the angle of the
#: blind spot differs between people.
_SPOT_SPREAD = 0.15
#: The light of a screen without a measurement: an office's.
OFFICE = Display(peak=200.0, black=0.2, ambient=50.0)
_CONTRAST_RATIO = 1000
#: Least number of brightness matches.
_MIN_MATCHES = 6
#: Plausible exponents, and the greatest standard deviation with which one is used.
_EXPONENTS = (1.6, 2.8)
_MAX_SCATTER = 0.2
#: Least standard deviation of an exponent by eye.
_MIN_SCATTER = 0.05


def read_screen(values: JsonMapping, display: Display | None) -> Screen:
    """Build a screen from what the page measured so far, with office light by default.

    Parameters
    ----------
    values : mapping
        What the page sent: "cards", CSS px; "distance_method" with "distance", mm, or "offsets",
        CSS px, or both; "light" with "peak", cd/m², and "matches", pairs of share and drive; and
        what the browser says of its screen.
    display : Display, optional
        The screen's light, measured beforehand.

    Raises
    ------
    InputError
        A value is missing, out of range, or at odds with another.
    """
    ratio = read_number(values, "device_pixel_ratio", 1, 8)
    card = _card_width(values)
    if display is None:
        light = _read_light(values)
    else:
        has_curve = not isinstance(display.eotf, str | float)
        light = {"display": display, "light": "measured" if has_curve else "value"}
    return Screen(
        pitch=pixel_pitch(card, ratio),
        device_pixel_ratio=ratio,
        size=(
            int(read_number(values, "width", 100, 20000)),
            int(read_number(values, "height", 100, 20000)),
        ),
        period=read_number(values, "period", 1, 34) if "period" in values else 0.0,
        **_read_distance(values, card),
        **light,
    )


def read_exponent(values: JsonMapping) -> JsonObject | None:
    """Fit a screen's exponent to brightness matches: value, scatter, whether used; None without."""
    matches = values.get("matches")
    if not matches:
        return None
    if not isinstance(matches, list) or not all(
        isinstance(match, list) and len(match) == 2 for match in matches
    ):
        raise InputError(
            "the matches of brightness are no pairs of share and drive; load the page again"
        )
    if len(matches) < _MIN_MATCHES:
        raise InputError(
            f"brightness was matched {len(matches)} times; {_MIN_MATCHES} matches are needed "
            "at least"
        )
    pairs = [
        (
            check_number(share, "share", 0.01, 0.99),
            check_number(drive, "matched drive", 0.004, 0.996),
        )
        for share, drive in matches
    ]
    exponent, scatter = exponent_by_eye(pairs)
    used = _EXPONENTS[0] <= exponent <= _EXPONENTS[1] and scatter <= _MAX_SCATTER
    return {"exponent": round(exponent, 3), "scatter": round(scatter, 3), "used": used}


def read_number(values: JsonMapping, name: str, low: float, high: float) -> float:
    """Read a number within a range from what a page sent, or refuse it.

    Raises
    ------
    InputError
        It is missing, no number, or out of range.

    Examples
    --------
    >>> read_number({"distance": 600}, "distance", 200, 5000)
    600.0
    """
    return check_number(values.get(name), name.replace("_", " "), low, high)


def check_number(value: Any, label: str, low: float, high: float) -> float:
    """Return a value that is a number within a range, or refuse it by its label."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not low <= value <= high
    ):
        raise InputError(
            f"{label} is {value!r:.40}; give a number from {low:g} to {high:g}"
        )
    return float(value)


def _card_width(values: JsonMapping) -> float:
    """Compute the mean width of two fits of the bank card, CSS px."""
    cards = values.get("cards")
    if not isinstance(cards, list) or len(cards) != 2:
        raise InputError("the card was not fitted twice; load the page again")
    first, second = (check_number(card, "width of the card", 1, 5000) for card in cards)
    mean = (first + second) / 2
    if abs(first - second) > _CARD_SPREAD * mean:
        raise InputError(
            f"the card was {first:g} px wide and then {second:g} px; two fits may differ by 1 "
            "%: fit it again"
        )
    return mean


def _read_distance(values: JsonMapping, card: float) -> JsonObject:
    """Read the viewing distance, mm, by tape or blind spot, refusing two that disagree."""
    spot = _blind_spot_distance(values, card)
    if values.get("distance_method") == "blind_spot":
        if spot is None:
            raise InputError(
                "nothing is known of the distance; measure it with a tape, or by the blind spot"
            )
        return {"distance": spot, "distance_method": "blind_spot"}
    distance = read_number(values, "distance", 200, 5000)
    if spot is not None and abs(spot / distance - 1) > _SPOT_SPREAD:
        raise InputError(
            f"the tape says {distance:.0f} mm and the blind spot {spot:.0f} mm, "
            f"{100 * (spot / distance - 1):+.0f} %; up to 15 % is ordinary: measure both again, "
            "or leave the check out"
        )
    return {"distance": distance}


def _blind_spot_distance(values: JsonMapping, card: float) -> float | None:
    """Compute the viewing distance from the blind spot, mm; None if not measured."""
    offsets = values.get("offsets")
    if not offsets:
        return None
    if not isinstance(offsets, list):
        raise InputError(
            "where the dot vanished is no list of places; load the page again"
        )
    label = "where the dot vanished"
    pixels = [check_number(offset, label, 1, 20000) for offset in offsets]
    return blind_spot_distance(sum(pixels) / len(pixels) * CARD_MM / card)


def _read_light(values: JsonMapping) -> JsonObject:
    """Read the screen's peak luminance, cd/m², and exponent, or assume an office screen's."""
    source = "value" if values.get("light") == "value" else "guess"
    peak = read_number(values, "peak", 50, 2000) if source == "value" else OFFICE.peak
    display = replace(OFFICE, peak=peak, black=peak / _CONTRAST_RATIO)
    match = read_exponent(values)
    if match is None or not match["used"]:
        return {"display": display, "light": source}
    return {
        "display": replace(display, eotf=match["exponent"]),
        "light": source,
        "exponent_sd": max(match["scatter"], _MIN_SCATTER),
    }
