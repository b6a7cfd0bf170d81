"""A simulated observer answers as its stated truth says it must, by the pixels alone."""

from __future__ import annotations

import copy
import csv
import math
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psyprobe._typing import FloatArray
from psyprobe.analysis.words.reply import read_first_token, read_reply
from psyprobe.errors import InputError, UnknownNameError
from psyprobe.experiment.prompts import load_prompts, prompt_sets
from psyprobe.files.images import decode_png
from psyprobe.human import castle_csf, watson_malo_csf
from psyprobe.light.display import Display
from psyprobe.observers import load_observer
from psyprobe.observers.chat.protocol import Answer, AnswerObserver, Decoding
from psyprobe.observers.simulated.mind import FUNCTIONS, psychometric
from psyprobe.observers.simulated.observer import SENSITIVITIES, SimulatedObserver
from psyprobe.probes.words.delivery import Delivery, deliver, png_bytes
from psyprobe.stimulus import AnnulusNoise, Gabor, Grating, Noise

PROMPT = "Is there a pattern visible in the image? Answer with yes or no."
REVERSED = "Is the image completely uniform?"
SAMPLED = Decoding(temperature=1.0)
#: A neutral grey of code 128 on a display of 100 cd/m².
GREY = 100 * 0.21586050011389923
DISPLAY = Display(peak=100.0)


def observer(name: str = "watson-malo", **options: Any) -> SimulatedObserver:
    loaded: SimulatedObserver = load_observer(f"simulated:{name}", **options)
    return loaded


def noise(frequency: float, contrast: float, seed: int = 1) -> AnnulusNoise:
    return AnnulusNoise(
        frequency=frequency, contrast=contrast, luminance=GREY, seed=seed
    )


def drive(spec: Any) -> FloatArray:
    return DISPLAY.encode(spec.draw())


def dithered(spec: Any, seed: int = 1) -> FloatArray:
    return deliver(drive(spec), Delivery(), seed=seed)


def at_threshold(
    eye: SimulatedObserver,
    factor: float = 1.0,
    frequency: float = 4.0,
    seed: int = 1,
) -> FloatArray:
    """Noise of `factor` times the threshold contrast."""
    sensitivity = float(eye.true_sensitivity(noise(frequency, 0.1)))
    return drive(noise(frequency, factor / sensitivity, seed))


@pytest.fixture(scope="module")
def blank() -> FloatArray:
    return drive(noise(4.0, 0.0))


@pytest.mark.parametrize("name", SENSITIVITIES)
def test_sees_contrast_in_units_of_its_threshold(name: str) -> None:
    eye = observer(name)
    assert isinstance(eye, AnswerObserver)
    for frequency in (1.0, 2.0, 4.0, 8.0, 16.0, 24.0, 30.0):
        spec = noise(frequency, 0.02)
        expected = 0.02 * float(eye.true_sensitivity(spec))
        # float32 drive, and a ring that the Nyquist frequency cuts at 30 cpd.
        assert eye.visible(drive(spec)) == pytest.approx(expected, rel=2e-3)


def test_true_sensitivity_is_that_of_the_drawn_image() -> None:
    eye = observer()
    for frequency in (1.0, 4.0, 16.0):
        spec = noise(frequency, 0.1)
        light = spec.draw().luminance
        power, _ = eye._filtered(light)
        assert float(eye.true_sensitivity(spec)) == pytest.approx(
            math.sqrt(power) / 0.1, rel=1e-9
        )
    # A ring's root mean square lies close to the curve itself where that is smooth.
    batch = AnnulusNoise(frequency=[2.0, 4.0, 8.0], contrast=0.1)
    np.testing.assert_allclose(
        eye.true_sensitivity(batch), watson_malo_csf([2.0, 4.0, 8.0]), rtol=0.03
    )


def test_agrees_with_the_oracle_of_matched_stimuli(oracle_data: Path) -> None:
    eye = observer()
    with (oracle_data / "chat_csf" / "human_csf_noise_matched.csv").open(
        encoding="utf-8"
    ) as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 8
    for row in rows:
        sensitivity = float(eye.true_sensitivity(noise(float(row["f0_cpd"]), 0.1)))
        assert sensitivity == pytest.approx(
            float(row["SSO_rms_over_band_no_oblique"]), abs=1e-6
        )


@pytest.mark.parametrize("frequency", [1.0, 4.0, 16.0])
def test_dither_is_subtracted(frequency: float) -> None:
    eye = observer()
    threshold = 1 / float(eye.true_sensitivity(noise(frequency, 0.1)))
    visible_contrasts = [
        eye.visible(dithered(noise(frequency, threshold, seed), seed))
        for seed in range(4)
    ]
    assert np.mean(visible_contrasts) == pytest.approx(1.0, abs=0.03)


