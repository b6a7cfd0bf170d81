"""A run that asks in words: every question once, every answer kept, and a result that depends on
nothing else."""

from __future__ import annotations

import json
import sqlite3
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from small_questions import Backwards, Seeing, digests, write_questions

import psyprobe as pp
from psyprobe.analysis import trials
from psyprobe.errors import InputError, StoreError
from psyprobe.experiment import load_experiment
from psyprobe.probes.words.answer_table import VARIABLES
from psyprobe.running.store import Store

LEVELS, CATCHES = 2 * 3 * 2, 2
TRIALS = 2 * (LEVELS + CATCHES)


def ask(*arguments: Any, **options: Any) -> xr.Dataset:
    """A run as the table of its trials."""
    return trials(pp.run(*arguments, **options))


def test_the_result_has_the_promised_shape(tmp_path: Path) -> None:
    result = ask(write_questions(tmp_path), Seeing())
    assert result.sizes == {"trial": TRIALS}
    # Variables of `identify` are left out.
    variables = VARIABLES.keys() - {"shown", "answer", "options"}
    assert set(result.data_vars) == {"frequency", *variables}
    for name in variables:
        assert result[name].attrs["units"] and result[name].attrs["long_name"]
        assert result[name].dtype.kind in {"text": "O", "flag": "b"}.get(
            VARIABLES[name][0], "if"
        )
    assert result.attrs["probe"] == "yes_no" and result.attrs["readout"] == "p_yes"
    assert (
        result.attrs["design"] == "constant" and result.attrs["experiment"] == "words"
    )
    assert [prompt["id"] for prompt in json.loads(result.attrs["prompts"])] == [
        "base",
        "blank",
    ]
    assert json.loads(result.attrs["delivery"])["dither"] == "rpdf"
    assert json.loads(result.attrs["observer_card"])["name"] == "seeing"
    assert json.loads(result.attrs["display"])["peak"] == 185.3


def test_answers_stand_where_they_belong(tmp_path: Path) -> None:
    result = ask(write_questions(tmp_path), Seeing())
    catch, contrast = result["catch"].values == 1, result["contrast"].values
    assert catch.sum() == 2 * CATCHES and (contrast[catch] == 0).all()
    # The one prompt asks whether nothing is seen: what counts is the same for both.
    for polarity in (1, -1):
        has_polarity = result["polarity"].values == polarity
        assert (result["response"].values[has_polarity & (contrast == 0.2)] > 0.8).all()
        assert (
            result["response"].values[has_polarity & (contrast == 0.03)] < 0.2
        ).all()
        assert (result["response"].values[has_polarity & catch] < 0.2).all()
    np.testing.assert_allclose(
        result["response"],
        np.where(result["polarity"] == 1, result["p_yes"], 1 - result["p_yes"]),
        atol=1e-12,
    )
    gain = result["coherent_gain"].values
    assert np.isnan(gain[catch]).all() and (np.abs(gain[~catch] - 1) < 0.25).all()
    np.testing.assert_allclose(
        result["delivered_contrast"].values[~catch], gain[~catch] * contrast[~catch]
    )
    assert (result["delivered_contrast"].values[catch] == 0).all()
    assert (result["cost"] == 1e-4).all() and (result["tokens_in"] == 100).all()


def test_prompts_share_images_and_levels_share_noise(tmp_path: Path) -> None:
    observer = Seeing()
    result = ask(write_questions(tmp_path), observer)
    images = {inquiry[0] for inquiry in digests(observer.inquiries)}
    assert len(images) == TRIALS / 2
    # Image first: all prompts ask about one image before the next is shown.
    order = [inquiry[0] for inquiry in digests(observer.inquiries)]
    turns = sum(a != b for a, b in pairwise(order))
    pilot = {
        inquiry[0]
        for inquiry in digests(observer.inquiries)
        if inquiry[-1].max_tokens > 1
    }
    assert turns == len(images) - 1 and len(pilot) == 4
    for frequency in (2, 4):
        at_frequency = (result["frequency"].values == frequency) & (
            result["catch"].values == 0
        )
        assert len(set(result["image_seed"].values[at_frequency])) == 2
        for seed in set(result["image_seed"].values[at_frequency]):
            assert set(
                result["contrast"].values[
                    at_frequency & (result["image_seed"].values == seed)
                ]
            ) == {
                0.03,
                0.08,
                0.2,
            }


