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


def network(image_limit: int) -> tuple[NetworkObserver, list[int]]:
    """Return a network whose memory holds so many images, and the sizes of its batches."""
    mean = torch.nn.Sequential(torch.nn.AvgPool2d(8), torch.nn.Flatten())
    batch_sizes: list[int] = []

    def embed(batch: Any) -> Any:
        batch_sizes.append(len(batch))
        if len(batch) > image_limit:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return mean(batch)

    return NetworkObserver(
        Network("small", mean, embed), NetworkOptions(device="cpu", layers=None)
    ), batch_sizes


@pytest.fixture
def images() -> FloatArray:
    return np.random.default_rng(0).random((11, 16, 16, 3), dtype=np.float32)


def test_fewer_images_are_taken_at_once_and_it_is_said_once(images: FloatArray) -> None:
    (full, _), (small, batch_sizes) = network(11), network(3)
    with pytest.warns(
        ConditionWarning,
        match="memory of cpu ran out with .* images at once; [63] are taken",
    ) as warned:
        features = small.features(images)
    assert len(warned) == 2  # 11 and 6 are too many
    np.testing.assert_array_equal(
        features["embedding"], full.features(images)["embedding"]
    )
    batch_sizes.clear()
    small.features(images)
    assert batch_sizes == [3, 3, 3, 2]


def test_an_image_that_does_not_fit_alone_is_one_sentence(images: FloatArray) -> None:
    small, _ = network(0)
    with (
        pytest.warns(ConditionWarning),
        pytest.raises(PsyprobeError, match="one image of 16 x 16 px does not fit"),
    ):
        small.features(images[:2])
