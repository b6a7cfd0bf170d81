"""Observers with odd output are measured rightly, or refused or told in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_experiment import write_experiment

import psyprobe as pp
from psyprobe._typing import FloatArray
from psyprobe.errors import ConditionWarning, PsyprobeError
from psyprobe.observers import Card


def plain(images: FloatArray) -> FloatArray:
    return images[:, ::2, ::2].reshape(len(images), -1).astype(np.float64)


BUFFER = np.zeros((256, 192))


def buffered(images: FloatArray) -> FloatArray:
    rows = plain(images)
    BUFFER[: len(rows)] = rows
    return BUFFER[: len(rows)]


class ThirdParty:
    """An observer of a package, with no wrapping by psyprobe."""

    card = Card("third", "features", ("output",))

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def features(self, images: FloatArray) -> dict[str, Any]:
        return {"output": self._function(images)}


class ThirdPartyMetric:
    """A metric that returns its own memory."""

    card = Card("third metric", "difference", ("difference",))

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def difference(self, test: Any, reference: Any, *, ppd: float) -> Any:
        return self._function(np.abs(test - reference).mean(axis=(1, 2, 3)))


def in_place(images: FloatArray) -> FloatArray:
    images *= 0.5
    return plain(images)


RIGHT: dict[str, Callable[..., Any]] = {
    "its own buffer": buffered,
    "a view of its buffer": lambda images: buffered(images)[:, ::-1],
    "a mapping of its buffer": lambda images: {"output": buffered(images)},
    "columns first in memory": lambda images: np.asfortranarray(plain(images)),
    "read only": lambda images: np.broadcast_to(plain(images), (len(images), 192)),
    "maps": lambda images: plain(images).reshape(-1, 8, 8, 3),
    "a list of rows": lambda images: list(plain(images)),
}
REFUSED: dict[str, tuple[Callable[..., Any], str]] = {
    "masked": (lambda images: np.ma.masked_less(plain(images), 0.1), "a masked array"),
    "masked rows": (
        lambda images: [*np.ma.masked_less(plain(images), 0.1)],
        "a masked array",
    ),
    "complex": (lambda images: plain(images) * 1j, "complex128"),
    "whole numbers": (lambda images: plain(images).astype(int), "int64"),
    "objects": (lambda images: plain(images).astype(object), "object"),
    "words": (lambda images: plain(images).astype(str), "<U"),
    "nothing": (lambda images: None, "shape ()"),
    "no number": (lambda images: plain(images) * np.nan, "NaN or infinity"),
    "one row": (lambda images: plain(images)[0], "one row"),
    "a row too many": (lambda images: plain(images)[[0, *range(len(images))]], "row"),
    "in place": (in_place, "read-only"),
}


def angles(folder: Path, observer: Any, batch_size: int = 1) -> FloatArray:
    page = write_experiment(folder)
    result = pp.run(page, observer, batch_size=batch_size, progress=False)
    response: FloatArray = result["response_angular"].values
    return response


@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize("case", RIGHT)
def test_odd_memory_gives_the_same_numbers(
    tmp_path: Path, case: str, batch_size: int
) -> None:
    observer = pp.observer(RIGHT[case], name="odd")
    expected = angles(tmp_path, pp.observer(plain))
    assert expected.min() > 1e-4
    np.testing.assert_allclose(
        angles(tmp_path, observer, batch_size), expected, rtol=1e-6
    )


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_row_of_numbers_is_refused(tmp_path: Path, case: str) -> None:
    function, words = REFUSED[case]
    with pytest.raises((PsyprobeError, ValueError)) as caught:
        angles(tmp_path, pp.observer(function, name="odd"))
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_observers_of_packages_are_held_to_the_same(tmp_path: Path) -> None:
    expected = angles(tmp_path, pp.observer(plain))
    np.testing.assert_allclose(angles(tmp_path, ThirdParty(buffered)), expected)
    for case in ("masked", "complex", "objects"):
        function, words = REFUSED[case]
        with pytest.raises(PsyprobeError, match=words):
            angles(tmp_path, ThirdParty(function))


def test_metrics_of_packages_too(tmp_path: Path) -> None:
    def response(function: Callable[..., Any]) -> FloatArray:
        page = write_experiment(tmp_path)
        result = pp.run(page, ThirdPartyMetric(function), batch_size=2, progress=False)
        values: FloatArray = result["response_difference"].values
        return values

    assert response(lambda rows: rows).min() > 0
    with pytest.raises(PsyprobeError, match="masked array"):
        response(np.ma.asarray)
    with pytest.raises(PsyprobeError, match="complex64"):
        response(lambda rows: rows * 1j)


def test_a_module_with_a_static_buffer(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="the encoders extra is not installed")

    class Static(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.memory = torch.zeros(256, 192)

        def forward(self, images: Any) -> Any:
            rows = images[:, :, ::2, ::2].flatten(1)
            self.memory[: len(rows)].copy_(rows)
            return self.memory[: len(rows)]

    expected = angles(tmp_path, pp.observer(plain))
    module = pp.observer(Static(), device="cpu")
    np.testing.assert_allclose(angles(tmp_path, module), expected, rtol=1e-4)
    memory = torch.zeros(256, 192)

    def tensor(images: FloatArray) -> Any:
        rows = torch.tensor(plain(images))
        return memory[: len(rows)].copy_(rows).requires_grad_(False)

    np.testing.assert_allclose(
        angles(tmp_path, pp.observer(tensor)), expected, rtol=1e-4
    )


def drifting() -> Callable[..., Any]:
    calls: list[int] = []

    def drift(images: FloatArray) -> FloatArray:
        calls.append(1)
        return plain(images) * (1 + 0.01 * len(calls))

    return drift


def centred(images: FloatArray) -> FloatArray:
    """Standardise over the batch, as batch norm in training mode does."""
    rows = plain(images)
    return (rows - rows.mean(axis=0)) / (rows.std(axis=0) + 0.1) + 0.5


@pytest.mark.parametrize("function", [drifting(), centred])
def test_state_and_dependence_on_the_batch_are_told(
    tmp_path: Path, function: Callable[..., Any]
) -> None:
    with pytest.warns(ConditionWarning, match=r"module\.eval\(\).*version="):
        angles(tmp_path, pp.observer(function), batch_size=4)


def clipped(test: FloatArray, reference: FloatArray) -> FloatArray:
    """Compare drive, which a display shows up to 1."""
    drives = [np.clip(images, 0, 1) for images in (test, reference)]
    return np.abs(drives[0] - drives[1]).mean(axis=(1, 2, 3))


def demanding(test: FloatArray, reference_drive: FloatArray) -> FloatArray:
    """Compare light of 10 cd/m² and more."""
    if test.max() < 10:
        raise ValueError("too dark")
    return np.abs(test - reference_drive).mean(axis=(1, 2, 3))


def test_a_metric_that_sees_nothing_in_its_encoding_is_refused() -> None:
    with pytest.raises(PsyprobeError, match="second parameter 'reference_drive'"):
        pp.observer(clipped)
    with pytest.raises(PsyprobeError, match="second parameter 'reference_light'"):
        pp.observer(demanding)


def test_the_second_parameter_of_a_metric_chooses_light_or_drive(
    tmp_path: Path,
) -> None:
    brightest: dict[str, float] = {}

    def light(test: FloatArray, reference_light: FloatArray) -> FloatArray:
        brightest["light"] = float(test.max())
        return np.abs(test - reference_light).mean(axis=(1, 2, 3))

    def drive(test: FloatArray, reference_drive: FloatArray) -> FloatArray:
        brightest["drive"] = float(test.max())
        return np.abs(test - reference_drive).mean(axis=(1, 2, 3))

    for function in (light, drive):
        pp.run(write_experiment(tmp_path), pp.observer(function), progress=False)
    assert brightest["light"] > 50 and 0 < brightest["drive"] <= 1
