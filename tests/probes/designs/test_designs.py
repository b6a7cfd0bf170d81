"""What every design promises: it stops, counts, is the same again from the same answers, and asks
what it must."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from psyprobe.errors import InputError
from psyprobe.probes.designs import (
    CsfGrid,
    Design,
    Grid,
    Level,
    QuestPlus,
    QuickCSF,
    constant,
    ladder,
)
from psyprobe.probes.designs.adaptive import choose_level

FREQUENCIES = (1.0, 4.0, 16.0)
CONTRASTS = np.geomspace(0.001, 1.0, 31)
THRESHOLD = {1.0: 0.02, 4.0: 0.008, 16.0: 0.06}

MAKERS: dict[str, Callable[..., Design]] = {
    "constant": lambda **k: constant(FREQUENCIES, CONTRASTS[::5], repeats=2, **k),
    "ladder": lambda **k: ladder(FREQUENCIES, CONTRASTS, repeats=2, **k),
    "quest_plus": lambda **k: QuestPlus(FREQUENCIES, CONTRASTS, n_max=20, **k),
    "quest_plus_all": lambda **k: QuestPlus(
        FREQUENCIES, CONTRASTS, n_max=8, about="all", **k
    ),
    "quick_csf": lambda **k: QuickCSF(FREQUENCIES, CONTRASTS, n_max=30, **k),
}


@pytest.fixture(params=sorted(MAKERS))
def make(request: pytest.FixtureRequest) -> Callable[..., Design]:
    return MAKERS[request.param]


def draw_response(level: Level, rng: np.random.Generator) -> float:
    ratio = (
        (THRESHOLD[level.value] / level.contrast) ** 3.2 if level.contrast else np.inf
    )
    return float(rng.random() < 0.03 + 0.95 / (1 + ratio))


def run(
    design: Design, rng: np.random.Generator, n: int, limit: int = 10_000
) -> list[tuple[Level, float | None]]:
    responses: list[tuple[Level, float | None]] = []
    while not design.finished and len(responses) < limit:
        for level in design.ask(n):
            response = None if rng.random() < 0.05 else draw_response(level, rng)
            design.tell(level, response)
            responses.append((level, response))
    return responses


def test_it_is_a_design_that_ends_and_finds_the_thresholds(
    make: Callable[..., Design],
) -> None:
    design = make(seed=3)
    assert isinstance(design, Design)
    responses = run(design, np.random.default_rng(1), 4)
    assert design.finished and design.ask(5) == []
    estimate = design.estimate()
    truth = np.array([-np.log10(THRESHOLD[f]) for f in estimate.values])
    assert estimate.asked == len(responses) and estimate.excluded == sum(
        response is None for _, response in responses
    )
    assert np.abs(estimate.log10_sensitivity - truth).max() < 0.6
    assert (estimate.low < estimate.log10_sensitivity).all() and (
        estimate.log10_sensitivity < estimate.high
    ).all()
    assert (estimate.low - 0.1 < truth).all() and (truth < estimate.high + 0.1).all()
    assert 0 <= estimate.guess < 0.3 and 0 <= estimate.lapse <= 0.1


@pytest.mark.parametrize("cut", [0, 1, 9, 14])
def test_told_the_same_answers_a_new_one_goes_on_as_the_first(
    make: Callable[..., Design], cut: int
) -> None:
    first, second = make(seed=5), make(seed=5)
    responses = run(first, np.random.default_rng(2), 1, cut)
    for level, response in responses:
        second.tell(level, response)
    assert second.ask(6) == first.ask(6)
    np.testing.assert_array_equal(
        second.estimate().log10_sensitivity, first.estimate().log10_sensitivity
    )


@pytest.mark.parametrize("n", [1, 7])
def test_catch_and_top_trials_keep_their_shares_throughout(
    make: Callable[..., Design], n: int
) -> None:
    design = make()
    levels = [level for level, _ in run(design, np.random.default_rng(0), n)]
    adaptive = not hasattr(design, "_remaining")
    for count in range(1, len(levels) + 1) if adaptive else [len(levels)]:
        assert sum(level.catch for level in levels[:count]) >= 0.1 * count - 1e-9
        if adaptive:
            assert (
                sum(level.contrast == CONTRASTS[-1] for level in levels[:count])
                > 0.05 * count - 1
            )
    assert sum(
        np.isclose(level.contrast, CONTRASTS[-1]) for level in levels
    ) >= 0.05 * len(levels)


def test_two_intervals_have_no_catch_trials_and_a_guess_rate_of_half(
    make: Callable[..., Design],
) -> None:
    design = make(chance=0.5)
    rng = np.random.default_rng(0)
    for _ in range(3):
        for level in design.ask(5):
            assert not level.catch
            design.tell(
                level,
                float(level.contrast > THRESHOLD[level.value] or rng.random() < 0.5),
            )
    assert design.estimate().guess == pytest.approx(0.5)


def test_seeds_change_the_order_alone(make: Callable[..., Design]) -> None:
    assert make(seed=1).ask(8) == make(seed=1).ask(8)
    assert any(make(seed=1).ask(8) != make(seed=seed).ask(8) for seed in (2, 3, 4))


def test_nothing_is_learned_from_an_excluded_answer(
    make: Callable[..., Design],
) -> None:
    design = make()
    before = design.estimate()
    for level in design.ask(5):
        design.tell(level, None)
    after = design.estimate()
    assert (after.asked, after.excluded) == (5, 5)
    np.testing.assert_array_equal(before.log10_sensitivity, after.log10_sensitivity)


def test_the_delivered_contrast_counts_in_place_of_the_level(
    make: Callable[..., Design],
) -> None:
    as_asked, weaker = make(), make()
    for level, weaker_level in zip(as_asked.ask(12), weaker.ask(12), strict=True):
        response = float(level.contrast > 0.02)
        as_asked.tell(level, response)
        weaker.tell(weaker_level, response, delivered=level.contrast * 0.5)
    gain = weaker.estimate().log10_sensitivity - as_asked.estimate().log10_sensitivity
    assert 0 < gain.mean() < 0.4


@pytest.mark.parametrize("response", [-0.1, 1.1, np.nan])
def test_answers_outside_0_to_1_are_refused(
    make: Callable[..., Design], response: float
) -> None:
    design = make()
    with pytest.raises(InputError, match="response is"):
        design.tell(design.ask(1)[0], response)


def test_several_answers_to_a_level_are_told_one_by_one() -> None:
    grid = Grid(
        np.linspace(-3.0, 0.0, 61), np.array([0.6]), np.array([0.25]), np.array([0.02])
    )
    design = QuestPlus([4], (0.01, 0.1), chance=0.25, grid=grid, refine=False)
    expected = np.ones(61)
    for contrast, responses in ((0.01, [1, 0, 0, 0]), (0.1, [1, 1, 1, 1])):
        design.tell(Level(4, contrast), responses)
        visible = 1 / (
            1 + np.exp(-2 * np.log(19) * (np.log10(contrast) - grid.threshold) / 0.6)
        )
        expected *= binom.pmf(sum(responses), 4, 0.25 + 0.73 * visible)
    np.testing.assert_allclose(
        design.posterior.threshold_mass(0), expected / expected.sum(), atol=1e-12
    )
    assert design.estimate().asked == 2


def test_a_level_of_another_design_is_refused(make: Callable[..., Design]) -> None:
    with pytest.raises(InputError, match=r"not among|this design asks"):
        make().tell(Level(5.0, 0.5), 1.0)


@pytest.mark.parametrize("name", ["quest_plus", "quick_csf"])
def test_levels_put_at_once_keep_apart(name: str) -> None:
    design = MAKERS[name]()
    run(design, np.random.default_rng(4), 1, 18)
    levels = [
        level for level in design.ask(9) if not level.catch and level.contrast < 1
    ]
    assert len(set(levels)) >= 6
    for f in FREQUENCIES:
        x = np.sort([np.log10(level.contrast) for level in levels if level.value == f])
        assert x.size < 2 or np.ptp(x) >= 0.1


def test_without_deviation_qcsf_knows_frequencies_that_it_hardly_asked() -> None:
    published, free = (
        QuickCSF(FREQUENCIES, CONTRASTS, n_max=30, csf=CsfGrid(deviation=deviation))
        for deviation in (0.0, 0.5)
    )
    for design in (published, free):
        for x in (-2.4, -2.0, -1.6, -1.2):
            for f in (1.0, 4.0):
                design.tell(
                    Level(
                        f, float(CONTRASTS[np.abs(np.log10(CONTRASTS) - x).argmin()])
                    ),
                    float(x > -2.0),
                )
    width = [
        np.ptp([design.estimate().low[2], design.estimate().high[2]])
        for design in (published, free)
    ]
    assert width[0] < width[1]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: constant([4, 4], [0.1, 1]), "levels are"),
        (lambda: constant([4], [0.1, 0.0]), "contrasts"),
        (lambda: constant([4], [0.1, 1], repeats=0), "repeats"),
        (lambda: constant([4], [0.1, 1], catch=0.95), "catch"),
        (lambda: constant([4], [0.1, 1], chance=1.0), "chance is 1.0"),
        (lambda: ladder([4], [0.1, 1], coarse=1), "coarse"),
        (lambda: QuestPlus([4], [0.1, 1], about="width"), "unknown aim"),  # type: ignore[arg-type]
        (lambda: QuestPlus([4], [0.1, 1], n_max=0), "n_max"),
        (lambda: QuestPlus([4], [0.1, 1], function="linear"), "psychometric function"),  # type: ignore[arg-type]
        (lambda: QuickCSF([4], [0.1, 1]), "at least two"),
        (lambda: QuickCSF([4, 8], [0.1, 1], top=0.7), "top"),
        (lambda: Level(np.nan, 0.1), "the level is"),
    ],
)
def test_bad_arguments_are_named(make: Callable[[], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        make().ask(2)  # type: ignore[attr-defined]


@settings(max_examples=15)
@given(
    responses=st.lists(st.one_of(st.none(), st.floats(0, 1)), min_size=1, max_size=25),
    name=st.sampled_from(sorted(MAKERS)),
)
def test_whatever_is_said_estimates_are_finite_and_ordered(
    responses: list[float | None], name: str
) -> None:
    design = MAKERS[name]()
    for value in responses:
        for level in design.ask(1):
            design.tell(level, value)
    estimate = design.estimate()
    assert np.isfinite(
        [estimate.low, estimate.high, estimate.log10_sensitivity, estimate.width]
    ).all()
    assert (estimate.low < estimate.high).all()


def test_a_chart_goes_down_to_a_line_with_too_few_right() -> None:
    design = constant([4], [0.01, 0.1, 1.0], repeats=3, chance=0.1, stop_below=2)
    asked = []
    for answers in ((1, 1, 1), (0, 0, 1)):
        line = design.ask(100)
        assert design.ask(100) == [] and not design.finished
        asked += [level.contrast for level in line]
        for level, right in zip(line, answers, strict=True):
            design.tell(level, right)
    assert asked == [1.0] * 3 + [0.1] * 3
    assert design.finished and design.ask() == []
    for wrong in (0, 4):
        with pytest.raises(InputError, match=f"stop_below is {wrong} with 3 repeats"):
            constant([4], [0.1, 1.0], repeats=3, chance=0.1, stop_below=wrong)
    with pytest.raises(InputError, match="not yes or no"):
        constant([4], [0.1, 1.0], repeats=3, stop_below=2)


def test_the_ladder_waits_between_its_rounds_and_closes_in() -> None:
    design = ladder([4.0], CONTRASTS, coarse=5, fine=4)
    first = design.ask(100)
    assert design.ask(1) == [] and not design.finished
    for level in first:
        design.tell(
            level, 0.02 if level.catch else 1 / (1 + (0.02 / level.contrast) ** 3)
        )
    x = np.sort(
        [np.log10(level.contrast) for level in design.ask(100) if not level.catch]
    )
    assert x.size == 4 and x[0] < np.log10(0.02) < x[-1] and np.ptp(x) < 1.0


def test_the_ladder_stays_in_range_where_nothing_is_seen() -> None:
    design = ladder([4.0], CONTRASTS)
    while not design.finished:
        for level in design.ask(50):
            assert level.contrast <= CONTRASTS[-1] * (1 + 1e-6)
            design.tell(level, 0.01)
    assert design.estimate().high[0] < 0.5


@pytest.mark.parametrize("name", ["ladder", "quest_plus", "quick_csf"])
def test_probabilities_of_yes_narrow_intervals_without_misleading(name: str) -> None:
    covered, errors, widths = [], [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        design = MAKERS[name](seed=seed)
        for _ in range(40):
            for level in design.ask(3):
                x = (
                    np.log10(level.contrast / THRESHOLD[level.value])
                    if level.contrast
                    else -np.inf
                )
                logit = 2 * np.log(19) * x / 0.8 + 0.5 * rng.standard_normal()
                design.tell(level, float(0.02 + 0.96 / (1 + np.exp(-logit))))
        estimate = design.estimate()
        truth = np.array([-np.log10(THRESHOLD[f]) for f in estimate.values])
        errors.append(estimate.log10_sensitivity - truth)
        covered.append((estimate.low <= truth) & (truth <= estimate.high))
        widths.append(estimate.high - estimate.low)
    assert np.sqrt(np.square(errors).mean()) < 0.08
    assert np.mean(covered) > 0.9
    assert np.mean(widths) < 0.33


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_rounding_chooses_no_level(seed: int) -> None:
    """Values of which equally much is known, in sums whose last bits differ as those of two
    processors do."""
    promise = np.array([0.1, 0.3, 0.3, 0.2])
    noise = np.random.default_rng(seed).uniform(-1e-13, 1e-13, (3, 4))
    information = {place: promise + noise[place] for place in (2, 0, 1)}
    assert choose_level(
        information, FREQUENCIES, (0.01, 0.02, 0.04, 0.08), []
    ) == Level(16.0, 0.02)
