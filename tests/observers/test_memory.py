"""A network whose memory runs out is given fewer images at once; tried on no accelerator: a module
says it is full."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from psyprobe._typing import FloatArray
from psyprobe.errors import ConditionWarning, PsyprobeError
from psyprobe.observers import Network, NetworkObserver, NetworkOptions

torch = pytest.importorskip("torch", reason="the encoders extra is not installed")


def network(most: int) -> tuple[NetworkObserver, list[int]]:
    """A network whose memory holds so many images, and how many it was given each time."""
    mean = torch.nn.Sequential(torch.nn.AvgPool2d(8), torch.nn.Flatten())
    given: list[int] = []

    def embed(batch: Any) -> Any:
        given.append(len(batch))
        if len(batch) > most:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return mean(batch)

    return NetworkObserver(
        Network("small", mean, embed), NetworkOptions(device="cpu", layers=None)
    ), given


@pytest.fixture
def images() -> FloatArray:
    return np.random.default_rng(0).random((11, 16, 16, 3), dtype=np.float32)


def test_fewer_images_are_taken_at_once_and_it_is_said_once(images: FloatArray) -> None:
    (full, _), (small, given) = network(11), network(3)
    with pytest.warns(
        ConditionWarning,
        match="memory of cpu ran out with .* images at once; [63] are taken",
    ) as said:
        found = small.features(images)
    assert len(said) == 2  # 11 and 6 are too many
    np.testing.assert_array_equal(
        found["embedding"], full.features(images)["embedding"]
    )
    given.clear()
    small.features(images)
    assert given == [3, 3, 3, 2]


def test_an_image_that_does_not_fit_alone_is_one_sentence(images: FloatArray) -> None:
    small, _ = network(0)
    with (
        pytest.warns(ConditionWarning),
        pytest.raises(PsyprobeError, match="one image of 16 x 16 px does not fit"),
    ):
        small.features(images[:2])
