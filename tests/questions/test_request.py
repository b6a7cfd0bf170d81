"""Control over the request: keys of a page set anew, options of observers, and servers that refuse
what is asked."""

from __future__ import annotations

import contextlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from odd_server import Behaviour, OddServer
from small_questions import write_questions

import psyprobe as pp
from psyprobe.analysis import trials
from psyprobe.cli import main
from psyprobe.errors import ConditionWarning, InputError, UnknownNameError
from psyprobe.experiment import load_experiment
from psyprobe.observers import load_observer
from psyprobe.observers.registry import read_observers
from psyprobe.probes.results import score_layers

#: hernandez2025 as shipped, of which fewer levels and wordings are asked.
FEW = {
    "levels.frequency.values": [2, 8],
    "levels.contrast.n": 4,
    "asking.prompts": "base",
    "asking.repeats": {"text": 2, "p_yes": 1},
}
SEEING = "simulated:watson-malo"
SERVERS: list[tuple[Behaviour, dict[str, Any]]] = [
    (Behaviour(temperature="one"), {"temperature": [0.0, None]}),
    (Behaviour(logprobs="refused"), {"logprobs": [True, None]}),
    (Behaviour(logprobs="absent"), {"logprobs": [True, None]}),
    (Behaviour(most_tokens=8), {"max_tokens": [16, 8]}),
    (Behaviour(least_tokens=16), {"max_tokens": [1, 16]}),
    (Behaviour(thinking="tags"), {"max_tokens": [16, 4112]}),
    (Behaviour(thinking="untagged"), {"max_tokens": [16, 4112]}),
    (
        Behaviour(thinking="apart", temperature="one", logprobs="refused"),
        {"max_tokens": [16, 4112], "temperature": [0.0, None]},
    ),
]


@pytest.mark.parametrize(("behaviour", "changed"), SERVERS)
def test_a_run_finishes_on_servers_that_refuse_and_tells_what_it_asked(
    behaviour: Behaviour, changed: dict[str, Any]
) -> None:
    experiment = load_experiment("hernandez2025").with_settings(FEW)
    truth = load_observer(SEEING)
    with (
        OddServer(truth, behaviour=behaviour) as server,
        load_observer(f"openai:{SEEING}", base_url=server.base_url) as observer,
    ):
        with (
            pytest.warns(ConditionWarning)
            if behaviour.logprobs != "absent"
            else contextlib.nullcontext()
        ):
            result = trials(pp.run(experiment, observer, progress=False))
        refused = server.counts["refused"]
    replaced = {
        setting["name"]: [setting["requested"], setting["sent"]]
        for setting in json.loads(result.attrs["replaced_settings"])
    }
    assert {name: replaced[name] for name in changed} == changed
    assert set(
        np.unique(result["reading"].values[result["reply_requested"].values > 0])
    ) <= {
        "yes",
        "no",
    }
    assert np.isfinite(result["response"].values).all()
    # One question at a time found out what is refused, and not all of those under way.
    assert refused <= 6
    thinking = result["tokens_thinking"].values
    assert np.isfinite(thinking).all() == (behaviour.thinking != "none")
    if behaviour.thinking != "none":
        assert (
            result.attrs["readout"] == "text"
            and (
                np.abs(thinking - 40) <= (0 if behaviour.thinking == "apart" else 8)
            ).all()
        )
    (score,) = score_layers(result)
    assert any(
        "server" in note or "in place of" in note or "came back" in note
        for row in score.rows()
        for note in row.notes
    )


def test_what_a_server_takes_is_asked_as_it_stands(tmp_path: Path) -> None:
    page = load_experiment(write_questions(tmp_path)).with_settings(
        {
            "asking.top_p": 0.9,
            "asking.reasoning_effort": "low",
            "asking.response_format": "words",
            "asking.extra_body": {"guided_choice": ["yes", "no"]},
            "asking.system": "Be brief.",
            "asking.examples": [
                {"contrast": 0.2, "level": 4, "answer": "yes"},
                {"contrast": 0.0, "answer": "no"},
            ],
        }
    )
    bodies: list[dict[str, Any]] = []
    with OddServer(load_observer("simulated:flat")) as server:
        answered = server._answer
        server._answer = lambda body: (
            bodies.append(json.loads(body)),
            answered(body),
        )[1]  # type: ignore[method-assign]
        with load_observer(
            "openai:simulated:flat", base_url=server.base_url
        ) as observer:
            result = trials(pp.run(page, observer, progress=False))
    assert "replaced_settings" not in result.attrs
    for body in bodies:
        assert (body["top_p"], body["reasoning_effort"], body["guided_choice"]) == (
            0.9,
            "low",
            ["yes", "no"],
        )
        assert body["response_format"]["json_schema"]["schema"]["properties"]["answer"][
            "enum"
        ] == [
            "yes",
            "no",
        ]
        roles = [message["role"] for message in body["messages"]]
        assert roles == ["system", "user", "assistant", "user", "assistant", "user"]
        assert [body["messages"][i]["content"] for i in (2, 4)] == ["yes", "no"]
        urls = [
            body["messages"][i]["content"][0]["image_url"]["url"] for i in (1, 3, 5)
        ]
        # Examples are images of their own, the same for each question.
        assert urls[:2] == [
            bodies[0]["messages"][i]["content"][0]["image_url"]["url"] for i in (1, 3)
        ]
        assert len(set(urls)) == 3