def test_only_a_pilot_writes_whole_answers_where_probabilities_are_read(
    tmp_path: Path,
) -> None:
    observer = Seeing()
    result = ask(write_questions(tmp_path), observer)
    assert {inquiry.decoding.max_tokens for inquiry in observer.inquiries} == {1, 16}
    assert result["reply_requested"].sum() == 2 * 4
    assert all(inquiry.decoding.logprobs for inquiry in observer.inquiries)


@pytest.mark.parametrize("observer", [Seeing(logprobs=False), Seeing(mass=0.3)])
def test_words_count_where_probabilities_do_not(
    tmp_path: Path, observer: Seeing
) -> None:
    result = ask(write_questions(tmp_path), observer)
    assert result.attrs["readout"] == "text"
    assert set(result["response"].values) == {0.0, 1.0}
    # Words say less, so that each level is shown more often.
    is_visible = (result["contrast"].values == 0.2) & (
        result["prompt"].values == "base"
    )
    assert is_visible.sum() == 2 * 4
    assert sum(inquiry.decoding.logprobs for inquiry in observer.inquiries) == 2 * 4
    assert (
        len(set(digests(observer.inquiries)))
        == len(observer.inquiries)
        == result.sizes["trial"]
    )


def test_each_prompt_has_its_own_readout(tmp_path: Path) -> None:
    class Wordy(Seeing):
        def answer(self, images, prompt, **options):  # type: ignore[no-untyped-def]
            self.mass = 0.2 if prompt == "Is it uniform?" else 0.9
            return super().answer(images, prompt, **options)

    result = ask(write_questions(tmp_path), Wordy())
    assert result.attrs["readout"] == "mixed"
    assert set(result["readout"].values[result["prompt"].values == "base"]) == {"p_yes"}
    assert set(result["readout"].values[result["prompt"].values == "blank"]) == {"text"}


def test_what_cannot_be_read_is_excluded_and_counted(tmp_path: Path) -> None:
    for reply, kind in (
        ("I'm sorry, I cannot view images.", "refusal"),
        ("Perhaps.", "ambiguous|invalid"),
    ):
        result = ask(
            write_questions(tmp_path),
            Seeing(logprobs=False, reply=reply, name=reply[:4]),
        )
        assert set(result["reading"].values) <= set(kind.split("|"))
        assert np.isnan(result["response"]).all()
        assert set(result["text"].values) == {reply}


def test_nothing_is_asked_twice(tmp_path: Path) -> None:
    path, store = write_questions(tmp_path), tmp_path / "runs.sqlite"
    first, second = Seeing(), Seeing()
    first_result = pp.run(path, first, store=store)
    two = pp.run(path, second, store=store)
    assert len(first.inquiries) == TRIALS
    # A few are asked again, to see whether it would answer alike.
    stored = digests(first.inquiries)
    assert 0 < len(second.inquiries) <= 8
    assert set(digests(second.inquiries)) <= set(stored)
    xr.testing.assert_identical(first_result, two)
    xr.testing.assert_identical(first_result, pp.load_results(store)[0])
    # Another title is another experiment, with the same questions.
    pp.run(
        write_questions(tmp_path, ("A small", "The same"), name="same"),
        second,
        store=store,
    )
    assert set(digests(second.inquiries)) <= set(stored)
    # Another observer, seed or delivery is another question.
    for changes, observer in (
        ([], Seeing(name="other")),
        ([("seed = 3", "seed = 4")], Seeing()),
        ([("[display]", '[delivery]\ndither = "none"\n[display]')], Seeing()),
    ):
        pp.run(write_questions(tmp_path, *changes, name="new"), observer, store=store)
        assert len(observer.inquiries) == TRIALS


