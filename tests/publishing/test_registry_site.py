"""The site of a registry: ranked by experiment, small, and loading nothing."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from time import process_time
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import webdriver
from webdriver import Browser

from psyprobe.cli import main
from psyprobe.reporting.publishing import site as sites
from psyprobe.reporting.publishing.feed import feed
from psyprobe.reporting.publishing.index import Index
from psyprobe.reporting.publishing.site import build_site, history_figures
from psyprobe.running.registry_run import run_folders

REGISTRIES = Path(__file__).resolve().parents[1] / "data" / "registry"
HOSTILE = "=cmd():</script><script>alert(1)</script>\u202e"


def entry(value: float | None, responder: str = "observer") -> dict[str, Any]:
    """A number on a board, with an interval."""
    return {
        "responder": responder,
        "name": "" if responder == "observer" else responder,
        "metric": "alignment",
        "text": "Alignment $r_s$",
        "digits": 2,
        "lower_is_better": False,
        "layer": "",
        "measure": "angular",
        "value": value,
        "low": None if value is None else value - 0.1,
        "high": None if value is None else value + 0.1,
        "confidence": 0.95,
        "over": "levels",
        "flags": [],
        "note": "",
        "sample": None,
    }


def run_facts(number: int, experiment: int, night: int = 0, **facts: Any) -> Any:
    """Return the entry of one run in an index."""
    draw = np.random.default_rng([number, experiment, night])
    date = f"2026-11-{night + 1:02}T03:17:05+00:00"
    run = f"202611{night + 1:02}T031705Z-{number:04x}{experiment:04x}"
    name = f"test{experiment}-0123abcd"
    return {
        "path": f"results/observer{number}/n-89abcdef/{name}/{run}",
        "run": run,
        "label": "",
        "status": "finished",
        "failure": "",
        "observer": f"timm:observer{number}",
        "kind": ("model", "metric")[number % 2],
        "ability": "features",
        "revision": "n-89abcdef",
        "random_weights": False,
        "experiment": f"test{experiment}",
        "digest": "0123abcd" * 8,
        "probe": "detection",
        "started": date,
        "model": "",
        "fingerprint": "",
        "answers": 400,
        "contributor": "Example Laboratory",
        "licence": "CC0-1.0",
        "retracted": None,
        "reproduced": 0,
        "scored_by": "0.1.0",
        "files": {},
        "board": [
            entry(round(draw.uniform(0.2, 0.9), 4)),
            entry(0.63, "contrast alone"),
            entry(0.96, "one person"),
            entry(0.99, "attainable"),
        ],
        **facts,
    }


def build(folder: Path, runs: list[Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Build the site of an index that no files stand behind."""
    registry = folder / "registry"
    registry.mkdir()
    (registry / "registry.toml").write_text('schema = "psyprobe-registry/1"\n')
    monkeypatch.setattr(sites, "read_index", lambda _: Index("Contrast", runs, []))
    build_site(registry, folder / "site")
    return folder / "site"


def test_many_runs_make_small_pages_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # PSYPROBE_RUNS=1000 and 10000 for the sizes of the acceptance table.
    observers = int(os.environ.get("PSYPROBE_RUNS", "200")) // 10
    runs = [run_facts(i, j) for i in range(observers) for j in range(10)]
    begun = process_time()
    site = build(tmp_path, runs, monkeypatch)
    seconds = process_time() - begun
    share = len(runs) / 1000
    size = (site / "index.html").stat().st_size
    print(f"{len(runs)} runs: {seconds:.1f} s, index.html {size:,} bytes")
    assert seconds < 20 * share
    assert size < min(60_000 + 540_000 * share, 2_000_000)
    pages = [path for path in site.glob("*.html") if path.name != "index.html"]
    assert max(path.stat().st_size for path in pages) < 200_000 * max(1, share)
    sizes = [path.stat().st_size for path in site.rglob("*") if path.is_file()]
    assert sum(sizes) < 60_000_000 * share


def test_of_very_many_runs_the_first_page_has_the_first_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sites, "_MOST_ROWS", 20)
    monkeypatch.setattr(sites, "_FIRST_ROWS", 5)
    runs = [run_facts(number, test) for number in range(8) for test in (1, 2)]
    site = build(tmp_path, runs, monkeypatch)
    first = (site / "index.html").read_text(encoding="utf-8")
    assert first.count('<th scope="row">') == 2 * 5
    page = "experiment-test1-0123abcd.html"
    assert f'<a href="{page}">All 11 lines</a>' in first
    assert (site / page).read_text("utf-8").count('<th scope="row">') == 11


