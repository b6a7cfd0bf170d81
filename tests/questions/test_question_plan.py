"""A plan says what a run asks, before anything is sent."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_questions import Seeing, digests, write_questions

import psyprobe as pp
from psyprobe.analysis import trials
from psyprobe.experiment import load_experiment
from psyprobe.observers.chat.prices import Budget, Price
from psyprobe.probes import load_probe
from psyprobe.probes.words.plan import refused_levels

TWO_IMAGES = (
    ('"yes_no"', '"two_interval"'),
    (
        '["base", { id = "blank", text = "Is it uniform?", polarity = -1 }]',
        '"two_image"',
    ),
)


@pytest.mark.parametrize(
    "changes",
    [
        (),
        (("repeats = { text = 4, p_yes = 2 }", "repeats = 3"),),
        (("seed = 3", 'seed = 3\nreadout = "text"'),),
        (("seed = 3", 'seed = 3\ndesign = "ladder"'),),
        (
            (
                "seed = 3",
                'seed = 3\ndesign = "ladder"\noptions = { coarse = 3, fine = 2, repeats = 2 }',
            ),
        ),
        (("[2, 4]", "[4, 7.5]"),),
        TWO_IMAGES,
    ],
)
def test_counts_are_those_of_the_run(
    tmp_path: Path, changes: tuple[tuple[str, str], ...]
) -> None:
    path, observer = write_questions(tmp_path, *changes), Seeing()
    planned = pp.plan(path, observer)
    assert observer.inquiries == []
    result = trials(pp.run(path, observer))
    assert (
        planned.questions == len(observer.inquiries) == int(result["was_shown"].sum())
    )
    images = {inquiry[0] for inquiry in digests(observer.inquiries)}
    if "ladder" not in str(changes):
        assert planned.images == len(
            {inquiry[:-3] for inquiry in digests(observer.inquiries)}
        )
    else:
        # Two wordings may come to the same threshold and share images after all.
        assert len(images) <= planned.images
    hidden = result.isel(trial=result["was_shown"].values == 0)
    levels = set(
        zip(hidden["frequency"].values, hidden["contrast"].values, strict=True)
    )
    experiment = load_experiment(path)
    schedule = load_probe(experiment.probe).plan(experiment, observer)
    assert set(refused_levels(schedule)[0]) == levels
    assert [line.split(":")[0] for line in planned.refused] == (
        ["7.5 cpd at 3 contrasts from 0.03 to 0.2"] if levels else []
    )


def test_words_are_planned_as_they_are_asked(tmp_path: Path) -> None:
    path, silent = write_questions(tmp_path), Seeing(logprobs=False)
    planned = pp.plan(path, silent)
    pp.run(path, silent)
    (words,) = [
        cost
        for cost in planned.others
        if (cost.design, cost.readout) == ("constant", "text")
    ]
    assert words.questions == len(silent.inquiries)


def test_time_and_price(tmp_path: Path) -> None:
    class Priced(Seeing):
        price: Price | None = None
        budget: Budget | None = None
        concurrency = 4
        rate = 100.0

    path, observer = write_questions(tmp_path), Priced()
    (tmp_path / "prices.toml").write_text(
        "[models.seeing]\ninput = 2\noutput = 8", encoding="utf-8"
    )
    planned = pp.plan(path, observer, prices=tmp_path / "prices.toml")
    estimate = planned.chosen
    assert estimate.cost == pytest.approx(
        (2 * estimate.tokens_in + 8 * estimate.tokens_out) / 1e6, rel=0.01
    )
    assert estimate.seconds == pytest.approx(planned.questions / 4)
    assert "USD" in str(planned) and "guesses" in str(planned)
    pp.run(path, observer, store=tmp_path / "s.sqlite")
    after = pp.plan(path, observer, store=tmp_path / "s.sqlite")
    assert after.answered == after.questions == planned.questions
    assert after.chosen.tokens_in == 100 * planned.questions and "in the store" in str(
        after
    )
    # 0.01 s an answer, four at once; but no more than 100 a second.
    assert after.chosen.seconds == pytest.approx(planned.questions / 100)


def test_better_designs_leave_narrower_intervals_or_ask_less() -> None:
    planned = pp.plan("hernandez2025", "simulated:watson-malo")
    costs = {
        (cost.design, cost.readout): cost for cost in (planned.chosen, *planned.others)
    }
    assert planned.chosen is costs["constant", "p_yes"] and planned.questions == 6000
    assert costs["constant", "text"].questions == 20_000
    assert (
        costs["constant", "p_yes"].interval_width
        < costs["constant", "text"].interval_width
    )
    assert costs["quest_plus", "text"].questions < costs["constant", "text"].questions
    assert planned.remarks == () and planned.refused == ()


def test_dither_that_gives_patterns_away_is_noted(tmp_path: Path) -> None:
    path = write_questions(tmp_path, ("peak = 185.3", "peak = 185.30486"))
    (remark,) = pp.plan(path, Seeing()).remarks
    assert (
        "a uniform field lies on an 8-bit code" in remark
        and 'set delivery.dither to "tpdf"' in remark
    )
    triangular = write_questions(
        tmp_path,
        ("peak = 185.3", "peak = 185.30486"),
        ("[asking]", '[delivery]\ndither = "tpdf"\n[asking]'),
    )
    assert pp.plan(triangular, Seeing()).remarks == ()
    assert (
        pp.plan(
            write_questions(tmp_path, ("peak = 185.3", "peak = 186.88")), Seeing()
        ).remarks
        == ()
    )
