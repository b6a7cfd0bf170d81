"""What questions cost: before they are asked, while they are, and after; a budget holds, and no
answer is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="the chat extra is not installed")
pytest.importorskip("uvicorn", reason="the server extra is not installed")

import xarray as xr
from small_questions import Seeing, write_questions

import psyprobe as pp
from psyprobe.analysis import trials
from psyprobe.cli import main
from psyprobe.errors import InputError, UnfinishedError
from psyprobe.observers.chat.openai_protocol import read_completion
from psyprobe.observers.chat.prices import Budget, Price, Prices, read_prices
from psyprobe.observers.chat.protocol import Answer
from psyprobe.observers.simulated.serving import Faults, SimulatedServer
from psyprobe.running.store import Store

Output = pytest.CaptureFixture[str]
MODEL = "simulated:watson-malo"
#: Per million tokens; so large that an image of a few tokens costs something.
PRICES = Prices({MODEL: Price(1000.0, 5000.0, image=0.01, currency="EUR")}, "EUR")
PAGE = (
    f'currency = "EUR"\n[models."{MODEL}"]\ninput = 1000\noutput = 5000\nimage = 0.01\n'
)
#: Three wordings of the truth: some see the same thing and say it in one word.
ALIKE = {"logit_sd": 0.0, "prompt_sd": 0.0}


def paid(answer: dict[str, Any]) -> float:
    """By hand: the price of one image and of the tokens that the server counted."""
    reply = answer["reply"]
    return float(0.01 + (1000 * reply["tokens_in"] + 5000 * reply["tokens_out"]) / 1e6)


def test_prices_of_tokens_images_and_what_is_cached() -> None:
    assert Price(2, 8).of(1e6, 5e5) == 6
    assert Price(2, 8, cached_input=0.5).of(1e6, 0, cached=4e5) == pytest.approx(
        0.6 * 2 + 0.4 * 0.5
    )
    assert Price(0, 0, image=0.5).of(100, 1, [(64, 64), (800, 600)]) == 1
    # 800 x 600 px are two rows of two patches of 512 px.
    assert Price(0, 0, image=0.5, patch=512).of(100, 1, [(64, 64), (800, 600)]) == 2.5
    unknown = Answer("Yes", tokens_in=None, tokens_out=3)
    assert (
        Price(2, 8).of_answer(unknown, []) is None
        and Price(0, 8).of_answer(unknown, []) == 2.4e-5
    )
    # OpenAI's protocol reports cached tokens in this form.
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 1,
        "prompt_tokens_details": {"cached_tokens": 60},
    }
    body = json.dumps(
        {"choices": [{"message": {"content": "Yes"}}], "usage": usage}
    ).encode()
    assert read_completion(body, {}).tokens_cached == 60
    answer = Answer("Yes", tokens_cached=60, cost=1.0, currency="EUR")
    assert Answer.from_dict(json.loads(json.dumps(answer.to_dict()))) == answer
    assert {"tokens_cached", "currency", "thinking"}.isdisjoint(Answer("Yes").to_dict())


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (
            "[models.a]\ninput = 1",
            "models.'a' has no 'output'; give the price of a million tokens, or 0",
        ),
        (
            "[models.a]\ninput = -1\noutput = 1",
            "models.'a'.input is -1; give a price from 0 to 1e+06",
        ),
        ("[models.a]\ninput = nan\noutput = 1", "models.'a'.input is nan"),
        ('[models.a]\ninput = "2"\noutput = 1', "models.'a'.input is '2'"),
        (
            "[models.a]\ninput = 1\noutput = 1\nbatch = 2",
            "models.'a'.batch is 2; give a share from 0 to 1",
        ),
        ("[models.a]\ninput = 1\noutputs = 1", "unknown price in"),
        (
            "[models.a]\ninput = 1\noutput = 1\nimage = { patch = 0, price = 1 }",
            "pixels of a side",
        ),
        (
            "[models.a]\ninput = 1\noutput = 1\nimage = { patch = 8, price = true }",
            "models.'a'.image is True",
        ),
        ("[model.a]\ninput = 1", "did you mean 'models'?"),
        (
            '["a.b"]\ninput = 1\noutput = 1',
            "the prices of 'a.b' stand in no [models]; write [models.\"a.b\"]",
        ),
        ("models = 3", "write a table [models.NAME]"),
        ("currency = 3", "currency is 3"),
        ('currency = "\\u001b[2J"', "give up to 8 letters"),
        ("[models", "is not valid TOML"),
    ],
)
def test_prices_that_are_none(tmp_path: Path, page: str, message: str) -> None:
    (tmp_path / "prices.toml").write_text(page, encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read_prices(tmp_path / "prices.toml")
    assert message in str(refused.value) and len(str(refused.value)) <= 360


def test_where_prices_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PSYPROBE_PRICES", raising=False)
    assert read_prices() == Prices()
    (tmp_path / ".config" / "psyprobe").mkdir(parents=True)
    (tmp_path / ".config" / "psyprobe" / "prices.toml").write_text(
        "[models.home]\ninput = 1\noutput = 2"
    )
    assert read_prices().of("openai:home") == Price(1, 2)
    # A file that was not named for this run need not know every model.
    assert read_prices().of("openai:other") is None
    (tmp_path / "mine.toml").write_text("[models.mine-2]\ninput = 1\noutput = 2")
    monkeypatch.setenv("PSYPROBE_PRICES", str(tmp_path / "mine.toml"))
    assert list(read_prices().models) == ["mine-2"]
    with pytest.raises(
        InputError, match=r"no price of 'mine'; did you mean 'mine-2'\?"
    ):
        read_prices(tmp_path / "mine.toml").of("openai:mine")
    monkeypatch.setenv("PSYPROBE_PRICES", str(tmp_path / "none.toml"))
    with pytest.raises(InputError, match=r"none\.toml cannot be read"):
        read_prices()


def test_a_budget_stops_a_run_and_the_same_run_goes_on(tmp_path: Path) -> None:
    path, store = write_questions(tmp_path), tmp_path / "runs.sqlite"
    with (
        SimulatedServer(pp.load_observer(MODEL, **ALIKE), latency=0.01) as server,
        pp.load_observer(
            f"openai:{MODEL}", base_url=server.base_url, concurrency=4
        ) as observer,
    ):
        with pytest.raises(
            UnfinishedError, match=r"the budget of 0\.40 EUR is spent"
        ) as stopped:
            pp.run(
                path, observer, store=store, prices=PRICES, budget=0.4, progress=False
            )
        assert "the same command goes on" in str(stopped.value)
        with Store(store) as opened:
            answers = [answered.answer for answered, _ in opened.all_answers()]
        # Paid answers are stored: all that the server gave, within the budget.
        assert sum(server.asked.values()) == len(answers) > 3
        assert sum(map(paid, answers)) <= 0.4
        dearest = max(map(paid, answers))
        assert sum(map(paid, answers)) > 0.4 - 4 * dearest
        assert all(
            answer["reply"]["cost"] == pytest.approx(paid(answer)) for answer in answers
        )
        # Nothing is left of that budget for what comes next.
        resumed = pp.run(path, observer, store=store, prices=PRICES, progress=False)
        assert max(server.asked.values()) == 1
        uninterrupted = pp.run(path, observer, prices=PRICES, progress=False)
    for result in (resumed, uninterrupted):
        assert trials(result)["cost"].attrs["unit_symbol"] == "EUR"
        spent = json.loads(result.attrs["spent"])
        assert (
            spent["cost"] == {"EUR": pytest.approx(float(trials(result)["cost"].sum()))}
            and spent["unpriced"] == 0
        )
        assert spent["answers"] == int(trials(result)["was_shown"].sum())
        assert spent["tokens_in"] == int(trials(result)["tokens_in"].sum())
    del resumed.attrs["served"], uninterrupted.attrs["served"]
    xr.testing.assert_identical(resumed, uninterrupted)
    xr.testing.assert_identical(
        pp.load_results(store)[0].drop_attrs(), resumed.drop_attrs()
    )


def test_with_a_budget_nothing_is_sent_twice_beside_itself(tmp_path: Path) -> None:
    path = write_questions(tmp_path)
    faults = Faults(overload=0.2, error=0.1, truncated=0.1, retry_after=0.01, seed=4)
    with (
        SimulatedServer(
            pp.load_observer(MODEL, **ALIKE), latency=(0.0, 0.4), faults=faults
        ) as server,
        pp.load_observer(
            f"openai:{MODEL}", base_url=server.base_url, concurrency=8
        ) as observer,
    ):
        result = pp.run(path, observer, prices=PRICES, budget=100.0, progress=False)
    # A second sending beside the first would have been answered too.
    assert server.counts["answered"] == int(trials(result)["was_shown"].sum())


def test_a_budget_without_prices_stops_at_the_first_answer(tmp_path: Path) -> None:
    path = write_questions(tmp_path)
    with (
        SimulatedServer(pp.load_observer(MODEL)) as server,
        pp.load_observer(f"openai:{MODEL}", base_url=server.base_url) as observer,
        pytest.raises(
            UnfinishedError,
            match="the server tells no price of its answers; give the prices",
        ),
    ):
        pp.run(path, observer, prices=Prices(), budget=1.0, progress=False)
    assert sum(server.asked.values()) <= 8


def test_a_budget_counts_what_is_under_way() -> None:
    budget = Budget(1.0)
    budget.take()
    budget.settle(Answer("Yes", cost=0.3))
    budget.take()
    budget.take()
    with pytest.raises(
        UnfinishedError,
        match=r"0.30 USD, and another question may cost 0.30 USD beside 2 under way",
    ):
        budget.take()
    budget.settle(None)
    budget.take()
    budget.settle(Answer("Yes", cost=0.3, currency="EUR"))
    with pytest.raises(UnfinishedError, match="the server tells its price in EUR"):
        budget.take()
    for budget in (0.0, -1.0, float("nan"), float("inf"), True):
        with pytest.raises(InputError, match="give an amount above 0"):
            Budget(budget)
    with pytest.raises(InputError, match="leave workers out"):
        pp.run("area", "pixels", executor=2, budget=1.0)


def test_a_plan_says_from_where_it_knows(tmp_path: Path) -> None:
    path, store = write_questions(tmp_path), tmp_path / "runs.sqlite"
    with (
        SimulatedServer(pp.load_observer(MODEL, **ALIKE)) as server,
        pp.load_observer(f"openai:{MODEL}", base_url=server.base_url) as observer,
    ):
        guessed = pp.plan(path, observer, prices=PRICES)
        assert not server.counts and "are guesses" in str(guessed)
        assert "no price" not in str(pp.plan(path, observer, prices=Prices()))
        timed_plan = pp.plan(path, observer, prices=PRICES, timed=True)
        assert server.counts[
            "answered"
        ] == 1 and "those of one question that was put" in str(timed_plan)
        result = pp.run(path, observer, store=store, prices=PRICES, progress=False)
        after = pp.plan(path, observer, store=store, prices=PRICES, timed=True)
        # Another run of the same kind learns from it.
        other = write_questions(
            tmp_path, ("[0.03, 0.08, 0.2]", "[0.05, 0.1]"), name="other"
        )
        alike = pp.plan(other, observer, store=store, prices=PRICES, timed=True)
    assert server.counts["answered"] == 1 + int(trials(result)["was_shown"].sum())
    spent = float(trials(result)["cost"].sum())
    # One question tells the price of all to some percent: they differ by their words.
    assert timed_plan.left.cost == pytest.approx(spent, rel=0.1)
    assert (
        after.left.questions == 0
        and after.left.cost == 0
        and "answers of this run in the store" in str(after)
    )
    assert after.chosen.cost == pytest.approx(spent, rel=1e-6)
    assert "answers of words in the store" in str(alike)
    assert alike.left.cost == pytest.approx(
        spent / after.questions * alike.questions, rel=1e-6
    )


def test_models_of_ones_own_cost_nothing(tmp_path: Path) -> None:
    path = write_questions(tmp_path)
    planned = pp.plan(path, Seeing())
    assert planned.chosen.cost == 0 and "none" in str(planned)
    result = pp.run(path, MODEL, budget=1e-9, progress=False)
    spent = json.loads(result.attrs["spent"])
    assert spent["cost"] == {} and spent["tokens_in"] > 0
    score: Any = pp.score(result)
    assert any(
        "answers took" in note and "tokens in" in note for note in score.rows()[0].notes
    )


def test_the_command_line_plans_stops_and_goes_on(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, prices = write_questions(tmp_path), tmp_path / "prices.toml"
    prices.write_text(PAGE, encoding="utf-8")
    with SimulatedServer(pp.load_observer(MODEL, **ALIKE), latency=0.01) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        run = [
            "run",
            str(path),
            "--observer",
            f"openai:{MODEL}",
            "--output",
            str(tmp_path),
            "--prices",
            str(prices),
        ]
        assert main([*run, "--plan", "--probe", "--budget", "0.4"]) == 0
        output = capsys.readouterr().out
        assert (
            "a budget of 0.40 EUR lasts for about" in output
            and "one question that was put" in output
        )
        assert main([*run, "--budget", "0.4"]) == 3
        stopped = capsys.readouterr()
        assert (
            stopped.out == ""
            and "psyprobe run: not finished: the budget of 0.40 EUR is spent"
            in stopped.err
        )
        assert not list(tmp_path.glob("*.nc"))
        assert main([*run, "--json"]) == 0
        (report,) = json.loads(capsys.readouterr().out)
        assert report["spent"]["cost"]["EUR"] > 0.4 and report["seconds"] > 0
        assert main(run) == 0
        assert "EUR; this run of the command took" in capsys.readouterr().err
        assert main([*run, "--probe"]) == 2 and "add --plan" in capsys.readouterr().err
        ask = [
            "ask",
            "Do you see a pattern?",
            "--observer",
            f"openai:{MODEL}",
            "--prices",
            str(prices),
        ]
        assert (
            main([*ask, "--stimulus", "noise_hernandez2025"]) == 0
            and " EUR; " in capsys.readouterr().err
        )


def test_the_bar_tells_what_is_spent_of_the_budget(
    tmp_path: Path, capsys: Output
) -> None:
    path = write_questions(tmp_path)
    with (
        SimulatedServer(pp.load_observer(MODEL, **ALIKE)) as server,
        pp.load_observer(f"openai:{MODEL}", base_url=server.base_url) as observer,
    ):
        pp.run(path, observer, prices=PRICES, budget=50.0, progress=True)
    output = capsys.readouterr().err.split("\r")[-1]
    assert " tokens in, " in output and " EUR of 50.00 EUR" in output
