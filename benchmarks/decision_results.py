"""Runs of decisions for docs/results.md: thresholds in noise, equivalent noise and layers.

    python benchmarks/decision_results.py STORE [HH:MM]    # run until then, by default all
    python benchmarks/decision_results.py STORE page       # tables, figure and digests

Jobs stand in the order of their use; the same call resumes. `page` writes what the store holds in
place of what docs/results.csv had of the same page, encoder, layer and density, and keeps the
rest; the words of the page are written by hand.
"""

from __future__ import annotations

import csv
import json
import os
import sys
import time
import tomllib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from results_page import DOCS, markdown, put, save
from results_page import PAGES as PAGES_WITH_TABLES

import psyprobe as pp
from psyprobe.analysis.efficiency.ideal_observer import d_prime_at
from psyprobe.analysis.efficiency.noise_masking import noise_masking
from psyprobe.analysis.score import csv_text, encoder_name
from psyprobe.analysis.words.csf import chat_csf
from psyprobe.errors import PsyprobeError
from psyprobe.observers.protocol import Card

FREQUENCIES = [0.5, 1, 2, 4, 8, 16]  # cpd
#: deg²: that of the page, and a quarter, which halves the standard deviation.
DENSITIES = (2.78e-6, 2.78e-6 / 4)
#: An early and a middle layer of each; the last is `embedding`, the default.
LAYERS = {
    "efficientnet_lite2": ("blocks.1", "blocks.3"),
    "efficientnet_lite0": ("blocks.1", "blocks.3"),
    "mobilenetv2": ("blocks.1", "blocks.4"),
    # Of earlier layers, 256 images fill 10 GB.
    "resnet50_augnet": ("layer2", "layer3"),
    "vit_small_dinov2_saliency": ("blocks.2", "blocks.7"),
    "efficientnet_lite1": ("blocks.1", "blocks.3"),
    "hed": ("block3", "block4"),
}
#: The palette has three greys.
MARKERS = dict(zip(LAYERS, "osDv^PX", strict=True))
PAGES = ("gabor_in_noise", "equivalent_noise")
#: Columns of docs/results.csv that are measured.
MEASURED = [
    name + end
    for name in ("sensitivity", "efficiency")
    for end in ("", "_low", "_high")
]
#: Efficiency of people by task, with its range.
PEOPLE = {
    "people, amplitude of a grating (Burgess et al. 1981)": (0.63, 0.77),
    "people, objects (Tjan et al. 1995)": (0.03, 0.08),
}


def main(store: str, until: str = "99:99") -> None:
    for page, observer in jobs():
        if time.strftime("%H:%M") >= until:
            break
        start = time.process_time()
        try:
            pp.run(page, observer, store=store, progress=False)
            outcome = "done"
        except PsyprobeError as problem:
            outcome = str(problem)
        seconds = time.process_time() - start
        print(
            f"{time.strftime('%H:%M:%S')} {page.name} {observer.card.name} "
            f"{observer.card.options} {seconds:.0f} s: {outcome}",
            flush=True,
        )


def jobs() -> Iterator[tuple[pp.Experiment, pp.Observer]]:
    """Iterate over pages and observers, the most useful first."""
    thick, thin = (in_noise(density) for density in DENSITIES)
    amplifier = pp.load_experiment("equivalent_noise")
    pixels = pp.decide("pixels", stage="template")
    encoders = {name: pp.decide(f"packaged:{name}") for name in LAYERS}
    yield thick, pixels
    yield thin, pixels
    for layer in LAYERS["efficientnet_lite2"]:
        yield thick, decided_layer("efficientnet_lite2", layer)
    for page in (thick, thin):
        for observer in encoders.values():
            yield page, observer
    for name, layers in LAYERS.items():
        yield amplifier, encoders[name]
        for layer in layers:
            yield thick, decided_layer(name, layer)
    yield amplifier, pixels


def in_noise(density: float) -> pp.Experiment:
    """Build the page of Gabors in white noise of a density, deg²."""
    return pp.load_experiment("gabor_in_noise").with_settings(
        {"levels.frequency.values": FREQUENCIES, "noise.density": density}
    )


def decided_layer(name: str, layer: str) -> pp.Observer:
    """Decide from one layer of a packaged encoder."""
    return pp.decide(pp.load_observer(f"packaged:{name}", layers=[layer]))