def test_a_dithered_blank_is_all_but_invisible() -> None:
    eye = observer()
    assert max(eye.visible(dithered(noise(4.0, 0.0), seed)) for seed in range(6)) < 0.1


def test_other_stimuli_other_contrasts() -> None:
    eye = observer(deg=224 / 60)
    for spec in (
        Noise(frequency=4.0, contrast=0.05, luminance=GREY),
        Gabor(frequency=4.0, contrast=[0.1, 0.2], luminance=GREY),
    ):
        sensitivity = np.atleast_1d(eye.true_sensitivity(spec))
        images = drive(spec).reshape(-1, 224, 224, 3)
        contrast = np.broadcast_to(spec.contrast, len(images))
        for image, c, s in zip(images, contrast, sensitivity, strict=True):
            assert eye.visible(image) == pytest.approx(c * s, rel=2e-3)


@pytest.mark.parametrize("direction", ["red_green", "yellow_violet"])
def test_sees_along_one_direction_of_colour(direction: str) -> None:
    eye = observer("castlecsf", direction=direction, deg=2.0, luminance=100.0)
    display = Display(peak=400)

    def visible_contrast(spec: Any) -> float:
        return eye.visible(display.encode(spec.draw(dtype="float64"), dtype="float64"))

    # Whole cycles over a whole field: what castleCSF says of them.
    waves = Grating(
        frequency=3.0, contrast=0.05, direction=direction, luminance=100.0, size=120
    )
    sensitivity = float(castle_csf(3.0, luminance=100.0, area=4.0, direction=direction))
    assert float(eye.true_sensitivity(waves)) == pytest.approx(sensitivity, rel=1e-9)
    assert visible_contrast(waves) == pytest.approx(0.05 * sensitivity, rel=1e-4)
    directions = {"achromatic", "red_green", "yellow_violet"} - {direction}
    assert max(
        visible_contrast(replace(waves, direction=other)) for other in directions
    ) < 1e-4 * visible_contrast(waves)
    assert (
        max(
            float(eye.true_sensitivity(replace(waves, direction=other)))
            for other in directions
        )
        < 1e-9
    )
    assert eye.visible(np.zeros((9, 9, 3))) == 0
    assert (
        eye.card.digest != observer("castlecsf", deg=2.0, luminance=100.0).card.digest
    )
    with pytest.raises(
        InputError, match=f"watson-malo knows nothing of direction '{direction}'"
    ):
        observer(direction=direction)
    with pytest.raises(UnknownNameError, match="did you mean 'red_green'"):
        observer("castlecsf", direction="red-green")


def test_the_image_is_the_same_however_it_comes() -> None:
    eye, twin = observer(logit_sd=1.0), observer(logit_sd=1.0)
    image = dithered(noise(4.0, 0.005))
    for other in (
        (decode_png(png_bytes(image)).astype(np.float32) / np.float32(255)),
        (np.rint(image * 255) / 255).astype(np.float64),
    ):
        assert eye.answer([image], PROMPT, decoding=SAMPLED) == twin.answer(
            [other], PROMPT, decoding=SAMPLED
        )
    grey = np.rint(drive(noise(4.0, 0.05))[..., :1] * 255) / 255
    view = np.broadcast_to(grey, (256, 256, 3))
    assert eye.answer([view], PROMPT) == twin.answer([view.copy()], PROMPT)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_probability_is_the_psychometric_function(
    function: str, blank: FloatArray
) -> None:
    eye = observer("flat", function=function, guess=0.2, lapse=0.1, width=0.5)
    for x in (-0.3, 0.0, 0.2):
        expected = 0.2 + 0.7 * psychometric(x, 0.5, function)
        assert eye.probability([at_threshold(eye, 10**x)], PROMPT) == pytest.approx(
            expected, abs=2e-3
        )
    assert eye.probability([blank], PROMPT) == pytest.approx(0.2, abs=1e-6)
    assert [psychometric(x, 0.5, function) for x in (-9, 9)] == pytest.approx(
        [0, 1], abs=1e-9
    )


def test_widths_are_from_5_to_95_percent() -> None:
    for function in FUNCTIONS:
        x = np.linspace(-2, 2, 4001)
        p = np.array([psychometric(level, 0.8, function) for level in x])
        assert np.interp(0.95, p, x) - np.interp(0.05, p, x) == pytest.approx(
            0.8, abs=1e-3
        )
        assert np.interp(0.5, p, x) == pytest.approx(0, abs=1e-3)


