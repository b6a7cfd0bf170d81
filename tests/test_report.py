"""The report as a file: what is in it, how large it is, and that text in it is only text."""

from __future__ import annotations

import base64
import html.parser
import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import xarray as xr
from item_pages import run_page, write_page
from report_results import HOSTILE, contours, matches, ten_on_nine, words
from small_experiment import write_experiment

import psyprobe as pp
from psyprobe.cli import main
from psyprobe.errors import InputError
from psyprobe.experiment import load_experiment
from psyprobe.plotting.figure_data import Table
from psyprobe.probes.results import score_layers
from psyprobe.reporting.figure_json import packed
from psyprobe.running.store import Store
from psyprobe.running.task import with_task


class Tags(html.parser.HTMLParser):
    """Reads the tags of a page as a browser would."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(
        self, tag: str, attributes: list[tuple[str, str | None]]
    ) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def written(results: Any, folder: Path, **options: Any) -> str:
    return pp.report(results, folder / "report.html", **options).read_text(
        encoding="utf-8"
    )


def figures_in(page: str) -> list[Any]:
    script = re.search(
        r'<script type="application/json" id="figures">(.*?)</script>', page, re.S
    )
    assert script is not None
    return list(json.loads(script[1]))


def decoded(view: dict[str, Any]) -> np.ndarray:
    codes = np.frombuffer(base64.b64decode(view["codes"]), "<u2").astype(float)
    values = 10 ** (view["low"] + (view["high"] - view["low"]) * (codes - 2) / 65533)
    return np.where(codes == 0, np.nan, np.where(codes == 1, 0.0, values))


def test_numbers_come_back_as_they_are_seen() -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate([10 ** rng.uniform(-9, 1, 500), [0.0, np.nan]])
    back = decoded(packed(values))
    assert np.isnan(back[-1]) and back[-2] == 0
    # Half a step of 16 bits over ten decades.
    assert np.abs(np.log10(back[:-2] / values[:-2])).max() <= 10 / 65533 / 2 + 1e-12


def test_a_page_over_contours_matches_and_words(tmp_path: Path) -> None:
    gabors = [contours("lab:one", seed=1), contours("lab:two", seed=2)]
    page = written(
        [
            *gabors,
            matches("lab:one"),
            words("simulated:a"),
            words("simulated:b", guess=0.1),
        ],
        tmp_path,
    )
    figures = figures_in(page)
    assert [figure["title"] for figure in figures] == [
        "Responses",
        "Contrast matches",
        "Contrast sensitivity",
    ]
    responses, matched, sensitivity = figures
    assert [panel["title"] for panel in responses["panels"]] == ["lab:one", "lab:two"]
    assert [key for key, *_ in responses["options"]] == [
        "angular",
        "cosine",
        "l1",
        "l2",
    ]
    view = responses["panels"][1]["views"]["angular"][""]
    xs, ys = responses["grids"][view["at"]]
    values = decoded(view).reshape(len(xs), len(ys))
    expected = gabors[1]["response_angular"].sel(layer="layer0")
    # Upwards is sensitivity, so contrasts stand the other way round.
    assert np.allclose(values, expected.values[:, ::-1], rtol=2e-4, atol=0)
    assert np.allclose(ys, 1 / expected["contrast"].values[::-1], rtol=1e-3)
    people, *measured = responses["over"]
    assert "modelfest, 16 people, ×1.7 to 4" in [line["name"] for line in measured]
    assert people["style"] == "people" and "castleCSF" in people["name"]
    assert len(matched["over"]) == 8
    (panel,) = sensitivity["panels"]
    lines = [
        line for line in panel["views"][""][""] if not line["name"].endswith("bound")
    ]
    assert [line["name"] for line in lines] == ["simulated:a", "simulated:b"]
    assert [len(line["behind"]) for line in lines] == [2, 2] and len(
        sensitivity["behind"]
    ) == 4
    assert sensitivity["behind"][0]["title"] == "simulated:a, 1 cpd"
    for phrase in (
        "Is there pattern 0?",
        "Certificate at frequency 4.16 cpd",
        "A paper (2020)",
        "Cai et al. (2025)",
    ):
        assert phrase in page


def test_the_page_loads_nothing_and_allows_its_own_script_alone(tmp_path: Path) -> None:
    page = written([contours("lab:one")], tmp_path)
    tags = Tags(page).tags
    (policy,) = (
        str(attributes["content"])
        for tag, attributes in tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert (
        "default-src 'none'" in policy
        and "unsafe" not in policy
        and policy.count("'sha256-") == 2
    )
    assert all(
        str(attributes["src"]).startswith("data:")
        for _, attributes in tags
        if "src" in attributes
    )
    assert all(
        str(attributes["href"]).startswith("#")
        for _, attributes in tags
        if "href" in attributes
    )
    assert not any(
        "style" in attributes or any(name.startswith("on") for name in attributes)
        for _, attributes in tags
    )


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    replies = words(HOSTILE)
    replies["text"] = replies["text"].where(replies["frequency"] > 2, HOSTILE)
    replies["prompt_text"] = replies["prompt_text"].where(
        replies["frequency"] > 99, HOSTILE
    )
    gabors = contours(HOSTILE).assign_attrs(human_model=HOSTILE)
    toml = gabors.attrs["experiment_toml"].replace(
        '"The test gabor_achromatic"', json.dumps(HOSTILE)
    )
    gabors = gabors.assign_attrs(experiment=HOSTILE, experiment_toml=toml)
    page = written([gabors, matches(HOSTILE), replies], tmp_path, title=HOSTILE)
    tags = Tags(page).tags
    assert [tag for tag, _ in tags].count("script") == 2 and not any(
        "onerror" in attributes for _, attributes in tags
    )
    assert "\x1b" not in page and "\u202e" not in page
    assert figures_in(page)[0]["panels"][0]["title"].startswith("</script><script>")


def test_clips_are_shown_by_the_frame_in_their_middle(tmp_path: Path) -> None:
    flicker = load_experiment("temporal_flicker")
    levels = {"temporal_frequency": (4.0, 8.0), "contrast": (0.1, 0.5)}
    run = pp.run(
        flicker.model_copy(update={"levels": levels}), "pixels", progress=False
    )
    assert "data:image/png;base64," in written([run], tmp_path)


def test_ten_observers_on_nine_tests_are_under_a_megabyte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Intervals of fewer resamples are as many characters.
    monkeypatch.setattr(
        "psyprobe.reporting.report.score_layers", partial(score_layers, resamples=5)
    )
    pp.report(ten_on_nine(), tmp_path / "report.html")
    size = (tmp_path / "report.html").stat().st_size
    print(f"ten observers on nine tests: {size / 1e3:.0f} kB")
    assert size <= 1_000_000


def test_what_is_unfinished_or_cannot_be_scored_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment, path = write_experiment(tmp_path), tmp_path / "runs.sqlite"
    result = pp.run(experiment, "pixels", store=path)
    with Store(path) as store:
        record = store.runs()[0]
        store.begin_run(
            replace(record, experiment="left_half_done", experiment_digest="other")
        )
    assert main(["report", str(path), "-o", str(tmp_path / "page.html"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert printed["bytes"] == (tmp_path / "page.html").stat().st_size
    assert "left_half_done, pixels" in page and "not finished; begun" in page
    broken = result.copy(deep=True)
    broken["scored_response_angular"][:] = np.nan
    page = written(
        [result, broken.assign_attrs(experiment_digest="another", experiment="broken")],
        tmp_path,
    )
    assert "broken, pixels" in page and "not scored: " in page and "not finite" in page
    # One that cannot be scored takes no other down.
    page = written([result, broken], tmp_path)
    assert "not scored: " in page and [
        len(figure["panels"]) for figure in figures_in(page)
    ] == [1]
    with pytest.raises(InputError, match="no result of a run"):
        pp.report(xr.Dataset(), tmp_path / "none.html")
    with pytest.raises(InputError, match="there are no results"):
        pp.report([], tmp_path / "none.html")


def test_a_run_is_told_once_though_stores_hold_it_twice_or_in_part(
    tmp_path: Path,
) -> None:
    full_result = contours("lab:one")
    rounded = full_result.assign(
        response_angular=full_result["response_angular"] * (1 + 1e-14)
    )
    part = full_result.drop_vars(
        [
            *(
                name
                for name in full_result.data_vars
                if str(name).startswith(("response", "pixels_response"))
            ),
            "frequency",
            "contrast",
        ],
        errors="ignore",
    )
    for results in ([part, full_result, rounded], [full_result, part]):
        (figure,) = figures_in(page := written(results, tmp_path))
        assert [panel["title"] for panel in figure["panels"]] == ["lab:one"]
        assert (
            "1 observer in 1 experiment" in page and "two different scores" not in page
        )
    other = full_result.assign(response_angular=full_result["response_angular"] * 0.99)
    (figure,) = figures_in(written([full_result, other], tmp_path))
    assert len(figure["panels"]) == 2


def test_an_experiment_in_which_nobody_is_ranked_leaves_the_scoreboard_to_the_others(
    tmp_path: Path,
) -> None:
    # Pixels tell the finest stripes that are shown from uniform, and so have no limit among them.
    limit = pp.run("acuity_achromatic", "pixels", progress=False)
    page = written([limit, contours("lab:one")], tmp_path)
    assert (
        '<table class="board sortable">' in page
        and "Nothing here is ranked" not in page
    )


def test_a_level_of_zero_has_its_place_on_a_logarithmic_axis(tmp_path: Path) -> None:
    settings = {
        "levels.contrast.values": [0, 0.003, 0.03, 0.3],
        "difference.levels.n": 8,
    }
    dipper = pp.run(
        load_experiment("contrast_discrimination").with_settings(settings),
        "pixels",
        progress=False,
    )
    across = [figure["x"] for figure in figures_in(written(dipper, tmp_path))]
    assert [(axis["log"], axis["zero"]) for axis in across] == [(True, 0.0012)] * 2


def test_two_pages_of_one_name_are_two_sections(tmp_path: Path) -> None:
    page = written(
        [contours("lab:one"), contours("lab:two").assign_attrs(experiment_digest="2")],
        tmp_path,
    )
    assert page.count('<section id="experiment-') == 2


def test_a_stimulus_that_names_code_is_not_run(tmp_path: Path) -> None:
    planted = tmp_path / "evil.py"
    planted.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n", encoding="utf-8")
    for stimulus in (
        f'{{ kind = "{planted}:K", parameters = {{}} }}',
        f'"{tmp_path}/evil.toml"',
    ):
        result = contours("lab:one")
        toml = result.attrs["experiment_toml"].replace('"gabor_achromatic"', stimulus)
        assert "Certificate" not in written(
            result.assign_attrs(experiment_toml=toml), tmp_path
        )
    assert not (tmp_path / "ran").exists()


def test_a_probe_of_another_package_shows_its_table_and_then_its_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from test_own_probe import OFFSETS, score

    module = ModuleType("another_package_probe")
    module.score = score  # type: ignore[attr-defined]
    for place in ("reporting.report", "probes.results", "probes.experiments"):
        monkeypatch.setattr(f"psyprobe.{place}.load_probe", lambda name: module)
    monkeypatch.setattr(
        "psyprobe.reporting.provenance.probe_summary",
        lambda name: "from another package",
    )
    attributes = {"probe": "vernier", "experiment": "vernier", "observer": "lab:eye"}
    result = with_task(
        xr.Dataset({"offset": ("trial", np.array([9.0, 5.5, 7.0]))}, attrs=attributes),
        OFFSETS,
    )
    page = written(result, tmp_path)
    assert (
        "vernier offsets" in page
        and "beyond the pixel grid" in page
        and "arcsec, smaller is better" in page
    )
    module.report = lambda results: [Table("Offsets", ["trial"], [["9 arcsec"]])]  # type: ignore[attr-defined]
    assert (
        "Offsets (1 rows)" in (page := written(result, tmp_path)) and "9 arcsec" in page
    )
    module.report = lambda results: ["a text"]  # type: ignore[attr-defined]
    assert "str is no part of a report" in written(result, tmp_path)


@pytest.mark.needs("tasks/r_bench")
def test_benchmarks_show_their_parts_and_answers(
    tmp_path: Path, r_bench_set: Path
) -> None:
    def answering(images: list[Any], prompt: str) -> str:
        return f"B {HOSTILE}"

    result = run_page(
        write_page(tmp_path / "r.toml", "r_bench", r_bench_set),
        pp.observer(answering, name="lab:says-b"),
    )
    page = written(result, tmp_path)
    titles = [figure["title"] for figure in figures_in(page)]
    assert titles == [
        f"Robustness by {breakdown}"
        for breakdown in ("step", "group", "task", "strength")
    ]
    assert (
        "Answers (6 rows)" in page
        and "What is on the left?" in page
        and "always A" in page
    )
    if "Corruptions</h3>" in page:
        assert (
            page.count('src="data:image') == 2
        )  # the reference and the one corruption of the set