def test_who_takes_no_such_thing_says_so(tmp_path: Path) -> None:
    page = load_experiment(write_questions(tmp_path)).with_settings(
        {"asking.top_p": 0.9}
    )
    with pytest.raises(InputError, match="takes no top_p; leave it out"):
        pp.run(page, "simulated:flat", progress=False)


def test_system_text_goes_before_the_question_where_it_is_refused() -> None:
    grey = np.full((32, 32, 3), 128 / 255, np.float32)
    with (
        OddServer(
            load_observer("simulated:flat"), behaviour=Behaviour(system="refused")
        ) as server,
        load_observer("openai:simulated:flat", base_url=server.base_url) as observer,
        pytest.warns(ConditionWarning, match="system text goes before the question"),
    ):
        answer = observer.answer([grey], "Is there a pattern?", system="Be brief.")
    assert answer.instead == {"system": ["system text", "before the question"]}


def test_keys_of_a_page_are_set_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = write_questions(tmp_path)
    command = [
        "run",
        str(page),
        "--observer",
        f"{SEEING}?guess=0.2&seed=3",
        "--output",
        str(tmp_path / "out"),
    ]
    assert main([*command, "--set", "asking.temperature=1", "asking.max_tokens=4"]) == 0
    (result,) = pp.load_results(tmp_path / "out" / "runs.sqlite")
    asking = json.loads(result.attrs["asking"])
    assert (asking["temperature"], asking["max_tokens"]) == (1.0, 4)
    experiment = load_experiment(page).with_settings(
        {"asking.temperature": 1, "asking.max_tokens": 4}
    )
    assert result.attrs["experiment_digest"] == experiment.digest
    assert experiment.changed == {"asking.temperature": "", "asking.max_tokens": ""}
    assert "changed = " in result.attrs["experiment_toml"]
    options = json.loads(result.attrs["observer_card"])["options"]
    assert options["guess"] == 0.2
    assert main([*command, "--set", "asking.temprature=1"]) == 2
    assert "did you mean 'temperature'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "message", "kind"),
    [
        ({"asking.temperature": 3}, "asking.temperature is 3", InputError),
        (
            {"asking.response_format": "json"},
            "asking.response_format is 'json'; give 'words' or a table$",
            InputError,
        ),
        ({"title.of": 1}, "title is no table", InputError),
        ({"nonsense": 1}, "unknown key 'nonsense'", UnknownNameError),
    ],
)
def test_wrong_settings_are_one_line(
    settings: dict[str, Any], message: str, kind: type[Exception]
) -> None:
    with pytest.raises(kind, match=message):
        load_experiment("hernandez2025").with_settings(settings)


def test_observers_come_from_a_page(tmp_path: Path) -> None:
    page = tmp_path / "observers.toml"
    page.write_text(
        '[[observers]]\nname = "openai:a/b"\nbase_url = "http://127.0.0.1:9/v1"\ninput_size = 336\n'
        '[[observers]]\nname = "simulated:flat"\n',
        encoding="utf-8",
    )
    served, flat = (load_observer(name) for name in read_observers(page))
    assert (
        served.card.name == "openai:a/b"
        and served.card.input_size == (336, 336)
        and flat.card.name == "simulated:flat"
    )
    page.write_text("[[observers]]\nbase_url = 'x'\n", encoding="utf-8")
    with pytest.raises(InputError, match="has no name"):
        read_observers(page)
    with pytest.raises(InputError, match="takes no option 'guesses'"):
        load_observer("openai:a?guesses=1")


def test_stimuli_are_drawn_at_the_size_that_is_told(tmp_path: Path) -> None:
    page = write_questions(tmp_path)
    with (
        OddServer(load_observer("simulated:flat")) as server,
        load_observer(
            f"openai:simulated:flat?base_url={server.base_url}&input_size=64"
        ) as observer,
    ):
        result = trials(pp.run(page, observer, progress=False))
    assert json.loads(result.attrs["size"]) == [64, 64] and math.isclose(
        result.attrs["ppd"], 32
    )