def test_words_are_drawn_with_that_probability() -> None:
    eye = observer()
    image = at_threshold(eye, 10**0.1)
    p = eye.probability([image], PROMPT)
    is_yes = [
        eye.answer([image], f"{PROMPT} {i}", decoding=SAMPLED).text[0].lower() == "y"
        for i in range(1500)
    ]
    assert np.mean(is_yes) == pytest.approx(p, abs=4 * math.sqrt(p * (1 - p) / 1500))
    seeds = [
        eye.answer([image], PROMPT, decoding=Decoding(1.0, seed=i)).text[0].lower()
        == "y"
        for i in range(1500)
    ]
    assert np.mean(seeds) == pytest.approx(p, abs=4 * math.sqrt(p * (1 - p) / 1500))


def test_temperature(blank: FloatArray) -> None:
    eye, always = observer(), observer(text="greedy")
    image = at_threshold(eye, 10**0.1)

    def rate(observer: SimulatedObserver, temperature: float) -> float:
        decoding = Decoding(temperature)
        texts = [
            observer.answer([image], f"{PROMPT} {i}", decoding=decoding).text
            for i in range(400)
        ]
        return float(np.mean([text[0].lower() == "y" for text in texts]))

    assert rate(eye, 0) == rate(always, 1) == 1
    p = eye.probability([image], PROMPT)
    hot = 1 / (1 + math.exp(-math.log(p / (1 - p)) / 2))
    assert rate(eye, 2) == pytest.approx(hot, abs=0.1)
    assert eye.answer([blank], PROMPT).text[0].lower() == "n"


def test_first_tokens_hold_the_probability(blank: FloatArray) -> None:
    eye = observer(guess=0.1)
    for image in (blank, at_threshold(eye), at_threshold(eye, 10)):
        answer = eye.answer([image], PROMPT)
        assert answer.complete and answer.first_tokens is not None
        mass = {True: 0.0, False: 0.0}
        for token, logprob in answer.first_tokens:
            if token.strip().lower() in ("yes", "no"):
                mass[token.strip().lower() == "yes"] += math.exp(logprob)
        assert sum(mass.values()) == pytest.approx(0.98, abs=1e-6)
        assert mass[True] / sum(mass.values()) == pytest.approx(
            eye.probability([image], PROMPT), abs=1e-9
        )
        assert sum(
            math.exp(value) for _, value in answer.first_tokens
        ) == pytest.approx(1)
        assert list(answer.first_tokens) == sorted(
            answer.first_tokens, key=lambda item: -item[1]
        )
    assert (
        eye.answer([blank], PROMPT, decoding=Decoding(logprobs=False)).first_tokens
        is None
    )


def test_understands_reversed_questions(blank: FloatArray) -> None:
    eye = observer()
    plain = at_threshold(eye, 10)
    assert eye.answer([plain], REVERSED).text[0].lower() == "n"
    assert eye.answer([blank], REVERSED).text[0].lower() == "y"
    assert eye.probability([plain], REVERSED) == pytest.approx(
        1 - eye.probability([plain], PROMPT)
    )
    deaf = observer(reversed_words=())
    assert deaf.probability([plain], REVERSED) == deaf.probability([plain], PROMPT)


def test_bias_is_of_the_word_and_guessing_of_the_eye(blank: FloatArray) -> None:
    biased, guessing, against = (
        observer(yes_bias=0.25),
        observer(guess=0.25),
        observer(yes_bias=-0.25),
    )
    plain = at_threshold(biased, 30)
    assert (
        biased.probability([blank], PROMPT)
        == pytest.approx(guessing.probability([blank], PROMPT))
        == 0.25
    )
    assert biased.probability([plain], REVERSED) == pytest.approx(0.25, abs=1e-3)
    assert guessing.probability([plain], REVERSED) == pytest.approx(0, abs=1e-3)
    assert against.probability([plain], PROMPT) == pytest.approx(0.75, abs=1e-3)


def test_prompts_shift_the_threshold() -> None:
    eye = observer(prompt_sd=0.3)
    shifts = [eye.prompt_shift(f"{PROMPT} {i}") for i in range(1000)]
    assert np.std(shifts) == pytest.approx(0.3, rel=0.1) and abs(np.mean(shifts)) < 0.05
    for prompt in ("one?", "another?"):
        image = at_threshold(eye, 10 ** eye.prompt_shift(prompt))
        assert eye.probability([image], prompt) == pytest.approx(0.5, abs=5e-3)


