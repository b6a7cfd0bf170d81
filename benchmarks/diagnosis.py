"""Judge stimuli drawn without psyprobe, right ones and faulty ones, and count what the diagnosis
says of them.

    python benchmarks/diagnosis.py [--right 10000] [--faulty 2000] [--encoded 480]
        [--seed 0]

Right ones are Gabors, gratings and discs over the whole range of parameters, in cd/m², as fractions
of a display's range, and as drive values in floats and in codes of 8 and 16 bits. They must pass;
where codes are too coarse for the contrast, rounding must be named and nothing else. Faulty ones
have one of the planted faults at parameters drawn at random. Faults of encoding are planted on each
kind of screen: three measured guns and a measured white (both simulated, with noise of 1 %), a
power law and sRGB; every other image is rounded to 8 bits.
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
from psyprobe.stimulus import Specification
from psyprobe.testing import CalibrationError, assert_calibrated
from psyprobe.testing.diagnosis import CAUSES
from tests.testing.planted import (
    ENCODED,
    ENCODED_BY_GUN,
    FORMS,
    PLANTED,
    SCREENS,
    Image,
    Planted,
    Scene,
    any_scene,
    handed_over,
    right,
    with_room,
)


def judge(
    image: Image, specification: Specification, space: str, scene: Scene
) -> tuple[str, ...] | None:
    """Names of the causes; None if it passes."""
    try:
        assert_calibrated(image, specification, space=space, display=scene.display)
    except CalibrationError as error:
        return tuple(cause.name for cause in error.causes)
    except InputError as error:
        # Drive that is 0 or below everywhere has no light to measure; where it goes below, the
        # refusal names the fault.
        return (CAUSES["range"].name,) if "[-1, 1]" in str(error) else ()
    return None


def right_cases(count: int, seed: int) -> Counter[str]:
    """What is said of right images."""
    rng = np.random.default_rng(seed)
    verdicts = Counter[str]()
    for index in range(count):
        scene = any_scene(rng)
        kind = ("gabor", "grating", "disc")[index % 3]
        form = FORMS[index % len(FORMS)]
        light, specification = right(scene, kind)
        image, space = handed_over(light, form, scene)
        causes = judge(image, specification, space, scene)
        if causes is None:
            verdicts["passed"] += 1
        elif "bits" in form and causes == (f"{form.split()[0]}-bit rounding",):
            verdicts[f"{form}: rounding named"] += 1
        else:
            verdicts["FALSE ALARM"] += 1
            print(f"{form} {specification!r} on {scene.display}: {causes}", flush=True)
    return verdicts


def faulty_cases(count: int, seed: int) -> dict[str, Counter[str]]:
    """What is said of images with each fault."""
    rng = np.random.default_rng(seed)
    verdicts: dict[str, Counter[str]] = defaultdict(Counter)
    for index in range(count):
        fault = PLANTED[index % len(PLANTED)]
        scene = with_room(fault, any_scene(rng))
        try:
            image, specification, space = fault.make(scene)
        except InputError:
            continue
        causes = judge(image, specification, space, scene)
        verdicts[fault.description][_verdict(fault, causes)] += 1
    return verdicts


def encoded_cases(count: int, seed: int) -> dict[str, Counter[str]]:
    """What is said of each fault of encoding on each kind of screen."""
    rng = np.random.default_rng(seed)
    verdicts: dict[str, Counter[str]] = defaultdict(Counter)
    for screen in SCREENS:
        faults = ENCODED + ENCODED_BY_GUN * screen.startswith("three guns")
        for index in range(count):
            fault = faults[index % len(faults)]
            scene = replace(with_room(fault, any_scene(rng)), screen=screen)
            image, specification, space = fault.make(scene)
            if index // len(faults) % 2:
                image = np.rint(255 * np.clip(image, 0, 1)).astype(np.uint8)
            causes = judge(image, specification, space, scene)
            verdicts[f"{screen}: {fault.description}"][_verdict(fault, causes)] += 1
    return verdicts


def _verdict(fault: Planted, causes: tuple[str, ...] | None) -> str:
    if causes is None:
        return "too small to matter"
    if not causes:
        return "unnamed"
    if causes[0] != CAUSES[fault.cause].name:
        return "WRONG: " + " + ".join(causes)
    return "named" if len(causes) == 1 else "named first of " + " + ".join(causes[1:])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--right", type=int, default=10_000)
    parser.add_argument("--faulty", type=int, default=2_000)
    parser.add_argument(
        "--encoded", type=int, default=480, help="on each kind of screen"
    )
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    begun = time.process_time()
    for label, number in right_cases(arguments.right, arguments.seed).items():
        print(f"right: {label}: {number}")
    for label, verdicts in faulty_cases(arguments.faulty, arguments.seed).items():
        print(f"{label}: {dict(verdicts)}")
    for label, verdicts in encoded_cases(arguments.encoded, arguments.seed).items():
        print(f"{label}: {dict(verdicts)}")
    print(f"{time.process_time() - begun:.0f} s of processor time")


if __name__ == "__main__":
    main()