def test_order_of_answers_changes_nothing(tmp_path: Path) -> None:
    for design in ("constant", "ladder", "quest_plus"):
        path = write_questions(tmp_path, ("seed = 3", f'seed = 3\ndesign = "{design}"'))
        plain, mixed = pp.run(path, Seeing()), pp.run(path, Backwards())
        xr.testing.assert_identical(plain, mixed)


class Slower(Seeing):
    """The same answers, each later than the one before and after more attempts."""

    def answer(self, images, prompt, **options):  # type: ignore[no-untyped-def]
        count = len(self.inquiries)
        return replace(
            super().answer(images, prompt, **options),
            latency=0.1 * count,
            attempts=count,
        )


def test_how_long_answers_took_changes_no_byte(tmp_path: Path) -> None:
    path = write_questions(tmp_path)
    for name, observer in (("quick", Seeing()), ("slow", Slower())):
        pp.run(path, observer, store=tmp_path / f"{name}.sqlite").to_netcdf(
            tmp_path / f"{name}.nc", engine="scipy"
        )
    assert (tmp_path / "quick.nc").read_bytes() == (tmp_path / "slow.nc").read_bytes()
    with Store(tmp_path / "slow.sqlite") as store:
        took = {
            answered.answer["reply"]["latency"] for answered, _ in store.all_answers()
        }
    assert len(took) == TRIALS


@pytest.mark.parametrize("design", ["ladder", "quest_plus", "quick_csf"])
def test_designs_tell_what_they_found(tmp_path: Path, design: str) -> None:
    path = write_questions(tmp_path, ("seed = 3", f'seed = 3\ndesign = "{design}"'))
    result = ask(path, Seeing(), store=tmp_path / "runs.sqlite")
    estimates = json.loads(result.attrs["design_estimates"])
    assert set(estimates) == {"base", "blank"}
    for estimate in estimates.values():
        assert estimate["values"] == [2.0, 4.0]
        # It sees contrasts above 0.1, dither included.
        np.testing.assert_allclose(estimate["log10_sensitivity"], [1.0, 1.0], atol=0.25)
    xr.testing.assert_identical(
        result, trials(pp.load_results(tmp_path / "runs.sqlite")[0])
    )


@pytest.mark.parametrize("design", ["constant", "ladder", "quest_plus"])
@pytest.mark.parametrize("after", [1, 5, 17, 26])
def test_a_run_that_broke_off_goes_on(tmp_path: Path, design: str, after: int) -> None:
    class Breaking(Seeing):
        def answer(self, images, prompt, **options):  # type: ignore[no-untyped-def]
            if len(self.inquiries) > after:
                raise KeyboardInterrupt
            return super().answer(images, prompt, **options)

    path = write_questions(tmp_path, ("seed = 3", f'seed = 3\ndesign = "{design}"'))
    store, broken, second = tmp_path / "runs.sqlite", Breaking(), Seeing()
    with pytest.raises(KeyboardInterrupt):
        pp.run(path, broken, store=store)
    with pytest.raises(InputError, match="no finished run"):
        pp.load_results(store)
    result = ask(path, second, store=store)
    requests = digests([*broken.inquiries[:after], *second.inquiries])
    assert len(set(requests)) == result.sizes["trial"]
    assert len(requests) - len(set(requests)) <= 8
    xr.testing.assert_identical(result, ask(path, Seeing()))


def test_images_come_at_the_observers_own_size(tmp_path: Path) -> None:
    observer = Seeing(input_size=(48, 48))
    result = ask(write_questions(tmp_path), observer)
    assert {inquiry.images[0].shape for inquiry in observer.inquiries} == {(48, 48, 3)}
    assert result.attrs["ppd"] == 24
    small = Seeing(input_size=(48, 48))
    path = write_questions(
        tmp_path, ("[display]", "[delivery]\nnative = false\n[display]")
    )
    pp.run(path, small)
    assert {inquiry.images[0].shape for inquiry in small.inquiries} == {(32, 32, 3)}


