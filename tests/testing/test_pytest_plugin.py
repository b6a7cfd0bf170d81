"""The plugin's fixture and its table at the end of a run, alone and under xdist."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
TESTS = """
import numpy as np
import pytest
from psyprobe.light.display import Display
from psyprobe.stimulus import Gabor

ASKED = Gabor(frequency=4.0, contrast=0.5, radius=0.2, size=64)

@pytest.mark.parametrize("number", range(4))
def test_passes(calibration_report, number):
    assert calibration_report.check(ASKED.draw()).passed

def test_fails(calibration_report):
    image = 100 + 0.5 * (ASKED.draw().pixels - 100)
    calibration_report.check(image, ASKED, space="luminance")

def test_passes_by_coarser_tolerances(calibration_report):
    light = ASKED.draw().pixels / 400
    calibration_report.check(light, ASKED, space="linear", display=Display(peak=400), precision="float16")

def test_adds(calibration_report):
    calibration_report.add(ASKED.draw(dtype="float32").measure())
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run_tests(source: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(source)
        return pytester.runpytest_subprocess(
            "-p",
            "psyprobe.testing.pytest_plugin",
            "-W",
            "error",
            *options,
            timeout=1200,
        )

    return run_tests


@pytest.mark.parametrize(
    "options", [(), ("-p", "xdist", "-n", "2")], ids=["alone", "xdist"]
)
def test_worst_errors_of_all_tests_stand_at_the_end(
    run, options: tuple[str, ...]
) -> None:  # type: ignore[no-untyped-def]
    if options:
        pytest.importorskip("xdist")
    result = run(TESTS, *options)
    result.assert_outcomes(passed=6, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*contrast: requested 0.5, delivered 0.25 (-50 %)*",
            "*Likely cause: contrast applied twice*",
            "*= calibration =*",
            "7 images measured; the worst of each quantity:",
            "*quantity*precision*error*tolerance*test*",
            "!*contrast *float64*-5.0e-01*1.0e-09*test_fails",
            "* contrast *float32*test_adds",
        ]
    )


def test_a_run_without_stimuli_says_nothing(run) -> None:  # type: ignore[no-untyped-def]
    result = run("def test_nothing():\n    pass\n")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*calibration*")