@dataclass(frozen=True)
class Curve:
    """Thresholds of one run over frequency or density, with what they were measured by."""

    csf: xr.Dataset
    page: str
    observer: str
    layer: str
    #: Noise power density, deg².
    density: float
    page_digest: str
    observer_digest: str

    @property
    def level(self) -> str:
        return "noise_density" if self.page == PAGES[1] else "frequency"

    @property
    def key(self) -> tuple[str, str, str, float]:
        """What a run of today takes the place of."""
        return self.page, self.observer, self.layer, self.density

    @property
    def name(self) -> str:
        """The encoder, without the prefixes of a decision stage and of a package."""
        return encoder_name(self.observer).removeprefix("packaged:")

    @property
    def label(self) -> str:
        return f"{self.name}, {self.layer}" if self.layer else self.name

    def ends(self, variable: str) -> np.ndarray:
        """Values with their intervals, shape (levels, 3)."""
        names = (variable, f"{variable}_low", f"{variable}_high")
        return np.stack([self.csf[name].values for name in names], axis=-1)

    def mean_efficiency(self) -> float:
        """The geometric mean over the levels that have a threshold."""
        values = self.csf["efficiency"].values
        return float(np.exp(np.nanmean(np.log(values))))


def stored_curves(store: str) -> list[Curve]:
    """Measure the thresholds of all runs of a store."""
    # A card has the digest of its encoder, in which the layer is.
    layers = {
        str(decided_layer(name, layer).card.options["encoder"]): layer
        for name, names in LAYERS.items()
        for layer in names
    }
    curves = []
    for result in pp.load_results(store):
        card = Card.from_dict(json.loads(result.attrs["observer_card"]))
        page = tomllib.loads(result.attrs["experiment_toml"])
        curves.append(
            Curve(
                chat_csf(result).isel(prompt=0),
                str(result.attrs["experiment"]),
                str(result.attrs["observer"]),
                layers.get(str(card.options["encoder"]), ""),
                float(page["noise"]["density"]),
                str(result.attrs["experiment_digest"]),
                card.digest,
            )
        )
    return curves


def earlier_curves() -> list[Curve]:
    """Read the thresholds that docs/results.csv holds, of stores of other days."""
    rows = pd.read_csv(DOCS / "results.csv", float_precision="round_trip")
    rows = rows[rows["experiment"].isin(PAGES)]
    noise = pp.load_experiment(PAGES[1]).noise
    assert noise is not None
    is_amplifier = rows["experiment"] == PAGES[1]
    rows["density"] = rows["noise_density_deg2"].where(~is_amplifier, noise.density)
    curves = []
    for _, run in rows.groupby(
        ["experiment", "observer", "layer", "density"], sort=False
    ):
        first = run.iloc[0]
        curves.append(
            Curve(
                read_csf(run, first["experiment"]),
                first["experiment"],
                first["observer"],
                first["layer"].replace("embedding", ""),
                float(first["density"]),
                first["page_sha256"],
                first["observer_sha256"],
            )
        )
    return curves


def read_csf(rows: pd.DataFrame, page: str) -> xr.Dataset:
    """Rebuild the thresholds of a run and what follows from them."""
    level = "noise_density" if page == PAGES[1] else "frequency"
    columns = {name: rows[name].to_numpy() for name in MEASURED}
    density = rows["noise_density_deg2"].to_numpy()
    ideal = np.sqrt(columns["efficiency"]) / columns["sensitivity"]
    # Energy at a contrast of 1, deg²; without noise, that in the strongest noise.
    energy = d_prime_at(0.75, 2) ** 2 * density / ideal**2
    energy = np.where(density > 0, energy, energy[-1])
    columns |= {
        "ideal_threshold": ideal,
        "external_noise_density": density,
        "threshold_energy": energy / columns["sensitivity"] ** 2,
        "threshold_energy_low": energy / columns["sensitivity_high"] ** 2,
        "threshold_energy_high": energy / columns["sensitivity_low"] ** 2,
    }
    return xr.Dataset(
        {name: (level, values) for name, values in columns.items()},
        {
            level: density
            if level == "noise_density"
            else rows["frequency_cpd"].to_numpy()
        },
        {"confidence": 0.95, "levels": json.dumps([level])},
    )


