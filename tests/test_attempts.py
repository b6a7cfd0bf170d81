"""How attempts at runs ended that did not finish them: kept in the store, and shown until they do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kinds_of_results import page_of

import psyprobe as pp
from psyprobe.cli import main
from psyprobe.errors import UnfinishedError
from psyprobe.running.maintenance import verify
from psyprobe.running.merge import merge
from psyprobe.running.store import Store

Output = pytest.CaptureFixture[str]


class Moody:
    """Every seventh pixel, or an error."""

    error: BaseException | None = None

    def __call__(self, images: Any) -> Any:
        if self.error is not None:
            raise self.error
        return images[:, ::7, ::7, 0]


def test_a_failed_attempt_is_kept_and_shown_until_the_run_is_finished(
    tmp_path: Path, capsys: Output
) -> None:
    store = tmp_path / "runs.sqlite"
    page = page_of("area", area=2, contrast=2)
    pp.run(page, "pixels", store=store, score_only=True)
    with Store(store) as opened:
        # A store without a failure is as it was before there were attempts.
        assert not opened.database.has_attempts() and opened.attempts() == []
        assert "attempt" not in verify(opened)
    moody = Moody()
    errors = (
        (RuntimeError("no \x1b luck " * 99), "failed"),
        (UnfinishedError("the budget is spent"), "unfinished"),
        (KeyboardInterrupt(), "interrupted"),
    )
    for error, how in errors:
        moody.error = error
        observer = pp.observer(moody, name="moody", version="1")
        with pytest.raises(BaseException):  # noqa: B017
            pp.run(page, observer, store=store, score_only=True)
        with Store(store) as opened:
            (run,) = (run for run in opened.runs() if run.finished is None)
            attempt = opened.last_attempt(run)
        assert attempt is not None and attempt.how == how
        assert 0 < len(attempt.message) <= 500 and attempt.message.isprintable()
        assert bool(attempt.kind) == (how == "failed")
        assert run.started is not None and run.started <= attempt.started
        assert attempt.started <= attempt.ended
    assert main(["store", "info", str(store)]) == 0
    assert "not finished; interrupted 20" in capsys.readouterr().out
    assert main(["store", "info", str(store), "--json"]) == 0
    (summary,) = json.loads(capsys.readouterr().out)
    assert [run["attempt"] and run["attempt"]["how"] for run in summary["runs"]] == [
        None,
        "interrupted",
    ]
    report = pp.report(store, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "; interrupted 20" in report
    merged = tmp_path / "merged.sqlite"
    for _ in range(2):
        merge([store], merged)
        with Store(merged) as opened:
            assert verify(opened)["attempt"] == 3
    moody.error = None
    observer = pp.observer(moody, name="moody", version="1")
    pp.run(page, observer, store=store, score_only=True)
    with Store(store) as opened:
        assert [opened.last_attempt(run) for run in opened.runs()] == [None, None]
        assert len(opened.attempts()) == 3
