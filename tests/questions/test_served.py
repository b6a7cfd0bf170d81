"""Answers belong to whoever gave them: a server is asked what it serves before stored answers are
used again."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="the chat extra is not installed")

from local_server import Local, listed, local
from odd_server import Faults, OddServer
from small_questions import write_questions

import psyprobe as pp
from psyprobe.cli import main
from psyprobe.errors import ConditionWarning, PsyprobeError, StoreError
from psyprobe.observers import load_observer
from psyprobe.observers.chat.protocol import Decoding
from psyprobe.running.maintenance import summary
from psyprobe.running.store import Store
from psyprobe.tasks.items import ItemQuestion, ask_items

Output = pytest.CaptureFixture[str]


def ask(server: Local, store: Path, count: int = 3, **options: Any) -> list[str]:
    questions = [
        ItemQuestion(str(i), f"What is {i}?", Decoding(logprobs=False))
        for i in range(count)
    ]
    with load_observer(
        "openai:local", base_url=server.url, retries=1, timeout=5, **options
    ) as observer:
        answers = ask_items(
            questions, observer, version="1", store=store, progress=False
        )
    return [answer.text for answer in answers.values()]


def test_two_servers_of_one_name_are_told_apart(tmp_path: Path, capsys: Output) -> None:
    path, folder = write_questions(tmp_path), tmp_path / "results"
    run = [
        "run",
        str(path),
        "--observer",
        "openai:local",
        "--output",
        str(folder),
        "--observer-option",
        "retries=1",
    ]
    with local("Yes", listed("llama")) as first, local("No", listed("qwen")) as second:
        assert main([*run, f"base_url={first.url}"]) == 0
        capsys.readouterr()
        contents = {file.name: file.read_bytes() for file in folder.iterdir()}
        assert main([*run, f"base_url={second.url}"]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.count("\n") == 1 and len(err) < 400
        assert (
            "'qwen'" in err
            and "'llama'" in err
            and "server=NAME" in err
            and "new store" in err
        )
        assert second.requests == ["models"]
        assert {file.name: file.read_bytes() for file in folder.iterdir()} == contents
        # By a name of its own the second is asked, and its result stands beside that of the first.
        assert main([*run, f"base_url={second.url}", "server=second"]) == 0
        assert len(second.requests) > 3
    assert len(list(folder.glob("*.nc"))) == 2
    assert all(
        (folder / name).read_bytes() == contents[name]
        for name in contents
        if not name.endswith(".sqlite")
    )


def test_in_a_new_store_the_second_overwrites_no_result(tmp_path: Path) -> None:
    path, folder = write_questions(tmp_path), tmp_path / "results"
    run = ["run", str(path), "--observer", "openai:local", "--output", str(folder)]
    with pytest.MonkeyPatch.context() as environment:
        for reply, name in (("Yes", "llama"), ("No", "qwen")):
            with local(reply, listed(name)) as server:
                environment.setenv("OPENAI_BASE_URL", server.url)
                assert main([*run, "--store", str(tmp_path / f"{name}.sqlite")]) == 0
    assert len(list(folder.glob("*.nc"))) == len(list(folder.glob("*.json"))) == 2


def test_a_server_that_changes_its_model_on_the_way_is_refused(tmp_path: Path) -> None:
    truth = pp.observer(lambda images, prompt: "Yes", name="m")
    questions = [
        ItemQuestion(str(i), f"What is {i}?", Decoding(logprobs=False))
        for i in range(20)
    ]
    with (
        OddServer(truth, faults=Faults(wrong_model=0.3, seed=2)) as server,
        load_observer("openai:m", base_url=server.base_url) as observer,
        pytest.raises(StoreError, match="another-model"),
    ):
        ask_items(
            questions,
            observer,
            version="1",
            store=tmp_path / "s.sqlite",
            progress=False,
        )


def test_a_server_that_is_down_lends_its_answers_to_nobody(tmp_path: Path) -> None:
    with local("Yes", listed("llama")) as server:
        assert ask(server, tmp_path / "s.sqlite") == ["Yes"] * 3
    with pytest.raises(
        StoreError, match="cannot be asked whether it still serves the same"
    ) as caught:
        ask(server, tmp_path / "s.sqlite")
    assert "openai:local" in str(caught.value) and "psyprobe score" in str(caught.value)
    assert len(str(caught.value)) < 400 + len(str(tmp_path))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"models": listed("llama")}, {"models": listed("qwen")}),
        (
            {"models": listed("local", root="/models/llama")},
            {"models": listed("local", root="/models/qwen")},
        ),
        (
            {"models": listed("a.gguf", meta={"n_params": 7})},
            {"models": listed("a.gguf", meta={"n_params": 8})},
        ),
        ({"model": "llama"}, {"model": "qwen"}),
        ({"fingerprint": "fp_1"}, {"fingerprint": "fp_2"}),
        (
            {"models": [{"id": "a"}, {"id": "b"}], "model": "a"},
            {"models": [{"id": "a"}, {"id": "b"}], "model": "b"},
        ),
    ],
)
def test_whatever_a_server_tells_is_compared(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any]
) -> None:
    with local("Yes", **first) as yes_server, local("No", **second) as other:
        assert ask(yes_server, tmp_path / "s.sqlite") == ["Yes"] * 3
        with pytest.raises(StoreError, match="the server now serves"):
            ask(other, tmp_path / "s.sqlite")
        assert not [
            request for request in other.requests if request.startswith("What is")
        ]
        assert ask(yes_server, tmp_path / "s.sqlite") == ["Yes"] * 3
        assert (
            len(
                [
                    request
                    for request in yes_server.requests
                    if request.startswith("What is")
                ]
            )
            == 3
        )


def test_another_model_in_the_midst_of_a_run_ends_it(tmp_path: Path) -> None:
    with local("Yes", listed("local"), model="llama") as server:
        ask(server, tmp_path / "s.sqlite")
        server.model, server.reply = "qwen", "No"
        with pytest.raises(
            StoreError,
            match=r"now serves 'qwen', and store .* holds answers of 'llama'",
        ):
            ask(server, tmp_path / "s.sqlite", count=5)
        server.model, server.reply = "llama", "Yes"
        assert ask(server, tmp_path / "s.sqlite", count=5) == ["Yes"] * 5


def test_another_fingerprint_of_the_same_model_is_said_and_kept(tmp_path: Path) -> None:
    with local("Yes", listed("local"), fingerprint="fp_1") as server:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ask(server, tmp_path / "s.sqlite")
        server.fingerprint = "fp_2"
        with pytest.warns(
            ConditionWarning, match="server fp_1, and new ones with fp_2"
        ):
            ask(server, tmp_path / "s.sqlite", count=4)
    with Store(tmp_path / "s.sqlite") as store:
        (observer,) = summary(store)["observers"]
    served = [origin["served"] for origin in observer["origins"]]
    assert served == [
        {"listed": "local", "model": "local", "fingerprint": f"fp_{i}"} for i in (1, 2)
    ]


def test_a_first_run_is_asked_no_more_than_its_questions(tmp_path: Path) -> None:
    with local("Yes") as server:
        ask(server, tmp_path / "s.sqlite")
        assert sorted(server.requests) == [
            "What is 0?",
            "What is 1?",
            "What is 2?",
            "models",
        ]


def test_a_list_of_models_that_makes_no_sense_tells_nothing(tmp_path: Path) -> None:
    for number, models in enumerate(
        (
            [],
            [{}],
            [{"id": 5}],
            ["local"],
            {"id": "local"},
            "local",
            [{"id": "x" * 10**5}],
        )
    ):
        with local("Yes", models) as server:  # type: ignore[arg-type]
            assert ask(server, tmp_path / f"{number}.sqlite") == ["Yes"] * 3


def test_no_server_at_first_is_an_error_of_the_question(tmp_path: Path) -> None:
    with local() as server:
        pass
    with pytest.raises(PsyprobeError, match="no server answers"):
        ask(server, tmp_path / "s.sqlite")
