"""The simulated reader sees the letter by its pixels, and what is planted in it comes back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import psyprobe as pp
from psyprobe._typing import FloatArray
from psyprobe.analysis import chat_csf, count_confusions
from psyprobe.analysis.identification.confusions import bias_intervals
from psyprobe.errors import InputError
from psyprobe.experiment import load_experiment
from psyprobe.observers import load_observer
from psyprobe.observers.chat.protocol import Decoding
from psyprobe.observers.simulated.letters import LetterReader
from psyprobe.observers.simulated.serving import SimulatedServer

SLOAN = "CDHKNORSVZ"
PROMPT = f"Which of these letters is shown in the image: {', '.join(SLOAN)}?"


def reader(**mind: Any) -> LetterReader:
    observer = load_observer("simulated:letters", **mind)
    assert isinstance(observer, LetterReader)
    return observer


def dithered(stimulus: Any, seed: int = 0) -> FloatArray:
    """Encode a stimulus for a display and round it to 8 bits by dither."""
    drive = np.asarray(pp.Display(peak=200).encode(stimulus))[..., :1]
    noise = np.random.default_rng(seed).random(drive.shape)
    return np.repeat(np.floor(255 * drive + noise) / 255, 3, axis=-1)


def letter(name: str, height: float, **parameters: Any) -> Any:
    """Draw a letter, height px, dark on 100 cd/m² in 96 x 96 px."""
    fixed: dict[str, Any] = {"luminance": 100, "ppd": 60, "size": 96}
    options = {"contrast": -1, **fixed, **parameters}
    return pp.optotype(letter=name, letter_size=height / 60, **options)


@pytest.mark.parametrize(
    ("height", "contrast", "error"), [(5, -1, 0.02), (12, 0.3, 0.01), (24, -0.03, 0.02)]
)
def test_letter_height_and_contrast_are_read_off_pixels(
    height: float, contrast: float, error: float
) -> None:
    for seed, name in enumerate(SLOAN):
        place = np.random.default_rng(seed).uniform(-2, 2, 2) / 60
        stimulus = letter(name, height, contrast=contrast, x=place[0], y=place[1])
        sight = reader().look(dithered(stimulus, seed), PROMPT)
        assert SLOAN[sight.label] == name
        assert abs(np.log10(sight.height / height)) < error
        assert sight.contrast == pytest.approx(abs(contrast), rel=0.1)
        assert sight.spacing == np.inf


@pytest.mark.parametrize("spacing", [1.4, 2.0, 3.0])
def test_the_letter_in_the_middle_is_read_among_flankers(spacing: float) -> None:
    for seed in range(4):
        stimulus = letter("K", 12, flankers=2, spacing=0.2 * spacing, seed=seed)
        sight = reader().look(dithered(stimulus), PROMPT)
        assert SLOAN[sight.label] == "K"
        assert sight.height == pytest.approx(12, rel=0.05)
        assert sight.spacing == pytest.approx(spacing, rel=0.06)


def test_directions_of_rings_and_of_an_e_are_read() -> None:
    sides = ["right", "upper right", "up", "upper left"]
    sides += ["left", "lower left", "down", "lower right"]
    common: Any = {"contrast": -1, "luminance": 100, "letter_size": 0.4, "size": 64}
    for i, side in enumerate(sides):
        ring = dithered(pp.landolt(orientation=45 * i, **common))
        prompt = f"The image shows a ring with a gap. Where is it: {', '.join(sides)}?"
        assert sides[reader().look(ring, prompt).label] == side
        if i % 2 == 0:
            arms = dithered(pp.tumbling_e(orientation=45 * i, **common))
            prompt = f"Where do the arms of the E point: {', '.join(sides[::2])}?"
            assert sides[::2][reader().look(arms, prompt).label] == side


@pytest.mark.parametrize(
    ("mind", "height", "contrast", "share"),
    [
        ({"letter_px": 8}, 8, -1, 0.55),
        ({"letter_px": 8, "lapse": 0.2}, 40, -1, 0.82),
        ({"letter_px": 4, "contrast": 0.1}, 24, -0.1, 0.55),
        ({"letter_px": 2, "size_by_contrast": 1}, 20, -0.1, 0.55),
    ],
)
def test_half_are_seen_at_the_threshold_and_the_others_guessed(
    mind: dict[str, Any], height: float, contrast: float, share: float
) -> None:
    image = dithered(letter("R", height, contrast=contrast))
    probabilities = reader(**mind).probabilities(image, PROMPT)
    assert probabilities["R"] == pytest.approx(share, abs=0.03)
    assert sum(probabilities.values()) == pytest.approx(1)


def test_planted_acuity_comes_back_by_identify() -> None:
    log_errors = []
    for seed in range(2):
        page = load_experiment("letter_acuity").with_settings({"asking.seed": seed})
        observer = reader(letter_px=11.0, seed=seed)
        csf = chat_csf(pp.run(page, observer, progress=False))
        log_errors.append(np.log10(float(csf["threshold"].squeeze()) * 120 / 11))
    assert np.sqrt(np.mean(np.square(log_errors))) < 0.06


def test_planted_bias_and_similarity_come_back_by_identify() -> None:
    page = load_experiment("letter_acuity").with_settings(
        {
            "asking.design": "constant",
            "asking.repeats": 100,
            "asking.options": {},
            "levels.logmar": {"values": [-0.1, 0.0]},
            "options.values": ["C", "O", "K"],
        }
    )
    planted = reader(letter_px=12.0, bias={"K": 4.0}, similarity={"C O": 6.0})
    confusions = count_confusions(pp.run(page, planted, progress=False))
    bias, low, _ = bias_intervals(confusions, confidence=0.95)
    assert bias[2] > 1.5 * max(bias[:2]) and low[2] > 1 / 3
    stimulus, response, _ = confusions.largest(1)[0]
    assert {stimulus, response} == {"C", "O"}


def test_it_answers_behind_a_server_as_in_process() -> None:
    observer = reader(letter_px=10.0)
    image = dithered(letter("S", 10)).astype(np.float32)
    decoding = Decoding(logprobs=True)
    answer = observer.answer([image], PROMPT, decoding=decoding)
    with SimulatedServer(observer) as server:
        served = load_observer(f"openai:{server.model}", base_url=server.base_url)
        other = served.answer([image], PROMPT, decoding=decoding)  # type: ignore[attr-defined]
    assert answer.text == other.text and answer.first_tokens and other.first_tokens
    assert other.first_tokens[:3] == answer.first_tokens[:3]
    assert observer.card.name == server.model == "simulated:letters"


def test_larger_images_are_shrunk_before_it_looks() -> None:
    image = dithered(letter("S", 24))
    sight = reader(max_side=48).look(image, PROMPT)
    assert SLOAN[sight.label] == "S" and sight.height == pytest.approx(12, rel=0.05)


def test_what_it_cannot_take_is_one_sentence() -> None:
    image = np.full((8, 8, 3), 0.5)
    assert reader().look(image, PROMPT).label == -1
    with pytest.raises(InputError, match="labels that a prompt lists"):
        reader().answer([image], "Is there a pattern?")
    with pytest.raises(InputError, match="no 'red'"):
        reader().answer([image], "Which colour: red, green?")
    with pytest.raises(InputError, match="letter_px is 0; give a number > 0"):
        reader(letter_px=0)
    with pytest.raises(InputError, match="bias of K is -1"):
        reader(bias={"K": -1})
    with pytest.raises(InputError, match="takes no option 'acuity'"):
        reader(acuity=1)
