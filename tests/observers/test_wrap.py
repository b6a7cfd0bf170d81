"""A torch module or a function of one's own, made an observer in one line."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import psyprobe as pp
from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, PsyprobeError, UnknownNameError
from psyprobe.observers import DifferenceObserver, FeatureObserver
from psyprobe.observers.chat.protocol import AnswerObserver

LIGHT = np.random.default_rng(1).random((3, 8, 8, 3)) * 100


def darker(test: FloatArray, reference: FloatArray) -> FloatArray:
    return np.abs(reference - test).mean(axis=(1, 2, 3))


def row_means(images: FloatArray, power: int = 1) -> FloatArray:
    return images.mean(axis=2) ** power


def shout(images: list[FloatArray], question: str) -> str:
    return question.upper()


def test_the_ability_follows_from_the_parameters() -> None:
    metric, encoder, chat = (
        pp.observer(function) for function in (darker, row_means, shout)
    )
    assert (
        isinstance(metric, DifferenceObserver) and metric.card.ability == "difference"
    )
    assert isinstance(encoder, FeatureObserver) and encoder.card.ability == "features"
    assert isinstance(chat, AnswerObserver) and chat.card.ability == "answer"
    assert [observer.card.name for observer in (metric, encoder, chat)] == [
        "darker",
        "row_means",
        "shout",
    ]
    assert chat.answer([], "why?").text == "WHY?"
    np.testing.assert_array_equal(
        metric.difference(LIGHT, LIGHT[[1, 1, 1]], ppd=60),
        darker(LIGHT, LIGHT[[1, 1, 1]]),
    )


def test_the_ability_can_be_stated() -> None:
    metric = pp.observer(
        lambda left, right: darker(left, right), name="mine", ability="difference"
    )
    assert metric.difference(LIGHT, LIGHT, ppd=60).tolist() == [0, 0, 0]
    assert (
        pp.observer(lambda *a: "Yes", name="mine", ability="answer")
        .answer([], "?")
        .text
        == "Yes"
    )
    assert pp.observer(np.abs, name="mine", ability="features").features(LIGHT / 100)[
        "output"
    ].shape == (3, 192)
    with pytest.raises(
        UnknownNameError, match="unknown ability 'answers'; did you mean 'answer'"
    ):
        pp.observer(shout, ability="answers")  # type: ignore[arg-type]


def test_a_function_may_return_formats_that_numpy_does_not_know() -> None:
    torch = pytest.importorskip("torch")
    means = LIGHT.mean(axis=(1, 2)) / 100
    for dtype in (torch.bfloat16, torch.float8_e4m3fn):
        rounded = torch.as_tensor(means).to(dtype)
        encoder = pp.observer(
            lambda images, rows=rounded: rows, name="low", ability="features"
        )
        features = encoder.features(LIGHT / 100)["output"]
        assert features.dtype == np.float32
        np.testing.assert_array_equal(features, rounded.float().numpy())
    metric = pp.observer(
        lambda test, reference: torch.ones(3, dtype=torch.bfloat16), name="ones"
    )
    assert metric.difference(LIGHT, LIGHT, ppd=60).tolist() == [1, 1, 1]


def test_a_metric_is_told_the_geometry_and_held_to_one_number_a_pair() -> None:
    resolutions = pp.observer(
        lambda test, reference, ppd: np.full(len(test), ppd), name="ppd"
    ).difference(LIGHT, LIGHT, ppd=60.0)
    assert resolutions.tolist() == [60, 60, 60]
    with pytest.raises(
        InputError, match=r"returned shape \(\) and format float64 for 3 pairs"
    ):
        pp.observer(lambda test, reference: 0.5, name="one").difference(
            LIGHT, LIGHT, ppd=60
        )
    with pytest.raises(PsyprobeError, match="NaN or infinity"):
        pp.observer(lambda test, reference: np.full(3, np.nan), name="nan").difference(
            LIGHT, LIGHT, ppd=60
        )
    with pytest.raises(InputError, match="light is 0 or more"):
        pp.observer(darker).difference(LIGHT, -LIGHT, ppd=60)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: pp.observer(lambda images: images),
            "a lambda has no name of its own: give name=",
        ),
        (
            lambda: pp.observer(functools.partial(row_means, power=2)),
            "a partial has no name of its own",
        ),
        (
            lambda: pp.observer(lambda a, b: 0, name="n"),
            r"what n\(a, b\) is for cannot be told: .* state ability=",
        ),
        (lambda: pp.observer("pixels"), "'pixels' is no torch module and no function"),
        (
            lambda: pp.observer(dict),
            "<class 'dict'> is no torch module and no function",
        ),
        (
            lambda: pp.observer(shout, mean=(0, 0, 0)),
            "with the ability 'answer' takes no option 'mean'; it takes bits",
        ),
        (
            lambda: pp.observer(darker, input_size=8),
            "'difference' takes no option 'input_size'; it takes none",
        ),
    ],
)
def test_one_clear_line(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("wrong", [1.5, -0.25, 255.0])
def test_questions_hold_drive_alone(wrong: float) -> None:
    with pytest.raises(
        InputError,
        match=f"shout takes display drive from 0 to 1 and was given {wrong:g}",
    ):
        pp.observer(shout).answer([np.full((4, 4, 3), wrong)], "?")


def test_a_function_takes_drive_of_an_extended_display_and_no_codes() -> None:
    encoder = pp.observer(row_means)
    assert encoder.features(np.full((1, 4, 4, 3), 1.7))
    with pytest.raises(
        InputError, match="was given 255: divide codes by that of peak white"
    ):
        encoder.features(np.full((1, 4, 4, 3), 255.0))


def test_a_torch_module_is_an_observer() -> None:
    torch = pytest.importorskip("torch", reason="the encoders extra is not installed")
    torch.manual_seed(1)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 4, stride=4), torch.nn.ReLU(), torch.nn.Flatten()
    )
    drive = np.random.default_rng(2).random((2, 16, 16, 3), dtype=np.float32)
    plain = pp.observer(module, device="cpu")
    assert (plain.card.name, plain.card.ability, plain.card.features) == (
        "Sequential",
        "features",
        ("output",),
    )
    with torch.inference_mode():
        expected = module(torch.tensor(drive.transpose(0, 3, 1, 2).copy())).numpy()
    np.testing.assert_array_equal(plain.features(drive)["output"], expected)
    observer = pp.observer(
        module,
        name="mine",
        mean=[0.5] * 3,
        std=[0.5] * 3,
        input_size=16,
        layers="all",
        device="cpu",
    )
    assert observer.card.features == (
        "0",
        "1",
        "2",
        "output",
    ) and observer.card.input_size == (
        16,
        16,
    )
    np.testing.assert_allclose(
        observer.features(drive)["output"],
        pp.observer(module, input="raw").features(drive * 2 - 1)["output"],
        atol=1e-6,
    )
    with pytest.raises(
        UnknownNameError,
        match="unknown layer of Sequential '3'; It has 0, 1, 2, output",
    ):
        pp.observer(module, layers=["3"])


def test_modules_are_told_apart_by_their_weights_their_layers_and_their_version() -> (
    None
):
    torch = pytest.importorskip("torch", reason="the encoders extra is not installed")
    modules = [
        torch.nn.Sequential(pool(2))
        for pool in (torch.nn.AvgPool2d, torch.nn.MaxPool2d)
    ]
    torch.manual_seed(1)
    modules += [torch.nn.Sequential(torch.nn.Conv2d(3, 1, 1)) for _ in range(2)]
    digests = {pp.observer(module).card.digest for module in modules} | {
        pp.observer(modules[0], version="2").card.digest
    }
    assert len(digests) == 5
    assert pp.observer(modules[0]).card.digest == pp.observer(modules[0]).card.digest


def test_a_metric_of_ones_own_runs_an_experiment() -> None:
    result = pp.run("gabor_achromatic", pp.observer(darker), score_only=True)
    assert pp.score(result) is not None