def write_page(store: str) -> None:
    """Write tables, figure and digests of all that a store holds, and of earlier runs."""
    today = stored_curves(store)
    newest = {curve.key: curve for curve in [*earlier_curves(), *today]}
    curves = list(newest.values())
    noisy = [curve for curve in curves if curve.page == PAGES[0]]
    tables = {
        "S_ac and decisions": means(noisy),
        "decisions": table(noisy, "sensitivity", 3),
        "efficiency": table(noisy, "efficiency", 2),
        "equivalent noise": amplifiers(curves),
    }
    for path in PAGES_WITH_TABLES:
        page = path.read_text(encoding="utf-8")
        for name, rows in tables.items():
            page = put(page, name, rows)
        path.write_text(page, encoding="utf-8")
    save(figure(noisy, curves), "results_decisions", 80)
    write_digests(curves)


def table(curves: Sequence[Curve], variable: str, digits: int) -> str:
    """One row a run, with a variable and its interval at each frequency."""
    rows = []
    for curve in curves:
        cells = [
            "{:.{n}g} [{:.{n}g}, {:.{n}g}]".format(*ends, n=digits)
            # Answers of some tell no threshold.
            if np.isfinite(ends).all()
            else "-"
            for ends in curve.ends(variable)
        ]
        rows.append([f"`{curve.label}`", f"{curve.density:.3g}", *cells])
    head = [f"{frequency:g} cpd" for frequency in FREQUENCIES]
    return markdown(["encoder, layer", "density (deg²)", *head], rows)


def means(curves: Sequence[Curve]) -> str:
    """Set the mean efficiency at each density beside S_ac's alignment with people."""
    alignment = alignments()
    cells: dict[str, dict[float, str]] = {}
    for curve in curves:
        mean = f"{curve.mean_efficiency():.2g}"
        cells.setdefault(curve.label, {})[curve.density] = mean
    rows = [
        [f"`{label}`", alignment.get(label, ""), *(means.get(n, "") for n in DENSITIES)]
        for label, means in cells.items()
    ]
    head = [f"efficiency at {density:.3g} deg²" for density in DENSITIES]
    return markdown(["encoder, layer", "S_ac, r_s of Gabor ach", *head], rows)


def alignments() -> dict[str, str]:
    """Read the alignment of S_ac with people on achromatic Gabors, by encoder."""
    with (DOCS / "results.csv").open(encoding="utf-8") as file:
        return {
            row["observer"].removeprefix("packaged:"): f"{float(row['alignment']):.2f}"
            for row in csv.DictReader(file)
            if row["experiment"] == "gabor_achromatic" and row["observer"]
        }


def amplifiers(curves: Sequence[Curve]) -> str:
    """Equivalent noise and efficiency in strong noise, one row an encoder."""
    rows = []
    for curve in curves:
        fit = noise_masking(curve.csf) if curve.page == PAGES[1] else None
        if fit is not None:
            rows.append((f"`{curve.label}`", fit.cells()))
    names = list(dict.fromkeys(name for _, cells in rows for name in cells))
    return markdown(
        ["encoder", *names],
        [[label, *(cells.get(name, "") for name in names)] for label, cells in rows],
    )


def figure(noisy: Sequence[Curve], curves: Sequence[Curve]) -> Figure:
    """Draw sensitivity, efficiency over frequency and over layers, and equivalent noise.

    Colours are encoders; solid lines are the denser noise, dashed lines the thinner one.
    """
    amplified = [curve for curve in curves if curve.page == PAGES[1]]
    drawn = Figure(figsize=(11, 9.6), layout="constrained")
    panels = drawn.subplots(2, 2)
    sensitivity, efficiency, depth, energy = panels.flat
    names = list(dict.fromkeys(curve.name for curve in noisy))
    cycle = style.library["tableau-colorblind10"]["axes.prop_cycle"].by_key()["color"]
    colours = dict(zip(names, cycle, strict=False))
    last_layers = [curve for curve in noisy if not curve.layer]
    for panel, variable in ((sensitivity, "sensitivity"), (efficiency, "efficiency")):
        for curve in last_layers:
            thick = curve.density == DENSITIES[0]
            draw_ends(
                panel,
                curve,
                variable,
                label=curve.name if thick else "_",
                color=colours[curve.name],
                linestyle="-" if thick else "--",
                alpha=1.0 if thick else 0.5,
            )
        panel.set(xscale="log", yscale="log", xlabel="Spatial frequency (cpd)")
        panel.set_xticks(FREQUENCIES, labels=[f"{f:g}" for f in FREQUENCIES])
        panel.minorticks_off()
    for density, line in zip(DENSITIES, ("-", "--"), strict=True):
        for curve in [curve for curve in last_layers if curve.density == density][:1]:
            ideal = 1 / curve.csf["ideal_threshold"].values
            label = f"ideal observer, {density:.3g} deg²"
            sensitivity.plot(
                FREQUENCIES, ideal, color="k", linestyle=line, label=label, lw=0.8
            )
    sensitivity.set(ylabel="Sensitivity (1 / threshold contrast)", ylim=(8, 2e3))
    for (label, (low, high)), shade in zip(
        PEOPLE.items(), ("0.75", "0.87"), strict=True
    ):
        efficiency.axhspan(low, high, color=shade, label=label, zorder=0)
    for panel in (efficiency, depth):
        panel.axhline(1, color="k", lw=0.8)
    # The legend stands below the points.
    efficiency.set(ylabel="Efficiency", ylim=(2e-4, 5))
    efficiency.legend(
        *zip(*people_handles(efficiency), strict=True),
        fontsize="x-small",
        loc="lower left",
    )
    draw_depth(depth, noisy, colours)
    draw_amplifiers(energy, amplified, colours)
    drawn.legend(
        *sensitivity.get_legend_handles_labels(),
        loc="outside lower center",
        ncols=4,
        fontsize="small",
    )
    return drawn


