"""The pytest plugin: a fixture that measures stimuli, and a table of the worst errors.

It is registered by an entry point, so it is there wherever psyprobe is installed. What tests
measure travels with their reports, so the table is whole under pytest-xdist too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import pytest

from psyprobe.files.json_types import JsonObject

if TYPE_CHECKING:
    from psyprobe._typing import Array
    from psyprobe.stimulus import Specification, Stimulus
    from psyprobe.stimulus.certificate import Certificate
    from psyprobe.testing.assertions import JudgingOptions

#: Name under which certificates travel in the properties of a test's report.
PROPERTY = "psyprobe_calibration"


class CalibrationReport:
    """The certificates of one test; the fixture `calibration_report` gives it."""

    def __init__(self, properties: list[tuple[str, object]]) -> None:
        self._properties = properties

    def add(self, certificate: Certificate) -> None:
        """Add a certificate to the table that is printed after the tests."""
        self._properties.append((PROPERTY, certificate.to_dict()))

    def check(
        self,
        image: Stimulus | Array,
        spec: Specification | None = None,
        **options: Unpack[JudgingOptions],
    ) -> Certificate:
        """Assert that an image is calibrated, and report its measurements either way."""
        from psyprobe.testing.assertions import check_certificate, judge

        certificate, causes = judge(image, spec, **options)
        self.add(certificate)
        return check_certificate(certificate, causes)


@pytest.fixture
def calibration_report(request: pytest.FixtureRequest) -> CalibrationReport:
    """Provide a fixture that asserts calibration and reports the worst errors."""
    return CalibrationReport(request.node.user_properties)


class _WorstError(NamedTuple):
    severity: float
    measurement: JsonObject
    test: str


#: The worst errors by quantity and precision.
_WorstErrors = dict[tuple[str, str], _WorstError]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the worst error of each quantity over all tests with the fixture."""
    worst: _WorstErrors = {}
    images = 0
    for test, certificate in _certificates(terminalreporter):
        images += certificate["images"]
        for measurement in certificate["rows"]:
            severity = _severity(measurement)
            if severity is None:
                continue
            key = (measurement["quantity"], certificate["precision"])
            if key not in worst or severity > worst[key].severity:
                worst[key] = _WorstError(severity, measurement, test)
    if not worst:
        return
    terminalreporter.section("calibration")
    count = "1 image" if images == 1 else f"{images} images"
    terminalreporter.write_line(f"{count} measured; the worst of each quantity:")
    for line in _table_lines(worst):
        terminalreporter.write_line(line)


def _severity(measurement: JsonObject) -> float | None:
    """Compute a measurement's error in units of the tolerance; None where nothing is expected."""
    error: float | None = measurement["error"]
    tolerance: float | None = measurement["tolerance"]
    if error is None or tolerance is None:
        return None
    return abs(error) / tolerance if tolerance else abs(error) * float("inf")


def _certificates(terminalreporter: Any) -> Iterator[tuple[str, JsonObject]]:
    """Iterate over the tests that measured something, with their certificates."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) != "call":
                continue
            for name, value in report.user_properties:
                if name == PROPERTY:
                    yield report.nodeid, value


def _table_lines(worst: _WorstErrors) -> list[str]:
    """Align the worst error of each quantity and precision as lines of a table."""
    table = [["", "quantity", "precision", "error", "tolerance", "test"]]
    for (quantity, precision), (_, measurement, test) in worst.items():
        unit = measurement["unit"]
        unit = "" if measurement["relative"] or not unit else f" {unit}"
        mark = "" if measurement["passed"] else "!"
        error = f"{measurement['error']:+.1e}{unit}"
        table.append(
            [mark, quantity, precision, error, f"{measurement['tolerance']:.1e}", test]
        )
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(map(str.ljust, cells, widths)).rstrip() for cells in table]