def test_levels_beyond_nyquist_are_marked_and_not_asked(tmp_path: Path) -> None:
    observer = Seeing()
    result = ask(write_questions(tmp_path, ("[2, 4]", "[4, 7.5, 20]")), observer)
    refused = result["was_shown"].values == 0
    assert set(result["frequency"].values[refused]) == {7.5, 20}
    assert all(
        "cpd is above 0.9 of the 8 cpd" in reason
        for reason in result["refused"].values[refused]
    )
    assert np.isnan(result["response"].values[refused]).all()
    assert len(observer.inquiries) == (~refused).sum()


def test_patterns_that_rounding_destroys_are_refused(tmp_path: Path) -> None:
    changes = [
        ("[0.03, 0.08, 0.2]", "[0.001, 0.2]"),
        ("[display]", '[delivery]\ndither = "none"\n[display]'),
    ]
    result = ask(write_questions(tmp_path, *changes), Seeing())
    faint = result["contrast"].values == 0.001
    assert (result["was_shown"].values[faint] == 0).all() and (
        result["was_shown"].values[~faint] == 1
    ).all()
    marked = ask(
        write_questions(
            tmp_path, *changes, ('dither = "none"', 'dither = "none"\nrefuse = false')
        ),
        Seeing(),
    )
    assert (marked["was_shown"] == 1).all()
    np.testing.assert_array_equal(
        marked["coherent_gain"].values[faint], result["coherent_gain"].values[faint]
    )


def test_two_intervals_are_asked_in_both_orders(tmp_path: Path) -> None:
    changes = [
        ('"yes_no"', '"two_interval"'),
        (
            '["base", { id = "blank", text = "Is it uniform?", polarity = -1 }]',
            '"two_image"',
        ),
    ]
    observer = Seeing()
    result = ask(
        write_questions(
            tmp_path, *changes, ("repeats = { text = 4, p_yes = 2 }", "repeats = 2")
        ),
        observer,
    )
    assert result.sizes["trial"] == 3 * 2 * LEVELS and (result["catch"] == 0).all()
    assert all(len(inquiry.images) == 2 for inquiry in observer.inquiries)
    assert (result["response"].values[result["contrast"].values == 0.2] > 0.8).all()
    first = result["order"].values == 0
    np.testing.assert_allclose(
        result["response"].values[first], result["p_yes"].values[first]
    )
    np.testing.assert_allclose(
        result["response"].values[~first], 1 - result["p_yes"].values[~first]
    )
    with pytest.raises(
        InputError, match="shows 2 images in a question, and seeing takes 1"
    ):
        alone = Seeing()
        alone.images_at_once = 1
        pp.run(write_questions(tmp_path, *changes), alone)


def test_answers_are_written_while_another_hangs(tmp_path: Path) -> None:
    path, rows = tmp_path / "runs.sqlite", []

    class Hanging(Seeing):
        def answer(self, images, prompt, **options):  # type: ignore[no-untyped-def]
            if len(self.inquiries) == 4:
                end = time.monotonic() + 20
                while len(rows) < 3 and time.monotonic() < end:
                    time.sleep(0.05)
                    with sqlite3.connect(path) as connection:
                        rows[:] = connection.execute(
                            "SELECT question FROM answer"
                        ).fetchall()
            return super().answer(images, prompt, **options)

    pp.run(write_questions(tmp_path), Hanging(), store=path)
    assert len(rows) == 3


