"""Put faults into the engine, one at a time, and see whether the tests notice.

    python benchmarks/mutation_check.py [--only WORD] [--jobs 2]

Each fault is a replacement of text in a copy of the checkout, in which the tests below then
run. A fault that they miss is a hole in them. Exits with the number of faults missed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("psyprobe", "tests", "stimuli", "experiments", "setup.cfg", "pyproject.toml")
TESTS = (
    "tests/testing/test_properties_waves.py",
    "tests/testing/test_properties_noise.py",
    "tests/testing/test_properties_colour.py",
    "tests/testing/test_properties_display.py",
    "tests/testing/test_properties_record.py",
    "tests/test_colour.py",
    "tests/test_display.py",
    "tests/stimulus/test_specification.py",
    "tests/test_agenda.py",
    "tests/test_budget.py",
    "tests/test_task.py",
    "tests/analysis/test_counts.py",
)


@dataclass(frozen=True)
class Fault:
    description: str
    file: str
    old: str
    new: str


FAULTS = (
    Fault(
        "half a pixel off centre",
        "stimulus/pattern.py",
        "(pixels - 1) / 2",
        "pixels / 2",
    ),
    Fault(
        "y counted downwards",
        "stimulus/pattern.py",
        "-pixel_positions(height, ppd) - y",
        "pixel_positions(height, ppd) - y",
    ),
    Fault(
        "both ends of the field sampled",
        "stimulus/pattern.py",
        "(pixels - 1) / 2) / ppd",
        "(pixels - 1) / 2) / ppd * 1.0045",
    ),
    Fault(
        "wrong sigma",
        "stimulus/kinds/gratings.py",
        '(2 * self.per_image("radius") ** 2)',
        '(self.per_image("radius") ** 2)',
    ),
    Fault(
        "sigma 0.01 % too large",
        "stimulus/kinds/gratings.py",
        '(2 * self.per_image("radius") ** 2)',
        '(2.0004 * self.per_image("radius") ** 2)',
    ),
    Fault(
        "phase off by 0.1 deg",
        "stimulus/kinds/gratings.py",
        'np.deg2rad(self.per_image("phase"))',
        'np.deg2rad(self.per_image("phase") + 0.1)',
    ),
    Fault(
        "sign of the phase",
        "stimulus/kinds/gratings.py",
        "* dx + phase",
        "* dx - phase",
    ),
    Fault(
        "sign of the orientation",
        "stimulus/kinds/gratings.py",
        "down = 2 * np.pi",
        "down = -2 * np.pi",
    ),
    Fault(
        "sign of the quadrature",
        "stimulus/kinds/gratings.py",
        "-np.sin(across)",
        "np.sin(across)",
    ),
    Fault(
        "frequency 0.001 % too high",
        "stimulus/kinds/gratings.py",
        "across = 2 * np.pi *",
        "across = 2.00002 * np.pi *",
    ),
    Fault(
        "sine and cosine of the orientation swapped",
        "stimulus/kinds/gratings.py",
        "(frequency * cosine)",
        "(frequency * sine)",
    ),
    Fault(
        "balance off by 0.1 %",
        "stimulus/kinds/gratings.py",
        "share = total /",
        "share = 0.999 * total /",
    ),
    Fault(
        "aspect inverted",
        "stimulus/kinds/gratings.py",
        "(along / ratio)",
        "(along * ratio)",
    ),
    Fault(
        "ellipse turned the wrong way",
        "stimulus/kinds/gratings.py",
        "dy * cosine - dx * sine",
        "dy * cosine + dx * sine",
    ),
    Fault(
        "window 1 % too small",
        "stimulus/pattern.py",
        "- radius[:, None, None]",
        "- 0.99 * radius[:, None, None]",
    ),
    Fault(
        "window not round",
        "stimulus/pattern.py",
        "np.hypot(dx[:, None, :], dy[:, :, None])",
        "np.hypot(dx[:, None, :], 1.001 * dy[:, :, None])",
    ),
    Fault(
        "linear ramp for a raised cosine",
        "stimulus/pattern.py",
        "0.5 * (1 + np.cos(np.pi * ramp)), distance",
        "1 - ramp, distance",
    ),
    Fault(
        "upper band edge off by a bin",
        "stimulus/kinds/noise.py",
        "high * reach * (1 + 1e-9)",
        "0.985 * high * reach * (1 + 1e-9)",
    ),
    Fault(
        "lower band edge off by a bin",
        "stimulus/kinds/noise.py",
        "low / reach * (1 - 1e-9)",
        "0.97 * low / reach * (1 - 1e-9)",
    ),
    Fault(
        "edges left out of the band",
        "stimulus/kinds/noise.py",
        "high * reach * (1 + 1e-9)",
        "high * reach * (1 - 1e-9)",
    ),
    Fault(
        "energy counted twice in the first column",
        "stimulus/kinds/noise.py",
        "- squared[ring.first_column].sum()",
        "",
    ),
    Fault(
        "mirror coefficients not conjugated",
        "stimulus/kinds/noise.py",
        "values[ring.mirrors].conj()",
        "values[ring.mirrors]",
    ),
    Fault(
        "mirror coefficients forgotten",
        "stimulus/kinds/noise.py",
        "values[ring.mirrored] = values[ring.mirrors].conj()",
        "pass",
    ),
    Fault(
        "spectrum rises instead of falling",
        "stimulus/kinds/noise.py",
        "r**-exponent",
        "r**exponent",
    ),
    Fault(
        "edge in amplitude instead of power",
        "stimulus/kinds/noise.py",
        "amplitude * np.sqrt(0.5",
        "amplitude * (0.5",
    ),
    Fault(
        "seed ignored",
        "stimulus/kinds/noise.py",
        "default_rng(seed).standard_normal(",
        "default_rng(0).standard_normal(",
    ),
    Fault(
        "seed depends on the place in the batch",
        "stimulus/kinds/noise.py",
        "int(seeds[i])",
        "int(seeds[i]) + i",
    ),
    Fault(
        "RMS 0.01 % too high",
        "stimulus/kinds/noise.py",
        "int(seeds[i])) * amplitude[i]",
        "int(seeds[i])) * 1.0001 * amplitude[i]",
    ),
    Fault(
        "mean of noise 0.01 % too high",
        "stimulus/kinds/noise.py",
        "out += level",
        "out += 1.0001 * level",
    ),
    Fault(
        "everything through float32",
        "stimulus/backend.py",
        "values, dtype=self.dtype)",
        'values.astype("float32"), dtype=self.dtype)',
    ),
    Fault(
        "contrast times 0.999",
        "stimulus/pattern.py",
        "paint(contrast * luminance",
        "paint(0.999 * contrast * luminance",
    ),
    Fault(
        "mean off by 0.01 %",
        "stimulus/pattern.py",
        "luminance, luminance, backend",
        "luminance, 1.0001 * luminance, backend",
    ),
    Fault(
        "cone contrast taken for modulation",
        "stimulus/pattern.py",
        "return _cone_contrast(self.direction, self.white, cone_observer(self.observer))",
        "return _cone_contrast(self.direction, self.white, cone_observer(self.observer)) * "
        "self.background_lms",
    ),
    Fault(
        "background luminance forgotten in colour",
        "stimulus/pattern.py",
        "level = luminance[:, None] * self.background_lms",
        "level = np.ones_like(luminance)[:, None] * self.background_lms",
    ),
    Fault(
        "carrier 0.01 % too deep",
        "stimulus/kinds/gratings.py",
        "[column * amplitude[:, None]",
        "[column * 1.0001 * amplitude[:, None]",
    ),
    Fault(
        "elliptical Gabors 1 % too shallow",
        "stimulus/kinds/gratings.py",
        "change * amplitude[",
        "change * 0.99 * amplitude[",
    ),
    Fault(
        "all windows of a batch alike",
        "stimulus/kinds/gratings.py",
        "windows[window_index.ravel()]",
        "windows[:1]",
    ),
    Fault(
        "no guard at Nyquist",
        "stimulus/kinds/gratings.py",
        "self.frequency < self.ppd / 2,",
        "self.frequency < 10 * self.ppd,",
    ),
    Fault(
        "bandwidth doubled",
        "stimulus/kinds/noise.py",
        "(self.bandwidth, float) / 2)",
        "(self.bandwidth, float))",
    ),
    Fault(
        "disc 0.1 % too faint",
        "stimulus/kinds/discs.py",
        "discs = pattern.round_window(self.shape",
        "discs = 0.999 * pattern.round_window(self.shape",
    ),
    Fault(
        "grey of the wrong white",
        "stimulus/pattern.py",
        "white_xyz(self.white)",
        'white_xyz("D50")',
    ),
    Fault(
        "parts of a sum 0.1 % too faint",
        "stimulus/kinds/sums.py",
        "total += 1\n",
        "total = 0.999 * total + 1\n",
    ),
    Fault(
        "a part of a sum counted twice",
        "stimulus/kinds/sums.py",
        "else total + change",
        "else total + 2 * change",
    ),
    Fault(
        "reflection off by 0.1 %",
        "light/display.py",
        "self.reflectivity / math.pi",
        "self.reflectivity / math.pi * 1.001",
    ),
    Fault(
        "reflections not subtracted",
        "light/display.py",
        "above = light - self.floor",
        "above = light - self.black",
    ),
    Fault(
        "sRGB exponent 2.39 in one direction",
        "light/transfer.py",
        "light **= 2.4",
        "light **= 2.39",
    ),
    Fault("sRGB exponent 2.2 in both directions", "light/transfer.py", " 2.4", " 2.2"),
    Fault(
        "toe of sRGB 12.9",
        "light/transfer.py",
        "light[toe] * 12.92",
        "light[toe] * 12.9",
    ),
    Fault(
        "quick sRGB off by 0.00001",
        "light/transfer.py",
        "drive -= 0.055",
        "drive -= 0.05501",
    ),
    Fault(
        "toe of the quick sRGB 12.9",
        "light/transfer.py",
        "np.multiply(light, 12.92",
        "np.multiply(light, 12.9",
    ),
    Fault(
        "power law inverted with another exponent",
        "light/transfer.py",
        "light **= 1 / eotf",
        "light **= 1 / (eotf + 0.01)",
    ),
    Fault(
        "gamut not enforced",
        "light/display.py",
        "if inside.outside and not clip",
        "if False and not clip",
    ),
    Fault(
        "matrix transposed",
        "light/display.py",
        "xp.asarray(matrix, dtype",
        "xp.asarray(matrix.T, dtype",
    ),
    Fault(
        "gamut bounded on one side",
        "light/display.py",
        "np.minimum(rgb - floors, ceilings - rgb)",
        "ceilings - rgb",
    ),
    Fault(
        "light above the peak kept",
        "light/display.py",
        "None if self.extended else 1.0",
        "None",
    ),
    Fault(
        "contrast a vector length",
        "light/colour.py",
        "math.sqrt(3) / np.linalg.norm",
        "1 / np.linalg.norm",
    ),
    Fault(
        "green for red", "light/colour.py", "[1.0, -1.0, 0.0] if", "[-1.0, 1.0, 0.0] if"
    ),
    Fault(
        "red-green not isoluminant",
        "light/colour.py",
        "[1.0, -1.0, 0.0] if",
        "[1.0, -1.001, 0.0] if",
    ),
    Fault("DKL row with its ratio inverted", "light/colour.py", "-l / m", "-m / l"),
    Fault(
        "primaries weighted by row",
        "light/colour.py",
        "columns * weights)",
        "columns * weights[:, None])",
    ),
    Fault(
        "a digit of the observer's matrix",
        "light/cone_observers.toml",
        "0.585168649077728",
        "0.585168649177728",
    ),
    Fault(
        "batches no longer whole",
        "running/agenda.py",
        "if batch.atomic and question.key in missing",
        "if not batch.atomic and question.key in missing",
    ),
    Fault(
        "a budget bounded by the last question",
        "observers/chat/prices.py",
        "self.dearest = max(self.dearest, answer.cost)",
        "self.dearest = answer.cost",
    ),
    Fault(
        "a chance level of 0.3 for four alternatives",
        "running/task.py",
        "return 1 / self.alternatives if forced",
        "return (0.3 if self.alternatives == 4 else 1 / self.alternatives) if forced",
    ),
    Fault(
        "a count left out",
        "analysis/words/fit.py",
        "trials=cells.summed(cells.counted)",
        "trials=cells.summed(cells.counted & (cells.step > 0))",
    ),
)


def run(fault: Fault | None) -> tuple[bool, str, float]:
    """Whether the tests fail with the fault, which test said so, and the time it took."""
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(
                    source,
                    Path(folder) / name,
                    ignore=shutil.ignore_patterns("__pycache__"),
                )
            else:
                shutil.copy(source, folder)
        if fault is not None:
            path = Path(folder) / "psyprobe" / fault.file
            text = path.read_text(encoding="utf-8")
            if fault.old not in text:
                return False, f"NOT APPLIED: {fault.old!r} is not in {fault.file}", 0.0
            path.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "--no-header",
            "--tb=no",
            *TESTS,
        ]
        environment = os.environ | {"PYTHONPATH": folder, "OMP_NUM_THREADS": "1"}
        process = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    failure = re.search(r"^(?:FAILED|ERROR) (\S+)", process.stdout, re.MULTILINE)
    if process.returncode not in (0, 1, 2) or (process.returncode and not failure):
        return (
            False,
            f"BROKEN: {process.stdout[-300:]}{process.stderr[-300:]}",
            time.perf_counter() - begun,
        )
    return (
        process.returncode != 0,
        failure.group(1).rpartition("/")[2] if failure else "",
        time.perf_counter() - begun,
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", default="", help="faults whose description holds this"
    )
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    faults = [fault for fault in FAULTS if arguments.only in fault.description]
    failing, where, seconds = run(None)
    if failing:
        print(f"the tests fail without a fault, in {where}")
        return 1
    print(f"without a fault the tests pass ({seconds:.0f} s)", flush=True)
    missed = 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for fault, (caught, where, seconds) in zip(
            faults, pool.map(run, faults), strict=True
        ):
            missed += not caught
            verdict = "caught" if caught else "MISSED"
            print(
                f"{verdict}  {fault.description:<45}  {seconds:4.0f} s  {where}",
                flush=True,
            )
    print(f"{len(faults) - missed} of {len(faults)} faults caught")
    return missed


if __name__ == "__main__":
    sys.exit(main())