def draw_depth(panel: Axes, noisy: Sequence[Curve], colours: Mapping[str, str]) -> None:
    """Draw the mean efficiency of each encoder over its early, middle and last layer."""
    for name, layers in LAYERS.items():
        efficiencies = {
            curve.layer: curve.mean_efficiency()
            for curve in noisy
            if curve.name == name and curve.density == DENSITIES[0]
        }
        places = [layer for layer in (*layers, "") if layer in efficiencies]
        x = [(*layers, "").index(layer) for layer in places]
        y = [efficiencies[layer] for layer in places]
        panel.plot(x, y, marker=MARKERS[name], color=colours.get(name, "k"))
    panel.set(
        yscale="log",
        ylim=(2e-3, 2),
        xlim=(-0.3, 2.3),
        xlabel="Layer",
        ylabel="Efficiency, geometric mean over frequencies",
    )
    panel.set_xticks(range(3), labels=["early", "middle", "last"])


def people_handles(panel: Axes) -> list[tuple[Any, str]]:
    """Keep of a legend's entries those of people; the rest stands in the first panel."""
    pairs = zip(*panel.get_legend_handles_labels(), strict=True)
    return [(handle, label) for handle, label in pairs if label in PEOPLE]


def draw_ends(panel: Axes, curve: Curve, variable: str, **style: Any) -> None:
    """Draw values over the level with their intervals."""
    value, low, high = curve.ends(variable).T
    x = curve.csf[curve.level].values
    error = np.maximum([value - low, high - value], 0)
    marker = MARKERS.get(curve.name, "o")
    panel.errorbar(x, value, error, marker=marker, markersize=4, capsize=2, **style)


def draw_amplifiers(
    panel: Axes, curves: Sequence[Curve], colours: Mapping[str, str]
) -> None:
    """Draw the energy of thresholds over the density of noise, in each encoder's colour."""
    for curve in curves:
        draw_ends(panel, curve, "threshold_energy", color=colours.get(curve.name, "k"))
    panel.set(
        xlabel="Density of the noise (deg²)", ylabel="Energy of the threshold (deg²)"
    )
    panel.set_xscale("symlog", linthresh=1e-8)
    panel.set_yscale("log")


def write_digests(curves: Sequence[Curve]) -> None:
    """Put a row for each threshold into results.csv, with the digests of page and observer."""
    path = DOCS / "results.csv"
    with path.open(encoding="utf-8") as file:
        rows: list[dict[str, Any]] = [
            row for row in csv.DictReader(file) if row["experiment"] not in PAGES
        ]
    for curve in curves:
        level = curve.level
        ends = {name: curve.ends(name) for name in ("sensitivity", "efficiency")}
        for i, value in enumerate(curve.csf[level].values):
            row = {
                "experiment": curve.page,
                "observer": curve.observer,
                "layer": curve.layer or "embedding",
                "noise_density_deg2": value if level != "frequency" else curve.density,
                "frequency_cpd": value if level == "frequency" else "",
                "page_sha256": curve.page_digest,
                "observer_sha256": curve.observer_digest,
            }
            for name, values in ends.items():
                for end, number_ in zip(("", "_low", "_high"), values[i], strict=True):
                    row[name + end] = number_ if np.isfinite(number_) else ""
            rows.append(row)
    path.write_text(csv_text(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[2:] == ["page"]:
        write_page(sys.argv[1])
    else:
        main(*sys.argv[1:])