def test_a_store_that_fails_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StoreError("the disk is full")

    class Slow(Seeing):
        def answer(self, images, prompt, **options):  # type: ignore[no-untyped-def]
            if len(self.inquiries) == 2:
                monkeypatch.setattr(Store, "add", full)
            time.sleep(0.05)
            return super().answer(images, prompt, **options)

    observer = Slow()
    with pytest.raises(StoreError, match="disk is full"):
        pp.run(write_questions(tmp_path), observer, store=tmp_path / "runs.sqlite")
    assert len(observer.inquiries) < TRIALS


def test_the_wrong_observer_is_one_line(tmp_path: Path) -> None:
    path = write_questions(tmp_path)
    with pytest.raises(InputError, match="name an observer that answers"):
        pp.run(path)
    with pytest.raises(
        InputError,
        match="needs an observer with the ability 'answer', and pixels has 'features'",
    ):
        pp.run(path, "pixels")
    with pytest.raises(
        InputError, match="needs an observer with the ability 'features'"
    ):
        pp.run("gabor_achromatic", Seeing())
    with pytest.raises(InputError, match="takes no batch_size"):
        pp.run(path, Seeing(), batch_size=4)
    with pytest.raises(
        InputError, match="delivers unrounded images, and seeing takes 8 bits"
    ):
        pp.run(
            write_questions(
                tmp_path, ("[display]", '[delivery]\nbits = "float"\n[display]')
            ),
            Seeing(),
        )
    with pytest.raises(
        InputError,
        match=r"frequency 2 cpd, contrast 0\.2, drawn at 32 x 32 px for seeing: .*display",
    ):
        pp.run(write_questions(tmp_path, ("peak = 185.3", "peak = 45")), Seeing())


def test_results_can_be_written_and_read(tmp_path: Path) -> None:
    observer = Seeing(logprobs=False, reply="Sí — “no”.\n\x1b[31m")
    result = pp.run(write_questions(tmp_path), observer)
    result.to_netcdf(tmp_path / "r.nc", engine="scipy")
    (loaded,) = pp.load_results(tmp_path / "r.nc")
    assert set(trials(loaded)["text"].values) == {observer.reply}
    xr.testing.assert_identical(loaded, result)


def test_questions_can_be_read_back_from_the_store(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    pp.run(write_questions(tmp_path), Seeing(), store=path)
    with Store(path) as store:
        stored = [answered for answered, _ in store.all_answers()]
        assert len(stored) == TRIALS
        for answered in stored:
            content, request = (
                store.content(answered.question.stimulus),
                store.content(answered.question.request),
            )
            assert content["stimuli"][0]["kind"] in ("annulus_noise", "uniform")
            assert (
                content["delivery"]["bits"] == 8 and len(content["dither_seeds"]) == 1
            )
            assert "?" in request["prompt"] and request["words"] == ["yes", "no"]
            assert answered.answer["reply"]["text"] in ("Yes", "No")


def test_the_catalogue_reads() -> None:
    plain, published = (
        load_experiment("hernandez2025"),
        load_experiment("hernandez2025_published"),
    )
    for experiment in (plain, published):
        assert (
            len(experiment.asking.prompts) == 25
            and experiment.title
            and experiment.source
            and experiment.differences
        )
    assert published.assumed and not plain.assumed
    assert published.fit.model_dump() == {
        "function": "logistic",
        "axis": "linear",
        "guess": 0.0,
        "lapse": 0.0,
    }
    assert plain.fit.guess == (0.0, 0.5) and plain.asking.repeats.p_yes == 3


_PROMPTS = '["base", { id = "blank", text = "Is it uniform?", polarity = -1 }]'


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            [('"yes_no"', '"two_interval"')],
            "shows 2 images; give prompts whose answers are first and second",
        ),
        (
            [(_PROMPTS, '"two_image"')],
            "shows 1 image; give prompts whose answers are yes and no",
        ),
    ],
)
def test_prompts_of_the_other_task_are_refused_before_anything_is_asked(
    tmp_path: Path, changes: list[tuple[str, str]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        pp.run(write_questions(tmp_path, *changes), Seeing(), progress=False)