def test_log_odds_vary_from_image_to_image() -> None:
    eye = observer(logit_sd=0.5)
    odds = []
    for seed in range(60):
        p = eye.probability([at_threshold(eye, seed=seed)], PROMPT)
        odds.append(math.log(p / (1 - p)))
    assert np.std(odds) == pytest.approx(0.5, rel=0.3) and abs(np.mean(odds)) < 0.25


def test_refuses_and_rambles_at_the_stated_rates(blank: FloatArray) -> None:
    eye = observer(refusal=0.2, unparsed=0.1)
    answers = [
        eye.answer([blank], f"{PROMPT} {i}", decoding=SAMPLED) for i in range(800)
    ]

    def mass(answer: Answer) -> float:
        assert answer.first_tokens is not None
        return sum(
            math.exp(v)
            for token, v in answer.first_tokens
            if token.strip().lower() in ("yes", "no")
        )

    refused = [
        a for a in answers if "image" in a.text and a.text[:2] in ("I'", "I ")
    ] + [a for a in answers if "assist" in a.text]
    rambled = [a for a in answers if a.text.startswith("The ")]
    assert len(refused) / 800 == pytest.approx(0.2, abs=0.06) and len(
        rambled
    ) / 800 == pytest.approx(0.1, abs=0.04)
    assert max(map(mass, refused + rambled)) < 0.05
    assert all(
        a.text[0].lower() == "n"
        for a in answers
        if a not in refused and a not in rambled
    )


def test_chooses_between_two_images(blank: FloatArray) -> None:
    eye = observer()
    plain = at_threshold(eye, 30)
    question = "Which image contains a pattern, the first or the second?"
    assert eye.answer([plain, blank], question).text.lower().startswith("first")
    assert eye.answer([blank, plain], question).text.lower().startswith("second")
    assert eye.probability([blank, blank], question) == pytest.approx(0.5)
    weak = at_threshold(eye)
    probabilities = (
        eye.probability([weak, blank], question),
        eye.probability([blank, weak], question),
    )
    assert probabilities[0] == pytest.approx(0.75, abs=5e-3) and sum(
        probabilities
    ) == pytest.approx(1)
    assert observer(yes_bias=0.2).probability(
        [blank, blank], question
    ) == pytest.approx(0.6)
    for count in (0, 3):
        with pytest.raises(InputError, match=f"takes .* was shown {count} images"):
            eye.answer([blank] * count, question)


@pytest.mark.parametrize(
    ("orientation", "vertical"),
    [(0, True), (180, True), (30, True), (90, False), (-60, False)],
)
def test_names_the_direction_of_stripes_that_it_sees(
    orientation: float, vertical: bool, blank: FloatArray
) -> None:
    (prompt,) = load_prompts("orientation")
    eye = observer()
    stripes = Gabor(
        frequency=4, contrast=0.1, radius=0.5, orientation=orientation, luminance=GREY
    )
    threshold = 1 / float(eye.true_sensitivity(stripes).item())

    def says_vertical(contrast: float) -> float:
        return eye.probability(
            [drive(replace(stripes, contrast=contrast))], prompt.full
        )

    assert says_vertical(30 * threshold) == pytest.approx(float(vertical), abs=1e-3)
    # Half of what is at threshold is seen, and half of the rest is guessed right.
    assert says_vertical(threshold) == pytest.approx(
        0.75 if vertical else 0.25, abs=5e-3
    )
    assert eye.probability([blank], prompt.full) == 0.5


@pytest.mark.parametrize(
    ("orientation", "word"),
    [
        (0, "vertical"),
        (95, "horizontal"),
        (135, "rising"),
        (-50, "rising"),
        (40, "falling"),
    ],
)
def test_names_one_of_four_directions(
    orientation: float, word: str, blank: FloatArray
) -> None:
    (prompt,) = load_prompts("orientation_4")
    eye = observer()
    stripes = Gabor(
        frequency=4, contrast=0.1, radius=0.5, orientation=orientation, luminance=GREY
    )
    threshold = 1 / float(eye.true_sensitivity(stripes).item())

    def chances(image: FloatArray) -> dict[str, float]:
        listed = dict(
            eye.answer([image], prompt.full, words=prompt.words).first_tokens or ()
        )
        chance_by_word = {
            word: math.exp(listed[word.capitalize()]) for word in prompt.words
        }
        return {
            word: chance / sum(chance_by_word.values())
            for word, chance in chance_by_word.items()
        }

    assert set(prompt.words) == {"vertical", "horizontal", "rising", "falling"}
    plain = drive(replace(stripes, contrast=30 * threshold))
    assert eye.answer([plain], prompt.full).text.lower().startswith(word)
    # Half of what is at threshold is seen, and a quarter of the rest is guessed right.
    weak = chances(drive(replace(stripes, contrast=threshold)))
    assert weak.pop(word) == pytest.approx(0.625, abs=5e-3)
    assert list(weak.values()) == pytest.approx([0.125] * 3, abs=5e-3)
    assert list(chances(blank).values()) == pytest.approx([0.25] * 4)


