"""Every encoder keeps the protocol, whichever library it comes from."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from psyprobe import observers
from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, PsyprobeError, WeightsError

torch = pytest.importorskip("torch", reason="the encoders extra is not installed")


@pytest.fixture(scope="module")
def loaded() -> Callable[..., observers.NetworkObserver]:
    """Loads an encoder once for all tests here: none changes it."""

    @cache
    def load(name: str, **options: Any) -> observers.NetworkObserver:
        observer: observers.NetworkObserver = observers.load_observer(
            name, device="cpu", **options
        )
        return observer

    return load


@pytest.fixture()
def encoder(
    loaded: Callable[..., observers.NetworkObserver],
    encoder_name: str,
    encoder_options: dict[str, Any],
) -> observers.NetworkObserver:
    return loaded(encoder_name, **encoder_options)


def test_declares_and_keeps_the_protocol(
    encoder: observers.NetworkObserver, drive: FloatArray
) -> None:
    assert isinstance(encoder, observers.FeatureObserver)
    assert encoder.card.ability == "features"
    features = encoder.features(drive)
    assert tuple(features) == encoder.card.features
    for rows in features.values():
        assert rows.shape[0] == len(drive) and rows.ndim == 2
        assert rows.dtype == np.float32
        assert np.isfinite(rows).all()


def test_tells_images_apart(
    encoder: observers.NetworkObserver, drive: FloatArray
) -> None:
    (rows,) = encoder.features(drive).values()
    assert not np.array_equal(rows[0], rows[1])


def test_a_batch_is_a_loop(
    encoder: observers.NetworkObserver, drive: FloatArray
) -> None:
    (batch,) = encoder.features(drive).values()
    loop = np.concatenate(
        [next(iter(encoder.features(image[None]).values())) for image in drive]
    )
    np.testing.assert_allclose(batch, loop, rtol=0, atol=2e-6 * np.abs(loop).max())


def test_the_same_images_give_the_same_bits(
    encoder: observers.NetworkObserver, drive: FloatArray
) -> None:
    (first,), (second,) = (
        encoder.features(drive).values(),
        encoder.features(drive).values(),
    )
    np.testing.assert_array_equal(first, second)


def test_loading_again_gives_the_same_observer(
    encoder: observers.NetworkObserver,
    encoder_name: str,
    encoder_options: dict[str, Any],
    drive: FloatArray,
) -> None:
    torch.manual_seed(
        12345
    )  # what the caller does with the random state must not matter
    state = torch.get_rng_state()
    reloaded = observers.load_observer(encoder_name, device="cpu", **encoder_options)
    if encoder_options:
        assert torch.equal(torch.get_rng_state(), state), (
            "loading disturbed the caller's random state"
        )
    assert reloaded.card == encoder.card
    assert reloaded.card.digest == encoder.card.digest
    (first,), (anew,) = (
        encoder.features(drive).values(),
        reloaded.features(drive).values(),
    )
    np.testing.assert_array_equal(first, anew)


def test_a_grey_view_is_three_equal_channels(
    encoder: observers.NetworkObserver, grey_drive: FloatArray
) -> None:
    assert not grey_drive.flags.writeable
    (view,), (copied,) = (
        encoder.features(grey_drive).values(),
        encoder.features(grey_drive.copy()).values(),
    )
    np.testing.assert_array_equal(view, copied)


def test_takes_tensors(encoder: observers.NetworkObserver, drive: FloatArray) -> None:
    (array,), (tensor,) = (
        encoder.features(drive).values(),
        encoder.features(torch.tensor(drive)).values(),
    )
    np.testing.assert_array_equal(array, tensor)


def test_the_card_says_what_the_weights_are(
    encoder: observers.NetworkObserver, encoder_options: dict[str, Any]
) -> None:
    card = encoder.card
    assert card.random_weights == bool(encoder_options)
    assert ("RANDOM WEIGHTS" in card.label) == card.random_weights
    assert ("not a trained network" in card.weights) == card.random_weights
    assert card.weights_digest is not None and len(card.weights_digest) == 64
    assert card.software.get("torch") or card.software["onnxruntime"]
    assert observers.Card.from_dict(card.to_dict()) == card


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((224, 224, 3), r"add the batch axis with images\[None\]"),
        ((1, 3, 224, 224), r"shape \(N, H, W, 3\)"),
        ((0, 224, 224, 3), "no image"),
        ((1, 224, 224, 1), "three channels"),
    ],
)
def test_refuses_other_shapes(
    encoder: observers.NetworkObserver, shape: tuple[int, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        encoder.features(np.zeros(shape, np.float32))


def test_refuses_codes_and_what_is_not_finite(
    encoder: observers.NetworkObserver, drive: FloatArray
) -> None:
    with pytest.raises(InputError, match="uint8"):
        encoder.features((drive * 255).astype(np.uint8))
    with pytest.raises(InputError, match="NaN or infinity"):
        encoder.features(np.where(drive > 0.999, np.nan, drive))


def test_refuses_drive_out_of_range(
    loaded: Callable[..., observers.NetworkObserver],
    encoder: observers.NetworkObserver,
    encoder_name: str,
    encoder_options: dict[str, Any],
    drive: FloatArray,
) -> None:
    for wrong, extreme in (
        (drive * 255, "254"),
        (drive + np.float32(0.5), r"1\.(4999|5)"),
        (drive - np.float32(0.25), "-0.2"),
    ):
        with pytest.raises(
            InputError, match=f"drive from 0 to 1 and was given {extreme}"
        ):
            encoder.features(wrong)
    raw = loaded(encoder_name, input="raw", **encoder_options)
    assert raw.features(drive * 2), (
        "drive beyond 1 of an extended display goes in as it is"
    )
    with pytest.raises(InputError, match="drive from -10 to 10 and was given 2"):
        raw.features(drive * 255)


def test_never_resizes(encoder: observers.NetworkObserver) -> None:
    if encoder.card.input_size is None:
        pytest.skip("it looks at images of any size")
    with pytest.raises(
        InputError,
        match=r"224 x 224 px and these have 192 x 224 px: draw them at that size",
    ):
        encoder.features(np.zeros((1, 192, 224, 3), np.float32))


def test_another_size_on_request(
    encoder_name: str, encoder_options: dict[str, Any]
) -> None:
    if encoder_name == "open_clip:tiny-RN":
        with pytest.raises(InputError, match="cannot look at images of 192 x 160 px"):
            observers.load_observer(
                encoder_name, input_size=(192, 160), **encoder_options
            )
        return
    encoder = observers.load_observer(
        encoder_name, input_size=(192, 160), **encoder_options
    )
    assert encoder.card.input_size == (192, 160)
    (rows,) = encoder.features(np.full((2, 192, 160, 3), 0.5, np.float32)).values()
    assert len(rows) == 2


def test_raw_leaves_the_drive_as_it_is(
    loaded: Callable[..., observers.NetworkObserver],
    encoder: observers.NetworkObserver,
    encoder_name: str,
    encoder_options: dict[str, Any],
    drive: FloatArray,
) -> None:
    raw = loaded(encoder_name, input="raw", **encoder_options)
    normalised = encoder
    assert (raw.card.input, normalised.card.input) == ("raw", "normalised")
    assert raw.card.mean == normalised.card.mean, (
        "the card tells the network's own normalisation in either case"
    )
    assert raw.card.digest != normalised.card.digest
    prepared = (drive - np.float32(raw.card.mean)) / np.float32(raw.card.std)
    (theirs,), (ours,) = (
        normalised.features(drive).values(),
        raw.features(prepared).values(),
    )
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6 * np.abs(theirs).max())


def test_shorter_formats_on_request(
    encoder: observers.NetworkObserver,
    encoder_name: str,
    encoder_options: dict[str, Any],
    drive: FloatArray,
) -> None:
    if encoder_name.startswith("onnx:"):
        pytest.skip("a graph has the format that it was exported in")
    full = encoder
    short = observers.load_observer(encoder_name, dtype="bfloat16", **encoder_options)
    assert (
        short.card.dtype == "bfloat16"
        and short.card.weights_digest == full.card.weights_digest
    )
    (rows,), (exact,) = short.features(drive).values(), full.features(drive).values()
    assert rows.dtype == np.float32
    assert 0 < np.abs(rows - exact).max() < 0.1 * np.abs(exact).max()


def test_a_feature_that_overflows_is_an_error() -> None:
    module = torch.nn.Flatten()
    network = observers.Network(
        "overflow", module, lambda images: module(images) * 1e30 * 1e30
    )
    with pytest.raises(PsyprobeError, match="'embedding' holds NaN or infinity"):
        observers.NetworkObserver(
            network, observers.NetworkOptions(device="cpu")
        ).features(np.ones((1, 4, 4, 3), np.float32))


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        (
            "timm:vit_tiny_patch16_22",
            {},
            InputError,
            "did you mean 'timm:vit_tiny_patch16_224'",
        ),
        (
            "timm:resnet18.a1_in2k",
            {},
            InputError,
            "did you mean 'timm:resnet18.a1_in1k'",
        ),
        ("timm:resnet18", {"dtype": "float8"}, InputError, "unknown dtype 'float8'"),
        (
            "timm:resnet18",
            {"device": "nowhere"},
            InputError,
            "cannot run on device 'nowhere'",
        ),
        (
            "timm:resnet18",
            {"input": "bgr"},
            InputError,
            "neither 'normalised' nor 'raw'",
        ),
        ("timm:resnet18", {"input_size": 224.5}, InputError, "input_size 224.5 px"),
        ("timm:resnet18", {"colour": 1}, InputError, "takes no option 'colour'"),
        ("timm:resnet18", {"weights": "nowhere.pth"}, InputError, "not for both"),
        (
            "timm:vit_tiny_patch16_224",
            {"input_size": 225},
            InputError,
            "multiples of 16 x 16 px",
        ),
        ("torchvision:resnet19", {}, InputError, "did you mean 'torchvision:resnet18'"),
        (
            "torchvision:resnet18.V2",
            {},
            InputError,
            "did you mean 'torchvision:resnet18.IMAGENET1K_V1'",
        ),
        (
            "torchvision:vit_b_16",
            {"input_size": 192},
            InputError,
            "cannot look at images of 192 x 192 px: Wrong image",
        ),
        (
            "torchvision:resnet18",
            {"layers": "layer1.0.ad"},
            InputError,
            r"did you mean 'layer1\.0\.add'",
        ),
        ("open_clip:ViT-B-33", {}, InputError, "did you mean 'open_clip:ViT-B-32/TAG'"),
        (
            "open_clip:ViT-B-32/openia",
            {},
            InputError,
            "did you mean 'open_clip:ViT-B-32/openai'",
        ),
        (
            "packaged:efficientnet_lite9",
            {},
            InputError,
            "Known: packaged:efficientnet_lite0",
        ),
        ("pixels", {}, InputError, "takes no option 'random_weights'"),
    ],
)
def test_one_clear_line(
    name: str, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        observers.load_observer(name, random_weights=True, **options)
    assert "\n" not in str(caught.value)


def test_weights_error_is_not_an_input_error() -> None:
    assert not issubclass(WeightsError, InputError)
