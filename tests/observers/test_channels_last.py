"""Convolutions of libraries' networks work with channels last on a CPU, which is faster; one's own
stay as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import psyprobe as pp
from psyprobe._typing import FloatArray
from psyprobe.observers.encoders.network import NetworkObserver, seeded

torch = pytest.importorskip("torch", reason="the encoders extra is not installed")
timm = pytest.importorskip("timm", reason="the encoders extra is not installed")


def _library_features(observer: Any, module: Any, images: FloatArray) -> FloatArray:
    mean, std = np.float32(observer.card.mean), np.float32(observer.card.std)
    with torch.inference_mode():
        maps = module.forward_features(
            torch.tensor(((images - mean) / std).transpose(0, 3, 1, 2).copy())
        )
        return np.asarray(module.forward_head(maps, pre_logits=True))


@pytest.mark.parametrize("name", ["resnet18", "mobilenetv3_small_050", "test_vit"])
def test_features_are_those_of_the_usual_order(name: str, drive: FloatArray) -> None:
    observer = pp.load_observer(
        f"timm:{name}", random_weights=True, device="cpu", input_size=drive.shape[1:3]
    )
    assert isinstance(observer, NetworkObserver)
    kernels = [
        convolution.weight
        for convolution in observer._module.modules()
        if isinstance(convolution, torch.nn.Conv2d)
    ]
    assert all(
        kernel.is_contiguous(memory_format=torch.channels_last) for kernel in kernels
    )
    with seeded():
        size = {"img_size": drive.shape[1:3]} if "vit" in name else {}
        module = timm.create_model(name, **size).eval()
    expected = _library_features(observer, module, drive[:2])
    features = observer.features(drive[:2])[observer.card.features[-1]]
    np.testing.assert_allclose(
        features, expected, rtol=0, atol=1e-5 * np.abs(expected).max()
    )


def test_own_networks_may_take_views_of_their_maps(drive: FloatArray) -> None:
    class Viewing(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convolution = torch.nn.Conv2d(3, 4, 3)

        def forward(self, images: Any) -> Any:
            return self.convolution(images).view(
                len(images), -1
            )  # an error with channels last

    observer = pp.observer(Viewing(), input_size=drive.shape[1:3], device="cpu")
    assert observer.features(drive[:2])[observer.card.features[-1]].shape == (
        2,
        4 * 222 * 222,
    )