def test_the_site_of_a_registry_ranks_and_keeps_its_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry = shutil.copytree(REGISTRIES / "valid_encoder", tmp_path / "registry")
    shutil.copytree(
        REGISTRIES / "valid_two_nights" / "results",
        registry / "results",
        dirs_exist_ok=True,
    )
    site = tmp_path / "site"
    assert main(["registry", "build", str(registry), "-o", str(site)]) == 0
    text = (site / "index.html").read_text(encoding="utf-8")
    for name in ("one person", "attainable", "weights seen", "flat curve"):
        assert name in text
    assert "average over experiments" in text
    assert "run-20" in (site / "observer-pixels.html").read_text(encoding="utf-8")
    # What was printed of other models stands beside a ranking, and in none.
    (page,) = site.glob("experiment-area-*.html")
    printed = page.read_text("utf-8").partition("From print (45)")[2]
    assert printed.index("ViT-B-SAM") < printed.index("<td>No Encoder</td>")
    assert "No Encoder" not in text
    index = json.loads((site / "index.json").read_text(encoding="utf-8"))
    assert len(index["runs"]) == 4 and (site / "scores.csv").stat().st_size > 1000
    assert len(run_folders(site)) == 4
    # A site is a registry too: whoever has it gets its scores again from its answers.
    assert main(["registry", "check", str(site)]) == 0
    night = next(site.glob("observer-openai*")).read_text(encoding="utf-8")
    assert "data-figure" in night and "2026-11-24" in night
    nights = [run for run in index["runs"] if run["observer"].startswith("openai")]
    (figure,) = history_figures(nights)
    (line,) = figure.panels[0].views[""][""]
    assert list(line.x) == [0, 1] and np.isfinite(line.y).all()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("mine")
    capsys.readouterr()
    assert (
        main(["registry", "build", str(registry), "-o", str(tmp_path / "other")]) == 2
    )
    assert "something else" in capsys.readouterr().err


def test_history_has_a_line_a_revision_and_a_gap_for_a_failure() -> None:
    runs = [
        run_facts(1, 1, 0, fingerprint="fp_1"),
        run_facts(1, 1, 1, status="failed", failure="no server answers", board=[]),
        run_facts(1, 1, 2, fingerprint="fp_2", scored_by="0.2.0"),
        run_facts(1, 1, 3, revision="n-other000"),
    ]
    (figure,) = history_figures(runs)
    first, second = figure.panels[0].views[""][""]
    assert np.isnan(first.y[1]) and "no server answers" in first.notes[1]
    assert "fingerprint fp_2; scored by 0.2.0" in first.notes[2]
    assert list(first.x) == [0, 1, 2] and list(second.x) == [3]


def test_two_weights_of_one_name_are_two_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [run_facts(1, 1), run_facts(1, 1, 1, revision="w-other0000000-89abcdef")]
    text = (build(tmp_path, runs, monkeypatch) / "index.html").read_text("utf-8")
    assert text.count('<a href="observer-observer1.html">') == 2
    assert "weights seen" in text and "no weights" in text


def test_the_rows_of_a_page_without_script_are_sorted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [run_facts(number, 1) for number in range(9)]
    text = (build(tmp_path, runs, monkeypatch) / "index.html").read_text("utf-8")
    places = [
        text.index(f">{run['observer']}<")
        for run in sorted(runs, key=lambda run: -run["board"][0]["value"])
    ]
    assert places == sorted(places)


def test_a_retraction_takes_a_run_out_of_the_ranking_and_leaves_its_page(
    tmp_path: Path,
) -> None:
    registry = shutil.copytree(REGISTRIES / "valid_encoder", tmp_path / "registry")
    run = run_folders(registry)[0].name
    folder = registry / "retractions"
    folder.mkdir()
    retraction = {"run": run, "reason": "a wrong <b>display</b>"}
    (folder / f"{run}.json").write_text(json.dumps(retraction), encoding="utf-8")
    site = tmp_path / "site"
    build_site(registry, site)
    text = (site / "index.html").read_text(encoding="utf-8")
    ranking, _, aside = text.partition("<details>")
    observer = "packaged:efficientnet_lite0"
    assert observer not in ranking and observer in aside
    page = (site / f"run-{run}.html").read_text(encoding="utf-8")
    assert "Retracted: a wrong &lt;b&gt;display" in page


def test_the_feed_has_an_entry_for_each_event_and_reads_no_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [
        run_facts(1, 1),
        run_facts(1, 1, 1, status="failed", failure="no \x1b server & <b>", board=[]),
        run_facts(1, 1, 2, revision="w-other0000000-89abcdef"),
        run_facts(2, 1, 0, retracted="wrong display", retracted_on="2026-11-09"),
        run_facts(3, 1, 5, observer=HOSTILE),
    ]
    site = build(tmp_path, runs, monkeypatch)
    content = (site / "feed.xml").read_bytes()
    (tmp_path / "again").mkdir()
    again = build(tmp_path / "again", runs[::-1], monkeypatch)
    assert (again / "feed.xml").read_bytes() == content
    root = ElementTree.fromstring(content)
    atom = "{http://www.w3.org/2005/Atom}"
    entries = root.findall(f"{atom}entry")
    kinds = [entry.find(f"{atom}category").get("term") for entry in entries]  # type: ignore[union-attr]
    assert kinds == ["retracted", "run", "run", "revision", "failed", "run", "run"]
    # What RFC 4287 asks of a feed and of each entry, with dates of RFC 3339.
    for element in (root, *entries):
        for name in ("id", "title", "updated"):
            assert element.findtext(f"{atom}{name}")
        assert datetime.fromisoformat(element.findtext(f"{atom}updated") or "").tzinfo
    for entry in entries:
        assert entry.findtext(f"{atom}author/{atom}name") == "Example Laboratory"
        (link,) = entry.findall(f"{atom}link")
        assert (site / link.attrib["href"]).exists()
    names = [entry.findtext(f"{atom}id") for entry in entries]
    assert len({*names}) == len(names)
    assert root.findtext(f"{atom}updated") == "2026-11-09T00:00:00+00:00"
    assert r"no \x1b server & <b>" in [
        entry.findtext(f"{atom}summary") for entry in entries
    ]
    assert b"feed.xml" in (site / "index.html").read_bytes()
    many = [run_facts(number, 2, number % 28) for number in range(120)]
    assert feed("many", many).count(b"<entry>") == 100


