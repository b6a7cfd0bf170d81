"""The pytest plugin: a fixture that measures stimuli, and a table of the worst errors at the end of
the run.

It is registered by an entry point, so it is there wherever psyprobe is installed. What tests
measure travels with their reports, so the table is whole under pytest-xdist too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

import pytest

if TYPE_CHECKING:
    from psyprobe._typing import Array
    from psyprobe.stimulus import Specification, Stimulus
    from psyprobe.stimulus.certificate import Certificate
    from psyprobe.testing.assertions import How

#: Name under which certificates travel in the properties of a test's report.
PROPERTY = "psyprobe_calibration"


class CalibrationReport:
    """What one test measured; given by the fixture `calibration_report`."""

    def __init__(self, properties: list[tuple[str, object]]) -> None:
        self._properties = properties

    def add(self, certificate: Certificate) -> None:
        """Put a certificate into the table at the end of the run."""
        self._properties.append((PROPERTY, certificate.to_dict()))

    def check(
        self, image: Stimulus | Array, asked: Specification | None = None, **how: Unpack[How]
    ) -> Certificate:
        """`assert_calibrated`, whose measurements are reported whether it passes or fails."""
        from psyprobe.testing.assertions import CalibrationError, assert_calibrated

        try:
            certificate = assert_calibrated(image, asked, **how)
        except CalibrationError as error:
            if error.certificate:
                self.add(error.certificate)
            raise
        self.add(certificate)
        return certificate


@pytest.fixture
def calibration_report(request: pytest.FixtureRequest) -> CalibrationReport:
    """Measures stimuli, asserts their calibration, and reports the worst errors at the end of the
    run.
    """
    return CalibrationReport(request.node.user_properties)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the worst error of each quantity over all tests that used the fixture."""
    worst: dict[tuple[str, str], tuple[float, dict[str, Any], str]] = {}
    images = 0
    for test, certificate in _certificates(terminalreporter):
        images += certificate["images"]
        for row in certificate["rows"]:
            if row["error"] is None or row["tolerance"] is None:
                continue
            severity = (
                abs(row["error"]) / row["tolerance"]
                if row["tolerance"]
                else abs(row["error"]) * float("inf")
            )
            key = (row["quantity"], certificate["precision"])
            if key not in worst or severity > worst[key][0]:
                worst[key] = (severity, row, test)
    if not worst:
        return
    terminalreporter.section("calibration")
    counted = "1 image" if images == 1 else f"{images} images"
    terminalreporter.write_line(f"{counted} measured; the worst of each quantity:")
    for line in _table(worst):
        terminalreporter.write_line(line)


def _certificates(terminalreporter: Any) -> list[tuple[str, dict[str, Any]]]:
    reports = (report for reports in terminalreporter.stats.values() for report in reports)
    calls = [report for report in reports if getattr(report, "when", None) == "call"]
    return [
        (call.nodeid, value)
        for call in calls
        for name, value in call.user_properties
        if name == PROPERTY
    ]


def _table(worst: dict[tuple[str, str], tuple[float, dict[str, Any], str]]) -> list[str]:
    lines = [("", "quantity", "precision", "error", "tolerance", "test")]
    for (quantity, precision), (_, row, test) in worst.items():
        unit = "" if row["relative"] or not row["unit"] else f" {row['unit']}"
        verdict = "" if row["passed"] else "!"
        lines.append(
            (
                verdict,
                quantity,
                precision,
                f"{row['error']:+.1e}{unit}",
                f"{row['tolerance']:.1e}",
                test,
            )
        )
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    return [
        "  ".join([*(cell.ljust(w) for cell, w in zip(line[:5], widths, strict=True)), line[5]])
        for line in lines
    ]
