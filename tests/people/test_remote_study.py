"""A study as a jsPsych folder: drawn in a browser, answered from its pixels, and read back into the
store."""

from __future__ import annotations

import functools
import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from webdriver import browser, missing

import psyprobe as pp
from psyprobe.analysis import trials
from psyprobe.analysis.words.csf import chat_csf
from psyprobe.analysis.words.sessions import is_remote, sessions_of
from psyprobe.errors import InputError
from psyprobe.experiment import load_experiment
from psyprobe.tasks.remote_study.study import export_study, import_people

CONSTANT = {"asking.design": "constant", "asking.options": {}, "asking.repeats": 2}
SMALL = {
    **CONSTANT,
    "levels.frequency": {"values": [1, 8]},
    "levels.contrast": {"values": [0.05, 0.2, 0.8]},
}
STUDY = load_experiment("orientation_csf").with_settings(SMALL)
#: Answers from what is drawn: along which side the mean of some frames varies less.
SEES = """
(() => {
  showing = async (display, pattern, attempt) => {
    const draw = drawing(pattern, attempt);
    prepare(draw);
    const n = canvas.width, sum = new Float64Array(n * n);
    for (let frame = 0; frame < 8; frame++) {
      painted.draw(draw, frame);
      painted.read().forEach((code, i) => { sum[i] += code; });
    }
    let across = 0, down = 0;
    for (let i = 0; i < sum.length - n; i++) {
      across += (sum[i + 1] - sum[i]) ** 2;
      down += (sum[i + n] - sum[i]) ** 2;
    }
    const choice = STUDY.words[across > down ? 0 : 1];
    return { choice, reaction_ms: 500, frames_shown: 30, frames_dropped: 0, period_ms: period };
  };
})()
"""
#: Code by which the page's own display takes a key that is pressed in time.
PRESSES = """
(() => {
  document.body.dataset.tried = "";
  const display = document.createElement("div");
  display.innerHTML = '<div class="dot"></div><button></button><button></button>';
  display.append(canvas);
  showing(display, STUDY.trials[0], 1).then((told) => { document.body.dataset.tried = JSON.stringify(told); });
  setTimeout(() => dispatchEvent(new KeyboardEvent("keydown", { key: "f" })), 1200);
})()
"""
SEND = "document.querySelector('form').requestSubmit()"


@contextmanager
def served(folder: Path) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/index.html"
        server.shutdown()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


def answers(folder: Path, **changes: Any) -> dict[str, Any]:
    """A file as the page saves it, of somebody who is always right."""
    study = json.loads(
        (folder / "experiment.js").read_text(encoding="utf-8")[
            len("const STUDY = ") : -2
        ]
    )
    numbers = {
        "reaction_ms": 500,
        "frames_shown": 30,
        "frames_dropped": 0,
        "period_ms": 16.7,
        "attempt": 1,
    }
    trials = [
        {"number": trial["number"], "choice": trial["correct"], **numbers}
        for trial in study["trials"]
    ]
    screen = {
        "card": 323,
        "device_pixel_ratio": 1,
        "width": 1920,
        "height": 1080,
        "distance": 1000,
        "period": 16.7,
    }
    file = {
        "format": study["format"],
        "experiment": study["experiment"],
        "consent": True,
    }
    file |= {"person": "EVA", "session": "abc"}
    return {**file, "screen": screen, "trials": trials, **changes}


def test_answers_come_back_as_those_of_a_person(tmp_path: Path) -> None:
    assert export_study(STUDY, tmp_path / "study") == 12
    assert max(path.stat().st_size for path in (tmp_path / "study").iterdir()) < 200_000
    assert "MIT" in (tmp_path / "study" / "jspsych_LICENSE").read_text(encoding="utf-8")
    path, store = tmp_path / "EVA.json", tmp_path / "runs.sqlite"
    path.write_text(json.dumps(answers(tmp_path / "study")), encoding="utf-8")
    for _ in range(2):  # the second time nothing is new
        result = import_people(path, store)
        assert (
            result.attrs["observer"] == "person:EVA"
            and (trials(result)["response"].values == 1).all()
        )
    (loaded,) = pp.load_results(store)
    assert trials(loaded).sizes["trial"] == 12 and is_remote(loaded)
    (session,) = sessions_of(loaded)
    assert session.screen.light == "remote" and round(session.screen.ppd, 1) == 65.9
    assert "answered elsewhere" in " ".join(pp.score(loaded).rows()[0].notes)
    assert bool(chat_csf(loaded)["log10_screen_sd"].values.size)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"format": "other"}, "this is no file of a study"),
        ({"person": "Anna Smith"}, "give a pseudonym"),
        ({"consent": None}, "nobody agreed"),
        ({"trials": []}, "it breaks off before trial 1"),
        ({"screen": {}}, "device pixel ratio is None"),
        (
            {"experiment": {"name": "x", "toml": 'stimulus = "a.py:f"'}},
            "names code of a file",
        ),
    ],
)
def test_a_file_that_was_changed_is_refused(
    tmp_path: Path, changes: dict[str, Any], why: str
) -> None:
    export_study(STUDY, tmp_path / "study")
    path = tmp_path / "EVA.json"
    path.write_text(
        json.dumps(answers(tmp_path / "study", **changes)), encoding="utf-8"
    )
    with pytest.raises(InputError, match=why):
        import_people(path, tmp_path / "runs.sqlite")


def test_an_adaptive_design_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--set asking\.design=constant"):
        export_study("orientation_csf", tmp_path / "study")


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_the_study_in_a_browser_and_back(tmp_path: Path) -> None:
    export_study(STUDY, tmp_path / "study")
    with served(tmp_path / "study") as address, browser() as page:
        page.open(f"{address}?person=EVA")
        page.photograph("remote_1_consent")
        page.run(SEND)
        for fits in (1, 2):
            page.wait("document.getElementById('card') !== null", True)
            page.run(
                "(() => { const s = document.querySelector('input'); s.value = 323; "
                "s.oninput(); })()"
            )
            page.photograph("remote_2_card")
            page.run(SEND)
            page.wait("cards.length", fits)
        page.run("(() => { refresh = async () => 1000 / 60; })()")
        page.wait("document.querySelector('input[type=number]') !== null", True)
        page.run("document.querySelector('input').value = 20")
        page.run(SEND)
        # 8 cpd at 20 cm.
        page.wait(
            "document.querySelector('.problem').textContent.includes('cm away')", True
        )
        page.run("document.querySelector('input').value = 100")
        page.photograph("remote_3_distance")
        page.run(SEND)
        page.wait("document.body.textContent.includes(TEXT.start)", True)
        page.run(PRESSES.strip())
        page.wait("document.body.dataset.tried !== ''", True)
        outcome = json.loads(page.run("document.body.dataset.tried"))
        assert outcome.get("choice") == "vertical" or outcome["why"] in (
            "frames",
            "too early",
            "hidden",
        ), outcome
        page.photograph("remote_4_practice")
        page.run(SEES.strip())
        page.run(SEND)
        page.wait("document.body.dataset.trial === 'over'", True)
        page.photograph("remote_5_end")
        saved = str(page.run("document.getElementById('answers').value"))
        assert page.complaints() == []
    (tmp_path / "EVA.json").write_text(saved, encoding="utf-8")
    result = import_people(tmp_path / "EVA.json", tmp_path / "runs.sqlite")
    assert trials(result).sizes["trial"] == 12
    np.testing.assert_array_equal(trials(result)["response"].values, 1.0)
