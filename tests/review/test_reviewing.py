"""Reviewing and labelling over HTTP, without a browser; what a stranger may not do."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from children import child
from hypothesis import given
from hypothesis import strategies as st

from psyprobe.cli import main
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.tasks.agreement import agreement
from psyprobe.tasks.mvp_bench import read_questions
from psyprobe.tasks.mvp_construction.steps import json_lines
from psyprobe.tasks.review.server import ReviewServer
from psyprobe.tasks.review.worklist import Journal, accepted_by_both, worklist


def call(
    address: str, path: str = "", values: Any = None, **headers: str
) -> tuple[int, Any, Any]:
    """Status, body and headers of one request, with a header of its own where one is given."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(str(parts.netloc), timeout=20)
    body = None if values is None else json.dumps(values)
    request_headers = {"Content-Type": "application/json"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    connection.request(
        "GET" if values is None else "POST", parts.path + path, body, request_headers
    )
    reply = connection.getresponse()
    raw = reply.read()
    connection.close()
    kind = reply.getheader("Content-Type", "")
    return (
        reply.status,
        json.loads(raw) if kind == "application/json" else raw,
        reply.headers,
    )


def test_a_review_over_http_and_again_after_a_kill(candidates: Path) -> None:
    with ReviewServer(worklist(candidates, "review", "ann")) as server:
        status, page, headers = call(server.address)
        assert status == 200
        assert b"http" not in page.replace(b"http-equiv", b"")
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert call(server.address, "state")[1]["decided"] == [None] * 10
        _, task, _ = call(server.address, "task/0")
        assert task["images"] == ["Natural", "Manipulated"]
        status, image, headers = call(server.address, "image/0/1")
        assert (headers["Content-Type"], image[:4]) == ("image/png", b"\x89PNG")
        decision = {"task": 0, "value": "accept", "text": ""}
        assert call(server.address, "decide", decision)[1]["decided"][0] == "accept"
    path = candidates / "people/review-ann.jsonl"
    with path.open("ab") as file:  # a kill in the middle of a line
        file.write(b'{"task": "10010 100')
    with ReviewServer(worklist(candidates, "review", "ann")) as server:
        call(server.address, "decide", decision | {"task": 1, "value": "reject"})
        assert call(server.address, "state")[1]["decided"][:3] == [
            "accept",
            "reject",
            None,
        ]
    assert worklist(candidates, "review", "ann").state()["decided"][:3] == [
        "accept",
        "reject",
        None,
    ]


def test_a_changed_question_is_another_one(candidates: Path) -> None:
    first = worklist(candidates, "review", "ann")
    first.journal.decide(first.tasks[1], "accept")
    path = candidates / "questions.json"
    path.write_text(path.read_text().replace("Is it day?", "Is it noon?", 2))
    assert worklist(candidates, "review", "ann").state()["decided"][1] is None


def test_two_pages_of_one_person_agree(candidates: Path) -> None:
    first, other = (worklist(candidates, "review", "ann") for _ in range(2))
    first.decide(0, "accept", "")
    other.decide(1, "reject", "")
    assert (
        first.state()["decided"][:3]
        == other.state()["decided"][:3]
        == ["accept", "reject", None]
    )
    first.decide(1, "accept", "")
    assert other.task(1)["decided"] == "accept"


def test_strangers_get_nothing(candidates: Path) -> None:
    with ReviewServer(worklist(candidates, "review", "ann")) as server:
        root = server.address.rsplit("/", 2)[0]
        decision = {"task": 0, "value": "accept", "text": ""}
        assert call(root, "/")[0] == 404
        assert call(root, "/guess/state")[0] == 404
        assert call(server.address, "state", Host="evil.example")[0] == 400
        assert (
            call(server.address, "decide", decision, Host="evil.example:80")[0] == 400
        )
        # A request may name its host in its first line too, and that one counts.
        elsewhere = f"http://evil.example{urlsplit(server.address).path}state"
        assert call(root, elsewhere, Host="localhost")[0] == 404
        assert (
            call(server.address, "decide", decision, Content_Type="text/plain")[0]
            == 404
        )
        for path in (
            "image/0/9",
            "image/99/0",
            "image/0/..%2f..",
            "../../etc/passwd",
            "task/" + "9" * 5000,
        ):
            assert call(server.address, path)[0] in (400, 404, 414)
        for wrong in (
            [],
            {},
            decision | {"task": -1},
            decision | {"task": True},
            decision | {"value": "maybe"},
        ):
            assert call(server.address, "decide", wrong)[0] == 400
        assert (
            call(server.address, "decide", decision | {"text": "x" * 200_000})[0] == 413
        )
        assert call(server.address, "state")[1]["decided"] == [None] * 10
        with pytest.raises(PsyprobeError, match="give another --port"):
            ReviewServer(
                worklist(candidates, "review", "bob"),
                urlsplit(server.address).port or 0,
            )


def test_labels_are_agreed_edited_and_reported(
    r_bench_set: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labelling = worklist(r_bench_set, "label", "ann")
    kinds = [task.heading for task in labelling.tasks]
    assert kinds[:3] != [kinds[0]] * 3
    assert sorted(kinds[:3]) == sorted(kinds[3:])
    for task in labelling.tasks:
        if task.most_words == 10:
            with pytest.raises(
                InputError, match="the text has 11 words; write 1 to 10"
            ):
                labelling.journal.decide(task, "edit", "word " * 11)
            labelling.journal.decide(task, "edit", "  two\n cats ")
        elif task.most_words == 40:
            labelling.journal.decide(task, "edit", "word " * 40)
        else:
            with pytest.raises(InputError, match="'edit' is none of agree, report"):
                labelling.journal.decide(task, "edit", "B")
            labelling.journal.decide(task, "report")
    shown_task = labelling.task(
        next(i for i, task in enumerate(labelling.tasks) if task.name == "v1.png")
    )
    assert (shown_task["draft"], shown_task["facts"]) == (
        "two cats",
        [["Before it was edited", "the dark side"]],
    )
    assert main(["review", str(r_bench_set)]) == 0
    assert "ann: 4 edit, 2 report" in capsys.readouterr().out
    assert "ann,v1.png,edit,two cats" in (r_bench_set / "people/labels.csv").read_text()


words = st.sampled_from(["accept", "reject"])
answers_by_name = st.dictionaries(st.sampled_from("abcdefgh"), words)


@given(answers_by_name, answers_by_name)
def test_agreement_is_that_of_the_textbook(
    ones: dict[str, str], second_answers: dict[str, str]
) -> None:
    agreed = agreement("x", "y", ones, second_answers)
    shared_names = sorted(set(ones) & set(second_answers))
    assert (agreed.both, agreed.equal) == (
        len(shared_names),
        sum(ones[n] == second_answers[n] for n in shared_names),
    )
    assert agreement("y", "x", second_answers, ones).kappa == agreed.kappa
    shares = [
        sum(answers[n] == "accept" for n in shared_names) / len(shared_names)
        if shared_names
        else 1.0
        for answers in (ones, second_answers)
    ]
    chance = shares[0] * shares[1] + (1 - shares[0]) * (1 - shares[1])
    if chance == 1:
        assert agreed.kappa is None
    else:
        assert agreed.kappa == pytest.approx(
            (agreed.equal / len(shared_names) - chance) / (1 - chance)
        )
    accepted = {n for n in shared_names if ones[n] == second_answers[n] == "accept"}
    assert accepted_by_both({"x": ones, "y": second_answers}) == accepted


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_until_it_is_stopped(
    candidates: Path, ending: signal.Signals
) -> None:
    command = [
        sys.executable,
        "-u",
        "-m",
        "psyprobe",
        "review",
        str(candidates),
        "--annotator",
        "ann",
    ]
    with child(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[1]
        call(address, "decide", {"task": 0, "value": "accept", "text": ""})
        process.send_signal(ending)
        _, output = process.communicate(timeout=1200)
    assert process.returncode == 0
    assert "1 of 10 decided" in output
    assert address.split("/")[3] not in output


def test_bad_requests_are_one_sentence(
    candidates: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("", "../ann", "a b", "x" * 41):
        with pytest.raises(InputError, match="cannot be a file's"):
            Journal(candidates, "review", name)
    assert main(["review", str(candidates / "people")]) == 2
    assert "has neither questions.json nor items.csv" in capsys.readouterr().err
    path = candidates / "questions.json"
    path.write_text(
        path.read_text().replace("Single_Images/1001_s.png", "../../secret.png")
    )
    assert main(["review", str(candidates), "--annotator", "ann"]) == 2
    assert "leads out of the folder" in capsys.readouterr().err


def test_people_stand_as_one_row_in_both_reports(
    candidates: Path, r_bench_set: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right = {
        "v1.png": "dark",
        "v2.png": "light",
        "c1.png": "a ramp",
        "c2.png": "a ramp",
    }
    mvp, rbench = (
        ["mvp-bench", str(candidates / "questions.json")],
        ["r-bench", "score", str(r_bench_set / "items.csv")],
    )
    questions = read_questions(candidates / "questions.json")
    for place, person in enumerate(("ann", "bob", "cyd")):
        rows = []
        for name, key in zip(
            questions["question_id"], questions["answer"], strict=True
        ):
            wrong = {"yes": "no", "no": "yes", "A": "B"}.get(key, "A")
            rows.append(
                {
                    "question_id": name,
                    "output": wrong if int(name) % 10 < place else key,
                }
            )
        (candidates / f"{person}.jsonl").write_text(json_lines(rows), encoding="utf-8")
        mvp += ["--model", person, str(candidates / f"{person}.jsonl")]
        answers = {"m1.png": "AB"[place > 0], "m2.png": "AB"[place > 0], **right}
        table = "\n".join(
            ["name,answer", *(f"{name},{answer}" for name, answer in answers.items())]
        )
        (r_bench_set / f"{person}.csv").write_text(table + "\n", encoding="utf-8")
        rbench += ["--model", person, f"dis={r_bench_set / f'{person}.csv'}"]
    for command in (mvp, [*rbench, "--task", "MCQ", "--mcq-rule", "letter"]):
        assert main([*command, "--people", "ann", "bob", "cyd"]) == 0
        out = capsys.readouterr().out
        assert "(people, mean of 1)" in out
        assert "\nbob" not in out