#: A uniform field has no orientation that stripes could be turned further than.
@pytest.mark.parametrize(
    "name", [name for name in prompt_sets() if not name.startswith("orientation")]
)
def test_answers_every_prompt_in_its_words_and_polarity(
    name: str, blank: FloatArray
) -> None:
    eye = observer()
    plain = at_threshold(eye, 30)
    for prompt in load_prompts(name):
        pictures = (
            ([plain, blank], [blank, plain])
            if "first" in prompt.yes
            else ([plain], [blank])
        )
        for images, is_visible in zip(pictures, (True, False), strict=True):
            word = (
                eye.answer(images, prompt.full)
                .text.rstrip(".")
                .split(",")[0]
                .casefold()
            )
            expected = prompt.yes if is_visible == (prompt.polarity > 0) else prompt.no
            assert word in expected, prompt


@pytest.mark.parametrize("prompt", [PROMPT, REVERSED])
def test_its_words_are_read_as_they_are_meant(prompt: str, blank: FloatArray) -> None:
    eye = observer(refusal=0.1, unparsed=0.1)
    polarity = 1 if prompt == PROMPT else -1
    readings = set()
    for i in range(200):
        answer = eye.answer([blank], f"{prompt} {i}", decoding=SAMPLED)
        readings.add(read_reply(answer.text, polarity=polarity))
        token = read_first_token(answer.first_tokens, answer.complete)
        assert token is not None and not token.censored
    assert readings == {"no" if polarity > 0 else "yes", "refusal", "invalid"}


def test_long_answers_are_cut(blank: FloatArray) -> None:
    eye = observer(refusal=0.99)
    answer = eye.answer([blank], PROMPT, decoding=Decoding(max_tokens=2))
    assert (answer.finish, answer.tokens_out) == ("length", 2)
    assert answer.tokens_in is not None and answer.tokens_in > 100


@pytest.mark.parametrize("name", SENSITIVITIES)
def test_a_copy_answers_alike(name: str, blank: FloatArray) -> None:
    eye = observer(name, eotf=2.2)
    answer = eye.answer([blank], PROMPT, decoding=SAMPLED)
    for copied in (pickle.loads(pickle.dumps(eye)), copy.deepcopy(eye)):
        assert copied.card == eye.card
        assert copied.answer([blank], PROMPT, decoding=SAMPLED) == answer


def test_what_is_true_of_it_is_on_its_card() -> None:
    assert observer().card.digest == observer().card.digest
    cards = {
        observer(**{name: value}).card.digest
        for name, value in (("guess", 0.1), ("seed", 3), ("deg", 5.0))
    }
    assert len(cards | {observer().card.digest}) == 4
    assert observer().card.options["width"] == 0.8


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("watson-mallo", {}, UnknownNameError, "did you mean 'watson-malo'"),
        ("flat", {"guess": 1.5}, InputError, "guess is 1.5; give a rate from 0"),
        ("flat", {"guess": "high"}, InputError, "guess is 'high'; give a number"),
        ("flat", {"guess": 0.6, "lapse": 0.5}, InputError, "must each stay below 1"),
        ("flat", {"width": 0}, InputError, "width is 0; give a number > 0"),
        ("flat", {"logit_sd": -1.0}, InputError, "give a standard deviation >= 0"),
        ("flat", {"yes_bias": 1.0}, InputError, "give a rate between -1"),
        (
            "flat",
            {"function": "probit"},
            UnknownNameError,
            "Known: logistic, normal, weibull",
        ),
        ("flat", {"text": "loud"}, InputError, "give 'sampled' or 'greedy'"),
        ("flat", {"deg": 0}, InputError, "deg is 0; give a number > 0"),
        ("barten", {"luminance": -1}, InputError, "luminance"),
        ("flat", {"colour": 1}, InputError, "takes no option 'colour'"),
    ],
)
def test_one_clear_line(
    name: str, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        observer(name, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((8, 8), np.float32), "shape"),
        (np.zeros((8, 8, 3), np.uint8), "uint8"),
        (np.full((8, 8, 3), np.nan, np.float32), "NaN"),
    ],
)
def test_refuses_what_is_no_image(image: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        observer().visible(image)


def test_black_images_show_nothing() -> None:
    assert observer().visible(np.zeros((64, 64, 3), np.float32)) == 0
