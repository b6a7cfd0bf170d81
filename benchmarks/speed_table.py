"""The speed table: one thread, each work in turn with what it is compared with, processor time.

    python benchmarks/speed_table.py [ROW ...] [--json FILE]

Prints one table; FILE is compared with before it is written. A value is the median ratio of rounds
in which both take turns, or a figure in the unit that the condition names. `ROWS` lists the works;
a bar that is not reached has a "!". The rows of corruptions need albumentations for their peer.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import planning_speed
import scipy.fft
import store_speed

import psyprobe as pp
from psyprobe.analysis.distance import distances
from psyprobe.light.colour import cone_observer, direction_vector, white_xyz
from psyprobe.probes.displayed_images import show
from psyprobe.probes.words.delivery import deliver, png_bytes

DISPLAY = pp.Display(peak=400)
SIDE = 224
PPD = 60
BATCH = 100
ROUNDS = 9
PLACES = (np.arange(SIDE) - (SIDE - 1) / 2) / PPD
EXPERIMENT = "gabor_achromatic"
FREQUENCY = np.geomspace(0.5, 20, BATCH)
ORIENTATION = np.linspace(0, 170, BATCH)


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    work: str
    #: Batch or single, precision, and what the value is a ratio to, or its unit.
    condition: str
    value: float
    #: What is to be reached: at most this, or at least.
    bar: float
    at_least: bool = False

    @property
    def holds(self) -> bool:
        return self.value >= self.bar if self.at_least else self.value <= self.bar


def seconds(work: Callable[[], object], times: int = 1) -> float:
    """Processor time of one turn."""
    start = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - start) / times


def ratio(
    ours: Callable[[], object],
    other: Callable[[], object],
    times: int = 1,
    rounds: int = ROUNDS,
) -> float:
    """Median of our time over the other's, in turn; the first round, which warms up, is left
    out."""
    second_pairs = [
        (seconds(ours, times), seconds(other, times)) for _ in range(rounds + 1)
    ]
    return statistics.median(mine / theirs for mine, theirs in second_pairs[1:])


# -- drawing
# ------------------------------------------------------------------------------------------


def naive_gabor() -> np.ndarray:
    x, y = np.meshgrid(PLACES, -PLACES)
    envelope = np.exp(-(x**2 + y**2) / 2)
    light = 100 * (1 + 0.5 * envelope * np.cos(2 * np.pi * 4 * x)) / 400
    drive = np.where(
        light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055
    )
    return np.repeat(drive[..., None], 3, axis=-1).astype(np.float32)


def gabor() -> Row:
    value = ratio(
        lambda: DISPLAY.encode(pp.gabor(frequency=4, contrast=0.5)),
        naive_gabor,
        times=10,
    )
    return Row(
        "one default gabor, encoded",
        "single, float64, over eight naive lines of numpy",
        value,
        0.5,
    )


def red_green() -> Row:
    to_rgb = DISPLAY.lms_to_rgb()
    background = cone_observer("cie2006_led_lcd").from_xyz @ (white_xyz() * 100)
    level = to_rgb @ background / 400
    step = (
        to_rgb @ (background * direction_vector("red_green", background)) / 400 * 0.05
    )

    def planar() -> np.ndarray:
        drive = np.empty((BATCH, 3, SIDE, SIDE), np.float32)
        envelope = np.exp(-(PLACES**2) / 2)
        for planes, frequency, orientation in zip(
            drive, FREQUENCY, np.radians(ORIENTATION), strict=True
        ):
            across = 2 * np.pi * frequency * np.cos(orientation) * PLACES
            down = -2 * np.pi * frequency * np.sin(orientation) * PLACES
            rows = np.stack(
                [np.cos(down) * envelope, -np.sin(down) * envelope], axis=1
            ).astype(np.float32)
            pattern = rows @ np.stack(
                [np.cos(across) * envelope, np.sin(across) * envelope]
            ).astype(np.float32)
            for plane, of_pattern, mean in zip(
                planes, np.float32(step), np.float32(level), strict=True
            ):
                np.multiply(pattern, of_pattern, out=plane)
                plane += mean
                plane **= np.float32(1 / 2.4)
                plane *= np.float32(1.055)
                plane -= np.float32(0.055)
        return drive

    def ours() -> np.ndarray:
        colour: dict[str, Any] = {"direction": "red_green", "dtype": "float32"}
        return DISPLAY.encode(
            pp.gabor(
                frequency=FREQUENCY, orientation=ORIENTATION, contrast=0.05, **colour
            )
        )

    value = ratio(ours, planar)
    return Row(
        "red-green Gabors, encoded",
        "batch of 100, float32, over a planar float32 kernel",
        value,
        2.0,
    )


def one_noise() -> Row:
    spectrum = np.fft.rfft2(np.random.default_rng(0).standard_normal((SIDE, SIDE)))
    return Row(
        "noise, one call",
        "single, float64, one band, over scipy's irfft2",
        ratio(
            lambda: pp.noise(frequency=4, contrast=0.15, seed=1),
            lambda: scipy.fft.irfft2(spectrum),
            times=20,
        ),
        2.0,
    )


def bands_of_noise() -> Row:
    spectra = np.fft.rfft2(
        np.random.default_rng(0).standard_normal((BATCH, SIDE, SIDE))
    )

    def peer() -> object:
        return [scipy.fft.irfft2(spectrum) for spectrum in spectra]

    value = ratio(lambda: pp.noise(frequency=FREQUENCY, contrast=0.15, seed=1), peer)
    return Row(
        "noise, 100 bands",
        "batch of 100, float64, over 100 times scipy's irfft2",
        value,
        1.3,
    )


def dither() -> Row:
    drive = DISPLAY.encode(pp.gabor(frequency=4, contrast=0.5))
    times = [
        seconds(lambda: png_bytes(deliver(drive, seed=1)), 10) for _ in range(ROUNDS)
    ]
    return Row(
        "dither and PNG at 8 bits",
        "single, ms an image, best of nine rounds",
        1000 * min(times),
        4.0,
    )


def certificate() -> Row:
    stimulus = pp.gabor(frequency=4, contrast=0.1)
    value = ratio(
        stimulus.measure, lambda: pp.gabor(frequency=4, contrast=0.1), times=5
    )
    return Row(
        "certificate of a Gabor", "single, float64, over drawing it", value, 10.0
    )


def red_green_certificate() -> Row:
    def draw() -> pp.Stimulus:
        return pp.gabor(frequency=4, contrast=0.05, direction="red_green")

    value = ratio(draw().measure, draw, times=5)
    return Row(
        "certificate of a red-green Gabor",
        "single, float64, over drawing it",
        value,
        15.0,
    )


def batch_of_certificates() -> Row:
    def draw() -> pp.Stimulus:
        return pp.gabor(frequency=FREQUENCY, contrast=0.1, dtype="float32")

    return Row(
        "certificates of 100 Gabors",
        "batch of 100, float32, over drawing them",
        ratio(draw().measure, draw, rounds=3),
        15.0,
    )


def plaids() -> list[Row]:
    envelope = np.exp(-(PLACES**2) / 2)

    def fused() -> np.ndarray:
        light = np.empty((BATCH, SIDE, SIDE))
        for image, frequency in zip(light, FREQUENCY, strict=True):
            wave = envelope * np.cos(2 * np.pi * frequency * PLACES)
            down = 10 * np.stack([envelope, wave], axis=1)
            np.matmul(down, np.stack([wave, envelope]), out=image)
            image += 100
        return light

    def with_parts() -> object:
        upright = pp.gabor(frequency=FREQUENCY, contrast=0.1)
        return upright + pp.gabor(frequency=FREQUENCY, contrast=0.1, orientation=90)

    def alone() -> object:
        upright = pp.stimulus.Gabor(frequency=FREQUENCY, contrast=0.1)
        return (upright + upright.changed(orientation=90.0)).draw()

    peer = "over one product of H x 2 and 2 x W an image"
    return [
        Row(
            "plaids and their Gabors",
            f"batch of 100, float64, {peer}",
            ratio(with_parts, fused),
            1.5,
        ),
        Row(
            "plaids of two Gabors",
            f"batch of 100, float64, {peer}",
            ratio(alone, fused),
            1.5,
        ),
    ]


# -- runs
# ------------------------------------------------------------------------------------------


def small_network(width: int) -> Any:
    """Two convolutions, of which the second has so many channels."""
    import torch

    torch.manual_seed(0)
    layers = [
        torch.nn.Conv2d(3, 48, 7, 4, 3),
        torch.nn.ReLU(),
        torch.nn.Conv2d(48, width, 3, 2, 1),
        torch.nn.ReLU(),
    ]
    return torch.nn.Sequential(
        *layers, torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten()
    ).eval()


def network_of_2_ms() -> Any:
    """The small network as wide as takes 2 ms an image of 224 px on one thread of this machine."""
    import torch

    torch.set_num_threads(1)
    images = torch.rand(8, 3, SIDE, SIDE)
    networks = {width: small_network(width) for width in range(64, 641, 32)}
    times_by_width: dict[int, list[float]] = {width: [] for width in networks}
    # In turn, so that a slow second of the machine meets all of them; the first round warms up.
    for _ in range(3 * ROUNDS):
        for width, network in networks.items():
            with torch.inference_mode():
                times_by_width[width].append(
                    1000
                    * seconds(lambda network=network: network(images))
                    / len(images)
                )
    return networks[
        next(
            (width for width in networks if min(times_by_width[width][1:]) >= 2.0), 640
        )
    ]


def experiment_over_passes(
    observer: Any, network: Any, rounds: int
) -> tuple[float, float]:
    """A whole default experiment on a new store over the bare passes of its 601 images, and ms of
    one of these."""
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        plan = pp.plan(EXPERIMENT, observer)
        images = torch.rand(plan.batch_size, 3, SIDE, SIDE)
        full_batches = plan.images // plan.batch_size
        sizes = plan.images % plan.batch_size
        stores = iter(range(100))

        def passes() -> None:
            with torch.inference_mode():
                for size in [plan.batch_size] * full_batches + [sizes] * bool(sizes):
                    network(images[:size])

        def run() -> None:
            pp.run(
                EXPERIMENT,
                observer,
                store=Path(folder) / f"{next(stores)}.sqlite",
                progress=False,
            )

        value = ratio(run, passes, rounds=rounds)
        return value, 1000 * seconds(passes) / plan.images


def overhead(name: str, rounds: int, bar: float, *, channels_last: bool = False) -> Row:
    import timm
    import torch

    network = timm.create_model(name, num_classes=0).eval()
    order = "as timm gives it"
    if channels_last:
        network = network.to(memory_format=torch.channels_last)
        order = "channels last, as psyprobe runs what it cannot fold"
    # The bare passes are as timm gives them, so psyprobe's are too.
    observer = pp.load_observer(
        f"timm:{name}", random_weights=True, batch_norm="separate"
    )
    value, pass_milliseconds = experiment_over_passes(observer, network, rounds)
    return Row(
        f"experiment, {name}",
        f"random weights, over bare passes of {pass_milliseconds:.3g} ms, {order}",
        value,
        bar,
    )


def vit_experiment() -> Row:
    return overhead("vit_small_patch16_224", 1, 1.02)


def lite0_experiment() -> list[Row]:
    return [
        overhead("tf_efficientnet_lite0", 3, 1.05, channels_last=channels_last)
        for channels_last in (False, True)
    ]


def small_experiment() -> list[Row]:
    network = network_of_2_ms()
    observer = pp.observer(network, input_size=SIDE, mean=(0.5,) * 3, std=(0.5,) * 3)
    value, pass_milliseconds = experiment_over_passes(observer, network, 5)
    condition = f"over bare forward passes of {pass_milliseconds:.3g} ms"
    lowest_ratio = images_over_passes(observer, network)
    return [
        Row("experiment, a small network", condition, value, 1.3),
        Row(
            "its images alone",
            f"drawn, encoded, normalised, passed and compared as pixels, {condition}",
            lowest_ratio,
            1.3,
        ),
    ]


def images_over_passes(observer: Any, network: Any) -> float:
    """Four batches without questions, answers and store: the least that an experiment takes as it
    stands."""
    import torch

    specs = [
        pp.stimulus.Gabor(frequency=frequency, contrast=0.5)
        for frequency in np.geomspace(0.5, 20, 32)
    ]
    reference = show([specs[0].reference()], DISPLAY)
    images = torch.rand(8, 3, SIDE, SIDE)

    def ours() -> None:
        displayed = show(specs, DISPLAY)
        distances(
            displayed.planes[..., 0].reshape(len(specs), -1),
            reference.planes[..., 0].reshape(1, -1),
        )
        for start in range(0, len(specs), len(images)):
            observer.features(displayed[start : start + len(images)].rgb)

    def bare() -> None:
        with torch.inference_mode():
            for _ in range(0, len(specs), len(images)):
                network(images)

    return ratio(ours, bare, times=3)


def decided_csf() -> list[Row]:
    """A CSF in noise by an encoder that decides, and what its plan told, in processor time."""
    from psyprobe.probes.words import plan, training

    page = pp.load_experiment("gabor_in_noise").with_settings(
        {"levels.frequency.values": [0.5, 1, 2, 4, 8, 16]}
    )
    observer = pp.load_observer("decided:packaged:efficientnet_lite2")
    plan.perf_counter = training.perf_counter = time.process_time
    planned = pp.plan(page, observer, timed=True).seconds
    duration = seconds(lambda: pp.run(page, observer, progress=False))
    work = "CSF in noise of an encoder that decides"
    return [
        Row(work, "six frequencies, EfficientNet-Lite2, s", duration, 300),
        Row(
            work,
            "larger over smaller of planned and taken",
            max(planned / duration, duration / planned),
            1.3,
        ),
    ]


def letters() -> Row:
    """Draw Sloan's ten letters with exact coverage; the bar is letters.md's figure for Python."""

    def draw() -> None:
        for letter in "CDHKNORSVZ":
            pp.optotype(
                letter=letter,
                contrast=-1,
                luminance=100,
                letter_size=0.2,
                ppd=120,
                size=96,
            )

    milliseconds = [1000 * seconds(draw) / 10 for _ in range(ROUNDS)]
    return Row(
        "a letter with exact coverage",
        "single, float64, 24 px in 96, ms",
        statistics.median(milliseconds),
        3.0,
    )


def reading() -> Row:
    """A page of letters by a reader over the bare passes of as many images."""
    import onnxruntime

    from psyprobe.observers.readers.recogniser import SIZE

    settings = {
        "stimulus.parameters.allow_alias": True,
        "levels.logmar": {"values": [0.0, 0.1, 0.2, 0.3]},
        "asking.design": "constant",
        "asking.options": {},
        "asking.repeats": 60,
    }
    page = pp.load_experiment("letter_acuity").with_settings(settings)
    observer = pp.load_observer("reader:rapidocr")
    questions = pp.plan(page, observer).questions
    session = onnxruntime.InferenceSession(
        observer.card.weights.removeprefix("file "), providers=["CPUExecutionProvider"]
    )
    image = np.random.default_rng(1).uniform(-1, 1, (1, 3, *SIZE)).astype(np.float32)

    def passes() -> None:
        for _ in range(questions):
            session.run(None, {"x": image})

    return Row(
        "letters named by a reader, a whole run",
        f"rapidocr, {questions} questions, over bare passes",
        ratio(lambda: pp.run(page, observer, progress=False), passes, rounds=5),
        1.3,
    )


def two_pages() -> Row:
    """Two pages of one store over the same pages in two stores."""
    pages = ("gabor_achromatic", "gabor_red_green")
    with tempfile.TemporaryDirectory() as folder:
        stores = (Path(folder) / f"{i}.sqlite" for i in range(1000))

        def together() -> None:
            store = next(stores)
            for page in pages:
                pp.run(page, "pixels", store=store, progress=False)

        def apart() -> None:
            for page in pages:
                pp.run(page, "pixels", store=next(stores), progress=False)

        value = ratio(together, apart)
    return Row(
        "an experiment of two pages",
        "grey and red-green Gabors, pixels, one store over two",
        value,
        1.05,
    )


def corruptions() -> list[Row]:
    import corruption_speed

    return listed(corruption_speed.rows, at_least=True)


def listed(
    table: Callable[[], list[tuple[str, str, float, float]]], at_least: bool = False
) -> list[Row]:
    """The rows of another script."""
    return [Row(*row, at_least=at_least) for row in table()]


#: Rows by the name under which they can be asked for, in the order of the table.
ROWS: dict[str, Callable[[], list[Row]]] = {
    "gabor": lambda: [gabor()],
    "red_green": lambda: [red_green()],
    "noise": lambda: [one_noise(), bands_of_noise()],
    "dither": lambda: [dither()],
    "certificate": lambda: [certificate(), red_green_certificate()],
    "certificates": lambda: [batch_of_certificates()],
    "plaids": plaids,
    "vit": lambda: [vit_experiment()],
    "lite0": lite0_experiment,
    "small": small_experiment,
    "plans": lambda: [
        *listed(planning_speed.plans),
        *listed(planning_speed.finished_plan),
    ],
    "cold_plan": lambda: listed(planning_speed.cold_plan),
    "fit": lambda: [
        *listed(planning_speed.single_fit),
        *listed(planning_speed.shared_fit),
    ],
    "frequencies": lambda: listed(planning_speed.many_frequencies),
    "kept": lambda: listed(planning_speed.repeated_score),
    "looks": lambda: listed(planning_speed.looks),
    "store": lambda: [
        *listed(store_speed.bytes_a_question),
        *listed(store_speed.answers_a_second, at_least=True),
        *listed(store_speed.commits_a_second),
    ],
    "decided_csf": decided_csf,
    "letters": lambda: [letters()],
    "reading": lambda: [reading()],
    "two_pages": lambda: [two_pages()],
    "corruptions": corruptions,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "rows", nargs="*", metavar="ROW", help=f"all, or some of {', '.join(ROWS)}"
    )
    parser.add_argument("--json", type=Path, help="compared with, then written")
    options = parser.parse_args()
    if unknown := set(options.rows) - set(ROWS):
        parser.error(f"there is no row {', '.join(sorted(unknown))}")
    stored_rows = (
        json.loads(options.json.read_text(encoding="utf-8"))
        if options.json and options.json.exists()
        else {}
    )
    print(
        f"| {'work':46} | {'condition':58} | {'value':8} | {'to reach':10} | {'last':8} "
        "|\n|---|---|---|---|---|"
    )
    for row in (row for name in options.rows or ROWS for row in ROWS[name]()):
        key = f"{row.work}: {row.condition}"
        bar = f"{'>=' if row.at_least else '<='} {row.bar:g}{'' if row.holds else ' !'}"
        before = f"{stored_rows[key]['value']:.4g}" if key in stored_rows else "-"
        print(
            f"| {row.work:46} | {row.condition:58} | {row.value:<8.4g} | {bar:10} | {before:8} |",
            flush=True,
        )
        stored_rows[key] = asdict(row)
    if options.json:
        options.json.write_text(
            json.dumps(stored_rows, indent=2) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
