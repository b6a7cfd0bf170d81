"""The vision towers of chat models: what they give, and that they see what the chat model sees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from psyprobe import load_observer
from psyprobe.errors import InputError
from psyprobe.observers import FeatureObserver

torch = pytest.importorskip("torch", reason="the chat extra is not installed")
transformers = pytest.importorskip(
    "transformers", reason="the chat extra is not installed"
)

FAMILIES = ("llava", "qwen", "smolvlm", "blip2", "instructblip")
Folders = Callable[[str], Path]


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("family", FAMILIES)
def test_features_of_a_batch_are_those_of_each_image(
    family: str, chat_folders: Folders
) -> None:
    observer = load_observer(
        f"transformers_vision:{chat_folders(family)}", layers="all", device="cpu"
    )
    assert isinstance(observer, FeatureObserver) and observer.card.ability == "features"
    assert observer.card.random_weights
    has = ("projector", "projector_mean") if family != "instructblip" else ()
    assert observer.card.features == (*has, "tower", "tower_mean")
    images = 0.9 * np.random.default_rng(3).random((2, *observer.card.input_size, 3))
    features = observer.features(images)
    assert tuple(features) == observer.card.features
    for name, rows in features.items():
        assert rows.shape[0] == 2 and rows.ndim == 2 and rows.dtype == np.float32
        assert not np.array_equal(rows[0], rows[1])
        np.testing.assert_array_equal(observer.features(images[1:])[name][0], rows[1])
    step = observer.features(images + 1e-5)
    assert all(not np.array_equal(step[name], features[name]) for name in features), (
        "less than a code is seen"
    )


@pytest.mark.parametrize("family", ["llava", "qwen", "blip2"])
def test_the_projector_is_what_the_language_model_gets(
    family: str, chat_folders: Folders
) -> None:
    """Caught where the text model takes its input in, while the chat observer is asked about the
    same image."""
    eye = load_observer(f"transformers_vision:{chat_folders(family)}", device="cpu")
    chat = load_observer(f"transformers:{chat_folders(family)}", device="cpu")
    assert eye.card.weights_digest == chat.card.weights_digest
    assert eye.card.features == ("projector",)
    image = np.random.default_rng(4).random((*eye.card.input_size, 3))
    caught = []
    text = (
        chat._model.language_model
        if family == "blip2"
        else chat._model.model.language_model
    )
    layer = next(
        module for name, module in text.named_modules() if name.endswith("layers.0")
    )
    hook = layer.register_forward_pre_hook(
        lambda module, inputs: caught.append(inputs[0][0])
    )
    chat.answer([image], "Is there a pattern?")
    hook.remove()
    tokens = eye.features(image[None])["projector"].reshape(-1, 32)
    network_input = caught[0].numpy()
    if (
        family == "blip2"
    ):  # OPT adds its positions before its first layer: compare up to what all images share
        other = np.random.default_rng(5).random(image.shape)
        caught.clear()
        hook = layer.register_forward_pre_hook(
            lambda module, inputs: caught.append(inputs[0][0])
        )
        chat.answer([other], "Is there a pattern?")
        hook.remove()
        network_input = network_input - caught[0].numpy()
        tokens = tokens - eye.features(other[None])["projector"].reshape(-1, 32)
    distance = np.abs(network_input[:, None] - tokens[None]).max(-1).min(0)
    np.testing.assert_allclose(distance, 0, atol=1e-5)


def test_asks_for_its_size_and_its_layers(chat_folders: Folders) -> None:
    name = f"transformers_vision:{chat_folders('llava')}"
    observer = load_observer(name, device="cpu", layers=["tower_mean"])
    assert observer.card.features == ("tower_mean",)
    with pytest.raises(InputError, match="56 x 56 px and these have 64 x 64 px"):
        observer.features(np.zeros((1, 64, 64, 3)))
    with pytest.raises(
        InputError, match=r"unknown layer of .*'towers'; did you mean 'tower'"
    ):
        load_observer(name, device="cpu", layers=["towers"])
    with pytest.raises(InputError, match="each once"):
        load_observer(name, device="cpu", layers=["tower", "tower"])