def test_the_tables_say_how_many_others_reproduced_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [run_facts(1, 1, reproduced=1), run_facts(2, 1, reproduced=2)]
    site = build(tmp_path, [*runs, run_facts(3, 1)], monkeypatch)
    ranking = (site / "index.html").read_text(encoding="utf-8").partition("<tbody>")[2]
    cells = re.findall("<td>(by [^<]*|no)</td></tr>", ranking)
    assert sorted(cells) == ["by 1 other", "by 2 others", "no"]
    assert "by 2 others" in (site / "observer-observer2.html").read_text("utf-8")
    with (site / "scores.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["responder"] == "observer"]
    assert [row["reproduced"] for row in rows] == ["1", "2", "0"]


def test_what_is_simulated_random_or_retracted_is_ranked_with_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [
        run_facts(1, 1),
        run_facts(2, 1, kind="simulated"),
        run_facts(3, 1, random_weights=True),
        run_facts(4, 1, retracted="wrong display"),
        # What was taken back counts again when it is measured and published again.
        run_facts(7, 1, retracted="wrong display"),
        run_facts(7, 1, 1),
        run_facts(5, 1, observer=HOSTILE),
        run_facts(6, 1, board=[entry(None)]),
    ]
    site = build(tmp_path, runs, monkeypatch)
    text = (site / "index.html").read_text(encoding="utf-8")
    ranking, _, rest = text.partition("<details>")
    assert "observer1" in ranking and "observer2" not in ranking
    assert "observer7" in ranking and "observer7" in rest
    for name in ("observer2", "observer3", "observer4", "observer6", "wrong display"):
        assert name in rest
    assert "<script>alert" not in text and r"\u202e" in text
    cells = (site / "scores.csv").read_text(encoding="utf-8")
    assert "\u202e" not in cells and "'=cmd()" in cells


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        runs = [run_facts(i, j, n) for i in range(20) for j in (1, 2) for n in (0, 1)]
        return build(tmp_path_factory.mktemp("site"), runs, patch)


@pytest.fixture
def opened(browser: Browser, site: Path) -> Iterator[Browser]:
    # A page of another test may still call its server, which has gone.
    browser.forget()
    with browser.without_network():
        yield browser
    assert browser.complaints() == []
    assert browser.run("performance.getEntriesByType('resource').length") == 0
    browser.command("Emulation.clearDeviceMetricsOverride")
    browser.forget()


@pytest.mark.skipif(
    bool(webdriver.missing()), reason=webdriver.missing() or "a browser is there"
)
def test_the_site_works_offline_in_both_schemes_and_on_a_phone(
    opened: Browser, site: Path
) -> None:
    for page in ("index", "observer-observer1", "experiment-test1-0123abcd"):
        for width in (1200, 390):
            opened.command(
                "Emulation.setDeviceMetricsOverride",
                width=width,
                height=900,
                deviceScaleFactor=1,
                mobile=False,
            )
            opened.open((site / f"{page}.html").as_uri())
            opened.wait("document.documentElement.dataset.drawn", "yes")
            wide = "document.documentElement.scrollWidth <= innerWidth"
            assert opened.run(wide) is True, (page, width)
            opened.photograph(f"{page}_{width}")
    paint = "performance.getEntriesByName('first-contentful-paint')"
    paints = []
    for _ in range(3):
        opened.open((site / "index.html").as_uri())
        opened.wait("document.documentElement.dataset.drawn", "yes")
        opened.wait(f"{paint}.length", 1)
        paints.append(opened.run(f"{paint}[0].startTime"))
    # Milliseconds; what else a machine does may delay some of them.
    assert min(paints) < 1000
    rows = "[...document.querySelector('.ranking').tBodies[0].rows]"
    before = opened.run(f"{rows}.map((row) => row.cells[1].textContent)")
    opened.run("document.querySelectorAll('.ranking .sort')[1].click()")
    names = opened.run(f"{rows}.map((row) => row.cells[1].textContent)")
    assert names != before and len(names) == 23
    choose = (
        "(() => { const list = document.querySelector('.filter select'); "
        "list.value = 'metric'; list.dispatchEvent(new Event('change')); })()"
    )
    opened.run(choose)
    kinds = opened.run(
        f"{rows}.filter((row) => !row.hidden).map((row) => row.cells[4].textContent)"
    )
    assert sorted(set(kinds)) == ["beside", "metric"]
