"""Plans of many conditions: the same questions as pair by pair, and little work for each."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_experiment import write_experiment
from xarray import Dataset

import psyprobe as pp
from psyprobe.analysis import trials
from psyprobe.errors import GamutError, InputError
from psyprobe.experiment import load_experiment
from psyprobe.observers import load_observer
from psyprobe.observers.encoders.packaged import PACKAGES, _find
from psyprobe.probes import load_probe, pairs
from psyprobe.probes.differences import _CHANGES, find_difference
from psyprobe.probes.displayed_images import MOST_DRAWN
from psyprobe.probes.pairs import fixed_batches
from psyprobe.probes.words.schedule import WordsSchedule
from psyprobe.running import store
from psyprobe.stimulus import Gabor, Grating, Noise, Specification, Uniform
from psyprobe.stimulus.registry import KINDS
from psyprobe.stimulus.specification import with_levels

EXPERIMENTS = (
    "gabor_achromatic",
    "gabor_red_green_published",
    "area",
    "mask_incoherent",
    "noise_achromatic",
)


@pytest.mark.parametrize(
    "name", [*EXPERIMENTS, "contrast_discrimination", "orientation_discrimination"]
)
def test_pairs_are_those_of_the_levels_one_by_one(name: str) -> None:
    experiment = load_experiment(name)
    conditions = (
        load_probe(experiment.probe)
        .plan(experiment, load_observer("pixels"))
        .conditions
    )
    by = find_difference(experiment)
    levels = {
        key: values for key, values in experiment.levels.items() if key != by.name
    }
    native = with_levels(
        experiment.spec(), **{key: values[0] for key, values in levels.items()}
    )
    for place, index in zip(
        np.ndindex(*map(len, levels.values())),
        np.reshape(conditions.indices["grid"], (-1, len(by.values))),
        strict=True,
    ):
        base = with_levels(
            native,
            **{
                key: values[i]
                for (key, values), i in zip(levels.items(), place, strict=True)
            },
        )
        for value, i in zip(by.values, index.tolist(), strict=True):
            changed = (
                _CHANGES[by.change][0](float(base.value(by.parameter)), value)
                if by.change
                else value
            )
            test = with_levels(base, **{by.parameter: changed})
            reference = base if by.change else test.reference()
            assert conditions.pairs.digests[i] == [test.digest, reference.digest]
    for i in range(0, len(conditions.pairs), 37):
        assert [
            spec.digest for spec in conditions.pairs[i]
        ] == conditions.pairs.digests[i]
    several = [5, 0, *range(3, len(conditions.pairs), 37)]
    specifications = [
        single for spec in conditions.pairs.tests(several) for single in spec.singles()
    ]
    assert [single.digest for single in specifications] == [
        conditions.pairs.digests[i][0] for i in several
    ]
    contents = dict(conditions.pairs.contents())
    assert contents.keys() == {
        digest for pair in conditions.pairs.digests for digest in pair
    }
    assert all(contents[single.digest] == single.to_dict() for single in specifications)


STIMULI = [
    Gabor(frequency=[1.0, 2.5], contrast=[[0.1], [0.25]], size=32, ppd=16),
    Noise(frequency=2.0, contrast=[0.1, 0.125], seed=[1, 2], size=32, ppd=16),
    Uniform(luminance=[3.0, 4.0]),
    Gabor(frequency=4.0, contrast=0.5),
    Gabor(frequency=2.0, contrast=[0.1, 0.2, 0.3], size=32, ppd=16)
    + Grating(frequency=2.0, contrast=[[0.1], [0.2]], size=32, ppd=16),
]


@pytest.mark.parametrize("spec", STIMULI, ids=lambda spec: spec.kind)
def test_digests_of_a_batch_are_those_of_its_images(spec: Specification) -> None:
    assert spec.digests() == [single.digest for single in spec.singles()]
    assert [*spec.contents()] == [single.content() for single in spec.singles()]


@pytest.mark.parametrize("spec", STIMULI[:3] + STIMULI[4:], ids=lambda spec: spec.kind)
def test_images_that_are_chosen_and_joined_are_those_of_the_batch(
    spec: Specification,
) -> None:
    singles = [*spec.singles()]
    places = [1, 0, len(singles) - 1]
    selected = spec.select(spec.batch, places)
    assert selected.batch == (3,) and [*selected.singles()] == [
        singles[i] for i in places
    ]
    joined = spec.joined([selected, singles[0]])
    assert [*joined.singles()] == [singles[i] for i in [*places, 0]]
    np.testing.assert_array_equal(
        joined.draw().pixels[1:3],
        np.stack([singles[i].draw().pixels for i in places[1:]]),
    )


class DescribedGabor(Gabor):
    """A kind that tells more of itself than its parameters."""

    def content(self) -> dict[str, Any]:
        return super().content() | {"square": np.square(self.contrast).tolist()}


def test_a_kind_that_tells_more_is_asked_image_by_image() -> None:
    spec = DescribedGabor(frequency=4.0, contrast=[0.1, 0.2])
    assert spec.digests() == [single.digest for single in spec.singles()]


@given(
    st.sampled_from(["achromatic", "red_green"]),
    st.floats(0, 1),
    st.floats(1, 200),
    st.floats(0.2, 2),
    st.floats(0, 360),
    st.sampled_from(["gabor", "grating", "disc"]),
)
def test_no_pixel_leaves_the_bounds(
    direction: str,
    contrast: float,
    luminance: float,
    radius: float,
    phase: float,
    kind: str,
) -> None:
    wave = {} if kind == "disc" else {"frequency": 3.0, "phase": phase}
    spec: Any = KINDS[kind](
        contrast=contrast,
        luminance=luminance,
        radius=radius,
        direction=direction,
        size=32,
        ppd=16,
        **wave,
    )
    bounds_and_space = spec.bounds()
    assert bounds_and_space is not None
    bounds, space = bounds_and_space
    try:
        stimulus = spec.draw()
    except InputError:
        return  # negative light
    axis = (-2, -1) if space == "luminance" else (-3, -2)
    low, high = bounds.min(axis=axis), bounds.max(axis=axis)
    slack = 1e-9 * luminance
    assert (stimulus.pixels.min(axis=axis) >= low - slack).all() and (
        stimulus.pixels.max(axis=axis) <= high + slack
    ).all()


def test_where_only_drawing_tells_there_are_no_bounds() -> None:
    assert Noise(frequency=4.0, contrast=0.1).bounds() is None
    assert Gabor(frequency=4.0, contrast=0.1, balanced=True).bounds() is None


def quadratic(
    references: Sequence[str], pair_numbers: Sequence[int], size: int
) -> list[dict[str, Any]]:
    """Batches as they were grouped before."""
    distinct = list(dict.fromkeys(references[i] for i in pair_numbers))
    batches = []
    for start in range(0, len(distinct), size):
        batch_references = distinct[start : start + size]
        members = [i for i in pair_numbers if references[i] in set(batch_references)]
        batches += [
            {"references": batch_references, "pairs": members[first : first + size]}
            for first in range(0, len(members), size)
        ]
    return batches


@given(
    st.lists(st.sampled_from("abcdefgh"), max_size=40),
    st.integers(1, 9),
    st.randoms(use_true_random=False),
)
def test_batches_are_grouped_as_ever(
    references: list[str], size: int, random: Any
) -> None:
    pair_numbers = sorted(
        random.sample(range(len(references)), random.randint(0, len(references)))
    )
    assert fixed_batches(references, pair_numbers, size) == quadratic(
        references, pair_numbers, size
    )


def counted(
    monkeypatch: pytest.MonkeyPatch, kind: type[Specification]
) -> list[Specification]:
    drawn_specs: list[Specification] = []
    real = kind.draw

    def draw(self: Specification, **how: Any) -> Any:
        drawn_specs.append(self)
        return real(self, **how)

    monkeypatch.setattr(kind, "draw", draw)
    return drawn_specs


MANY = (
    'contrast = { from = 0.01, to = 1, n = 3, scale = "log" }',
    "contrast = { values = [0.1, 0.5] }",
)


def levels(count: int) -> tuple[str, str]:
    return (
        'frequency = { from = 1, to = 4, n = 3, scale = "log" }',
        f"frequency = {{ from = 1, to = 4, n = {count} }}",
    )


def test_a_plan_draws_nothing_where_bounds_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn_specs = counted(monkeypatch, Specification)
    page = write_experiment(tmp_path, MANY, levels(2000))
    assert pp.plan(page, "pixels", store=tmp_path / "none.sqlite").questions > 4000
    assert not drawn_specs


def test_a_plan_draws_some_of_very_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = (
        ('kind = "gabor"', 'kind = "noise"'),
        ("radius = 0.3\n", ""),
        ("contrast = 0.5", "contrast = 0.1"),
    )
    page = write_experiment(
        tmp_path,
        (MANY[0], "contrast = { values = [0.01, 0.02] }"),
        levels(600),
        stimulus=noise,
    )
    page.write_text(
        page.read_text().replace('[human]\nmodel = "castle_csf"\n', ""),
        encoding="utf-8",
    )
    drawn_specs = counted(monkeypatch, Specification)
    assert pp.plan(page, "pixels").questions > 1200
    assert 0 < len(drawn_specs) <= MOST_DRAWN


def test_what_a_display_cannot_show_is_still_an_error(tmp_path: Path) -> None:
    page = write_experiment(tmp_path, ("peak = 400", "peak = 120"))
    with pytest.raises(GamutError, match=r"small, frequency 1 cpd, contrast"):
        pp.plan(page, "pixels")


WORDS = """
title = "Shared images"
stimulus = { kind = "gabor", parameters = { ppd = 16, size = 32, frequency = 2, contrast = 0.1, radius = 0.5 } }
probe = "yes_no"
[levels]
frequency = { values = [1, 2] }
contrast = { values = [0.1, 0.3] }
[asking]
prompts = "hernandez2025"
repeats = 1
[display]
peak = 400
"""


def test_a_plan_in_words_makes_no_question_where_there_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, store = tmp_path / "words.toml", tmp_path / "runs.sqlite"
    page.write_text(WORDS, encoding="utf-8")
    trial_counts: list[int] = []
    real = WordsSchedule._batches
    monkeypatch.setattr(
        WordsSchedule,
        "_batches",
        lambda self, trials: (trial_counts.append(len(trials)), real(self, trials))[1],
    )
    assert (
        pp.plan(page, "simulated:watson-malo", store=store).answered == 0
        and not trial_counts
    )
    run = pp.run(page, "simulated:watson-malo", store=store, progress=False)
    trial_count = trials(run).sizes["trial"]
    assert (
        pp.plan(page, "simulated:watson-malo", store=store).answered
        == trial_count
        == sum(trial_counts) / 2
    )


def test_a_simulated_observer_looks_at_an_image_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "words.toml"
    page.write_text(WORDS, encoding="utf-8")
    observer = load_observer("simulated:watson-malo")
    looked: list[Any] = []
    real = type(observer)._measured
    monkeypatch.setattr(
        type(observer),
        "_measured",
        lambda self, *view: (looked.append(view), real(self, *view))[1],
    )
    result = trials(pp.run(page, observer, progress=False))
    images = len(np.unique(result["image_seed"])) * len(np.unique(result["contrast"]))
    assert result.sizes["trial"] >= 25 * 4 and len(looked) <= images


def test_an_image_that_may_change_is_looked_at_anew() -> None:
    observer = load_observer("simulated:watson-malo")
    image = np.full((8, 8, 3), 0.5, np.float32)
    first = observer.visible(image)
    image[::2] = 1.0
    assert observer.visible(image) != first


def test_a_plan_of_a_packaged_encoder_loads_no_network() -> None:
    if _find(PACKAGES["efficientnet_lite0"]) is None:
        pytest.skip("the weights are not installed")
    observer = load_observer("packaged:efficientnet_lite0")
    planned = pp.plan("gabor_achromatic", observer)
    assert planned.questions == 601 and planned.seconds is None and not observer.loaded
    images = np.random.default_rng(1).random((1, 224, 224, 3), np.float32)
    encoder = load_observer("packaged:efficientnet_lite0", device=observer.card.device)
    assert encoder.card == observer.card
    np.testing.assert_array_equal(
        observer.features(images)["embedding"], encoder.features(images)["embedding"]
    )
    assert observer.loaded


GRID = """
title = "Many conditions"
stimulus = {{ kind = "gabor", parameters = {{ ppd = 8, size = 8, frequency = 2, contrast = 0.1, radius = 0.2 }} }}
probe = "detection"
[levels]
frequency = {{ from = 1, to = 3, n = {frequencies} }}
contrast = {{ from = 0.01, to = 0.5, n = 50 }}
"""


def test_memory_of_plan_and_run_grows_by_a_kilobyte_a_condition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Small rounds and pieces, as those of a large page are beside it.
    monkeypatch.setattr(pairs, "_PAIRS_OF_ROUND", 256)
    monkeypatch.setattr(store, "_SORTED_AT_ONCE", 256)
    conditions = np.array([0, 400, 1600])
    peaks = np.zeros((2, 3))
    for column, count in enumerate(conditions.tolist()):
        page = tmp_path / f"many_{count}.toml"
        page.write_text(GRID.format(frequencies=max(count // 50, 2)))
        for row, work in enumerate((pp.plan, pp.run)):
            # At first what is loaded once.
            if column:
                tracemalloc.start()
            work(page, "pixels")
            peaks[row, column] = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    growth = np.diff(peaks[:, 1:])[:, 0] / np.diff(conditions[1:])
    assert (growth < 1000).all(), growth


def test_rounds_of_pairs_give_the_result_of_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = pp.run("area", "pixels", score_only=True, variants={}, progress=False)
    monkeypatch.setattr(pairs, "_PAIRS_OF_ROUND", 20)
    assert isinstance(whole, Dataset)
    assert whole.identical(
        pp.run("area", "pixels", score_only=True, variants={}, progress=False)
    )
