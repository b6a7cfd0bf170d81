"""What nobody foresaw is one line, with what it needs to be mended; a fault of a user's own code is
shown as theirs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_cli import Output, fail, succeed

from psyprobe.cli import main
from psyprobe.errors import locate_failure
from psyprobe.running.store import Store

PAGE = """
title = "mine"
probe = "detection"
stimulus = {stimulus}
levels = {{ frequency.values = [4, 8], contrast.values = [0.1, 0.5] }}
{human}
"""
GABOR = '{ kind = "gabor", parameters = { frequency = 4, contrast = 0.1, radius = 0.1, size = 32 } }'


def own_page(folder: Path, stimulus: str = GABOR, human: str = "") -> Path:
    page = folder / "page.toml"
    page.write_text(PAGE.format(stimulus=stimulus, human=human), encoding="utf-8")
    return page


@pytest.fixture
def broken_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    # Fail as if a line of ours were wrong.
    code = compile(
        "def list_observers():\n    raise LookupError('two\\nlines ' + 'long ' * 200)",
        "<ours>",
        "exec",
    )
    place: dict[str, object] = {"__name__": "psyprobe.observers"}
    exec(code, place)
    monkeypatch.setattr("psyprobe.cli.listing.list_observers", place["list_observers"])


def test_what_nobody_foresaw_is_one_line(capsys: Output, broken_listing: None) -> None:
    message = fail(capsys, "list", "observers")
    assert message.startswith(
        "psyprobe list: error: psyprobe did not foresee this: LookupError: two lines long"
    )
    assert "--debug" in message and "psyprobe doctor" in message and len(message) < 400


def test_debug_shows_the_trace_before_the_line(
    capsys: Output, broken_listing: None
) -> None:
    assert main(["list", "observers", "--debug"]) == 2
    *trace, line = capsys.readouterr().err.splitlines()
    assert trace[0].startswith("Traceback") and "LookupError" in "".join(trace)
    assert line.startswith("psyprobe list: error:")


def test_a_wrong_value_of_an_option_is_not_repeated_at_length(capsys: Output) -> None:
    assert len(fail(capsys, "list", "x" * 5000)) < 400
    message = fail(capsys, "render", "\x1b" * 5000, "-o", "a.png")
    assert (
        len(message) < 400
        and "render: error: unknown stimulus '\\x1b" in message
        and message.endswith(", ...\n")
    )


def test_a_networks_own_fault_names_its_line(capsys: Output, tmp_path: Path) -> None:
    network = tmp_path / "my_network.py"
    network.write_text(
        "import torch\nclass Mine(torch.nn.Module):\n    def forward(self, x):\n        return "
        "x / self.gain\n"
        "def build():\n    return Mine()\ndef leave():\n    raise SystemExit(0)\n",
        encoding="utf-8",
    )
    run = ("run", own_page(tmp_path), "--output", tmp_path / "out", "--observer")
    message = fail(capsys, *run, f"torch:{network}:build")
    assert (
        "code that is not psyprobe's fails at my_network.py, line 4: AttributeError"
        in message
    )
    assert "my_network.py, line 8: SystemExit" in fail(
        capsys, *run, f"torch:{network}:leave"
    )


def test_a_stimulus_of_ones_own_names_its_line(capsys: Output, tmp_path: Path) -> None:
    (tmp_path / "my_kinds.py").write_text(
        "from psyprobe.stimulus import Gabor\nclass Mine(Gabor):\n    def draw(self, *given):\n "
        "       return 1 / 0\n",
        encoding="utf-8",
    )
    stimulus = GABOR.replace('"gabor"', '"my_kinds.py:Mine"')
    run = (
        "run",
        own_page(tmp_path, stimulus),
        "--observer",
        "pixels",
        "--output",
        tmp_path / "out",
    )
    assert "my_kinds.py, line 4: ZeroDivisionError: division by zero" in fail(
        capsys, *run
    )


def test_people_of_ones_own_name_their_line(capsys: Output, tmp_path: Path) -> None:
    (tmp_path / "my_csf.py").write_text(
        "def csf(frequency):\n    return 1 / 0\n", encoding="utf-8"
    )
    page = own_page(
        tmp_path,
        human='human = { model = "my_csf.py:csf" }\nscore = { multiplier.values = [1, 2] }',
    )
    message = fail(
        capsys,
        "run",
        page,
        "--observer",
        "pixels",
        "--output",
        tmp_path / "out",
        "--plan",
    )
    assert "my_csf.py, line 2: ZeroDivisionError" in message


def test_a_package_beside_names_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site-packages"
    site.mkdir()
    (site / "faulty_probe.py").write_text(
        "def plan():\n    return {}[3]\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(site)
    import faulty_probe

    with pytest.raises(KeyError) as caught:
        faulty_probe.plan()
    # Below the test itself, whose file is nobody's library either.
    caught.value.__traceback__ = caught.tb.tb_next
    assert locate_failure(caught.value) == "", "a library is not a user's own code"
    dist_info = site / "faulty_probe-1.dist-info"
    dist_info.mkdir()
    (dist_info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: faulty-probe\nVersion: 1\n", encoding="utf-8"
    )
    (dist_info / "entry_points.txt").write_text(
        "[psyprobe.probes]\nfaulty = faulty_probe\n", encoding="utf-8"
    )
    assert locate_failure(caught.value) == "faulty_probe.py, line 2"


def test_doctor_tells_what_a_report_needs(capsys: Output, tmp_path: Path) -> None:
    Store(tmp_path / "runs.sqlite").close()
    report = json.loads(succeed(capsys, "doctor", tmp_path / "runs.sqlite", "--json"))
    assert {"python", "psyprobe", "numpy", "scipy", "xarray"} <= set(report["versions"])
    assert (
        "pixels" in report["can_run"]
        and "zoo" in report["extras"]
        and report["threads"]["cores"] >= 1
    )
    (store,) = report["stores"].values()
    assert (store["answers"], store["runs"], store["finished"]) == (0, 0, 0) and store[
        "bytes"
    ] > 0
    text = succeed(capsys, "doctor", tmp_path / "runs.sqlite")
    assert "runs.sqlite: bytes" in text and "extra zoo: " in text and "device: " in text


def test_doctor_ends_with_1_where_a_store_cannot_be_used(
    capsys: Output, tmp_path: Path
) -> None:
    (tmp_path / "no.sqlite").write_text("no store " * 1000, encoding="utf-8")
    assert (
        main(["doctor", str(tmp_path / "no.sqlite"), str(tmp_path / "absent.sqlite")])
        == 1
    )
    printed = capsys.readouterr()
    assert (
        "is no SQLite file" in printed.out
        and "absent.sqlite does not exist" in printed.out
        and printed.err == ""
    )
