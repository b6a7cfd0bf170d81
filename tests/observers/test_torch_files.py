"""A user's own network, as a file; and a user's own function."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import psyprobe as pp
from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, PsyprobeError, WeightsError
from psyprobe.observers import FeatureObserver, load_observer

torch = pytest.importorskip("torch", reason="the encoders extra is not installed")


def test_torchscript_is_run_as_it_is(torchscript_file: Path, drive: FloatArray) -> None:
    observer = load_observer(f"torch:{torchscript_file}", device="cpu")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`torch.jit", FutureWarning)
        module = torch.jit.load(str(torchscript_file))
    with torch.inference_mode():
        expected = (
            module(torch.tensor(drive.transpose(0, 3, 1, 2).copy())).flatten(1).numpy()
        )
    np.testing.assert_array_equal(observer.features(drive)["output"], expected)


def test_own_normalisation(torchscript_file: Path, drive: FloatArray) -> None:
    mean, std = (0.5, 0.4, 0.3), (0.2, 0.3, 0.4)
    observer = load_observer(
        f"torch:{torchscript_file}", mean=mean, std=std, device="cpu"
    )
    plain = load_observer(f"torch:{torchscript_file}", input="raw", device="cpu")
    assert (observer.card.mean, observer.card.std) == (mean, std)
    prepared = (drive - np.float32(mean)) / np.float32(std)
    np.testing.assert_allclose(
        observer.features(drive)["output"],
        plain.features(prepared)["output"],
        atol=1e-5,
    )


def test_python_file_shows_its_layers(python_file: Path, drive: FloatArray) -> None:
    observer = load_observer(f"torch:{python_file}:build", layers="all", device="cpu")
    assert observer.card.features == ("0", "1", "2", "output")
    features = observer.features(drive)
    assert (features["0"] < 0).any() and (features["1"] >= 0).all(), (
        "layer 0 was kept before layer 1 worked in place"
    )
    np.testing.assert_array_equal(features["2"], features["output"])


def test_digest_changes_with_the_file(python_file: Path, tmp_path: Path) -> None:
    changed = tmp_path / python_file.name
    changed.write_text(python_file.read_text() + "\n# another version\n")
    before, after = (
        load_observer(f"torch:{path}:build").card.weights_digest
        for path in (python_file, changed)
    )
    assert before != after


@pytest.mark.parametrize(
    ("suffix", "error", "message"),
    [
        (
            ":missing",
            InputError,
            "unknown function in .*own_network.py 'missing'.*Known: build, torch, wrong",
        ),
        (
            ":wrong",
            InputError,
            r"wrong\(\) returned a str; wanted is a torch.nn.Module",
        ),
        ("", InputError, "names no function"),
    ],
)
def test_python_file_errors(
    python_file: Path, suffix: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        load_observer(f"torch:{python_file}{suffix}")


def test_a_program_that_fails_is_quoted(tmp_path: Path) -> None:
    path = tmp_path / "fails.py"
    path.write_text("raise SystemExit")
    with pytest.raises(InputError, match=r"fails\.py, line 1: SystemExit"):
        load_observer(f"torch:{path}:build")
    path.write_text("raise OSError('no such camera')")
    with pytest.raises(InputError, match=r"fails\.py, line 1: OSError: no such camera"):
        load_observer(f"torch:{path}:build")


def test_file_errors(torchscript_file: Path, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="no weights file"):
        load_observer(f"torch:{tmp_path / 'none.pt'}")
    wrong = tmp_path / "weights.pt"
    torch.save({"weight": torch.zeros(3)}, wrong)
    with pytest.raises(InputError, match="is no TorchScript file"):
        load_observer(f"torch:{wrong}")
    with pytest.raises(InputError, match="names no layers"):
        load_observer(f"torch:{torchscript_file}", layers="all")
    for bad in ({"std": (0, 1, 1)}, {"mean": (1, 2)}, {"mean": (np.nan, 0, 0)}):
        with pytest.raises(InputError, match="three finite numbers"):
            load_observer(f"torch:{torchscript_file}", **bad)


def test_a_function_is_an_observer(drive: FloatArray, grey_drive: FloatArray) -> None:
    observer = pp.observer(
        lambda images: images.mean(axis=2), name="row means", input_size=224
    )
    assert isinstance(observer, FeatureObserver)
    np.testing.assert_array_equal(
        observer.features(drive)["output"], drive.mean(axis=2).reshape(3, -1)
    )
    assert observer.features(grey_drive)["output"].shape == (3, 224 * 3)
    with pytest.raises(InputError, match="224 x 224 px and these have 8 x 8 px"):
        observer.features(np.zeros((1, 8, 8, 3)))


def test_a_function_may_name_several_features_and_return_tensors(
    drive: FloatArray,
) -> None:
    def colours(images: FloatArray) -> dict[str, Any]:
        return {
            "mean": images.mean(axis=(1, 2)),
            "max": torch.tensor(images).amax(dim=(1, 2)),
        }

    observer = pp.observer(
        colours, name="colours", version="2", features=("max", "mean")
    )
    features = observer.features(drive)
    assert list(features) == ["max", "mean"]
    np.testing.assert_array_equal(features["max"], drive.max(axis=(1, 2)))
    assert (
        observer.card.digest
        != pp.observer(
            colours, name="colours", version="3", features=("max", "mean")
        ).card.digest
    )


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        (
            np.zeros((2, 3)),
            InputError,
            r"shape \(2, 3\) and format float64 for a batch of 3",
        ),
        (np.zeros((3, 2), int), InputError, "format int64"),
        (np.full((3, 2), np.inf), PsyprobeError, "NaN or infinity"),
        (
            {"other": np.zeros((3, 2))},
            InputError,
            r"returned \['other'\] and its card says \['output'\]",
        ),
    ],
)
def test_a_function_is_held_to_its_card(
    returned: Any, error: type[Exception], message: str, drive: FloatArray
) -> None:
    with pytest.raises(error, match=message):
        pp.observer(lambda images: returned, name="odd").features(drive)
