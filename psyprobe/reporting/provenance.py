"""What a report tells of how results came about: methods in words, stimuli with certificates,
software and digests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe import __version__
from psyprobe._typing import FloatArray
from psyprobe.analysis.responses import levels_of
from psyprobe.analysis.result_stimulus import page_of, stimulus_on
from psyprobe.errors import PsyprobeError
from psyprobe.files.units import unit_symbol
from psyprobe.human import list_human
from psyprobe.human.models import human_label
from psyprobe.light.display import Display
from psyprobe.probes import probe_summary
from psyprobe.reporting.page import Picture, picture
from psyprobe.running.task import task_of
from psyprobe.stimulus import Specification
from psyprobe.stimulus.catalogue import StimulusSet, read_levels

if TYPE_CHECKING:
    import xarray as xr

#: Of a stimulus, px.
_WIDTH = 112
#: Pictures of a stimulus.
_PICTURES = 3


def _told(result: xr.Dataset, name: str) -> Mapping[str, Any]:
    """An attribute that holds JSON."""
    found = json.loads(str(result.attrs.get(name) or "{}"))
    return found if isinstance(found, dict) else {}


@dataclass(frozen=True)
class StimulusSummary:
    """One stimulus in a report: its pictures and its certificate."""

    pictures: Sequence[tuple[Picture, str]]
    #: Requested against delivered, a row a quantity.
    heading: Sequence[str]
    rows: Sequence[Sequence[str]]
    #: Of what.
    certified: str
    passed: bool


def stimulus_of(result: xr.Dataset) -> StimulusSummary | None:
    """The stimulus of an experiment drawn anew, with the certificate of one; None where it has none
    of ours.
    """
    page = page_of(result)
    found = stimulus_on(page)
    if found is None:
        return None
    display = Display.from_dict(dict(_told(result, "display")))
    levels = {
        name: read_levels(name, values) for name, values in page.get("levels", {}).items()
    } or found.levels
    drawn = []
    for at in places_of(levels):
        specification = strongest(found, at, levels.get("contrast", ()), display)
        if specification is not None:
            told = (
                {"contrast": float(specification.value("contrast"))}
                if "contrast" in specification.levels()
                else {}
            )
            drawn.append((specification, at | told))
    if not drawn:
        return None
    pictures = [
        (picture(_codes(display, specification), _WIDTH), _words(found, at))
        for specification, at in drawn
    ]
    specification, at = drawn[len(drawn) // 2]
    certificate = specification.measure(display)
    rows = [
        [
            row.quantity,
            "" if row.requested is None else f"{row.requested:.6g} {row.unit}".rstrip(),
            f"{row.delivered:.6g} {row.unit}".rstrip(),
            "" if row.error is None else f"{row.error:+.1e}",
            "" if row.tolerance is None else f"{row.tolerance:.2g}",
            "yes" if row.passed else "NO",
        ]
        for row in certificate
    ]
    heading = ["quantity", "requested", "delivered", "error", "tolerance", "passed"]
    return StimulusSummary(pictures, heading, rows, _words(found, at), certificate.passed)


def places_of(levels: Mapping[str, FloatArray]) -> list[dict[str, float]]:
    """The first level at values from low to high, the others in the middle; contrast is left to
    `strongest`.
    """
    others = {
        name: float(values[len(values) // 2])
        for name, values in levels.items()
        if name != "contrast"
    }
    if not others:
        return [{}]
    first = next(iter(others))
    places = np.unique(np.linspace(0, len(levels[first]) - 1, _PICTURES + 2).round().astype(int))[
        1:-1
    ]
    return [{**others, first: float(levels[first][i])} for i in places]


def strongest(
    found: StimulusSet,
    at: Mapping[str, float],
    contrasts: Sequence[float] | FloatArray,
    display: Display,
) -> Specification | None:
    """The stimulus at the highest of these contrasts, and then its usual one, that the display can
    show.
    """
    usual = found.spec(**at)
    tried = [usual.changed(contrast=float(contrast)) for contrast in contrasts[::-1]]
    for specification in [*tried, usual]:
        try:
            display.encode(specification.draw())
        except PsyprobeError:
            continue
        return specification
    return None


def _codes(display: Display, specification: Specification) -> Any:
    """uint8 sRGB of what the display is driven with; of a clip in the frame that stands for it."""
    still = specification.picture().draw()
    drive = np.asarray(display.encode(still), dtype=np.float64)
    return np.rint(255 * drive).astype(np.uint8)


def _words(found: StimulusSet, at: Mapping[str, float]) -> str:
    specification = found.spec(**at)
    units = specification.levels()
    return ", ".join(
        f"{name.replace('_', ' ')} {value:.3g} {_unit(units, name)}".rstrip()
        for name, value in at.items()
    )


def _unit(levels: Mapping[str, Any], name: str) -> str:
    unit = str(getattr(levels.get(name), "unit", ""))
    return "" if unit == "1" else unit


def methods(experiments: Sequence[Sequence[xr.Dataset]]) -> Mapping[str, Any]:
    """A paragraph for each experiment from its page, and what it cites."""
    known = {row.name: row for row in list_human()}
    cited: dict[str, int] = {}

    def cite(source: str) -> str:
        return f" [{cited.setdefault(source, len(cited) + 1)}]" if source else ""

    paragraphs = []
    for results in experiments:
        first = results[0]
        page = page_of(results[0])
        title = str(page.get("title", "")) or str(first.attrs["experiment"])
        summary = probe_summary(str(first.attrs["probe"]))
        asked = f" {summary[:1].upper()}{summary[1:]}" if title.endswith("?") else f": {summary}"
        sentences = [f"{title}{cite(str(page.get('source', '')))}{asked}."]
        sentences += _design(first, page)
        name = next(
            (str(page["human"][key]) for key in ("model", "data") if key in page.get("human", {})),
            "",
        )
        if name:
            row = known.get(name)
            sentences.append(
                f"Human reference: {human_label(name)}{cite(row.source) if row else ''}."
            )
        sentences.append(
            f"Observers: {', '.join(str(result.attrs['observer']) for result in results)}."
        )
        departures = [str(each) for each in page.get("differences", ())]
        assumed = [str(each) for each in page.get("assumed", ())]
        paragraphs.append(
            {"text": " ".join(sentences), "departures": departures, "assumed": assumed}
        )
    for paper in dict.fromkeys(
        str(_told(one, "observer_card").get("paper") or "")
        for experiment in experiments
        for one in experiment
    ):
        cite(paper)
    return {"paragraphs": paragraphs, "cited": list(cited)}


def _display(display: Mapping[str, Any]) -> str:
    black = ", ".join(f"{each:g}" for each in np.atleast_1d(display["black"]))
    told = [f"peak {display['peak']:g} cd/m²", f"black {black} cd/m²"]
    told += [f"ambient light {display['ambient']:g} lx"] * bool(display.get("ambient"))
    curve = display.get("eotf", "srgb")
    guns = curve if isinstance(curve, list | tuple) else [curve]
    if all(isinstance(gun, float) for gun in guns):
        told.append(f"gamma {', '.join(f'{gun:g}' for gun in guns)}")
    else:
        named = {"srgb": "sRGB"}.get(curve, curve) if isinstance(curve, str) else "measured"
        told.append(f"{named} transfer function")
    return f"Display: {', '.join(told)}."


def _design(result: xr.Dataset, page: Mapping[str, Any]) -> list[str]:
    """Stimulus, display and levels in words."""
    sentences = []
    display = _told(result, "display")
    ppd = result.attrs.get("ppd")
    size = json.loads(str(result.attrs.get("size", "[]")))
    if ppd and len(size) == 2:
        pixels = (
            f"{size[1]} x {size[0]} px at {float(ppd):.4g} pixels per degree "
            f"({size[1] / float(ppd):.3g} deg)"
        )
        sentences.append(f"Images were {pixels}.")
    if display:
        sentences.append(_display(display))
    axis = task_of(result).axis
    for name in (*levels_of(result), *([] if axis is None else [axis.name])):
        if name in result.variables and result[name].ndim == 1 and result[name].dtype.kind == "f":
            values = np.unique(result[name].values)
            unit = unit_symbol(result[name].attrs)
            label = str(result[name].attrs.get("long_name", name)).split(";")[0]
            span = f"from {values[0]:.3g} to {values[-1]:.3g}{'' if unit == '1' else f' {unit}'}"
            sentences.append(f"{label}: {len(values)} values {span}.")
    asking = _told(result, "asking")
    if asking:
        prompts = len(json.loads(str(result.attrs.get("prompts", "[]"))))
        sentences.append(
            f"The question was put in {prompts} wording{'s' * (prompts != 1)} (design: "
            f"{asking.get('design')}) at a "
            f"temperature of {asking.get('temperature'):g}; answers were read as "
            f"{'P(yes)' if result.attrs.get('readout') == 'p_yes' else result.attrs.get('readout')}."
        )
    return sentences


def observers_table(results: Sequence[xr.Dataset]) -> tuple[list[str], list[list[str]]]:
    """Heading and rows: who was asked."""
    rows: dict[str, list[str]] = {}
    for result in results:
        card = _told(result, "observer_card")
        served = str(result.attrs.get("served", ""))
        size = card.get("input_size")
        weights = str(card.get("weights", "")) + " (RANDOM)" * bool(
            result.attrs.get("random_weights", 0)
        )
        rows.setdefault(
            str(result.attrs["observer"]),
            [
                str(result.attrs["observer"]),
                str(card.get("ability", "")),
                " x ".join(map(str, size)) if size else "any",
                str(card.get("input", "")),
                weights,
                str(card.get("licence") or ""),
                str(card.get("paper") or ""),
                served,
            ],
        )
    heading = ["observer", "gives", "input, px", "fed", "weights", "licence", "source", "served"]
    kept = [
        i
        for i, name in enumerate(heading)
        if name != "served" or any(row[i] for row in rows.values())
    ]
    return [heading[i] for i in kept], [[row[i] for i in kept] for row in rows.values()]


def made_with(results: Sequence[xr.Dataset]) -> tuple[list[str], list[list[str]]]:
    """Heading and rows: digests and versions of each run."""
    heading = ["experiment", "observer", "page (SHA-256)", "device", "software"]
    rows = []
    for result in results:
        software = ", ".join(
            f"{name} {version}" for name, version in _told(result, "software").items()
        )
        digest = str(result.attrs.get("experiment_digest", ""))[:12]
        device = str(_told(result, "observer_card").get("device", ""))
        rows.append(
            [
                str(result.attrs["experiment"]),
                str(result.attrs["observer"]),
                digest,
                device,
                software,
            ]
        )
    rows.append(["this page", "", "", "", f"psyprobe {__version__}"])
    return heading, rows
