"""What the strategies make is valid, shrinks to the plain, and prints as a line of code that draws
it."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

import psyprobe.stimulus
from psyprobe.experiment import load_experiment
from psyprobe.light.display import Display
from psyprobe.stimulus import Gabor, Modulation, Specification
from psyprobe.testing import assert_in_gamut, strategies

KINDS = [*strategies.PATTERNS, strategies.uniforms, strategies.sums]
WORDS: dict[str, Any] = {"Display": Display} | vars(psyprobe.stimulus)


@given(strategies.stimuli())
def test_a_specification_prints_as_the_line_that_draws_it(spec: Specification) -> None:
    assert eval(repr(spec), dict(WORDS)) == spec


@given(strategies.displays())
def test_a_display_prints_as_the_line_that_makes_it(display: Display) -> None:
    assert eval(repr(display), dict(WORDS)) == display
    assert display.floor < display.ceiling


@settings(max_examples=30)
@given(strategies.displays(), st.data())
def test_with_a_display_stimuli_stay_in_its_gamut(
    display: Display, data: st.DataObject
) -> None:
    for kind in KINDS:
        assert_in_gamut(data.draw(kind(display)).draw(), display)


@given(
    strategies.gabors(direction="red_green", sampling={"ppd": 40.0, "size": (32, 48)})
)
def test_what_is_fixed_stays(spec: Gabor) -> None:
    assert (spec.direction, spec.ppd, spec.size) == ("red_green", 40.0, (32, 48))


SAMPLING: dict[str, Any] = {"ppd": 40.0, "size": (32, 48)}
FIXED = {
    f"pattern {index}": kind(
        display=Display(), direction="red_green", sampling=SAMPLING, share=0.5
    )
    for index, kind in enumerate(strategies.PATTERNS)
} | {
    "uniforms": strategies.uniforms(display=Display(), sampling=SAMPLING),
    "sums": strategies.sums(
        display=Display(), direction="red_green", sampling=SAMPLING
    ),
    "shown": strategies.shown_stimuli(direction="red_green", sampling=SAMPLING).map(
        lambda pair: pair[0]
    ),
}


@pytest.mark.parametrize("name", sorted(FIXED))
@settings(max_examples=10)
@given(st.data())
def test_all_that_can_be_fixed_stays_in_every_kind(
    name: str, data: st.DataObject
) -> None:
    spec = data.draw(FIXED[name])
    assert (spec.ppd, spec.shape) == (40.0, (32, 48))
    if isinstance(spec, Modulation):
        assert spec.direction == "red_green"
        if name != "shown":
            assert abs(spec.contrast) <= 0.5 * Display().max_contrast(
                spec.luminance, "red_green", observer=spec.observer
            )


@given(strategies.fields(pixels=(8, 16)))
def test_a_field_has_as_many_pixels_as_allowed(field: dict[str, Any]) -> None:
    assert all(8 <= side <= 16 for side in field["size"])


def test_they_shrink_to_the_plain() -> None:
    plain = find(strategies.gabors(), lambda spec: True)
    assert (
        repr(plain)
        == "Gabor(ppd=32.0, size=24, contrast=0.5, frequency=4.0, radius=0.09375)"
    )
    assert find(strategies.displays(), lambda display: True) == Display()
    oblique = find(
        strategies.gabors(), lambda spec: spec.orientation != 0 and spec.contrast < 0.5
    )
    assert (
        oblique.orientation,
        oblique.phase,
        oblique.x,
        oblique.y,
        oblique.aspect,
    ) == (
        1.0,
        0,
        0,
        0,
        1,
    )


def test_a_failing_example_is_shown_as_code() -> None:
    @settings(database=None)
    @given(strategies.gabors(direction="achromatic"))
    def fails(spec: Gabor) -> None:
        assert spec.frequency < 3

    with pytest.raises(AssertionError) as failure:
        fails()
    assert "spec=Gabor(ppd=32.0, size=24, contrast=0.5, frequency=" in "".join(
        failure.value.__notes__
    )


@given(strategies.directions())
def test_directions_are_directions(direction: Any) -> None:
    assert isinstance(
        Gabor(frequency=4.0, contrast=0.1, direction=direction), Modulation
    )


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(strategies.experiments())
def test_every_condition_of_an_experiment_can_be_shown(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / "an_experiment.toml"
    path.write_text(text, encoding="utf-8")
    experiment = load_experiment(path)
    ends = [
        (values[0], values[-1])
        for values in (experiment.levels["frequency"], experiment.levels["contrast"])
    ]
    frequency, contrast = np.array(list(itertools.product(*ends))).T
    spec = experiment.stimulus_set.spec(frequency=frequency, contrast=contrast)
    assert_in_gamut(spec.draw(), experiment.display)
