"""Judge stimuli drawn without psyprobe, right ones and faulty ones, and count what the diagnosis says of them.

    python benchmarks/diagnosis.py [--right 10000] [--faulty 2000] [--seed 0]

Right ones are Gabors, gratings and discs over the whole range of parameters, in cd/m², as fractions of a display's
range, and as drive values in floats and in codes of 8 and 16 bits. They must pass; where codes are too coarse for the
contrast, rounding must be named and nothing else. Faulty ones have one of the planted faults at parameters drawn at
random.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from psyprobe.errors import InputError
from psyprobe.stimulus import Grating, Specification
from psyprobe.testing import CalibrationError, assert_calibrated
from psyprobe.testing.diagnosis import CAUSES
from tests.testing.planted import PLANTED, Image, Planted, Scene

#: How a right image is handed over: space, and the numbers made of its light.
FORMS = ("luminance", "float32", "linear", "encoded", "encoded float32", "8 bits", "16 bits")


def any_scene(rng: np.random.Generator) -> Scene:
    """A scene whose light the display shows."""
    size = int(rng.integers(48, 192))
    ppd = float(np.exp(rng.uniform(np.log(16), np.log(100))))
    field = size / ppd
    peak = float(rng.uniform(50, 1000))
    black = float(rng.choice([0, rng.uniform(0, peak / 200)]))
    luminance = black + (peak - black) * float(rng.uniform(0.1, 0.6))
    most = min((luminance - black) / luminance, (peak - luminance) / luminance, 1.0)
    radius = field * float(np.exp(rng.uniform(np.log(0.06), np.log(0.3))))
    return Scene(
        frequency=float(np.exp(rng.uniform(np.log(max(1.5 / field, 0.4 / radius)), np.log(0.45 * ppd)))),
        contrast=most * float(np.exp(rng.uniform(np.log(0.003), 0))),
        orientation=float(rng.uniform(-180, 180)),
        phase=float(rng.uniform(-180, 180)),
        radius=radius,
        x=float(rng.uniform(-0.2, 0.2)) * field,
        y=float(rng.uniform(-0.2, 0.2)) * field,
        luminance=luminance,
        ppd=ppd,
        size=size,
        peak=peak,
        black=black,
    )


def right(scene: Scene, kind: str) -> tuple[Image, Specification]:
    """The light of a Gabor, a grating or a disc, in plain numpy, and what it is."""
    if kind == "gabor":
        return scene.gabor(), scene.asked
    if kind == "disc":
        return scene.disc_image(scene.luminance * (1 + scene.contrast)), scene.disc
    names = ("frequency", "contrast", "orientation", "phase", "x", "y", "luminance", "ppd", "size")
    return replace(scene, radius=1e9).gabor(), Grating(**{name: getattr(scene, name) for name in names})


def handed_over(light: Image, form: str, scene: Scene) -> tuple[Image, str]:
    """The numbers of an image in a form, and their space."""
    if form in ("luminance", "float32"):
        return light.astype("float32" if form == "float32" else "float64"), "luminance"
    if form == "linear":
        return (light - scene.black) / (scene.peak - scene.black), "linear"
    if form.startswith("encoded"):
        # IEC's constants leave a step at the toe: drive is that of the display model, which has none.
        drive = np.asarray(scene.display.encode(light, dtype="float64"))[..., 0]
        return drive.astype("float32" if form.endswith("32") else "float64"), "encoded"
    most = 255 if form == "8 bits" else 65535
    return np.rint(most * scene.drive(light)).astype("uint8" if most == 255 else "uint16"), "encoded"


def judge(image: Image, asked: Specification, space: str, scene: Scene) -> tuple[str, ...] | None:
    """Names of the causes; None if it passes."""
    try:
        assert_calibrated(image, asked, space=space, display=scene.display)
    except CalibrationError as error:
        return tuple(cause.name for cause in error.causes)
    return None


def right_cases(count: int, seed: int) -> Counter[str]:
    """What is said of right images."""
    rng, said = np.random.default_rng(seed), Counter[str]()
    for index in range(count):
        scene = any_scene(rng)
        kind, form = ("gabor", "grating", "disc")[index % 3], FORMS[index % len(FORMS)]
        light, asked = right(scene, kind)
        image, space = handed_over(light, form, scene)
        causes = judge(image, asked, space, scene)
        if causes is None:
            said["passed"] += 1
        elif "bits" in form and causes == (f"{form.split()[0]}-bit rounding",):
            said[f"{form}: rounding named"] += 1
        else:
            said["FALSE ALARM"] += 1
            print(f"{form} {asked!r} on {scene.display}: {causes}", flush=True)
    return said


def faulty_cases(count: int, seed: int) -> dict[str, Counter[str]]:
    """What is said of images with each fault."""
    rng = np.random.default_rng(seed)
    said: dict[str, Counter[str]] = defaultdict(Counter)
    for index in range(count):
        fault = PLANTED[index % len(PLANTED)]
        scene = _fitting(fault, any_scene(rng))
        try:
            image, asked, space = fault.make(scene)
        except InputError:
            continue
        causes = judge(image, asked, space, scene)
        said[fault.what][_verdict(fault, causes)] += 1
    return said


def _fitting(fault: Planted, scene: Scene) -> Scene:
    """The scene with what the fault needs in order to be one."""
    if fault.cause != "rounded":
        scene = replace(scene, contrast=max(scene.contrast, 0.05))
    if fault.cause in ("clipped", "rounded", "stretched_sine"):
        return replace(Scene(**(fault.scene or {})), black=0.0)
    if fault.cause in ("wrong_ppd", "cycles_per_image"):
        field = scene.size / scene.ppd
        return replace(scene, frequency=scene.frequency * 0.6 + 4 / field, radius=field / 8)
    return scene


def _verdict(fault: Planted, causes: tuple[str, ...] | None) -> str:
    if causes is None:
        return "too small to matter"
    if not causes:
        return "unnamed"
    if causes[0] != CAUSES[fault.cause].name:
        return "WRONG: " + " + ".join(causes)
    return "named" if len(causes) == 1 else "named first of " + " + ".join(causes[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--right", type=int, default=10_000)
    parser.add_argument("--faulty", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    begun = time.process_time()
    for what, number in right_cases(arguments.right, arguments.seed).items():
        print(f"right: {what}: {number}")
    for what, said in faulty_cases(arguments.faulty, arguments.seed).items():
        print(f"{what}: {dict(said)}")
    print(f"{time.process_time() - begun:.0f} s of processor time")


if __name__ == "__main__":
    main()
