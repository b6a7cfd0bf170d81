"""What a page found out about the screen in front of a person, step by step, as a `Screen`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from psyprobe.errors import InputError
from psyprobe.light.display import Display
from psyprobe.observers.human_screen import Screen
from psyprobe.observers.people.by_eye import (
    CARD_MM,
    blind_spot_distance,
    exponent_by_eye,
    pixel_pitch,
)

#: Two fits of the card may differ by so much of their mean.
_CARD_SPREAD = 0.01
#: The blind spot may put somebody so much nearer or farther than the tape does: angles differ
#: between people.
_SPOT_SPREAD = 0.15
#: Of a screen that nobody measured, cd/m² and lux.
_OFFICE = {"peak": 200.0, "ambient": 50.0}
_CONTRAST_RATIO = 1000
#: Matches of brightness that are needed, and what a screen's exponent may be by them; what scatters
#: more is a guess.
_FEWEST_MATCHES = 6
_EXPONENTS = (1.6, 2.8)
_MOST_SCATTER = 0.2
#: Nobody's eye is surer of an exponent than that.
_LEAST_SCATTER = 0.05


def screen_of(values: Mapping[str, Any], given: Display | None) -> Screen:
    """The screen as far as the page knows it; of its light what an office has, until the page
    tells.

    Parameters
    ----------
    values : mapping
        What the page sent: "cards", CSS px; "distance_method" with "distance", mm, or "offsets",
        CSS px, or both; "light" with "peak", cd/m², and "matches", pairs of share and drive; and
        what the browser says of its screen.
    given : Display, optional
        Measured beforehand.

    Raises
    ------
    InputError
        A value is missing, out of range, or at odds with another.
    """
    ratio = number_of(values, "device_pixel_ratio", 1, 8)
    card = _card(values)
    light = {"display": given, "light": "measured"} if given is not None else _light(values)
    if given is not None and isinstance(given.eotf, str | float):
        light["light"] = "value"
    return Screen(
        pitch=pixel_pitch(card, ratio),
        device_pixel_ratio=ratio,
        size=(
            int(number_of(values, "width", 100, 20000)),
            int(number_of(values, "height", 100, 20000)),
        ),
        period=number_of(values, "period", 1, 34) if "period" in values else 0.0,
        **_distance(values, card),
        **light,
    )


def exponent_told(values: Mapping[str, Any]) -> dict[str, Any] | None:
    """What matches of brightness say: the exponent, its scatter, and whether it is used; None
    without matches.
    """
    matches = values.get("matches")
    if not matches:
        return None
    if not isinstance(matches, list) or not all(
        isinstance(match, list) and len(match) == 2 for match in matches
    ):
        raise InputError(
            "the matches of brightness are no pairs of share and drive; load the page again"
        )
    if len(matches) < _FEWEST_MATCHES:
        raise InputError(
            f"brightness was matched {len(matches)} times; {_FEWEST_MATCHES} matches are needed "
            "at least"
        )
    pairs = [
        (
            number_of({"share": a}, "share", 0.01, 0.99),
            number_of({"matched drive": v}, "matched drive", 0.004, 0.996),
        )
        for a, v in matches
    ]
    exponent, scatter = exponent_by_eye(pairs)
    used = _EXPONENTS[0] <= exponent <= _EXPONENTS[1] and scatter <= _MOST_SCATTER
    return {"exponent": round(exponent, 3), "scatter": round(scatter, 3), "used": used}


def number_of(values: Mapping[str, Any], name: str, low: float, high: float) -> float:
    """A number that a page sent.

    Raises
    ------
    InputError
        It is none, or out of range.

    Examples
    --------
    >>> number_of({"distance": 600}, "distance", 200, 5000)
    600.0
    """
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise InputError(
            f"{name.replace('_', ' ')} is {value!r:.40}; give a number from {low:g} to {high:g}"
        )
    return float(value)


def _card(values: Mapping[str, Any]) -> float:
    """Width of the card's outline, CSS px."""
    cards = values.get("cards")
    if not isinstance(cards, list) or len(cards) != 2:
        raise InputError("the card was not fitted twice; load the page again")
    first, second = (
        number_of({"width of the card": card}, "width of the card", 1, 5000) for card in cards
    )
    if abs(first - second) > _CARD_SPREAD * (first + second) / 2:
        raise InputError(
            f"the card was {first:g} px wide and then {second:g} px; two fits may differ by 1 "
            "%: fit it again"
        )
    return (first + second) / 2


def _distance(values: Mapping[str, Any], card: float) -> dict[str, Any]:
    spot = _spot(values, card)
    if values.get("distance_method") == "blind_spot":
        if spot is None:
            raise InputError(
                "nothing is known of the distance; measure it with a tape, or by the blind spot"
            )
        return {"distance": spot, "distance_method": "blind_spot"}
    distance = number_of(values, "distance", 200, 5000)
    if spot is not None and abs(spot / distance - 1) > _SPOT_SPREAD:
        raise InputError(
            f"the tape says {distance:.0f} mm and the blind spot {spot:.0f} mm, "
            f"{100 * (spot / distance - 1):+.0f} %; "
            "up to 15 % is ordinary: measure both again, or leave the check out"
        )
    return {"distance": distance}


def _spot(values: Mapping[str, Any], card: float) -> float | None:
    """Distance by where the dot vanished, mm; None where nobody looked."""
    offsets = values.get("offsets")
    if not offsets:
        return None
    if not isinstance(offsets, list):
        raise InputError("where the dot vanished is no list of places; load the page again")
    places = [
        number_of({"where the dot vanished": offset}, "where the dot vanished", 1, 20000)
        for offset in offsets
    ]
    return blind_spot_distance(sum(places) / len(places) * CARD_MM / card)


def _light(values: Mapping[str, Any]) -> dict[str, Any]:
    known = "value" if values.get("light") == "value" else "guess"
    peak = number_of(values, "peak", 50, 2000) if known == "value" else _OFFICE["peak"]
    display = Display(peak=peak, black=peak / _CONTRAST_RATIO, ambient=_OFFICE["ambient"])
    told = exponent_told(values)
    if told is None or not told["used"]:
        return {"display": display, "light": known}
    scatter = max(told["scatter"], _LEAST_SCATTER)
    return {
        "display": replace(display, eotf=told["exponent"]),
        "light": known,
        "exponent_sd": scatter,
    }
