"""Describe how results came about: methods in words, stimuli with certificates, software,
digests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from psyprobe import __version__
from psyprobe._typing import ByteArray, FloatArray
from psyprobe.analysis.responses import levels_of
from psyprobe.analysis.result_stimulus import page_of, stimulus_on
from psyprobe.errors import PsyprobeError
from psyprobe.files.json_types import JsonMapping
from psyprobe.files.units import unit_symbol
from psyprobe.human import list_human
from psyprobe.human.models import human_label
from psyprobe.light.display import Display
from psyprobe.probes import probe_summary
from psyprobe.reporting.page import Picture, picture
from psyprobe.running.task import task_of
from psyprobe.stimulus import Specification
from psyprobe.stimulus.catalogue import StimulusSet, read_levels
from psyprobe.stimulus.certificate import Measurement

if TYPE_CHECKING:
    import xarray as xr

#: Width of the picture of a stimulus, px.
_WIDTH = 112
#: How many pictures show a stimulus.
_PICTURES = 3


def _json_attribute(result: xr.Dataset, name: str) -> JsonMapping:
    """Read a result's attribute that is a JSON object; empty where there is none."""
    value = json.loads(result.attrs.get(name) or "{}")
    return value if isinstance(value, dict) else {}


@dataclass(frozen=True)
class StimulusSummary:
    """One stimulus in a report: its pictures and its certificate."""

    pictures: Sequence[tuple[Picture, str]]
    #: The certificate, requested against delivered: one row a quantity.
    certificate: Sequence[Mapping[str, str]]
    #: The levels at which the certificate was made, in words.
    certified: str
    passed: bool


