"""What a detection experiment shows and measures: each image once, exactly, and beside its
references."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_experiment import Counting, write_experiment

import psyprobe as pp
from psyprobe._typing import FloatArray
from psyprobe.analysis.distance import MEASURES, distances
from psyprobe.errors import GamutError, InputError
from psyprobe.experiment import load_experiment
from psyprobe.human import castle_csf
from psyprobe.light.display import Display
from psyprobe.observers import Card, load_observer
from psyprobe.observers.planes import ImagePlanes
from psyprobe.probes.detection import grid_conditions as conditions
from psyprobe.probes.displayed_images import show
from psyprobe.probes.feature_distances import features, respond
from psyprobe.probes.pair_batches import PairImages, answer
from psyprobe.probes.pairs import Pair
from psyprobe.running.protocol import Batch, Question
from psyprobe.stimulus import Gabor, Grating, Noise, Specification, Sum, Uniform
from psyprobe.stimulus.backend import Backend

PIXELS = load_observer("pixels")
ANY_SIZE = PIXELS.card


def test_counts_of_the_main_experiment() -> None:
    planned = conditions(load_experiment("gabor_achromatic"), ANY_SIZE)
    tests = {test for test, reference in planned.pairs if test != reference}
    references = {reference for _, reference in planned.pairs}
    assert (len(tests), len(references), len(planned.indices["noise_floor"])) == (
        600,
        1,
        1,
    )
    assert np.shape(planned.indices["grid"]) == (20, 20) and np.shape(
        planned.indices["scored"]
    ) == (20, 10)


def test_luminance_has_a_reference_for_each_level() -> None:
    planned = conditions(load_experiment("luminance"), ANY_SIZE)
    references = {reference for _, reference in planned.pairs}
    assert len(references) == 20 and len(planned.indices["noise_floor"]) == 3
    levels = load_experiment("luminance").levels["luminance"]
    for row, level in zip(planned.indices["grid"], levels, strict=True):
        for index in row:
            test, reference = planned.pairs[index]
            assert test.luminance == reference.luminance == level


def test_grid_and_score_points_share_images(tmp_path: Path) -> None:
    path = write_experiment(
        tmp_path,
        (
            'contrast = { from = 0.01, to = 1, n = 3, scale = "log" }',
            "contrast = { values = [0.01, 0.02, 0.04] }",
        ),
        (
            'multiplier = { from = 0.5, to = 2, n = 2, scale = "log" }',
            "multiplier = { values = [1, 2] }",
        ),
        (
            "frequency = { from = 1, to = 4, n = 3",
            "frequency = { from = 1, to = 4, n = 2",
        ),
    )
    experiment = load_experiment(path)
    planned = conditions(experiment, ANY_SIZE)
    specs = [test.digest for test, _ in planned.pairs]
    assert len(specs) == len(set(specs)) == 1 + 6 + 4
    scored = np.array(planned.axes["scored_difference"])
    for frequency, row, contrasts in zip(
        planned.axes["levels"][0]["scored"],
        planned.indices["scored"],
        scored,
        strict=True,
    ):
        for index, contrast in zip(row, contrasts, strict=True):
            test = planned.pairs[index][0]
            assert isinstance(test, Gabor) and (test.frequency, test.contrast) == (
                frequency,
                contrast,
            )


def test_score_points_lie_on_the_human_curve() -> None:
    planned = conditions(load_experiment("gabor_achromatic"), ANY_SIZE)
    axes = planned.axes
    sensitivity = castle_csf(
        np.array(axes["levels"][0]["values"]),
        luminance=100.0,
        area=math.pi,
        direction="achromatic",
    )
    np.testing.assert_allclose(axes["human_sensitivity"], sensitivity, rtol=1e-13)
    # Displayed values have ten digits, so that they are the same on every machine.
    exact = np.array(axes["multiplier"]) / sensitivity[:, None]
    np.testing.assert_allclose(axes["scored_difference"], exact, rtol=5e-10)
    assert all(
        float(f"{value:.10g}") == value
        for value in np.ravel(axes["scored_difference"]).tolist()
    )


def test_multipliers_of_sensitivity_run_the_other_way() -> None:
    axes = conditions(load_experiment("area_published"), ANY_SIZE).axes
    expected = 1 / (
        np.array(axes["multiplier"]) * np.array(axes["human_sensitivity"])[:, None]
    )
    np.testing.assert_allclose(
        axes["scored_difference"], expected, rtol=5e-10
    )  # ten digits


def test_only_levels_below_the_limit_are_scored() -> None:
    planned = conditions(load_experiment("gabor_yellow_violet_published"), ANY_SIZE)
    assert (
        np.shape(planned.indices["scored"]) == (16, 10)
        and max(planned.axes["levels"][0]["scored"]) < 16
    )
    assert np.shape(planned.indices["grid"]) == (20, 20)


@pytest.mark.parametrize(
    "test", ["gabor_achromatic", "noise_achromatic", "luminance", "area"]
)
def test_published_thresholds_are_those_of_the_paper(
    test: str, oracle_data: Path
) -> None:
    import csv

    names = {"gabor_achromatic": "sf_gabor_ach", "noise_achromatic": "sf_noise_ach"}
    with (oracle_data / "encoder_protocol" / "castlecsf_curves.csv").open() as file:
        rows = [
            row for row in csv.DictReader(file) if row["test"] == names.get(test, test)
        ]
    table = np.array([[float(row["x"]), float(row["sensitivity"])] for row in rows])
    axes = conditions(load_experiment(f"{test}_published"), ANY_SIZE).axes
    expected = np.interp(axes["levels"][0]["scored"], table[:, 0], table[:, 1])
    np.testing.assert_allclose(axes["human_sensitivity"], expected, rtol=1e-12)


def test_rms_contrast_lowers_the_threshold_by_sqrt_2(tmp_path: Path) -> None:
    plain = load_experiment(write_experiment(tmp_path))
    rms = load_experiment(
        write_experiment(tmp_path, ('"castle_csf"', '"castle_csf"\ncontrast = "rms"'))
    )
    sensitivity = [
        np.array(conditions(experiment, ANY_SIZE).axes["human_sensitivity"])
        for experiment in (plain, rms)
    ]
    np.testing.assert_allclose(sensitivity[1], math.sqrt(2) * sensitivity[0])


def test_what_the_human_model_lacks_is_asked_for(tmp_path: Path) -> None:
    path = write_experiment(
        tmp_path,
        stimulus=(
            ('kind = "gabor"', 'kind = "grating"'),
            ("radius = 0.3", 'window = "none"'),
        ),
    )
    experiment = load_experiment(path)
    with pytest.raises(
        InputError, match=r"the stimulus does not tell the human model its area"
    ):
        conditions(experiment, ANY_SIZE)


@pytest.mark.parametrize("name", ["gabor_achromatic", "gabor_masked_orthogonal"])
def test_native_size_keeps_the_visual_angle(name: str) -> None:
    experiment = load_experiment(name)
    planned = conditions(
        experiment, Card("big", "features", ("output",), input_size=(448, 448))
    )
    assert planned.first_test.shape == (448, 448) and planned.first_test.ppd == 120.0
    for test, reference in planned.pairs:
        assert test.shape == reference.shape == (448, 448)
        assert test.field == pytest.approx((224 / 60, 224 / 60))


def test_levels_above_a_smaller_encoders_nyquist_are_refused() -> None:
    card = Card("small", "features", ("output",), input_size=(160, 160))
    with pytest.raises(
        InputError,
        match=r"gabor_achromatic, redrawn at 160 x 160 px \(42\.86 ppd\) for small: freq",
    ):
        conditions(load_experiment("gabor_achromatic"), card)


def test_another_shape_is_refused() -> None:
    card = Card("wide", "features", ("output",), input_size=(224, 448))
    with pytest.raises(InputError, match="another shape"):
        conditions(load_experiment("gabor_achromatic"), card)


def test_nothing_below_the_limit_is_refused(tmp_path: Path) -> None:
    experiment = load_experiment(
        write_experiment(tmp_path, ("[score]", "[score]\nbelow = 0.5"))
    )
    with pytest.raises(InputError, match=r"score\.below = 0\.5 leaves no level"):
        conditions(experiment, ANY_SIZE)


# -- showing
# ------------------------------------------------------------------------------------------


gabors = st.builds(
    Gabor,
    frequency=st.floats(1, 7),
    contrast=st.floats(0.001, 1),
    luminance=st.floats(1, 190),
    radius=st.floats(0.1, 0.7),
    ppd=st.just(16.0),
    size=st.just(12),
)
backgrounds = st.builds(
    Uniform, luminance=st.floats(1, 400), ppd=st.just(16.0), size=st.just(12)
)
noises = st.builds(
    Noise,
    frequency=st.sampled_from([2.0, 3.0]),
    contrast=st.floats(0.01, 0.15),
    seed=st.integers(0, 3),
    ppd=st.just(16.0),
    size=st.just(12),
)


@given(st.lists(gabors | backgrounds | noises, min_size=1, max_size=7))
@settings(max_examples=40)
def test_a_batch_shows_what_each_image_alone_would(specs: list[Specification]) -> None:
    display = Display(peak=400.0)
    drive = show(specs, display)
    assert drive.is_grey
    batch = drive.rgb
    assert batch.shape == (len(specs), 12, 12, 3) and batch.dtype == np.float32
    assert batch.strides[-1] == 0
    alone = np.stack([np.asarray(display.encode(spec.draw())) for spec in specs])
    np.testing.assert_allclose(batch, alone, rtol=1e-6)


def test_chromatic_and_masked_batches() -> None:
    display = Display(peak=400.0)
    colour = [
        Gabor(
            frequency=f,
            contrast=0.05,
            direction="red_green",
            ppd=16,
            size=12,
            radius=0.3,
        )
        for f in (1, 2)
    ]
    specs = [*colour, colour[0].reference()]
    np.testing.assert_allclose(
        show(specs, display).rgb,
        [np.asarray(display.encode(spec.draw())) for spec in specs],
        rtol=1e-6,
    )
    masked = [
        Sum(
            parts=(
                Gabor(frequency=2, contrast=c, ppd=16, size=12, radius=0.3),
                Grating(frequency=2, contrast=m, ppd=16, size=12),
            )
        )
        for c, m in ((0.1, 0.2), (0.3, 0.2), (0.2, 0.4))
    ]
    assert masked[0].joined(masked).batch == (3,)
    np.testing.assert_allclose(
        show(masked, display).rgb,
        [np.asarray(display.encode(spec.draw())) for spec in masked],
        rtol=1e-6,
    )


def test_a_batch_is_shown_alike_one_by_one_and_as_an_array() -> None:
    orientations = (0, 0, 30, 30, 30, 0, 90)
    common = {"frequency": 4, "contrast": 0.1, "ppd": 16, "size": 16, "radius": 0.3}
    specs = [Gabor(orientation=orientation, **common) for orientation in orientations]
    display = Display(peak=400)
    displayed = show(specs, display)
    array = show([Gabor(orientation=orientations[:5], **common), *specs[5:]], display)
    np.testing.assert_array_equal(array.rgb, displayed.rgb)
    for spec, image in zip(specs, displayed.rgb, strict=True):
        np.testing.assert_array_equal(image, display.encode(spec.draw()))


def test_a_kind_that_paints_otherwise_is_shown_as_it_paints() -> None:
    class Dimmed(Gabor):
        def paint(
            self, amplitude: FloatArray, offset: FloatArray, backend: Backend
        ) -> FloatArray:
            return np.asarray(super().paint(amplitude / 2, offset, backend))

    spec, display = (
        Dimmed(frequency=2, contrast=0.4, ppd=16, size=12, radius=0.3),
        Display(peak=400.0),
    )
    np.testing.assert_array_equal(
        show([spec], display).rgb[0], np.asarray(display.encode(spec.draw()))
    )


def test_what_cannot_be_shown_is_refused() -> None:
    with pytest.raises(GamutError, match="above what this display shows"):
        show(
            [
                Gabor(frequency=2, contrast=c, ppd=16, size=12, radius=0.3)
                for c in (0.1, 0.9)
            ],
            Display(peak=120.0),
        )
    specs = [Gabor(frequency=2, contrast=0.9, ppd=16, size=12, radius=0.3)]
    with pytest.raises(GamutError) as raised:
        show(specs, Display(peak=120.0))
    with pytest.raises(GamutError) as expected:
        Display(peak=120.0).encode(specs[0].draw())
    assert str(raised.value) == str(expected.value)


# -- asking
# ------------------------------------------------------------------------------------------


def test_responses_are_distances_to_the_own_reference() -> None:
    rng = np.random.default_rng(5)
    images = rng.random((4, 6, 6, 3), dtype=np.float32)
    observer = Counting()
    references = features(observer, ImagePlanes(images[2:]))
    responses = respond(
        observer, ImagePlanes(images[:3]), references, [0, 1, 0], ppd=60
    )
    tests = observer.features(images[:3])["output"]
    expected = distances(tests, references["output"][[0, 1, 0]])
    assert responses.shape == (3, 1, 4)
    for measure, name in enumerate(MEASURES):
        np.testing.assert_array_equal(responses[:, 0, measure], expected[name])
    assert responses[2, 0, 0] == 0.0


def test_one_plane_of_grey_pixels_tells_what_three_do() -> None:
    display, pixels = Display(peak=400), load_observer("pixels")
    specs = [
        Gabor(frequency=2, contrast=contrast, ppd=16, size=16)
        for contrast in (0.01, 0.5)
    ]
    grey = show(specs, display)
    images = {"grey": grey, "copied": ImagePlanes(np.array(grey.rgb))}
    references = {name: features(pixels, drive[:1]) for name, drive in images.items()}
    assert references["grey"]["pixels"].size * 3 == references["copied"]["pixels"].size
    measures = (*MEASURES, "angular_float32", "length")
    responses = {
        (test_form, other): respond(
            pixels, drive, references[other], [0, 0], measures, ppd=16
        )
        for test_form, drive in images.items()
        for other in references
    }
    for values in responses.values():
        np.testing.assert_allclose(values, responses["copied", "copied"], rtol=1e-14)
    np.testing.assert_array_equal(
        responses["grey", "grey"][..., -2], responses["copied", "copied"][..., -2]
    )


def pixel_answers(pairs: Sequence[Pair], size: int, display: Display) -> Iterator[Any]:
    """Yield the answers of the pixels to pairs of test and reference, in batches of a size."""
    references = tuple(dict.fromkeys(reference for _, reference in pairs))
    batches = []
    for start in range(0, len(pairs), size):
        tests, pair_references = zip(*pairs[start : start + size], strict=True)
        work = PairImages(
            tests,
            references,
            tuple(map(references.index, pair_references)),
            display,
            MEASURES,
        )
        questions = [
            Question(test.digest, "asked", PIXELS.card.digest, "1") for test in tests
        ]
        batches.append(Batch(tuple(questions), work, atomic=True, group="same"))
    return (reply.answer for reply in answer({PIXELS.card.digest: PIXELS}, batches))


def test_pixels_are_compared_alike_whatever_stands_beside_them() -> None:
    common, display = {"ppd": 16, "size": (12, 16)}, Display(peak=400)
    of_gabors = [
        Gabor(frequency=2, contrast=0.1, radius=0.3, orientation=o, **common)
        for o in (0, 90, 45, 0)
    ]
    mask = Grating(frequency=3, contrast=0.2, orientation=30, **common)
    specs = [
        *of_gabors,
        of_gabors[0] + mask,
        Uniform(**common),
        *of_gabors[2:],
    ]
    pairs = [(spec, spec.reference()) for spec in specs] + [(of_gabors[0], mask)]
    alone, in_one_batch = (
        [*pixel_answers(pairs, size, display)] for size in (1, len(pairs))
    )
    assert alone == in_one_batch == [*pixel_answers(pairs, 3, display)]
    for (test, reference), reply in zip(pairs, in_one_batch, strict=True):
        test_drive, other = (
            np.asarray(display.encode(spec.draw())).reshape(-1)
            for spec in (test, reference)
        )
        expected = distances(test_drive, other)
        # If nothing differs, the angle is rounding.
        np.testing.assert_allclose(
            reply["values"][0],
            [expected[name] for name in MEASURES],
            rtol=1e-12,
            atol=1e-15,
        )
        np.testing.assert_allclose(
            reply["lengths"][0][:2],
            [np.linalg.norm(drive) for drive in (test_drive, other)],
            rtol=1e-6,
        )


def test_observers_that_break_their_word_are_named() -> None:
    class Broken:
        def __init__(self, card: Card, features: dict[str, object]) -> None:
            self.card, self._features = card, features

        def features(self, images: object) -> dict[str, object]:
            return self._features

    images = ImagePlanes(np.ones((2, 4, 4, 3), np.float32))
    card = Card("broken", "features", ("a",))
    with pytest.raises(
        InputError, match="broken gives features b, and its card says a"
    ):
        features(Broken(card, {"b": np.ones((2, 3))}), images)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"shape \(3, 2\) for 2 images"):
        features(Broken(card, {"a": np.ones((3, 2))}), images)  # type: ignore[arg-type]
    infinite = Broken(card, {"a": np.full((2, 3), np.inf)})
    with pytest.raises(InputError, match=r"broken, features a: .*not finite"):
        respond(infinite, images, {"a": np.ones((1, 3))}, [0, 0], ppd=60)  # type: ignore[arg-type]


def test_a_layer_each() -> None:
    observer = pp.observer(
        lambda images: {
            "a": images.reshape(len(images), -1),
            "b": images[:, :2].reshape(len(images), -1),
        },
        name="two",
        features=("a", "b"),
    )
    images = ImagePlanes(
        np.random.default_rng(1).random((3, 4, 4, 3), dtype=np.float32)
    )
    responses = respond(
        observer, images, features(observer, images[:1]), [0, 0, 0], ppd=60
    )
    assert responses.shape == (3, 2, 4)
    assert (responses[1:, 0, 0] != responses[1:, 1, 0]).all()


def test_the_pixels_are_asked_beside_the_first_observer_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, store, original = (
        write_experiment(tmp_path),
        tmp_path / "runs.sqlite",
        type(PIXELS).features,
    )
    looked: list[int] = []

    def look(observer: Any, images: FloatArray) -> Any:
        looked.append(len(images))
        return original(observer, images)

    monkeypatch.setattr(type(PIXELS), "features", look)
    first = pp.run(page, Counting(), store=store, batch_size=4)
    # The reference, and once more one step of rounding away; then all tests, of which it is one.
    assert looked == [1, 1, 4, 4, 4, 4]
    looked.clear()
    rows = pp.observer(
        lambda images: images.mean(axis=2).reshape(len(images), -1), name="rows"
    )
    second = pp.run(page, rows, store=store)
    # The batch that is shown again, to see whether the pixels are still the same.
    assert looked == [1, 1, 16]
    np.testing.assert_array_equal(
        first["pixels_response_angular"], second["pixels_response_angular"]
    )
