"""Clips asked about in words: all frames of both films go to the observer, in order and with their
pace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import psyprobe as pp
from psyprobe.analysis import trials
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment, load_experiment
from psyprobe.human import castle_csf
from psyprobe.light.display import Display
from psyprobe.probes.words.delivery import deliver, delivered_contrast
from psyprobe.stimulus import Counterphase, Drift
from psyprobe.stimulus.specification import with_levels

DISPLAY = Display(peak=400)
DRIFT = Drift(
    frequency=4,
    temporal_frequency=6,
    contrast=0.2,
    radius=0.2,
    size=48,
    fps=30,
    frames=15,
)


def short(frames: int = 15, **settings: Any) -> Experiment:
    """`temporal_drift` with films of half a second at 30 frames a second."""
    parameters = {
        "frequency": 4,
        "temporal_frequency": 4,
        "contrast": 0.1,
        "luminance": 100,
        "radius": 0.2,
    }
    small = {
        "kind": "drift",
        "parameters": parameters | {"size": 32, "ppd": 30, "fps": 30, "frames": frames},
    }
    page = {"stimulus": small, "levels.temporal_frequency": {"values": [6]}}
    return load_experiment("temporal_drift").with_settings(page | settings)


def test_all_frames_of_both_films_are_sent_in_order_with_their_pace() -> None:
    requests: list[tuple[Any, str]] = []

    def look(images: Any, prompt: str) -> str:
        requests.append((images, prompt))
        return "first"

    page = short(
        **{
            "levels.contrast": {"values": [0.1, 0.4]},
            "asking.design": "constant",
            "asking.repeats": 1,
            "delivery.bits": "float",
        }
    )
    run = pp.run(page, pp.observer(look, name="looks"), progress=False)
    # Two contrasts, each asked with the pattern in either film.
    assert trials(run).sizes["trial"] == len(requests) == 4
    for images, prompt in requests:
        assert (
            "two films of 0.5 s each, 30 frames a second" in prompt
            and "all 15 frames" in prompt
        )
        assert len(images) == 30
    clips = [
        with_levels(page.spec(), temporal_frequency=6.0, contrast=contrast)
        for contrast in (0.1, 0.4)
    ]
    match_counts = {(i, order): 0 for i in range(2) for order in range(2)}
    for images, _ in requests:
        films = np.stack(images[:15]), np.stack(images[15:])
        for i, clip in enumerate(clips):
            pattern, uniform = (
                DISPLAY.encode(film.draw()) for film in (clip, clip.reference())
            )
            for order in range(2):
                ordered_films = films[order], films[1 - order]
                match_counts[i, order] += np.array_equal(
                    ordered_films[0], pattern
                ) and np.array_equal(ordered_films[1], uniform)
    assert set(match_counts.values()) == {1}


def test_each_frame_has_dither_of_its_own() -> None:
    frames: list[Any] = []
    page = short(**{"asking.options": {"n_max": 1}})
    pp.run(
        page,
        pp.observer(lambda images, prompt: frames.extend(images) or "first", name="f"),
        progress=False,
    )
    codes = {
        np.rint(255 * np.asarray(frame)).astype(np.uint8).tobytes() for frame in frames
    }
    # The trial is asked in both orders of its two films.
    assert len(codes) == 30 and len(frames) == 60


def test_a_film_delivers_its_contrast_and_the_reversed_film_none_of_it() -> None:
    delivered_film = deliver(DISPLAY.encode(DRIFT.draw()), seed=np.arange(DRIFT.frames))
    assert delivered_contrast(delivered_film, DRIFT, DISPLAY).contrast == pytest.approx(
        0.2, rel=0.02
    )
    # Waves that move against each other are orthogonal over whole cycles: a drift seen backwards is
    # another pattern.
    assert (
        abs(delivered_contrast(delivered_film[::-1], DRIFT, DISPLAY).coherent_gain)
        < 0.02
    )
    with pytest.raises(
        InputError, match=r"shape \(14, 48, 48, 3\); give the 15 frames of one clip"
    ):
        delivered_contrast(delivered_film[1:], DRIFT, DISPLAY)


def test_an_observer_sees_moving_stripes_as_castlecsf_does() -> None:
    # A Gabor is as visible as stripes all over the field with the same energy: the mean square of
    # its envelope.
    patch = {
        "frequency": 8.0,
        "contrast": 0.1,
        "radius": 0.25,
        "ppd": 32,
        "size": 64,
        "fps": 64,
        "frames": 64,
    }
    observer: Any = pp.load_observer("simulated:castlecsf", deg=2, luminance=100)
    rates = np.array([1.0, 4.0, 16.0])
    energy = np.pi * 0.25**2 / 4.0
    people = castle_csf(
        8.0, luminance=100, area=4.0, temporal_frequency=rates
    ) * np.sqrt(energy)
    drift = observer.true_sensitivity(Drift(temporal_frequency=rates, **patch))
    # Its frequencies lie within 0.6 cpd about 8, where sensitivity is all but a straight line.
    np.testing.assert_allclose(drift, people, rtol=0.02)
    # A grating that reverses is the sum of two that drift at half its contrast.
    counterphase = observer.true_sensitivity(
        Counterphase(temporal_frequency=rates, **patch)
    )
    np.testing.assert_allclose(counterphase, drift / np.sqrt(2), rtol=1e-6)


@pytest.mark.parametrize(
    "name", ["temporal_drift", "temporal_counterphase", "temporal_flicker_wide"]
)
def test_thresholds_come_back_from_films(name: str) -> None:
    page = load_experiment(name).with_settings(
        {"levels.temporal_frequency": {"values": [8]}}
    )
    spec = page.spec()
    observer: Any = pp.load_observer(
        "simulated:castlecsf", deg=spec.shape[1] / spec.ppd, luminance=100
    )
    for point in pp.score(pp.run(page, observer, progress=False)).curve:
        truth = float(
            observer.true_sensitivity(with_levels(spec, temporal_frequency=point.value))
        )
        assert point.low < truth < point.high, (point, truth)


def test_a_plan_counts_every_frame() -> None:
    short_plan = pp.plan(short(), "simulated:castlecsf")
    assert (
        "clips of 15 frames of 32 x 32 px" in str(short_plan)
        and short_plan.frames == 15
    )
    shorter = pp.plan(short(5), "simulated:castlecsf")
    tokens_per_question = [
        plan.chosen.tokens_in / plan.questions for plan in (short_plan, shorter)
    ]
    # 32 px are 9 patches of 14 px; 2 films of 15 or 5 frames.
    assert tokens_per_question[0] - tokens_per_question[1] == pytest.approx(
        9 * 20, abs=2
    )


def test_who_takes_few_images_is_told_how_many_there_are() -> None:
    narrow = pp.observer(
        lambda images, prompt: "first", name="narrow", images_at_once=8
    )
    with pytest.raises(
        InputError,
        match=r"shows 30 images, the frames of two clips, in a question, and narrow takes 8",
    ):
        pp.plan(short(), narrow)


def test_a_prompt_speaks_of_frames_only_where_a_clip_is_shown() -> None:
    with pytest.raises(
        InputError,
        match=r"'film_with_pattern' speaks of \{frames\}, and what is shown is no clip",
    ):
        pp.plan(
            load_experiment("surround").with_settings({"asking.prompts": "two_films"}),
            "simulated:castlecsf",
        )


@pytest.mark.needs("observers/people")
def test_a_person_is_not_shown_clips() -> None:
    from psyprobe.observers.people.observer import PersonObserver

    page = short()
    person = object.__new__(PersonObserver)
    person.card = replace(pp.load_observer("simulated:flat").card)
    from psyprobe.probes import load_probe

    with pytest.raises(
        InputError,
        match=r"shows clips \(drift\), and a page draws still patterns for a person",
    ):
        load_probe(page.probe).plan(page, person)


def test_a_simulated_observer_says_which_images_it_takes() -> None:
    observer: Any = pp.load_observer("simulated:castlecsf")
    images = [np.full((8, 8, 3), 0.5)] * 3
    with pytest.raises(
        InputError, match=r"or the frames of one film .* and was shown 3 images"
    ):
        observer.answer(images, "Is there a pattern?")
