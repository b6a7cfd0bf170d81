"""A refusal is an answer: a server that refuses some questions, always the same, makes no run
endless, and what it refused is counted and can be asked again."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("aiohttp", reason="the chat extra is not installed")

from odd_server import FILTERED, Behaviour, OddServer
from small_questions import write_questions

import psyprobe as pp
from psyprobe.analysis import trials
from psyprobe.analysis.words.csf import chat_csf
from psyprobe.cli import main
from psyprobe.errors import PsyprobeError
from psyprobe.observers.chat import openai_sending

MODEL = "simulated:watson-malo"
Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_sending, "_PAUSES_AFTER_ANSWERS", (0.01,) * 4)


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_a_run_ends_on_a_server_with_a_content_filter(
    share: float, tmp_path: Path, capsys: Output
) -> None:
    path = write_questions(tmp_path)
    with (
        OddServer(
            pp.load_observer(MODEL), behaviour=Behaviour(filtered=share)
        ) as server,
        pp.load_observer(f"openai:{MODEL}", base_url=server.base_url) as observer,
    ):
        store = tmp_path / "runs.sqlite"
        result = pp.run(path, observer, store=store, progress=False)
        filtered_count = server.counts["filtered"]
        pp.run(path, observer, store=store, progress=False)
        assert server.counts["filtered"] == filtered_count
        table = trials(result)
        refused = table["finish"].values == "refused"
        assert 0 < refused.sum() < 2.5 * share * refused.size
        assert (np.isnan(table["response"].values) == refused).all()
        assert set(table["reading"].values[refused]) == {"refusal"}
        assert all(FILTERED[:60] in text for text in table["text"].values[refused])
        assert main(["score", str(store)]) == 0
        text = capsys.readouterr().out.replace("\n", " ")
        count = f"the server refused {refused.sum()} of {refused.size} questions"
        assert count in text and "HTTP 400: The response was filtered" in text
        # The share is of all questions, those about blank images included.
        score: Any = pp.score(result)
        assert score.excluded == pytest.approx(refused.mean())
        # More than a tenth that is neither yes nor no: low validity.
        assert bool(chat_csf(result)["low_validity"].any()) or share < 0.1
        # A question without a row is asked again, as the docs say.
        with sqlite3.connect(store) as database:
            database.execute(
                "DELETE FROM answer "
                "WHERE json_extract(answer, '$.reply.finish') = 'refused'"
            )
        database.close()
        answered = server.counts["answered"]
        pp.run(path, observer, store=store, progress=False)
        assert server.counts["filtered"] > filtered_count
        # At most some grey images besides, by which a refusal is told from a server that fails.
        assert server.counts["answered"] - answered <= refused.sum()


def test_a_server_that_refuses_all_but_grey_images_is_not_asked_everything() -> None:
    truth = pp.load_observer(MODEL)
    with (
        OddServer(truth, behaviour=Behaviour(filtered=1.0)) as server,
        pp.load_observer(f"openai:{MODEL}", base_url=server.base_url) as observer,
        pytest.raises(
            PsyprobeError,
            match="none of its first 30 replies .* 30 of them are refused by the server "
            r"\(finish reason 'refused', such as 'HTTP 400",
        ),
    ):
        pp.run("hernandez2025", observer, progress=False)


def test_one_refused_question_is_answered_by_its_refusal(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    def answer(images: object, prompt: str) -> str:
        return "Yes"

    truth = pp.observer(answer, name="m")
    with OddServer(truth, behaviour=Behaviour(filtered=0.5)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        replies = []
        for i in range(12):
            assert main(["ask", f"Is it {i}?", "--observer", "openai:m"]) == 0
            replies.append(capsys.readouterr().out.strip())
    assert {reply[:40] for reply in replies} == {"Yes", f"HTTP 400: {FILTERED}"[:40]}