def summarise_stimulus(result: xr.Dataset) -> StimulusSummary | None:
    """Draw an experiment's stimulus again with its certificate; None if it has none."""
    page = page_of(result)
    stimulus = stimulus_on(page)
    if stimulus is None:
        return None
    display = Display.from_dict(dict(_json_attribute(result, "display")))
    page_levels = page.get("levels", {})
    levels = {name: read_levels(name, values) for name, values in page_levels.items()}
    levels = levels or dict(stimulus.levels)
    captioned = []
    for values in sample_levels(levels):
        specification = strongest(stimulus, values, levels.get("contrast", ()), display)
        if specification is None:
            continue
        if "contrast" in specification.levels():
            values["contrast"] = float(specification.value("contrast"))
        captioned.append((specification, _caption(stimulus, values)))
    if not captioned:
        return None
    specification, caption = captioned[len(captioned) // 2]
    certificate = specification.measure(display)
    return StimulusSummary(
        [(picture(_codes(display, spec), _WIDTH), text) for spec, text in captioned],
        [_certificate_row(measurement) for measurement in certificate],
        caption,
        certificate.passed,
    )


def _certificate_row(row: Measurement) -> dict[str, str]:
    """Build the table row of one measured quantity."""

    def text(value: float | None, form: str, unit: str = "") -> str:
        return "" if value is None else f"{value:{form}} {unit}".rstrip()

    return {
        "quantity": row.quantity,
        "requested": text(row.requested, ".6g", row.unit),
        "delivered": text(row.delivered, ".6g", row.unit),
        "error": text(row.error, "+.1e"),
        "tolerance": text(row.tolerance, ".2g"),
        "passed": "yes" if row.passed else "NO",
    }


def sample_levels(levels: Mapping[str, FloatArray]) -> list[dict[str, float]]:
    """Choose levels to draw: the first from low to high, the others in their middle.

    Contrast is left out: `strongest` finds it.
    """
    middles = {
        name: float(values[len(values) // 2])
        for name, values in levels.items()
        if name != "contrast"
    }
    if not middles:
        return [{}]
    first = next(iter(middles))
    indices = np.linspace(0, len(levels[first]) - 1, _PICTURES + 2).round().astype(int)
    return [
        {**middles, first: float(levels[first][i])} for i in np.unique(indices)[1:-1]
    ]


def strongest(
    stimulus: StimulusSet,
    levels: Mapping[str, float],
    contrasts: Sequence[float] | FloatArray,
    display: Display,
) -> Specification | None:
    """Find the highest contrast that the display can show; None if it shows none."""
    usual = stimulus.spec(**levels)
    candidates = [
        usual.changed(contrast=float(contrast)) for contrast in contrasts[::-1]
    ]
    for specification in [*candidates, usual]:
        try:
            display.encode(specification.draw())
        except PsyprobeError:
            continue
        return specification
    return None


def _codes(display: Display, specification: Specification) -> ByteArray:
    """Encode a stimulus, or a clip's representative frame, as 8-bit sRGB."""
    still = specification.still_frame().draw()
    drive = np.asarray(display.encode(still), dtype=np.float64)
    return np.rint(255 * drive).astype(np.uint8)


def _caption(stimulus: StimulusSet, levels: Mapping[str, float]) -> str:
    """Write a picture's caption: levels with their units."""
    parameters = stimulus.spec(**levels).levels()
    units = {name: parameter.unit for name, parameter in parameters.items()}
    return ", ".join(
        f"{name.replace('_', ' ')} {value:.3g} {units.get(name, '1')}".removesuffix(
            " 1"
        )
        for name, value in levels.items()
    )


def methods(experiments: Sequence[Sequence[xr.Dataset]]) -> JsonMapping:
    """Describe each experiment in a paragraph, and list the papers it cites."""
    references = {row.name: row for row in list_human()}
    cited: dict[str, int] = {}

    def cite(source: str) -> str:
        return f" [{cited.setdefault(source, len(cited) + 1)}]" if source else ""

    paragraphs = []
    for results in experiments:
        first = results[0]
        page = page_of(first)
        title = page.get("title", "") or first.attrs["experiment"]
        summary = probe_summary(first.attrs["probe"])
        task = (
            f" {summary[:1].upper()}{summary[1:]}"
            if title.endswith("?")
            else f": {summary}"
        )
        sentences = [f"{title}{cite(page.get('source', ''))}{task}."]
        sentences += _design(first)
        human = page.get("human", {})
        name = human.get("model", human.get("data", ""))
        if name:
            citation = cite(references[name].source) if name in references else ""
            sentences.append(f"Human reference: {human_label(name)}{citation}.")
        observers = ", ".join(result.attrs["observer"] for result in results)
        sentences.append(f"Observers: {observers}.")
        paragraphs.append(
            {
                "text": " ".join(sentences),
                "departures": page.get("differences", ()),
                "assumed": page.get("assumed", ()),
                "people": page.get("people", ()),
            }
        )
    for result in chain(*experiments):
        cite(_json_attribute(result, "observer_card").get("paper") or "")
    return {"paragraphs": paragraphs, "cited": list(cited)}


def _describe_display(display: JsonMapping) -> str:
    """Describe a display in one sentence: luminance, ambient light and transfer function."""
    black = ", ".join(f"{luminance:g}" for luminance in np.atleast_1d(display["black"]))
    properties = [f"peak {display['peak']:g} cd/m²", f"black {black} cd/m²"]
    if display.get("ambient"):
        properties.append(f"ambient light {display['ambient']:g} lx")
    curve = display.get("eotf", "srgb")
    guns = curve if isinstance(curve, list) else [curve]
    if all(isinstance(gun, float) for gun in guns):
        properties.append(f"gamma {', '.join(f'{gun:g}' for gun in guns)}")
    elif isinstance(curve, str):
        properties.append(f"{curve.replace('srgb', 'sRGB')} transfer function")
    else:
        properties.append("measured transfer function")
    return f"Display: {', '.join(properties)}."


def _design(result: xr.Dataset) -> list[str]:
    """Describe an experiment's images, display, levels and prompts in sentences."""
    sentences = []
    display = _json_attribute(result, "display")
    ppd = result.attrs.get("ppd")
    size = json.loads(result.attrs.get("size", "[]"))
    if ppd and len(size) == 2:
        pixels = (
            f"{size[1]} x {size[0]} px at {float(ppd):.4g} pixels per degree "
            f"({size[1] / float(ppd):.3g} deg)"
        )
        sentences.append(f"Images were {pixels}.")
    if display:
        sentences.append(_describe_display(display))
    axis = task_of(result).axis
    for name in (*levels_of(result), *([] if axis is None else [axis.name])):
        variable = result.get(name)
        if variable is not None and variable.ndim == 1 and variable.dtype.kind == "f":
            values = np.unique(variable)
            unit = unit_symbol(variable.attrs)
            label = variable.attrs.get("long_name", name).split(";")[0]
            span = f"from {values[0]:.3g} to {values[-1]:.3g}{'' if unit == '1' else f' {unit}'}"
            sentences.append(f"{label}: {len(values)} values {span}.")
    asking = _json_attribute(result, "asking")
    if asking:
        prompts = len(json.loads(result.attrs.get("prompts", "[]")))
        readout = str(result.attrs.get("readout")).replace("p_yes", "P(yes)")
        sentences.append(
            f"The question was put in {prompts} wording{'s' * (prompts != 1)} (design: "
            f"{asking.get('design')}) at a temperature of {asking.get('temperature'):g}; "
            f"answers were read as {readout}."
        )
    return sentences


def observers_table(results: Sequence[xr.Dataset]) -> list[dict[str, str]]:
    """Build a table of observers: ability, input, weights, licence, source."""
    rows: dict[str, dict[str, str]] = {}
    for result in results:
        card = _json_attribute(result, "observer_card")
        size = card.get("input_size")
        random = bool(result.attrs.get("random_weights", 0))
        row = {
            "observer": result.attrs["observer"],
            "gives": card.get("ability", ""),
            "input, px": " x ".join(map(str, size)) if size else "any",
            "fed": card.get("input", ""),
            "weights": card.get("weights", "") + " (RANDOM)" * random,
            "licence": card.get("licence") or "",
            "source": card.get("paper") or "",
            "began": result.attrs.get("started", ""),
            "served": result.attrs.get("served", ""),
        }
        rows.setdefault(row["observer"], row)
    # Only servers say what they serve, and only runs with a label when they began.
    for name in ("began", "served"):
        if not any(row[name] for row in rows.values()):
            for row in rows.values():
                del row[name]
    return list(rows.values())


def runs_table(results: Sequence[xr.Dataset]) -> list[dict[str, str]]:
    """Build a table of runs: experiment digest, device and software versions."""
    rows = []
    for result in results:
        versions = _json_attribute(result, "software")
        row = {
            "experiment": result.attrs["experiment"],
            "observer": result.attrs["observer"],
            "page (SHA-256)": result.attrs.get("experiment_digest", "")[:12],
            "device": _json_attribute(result, "observer_card").get("device", ""),
            "software": ", ".join(f"{name} {versions[name]}" for name in versions),
        }
        rows.append(row)
    this_page = {"experiment": "this page", "software": f"psyprobe {__version__}"}
    return [*rows, dict.fromkeys(rows[0], "") | this_page]
