"""Runs of decisions for docs/results.md: thresholds in noise, equivalent noise and layers.

    python benchmarks/decision_results.py STORE [HH:MM]

Jobs stand in the order of their use and stop at the time, by default when all are done; the same call
resumes. `results_page.py` draws what the store holds.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Iterator

os.environ.setdefault("OMP_NUM_THREADS", "1")

import psyprobe as pp
from psyprobe.errors import PsyprobeError

FREQUENCIES = [0.5, 1, 2, 4, 8, 16]  # cpd
#: deg²: that of the page, and a quarter, which halves the standard deviation.
DENSITIES = (2.78e-6, 2.78e-6 / 4)
ENCODERS = ("efficientnet_lite2", "efficientnet_lite0", "efficientnet_lite1")
#: An early and a middle layer; the last is `embedding`, the default.
LAYERS = ("blocks.1", "blocks.3")


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
    first, second, third = (pp.decide(f"packaged:{name}") for name in ENCODERS)
    yield thick, pixels
    yield thick, first
    yield thick, second
    yield thin, second
    yield thick, decided_layer(ENCODERS[1], LAYERS[1])
    yield amplifier, second
    yield thick, decided_layer(ENCODERS[1], LAYERS[0])
    yield thin, first
    yield amplifier, first
    for page in (thick, thin, amplifier):
        yield page, third
    for layer in LAYERS:
        yield thick, decided_layer(ENCODERS[0], layer)
    yield thin, pixels
    yield amplifier, pixels


def in_noise(density: float) -> pp.Experiment:
    """Build the page of Gabors in white noise of a density, deg²."""
    return pp.load_experiment("gabor_in_noise").with_settings(
        {"levels.frequency.values": FREQUENCIES, "noise.density": density}
    )


def decided_layer(name: str, layer: str) -> pp.Observer:
    """Decide from one layer of a packaged encoder."""
    return pp.decide(pp.load_observer(f"packaged:{name}", layers=[layer]))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*sys.argv[1:])
