"""A stimulus as a value: images of a batch, xarray, and the names that `dir` offers."""

from __future__ import annotations

import numpy as np
import pytest

from psyprobe.errors import InputError
from psyprobe.stimulus import (
    Drift,
    Gabor,
    Grating,
    Noise,
    Specification,
    disc,
    gabor,
    grating,
)

BATCHES: list[Specification] = [
    Gabor(frequency=[2.0, 4.0, 5.0], contrast=0.1, size=32, ppd=12),
    Gabor(
        frequency=[[2.0], [4.0], [5.0]],
        contrast=[0.1, 0.2],
        size=32,
        ppd=12,
        direction="red_green",
    ),
    (
        gabor(frequency=[3.0, 4.0, 5.0], contrast=0.1, size=32, ppd=12)
        + grating(frequency=3, contrast=0.2, size=32, ppd=12)
    ).spec,
    Drift(
        frequency=3,
        contrast=[0.1, 0.2, 0.3],
        temporal_frequency=5,
        frames=3,
        size=16,
        ppd=12,
    ),
]


@pytest.mark.parametrize("spec", BATCHES, ids=lambda spec: spec.kind)
@pytest.mark.parametrize("index", [0, -1, slice(1, 3), [2, 0], (Ellipsis, 1)], ids=str)
def test_an_index_selects_from_the_batch(spec: Specification, index: object) -> None:
    stimulus = spec.draw()
    selected = stimulus[index]
    rows = stimulus.pixels.reshape(*spec.batch, -1)
    by_numpy = rows[(*index, slice(None)) if isinstance(index, tuple) else index]
    np.testing.assert_array_equal(selected.pixels.ravel(), by_numpy.ravel())
    np.testing.assert_array_equal(selected.spec.draw().pixels, selected.pixels)
    assert selected.batch == selected.spec.batch


def test_an_index_of_one_image_or_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="is one stimulus"):
        gabor(frequency=3, contrast=0.1)[0]
    batch = gabor(frequency=[2, 4], contrast=0.1, size=32, ppd=12)
    with pytest.raises(InputError, match="no stimulus of the batch"):
        batch[2:]
    with pytest.raises(IndexError):
        batch[2]
    assert [float(image.spec.value("frequency")) for image in batch] == [2, 4]  # type: ignore[attr-defined]


def test_tensors_are_selected_too() -> None:
    pytest.importorskip("torch")
    batch = gabor(frequency=[2, 4], contrast=0.1, size=32, ppd=12, device="cpu")
    assert batch[1].pixels.shape == (32, 32) and batch[[1, 0]].pixels.shape == (
        2,
        32,
        32,
    )
    assert batch.to_xarray().dims == ("frequency", "y", "x")


def test_to_xarray_names_dimensions_and_units() -> None:
    stimulus = gabor(
        frequency=[[2.0], [4.0]], contrast=[0.1, 0.2, 0.3], size=(8, 16), ppd=10
    )
    array = stimulus.to_xarray()
    assert array.dims == ("frequency", "contrast", "y", "x")
    assert array.attrs["units"] == "cd m-2" and array.name == "luminance"
    assert float(array.y[0]) == 0.35 and float(array.x[0]) == -0.75
    image = array.sel(frequency=3, contrast=0.2, method="nearest")
    np.testing.assert_array_equal(image, stimulus.pixels[1, 1])


def test_to_xarray_of_other_batches() -> None:
    array = gabor(
        frequency=[2, 3], contrast=[0.1, 0.2], size=8, ppd=8, direction="red_green"
    ).to_xarray()
    assert array.dims == ("batch_0", "y", "x", "cone")
    assert array.frequency.dims == array.contrast.dims == ("batch_0",)
    assert array.cone.values.tolist() == ["L", "M", "S"]
    moved = disc(contrast=0.5, x=[0.0, 0.1], size=8, ppd=8).to_xarray()
    assert moved.dims == ("position_x", "y", "x")
    clip = (
        Drift(frequency=3, contrast=0.1, temporal_frequency=5, frames=3, size=8, ppd=8)
        .draw()
        .to_xarray()
    )
    assert clip.dims == ("time", "y", "x") and clip.time.attrs["units"] == "s"
    mask = grating(frequency=3, contrast=[0.1, 0.2], size=8, ppd=8)
    masked = (gabor(frequency=3, contrast=0.1, size=8, ppd=8) + mask).to_xarray()
    assert masked.dims == ("mask_contrast", "y", "x")
    assert (
        gabor(frequency=3, contrast=[0.1], size=8, ppd=8).to_xarray().sizes["contrast"]
        == 1
    )


@pytest.mark.parametrize("kind", [Gabor, Grating, Noise])
def test_dir_shows_parameters_and_what_a_user_calls(kind: type[Specification]) -> None:
    spec = kind(frequency=3.0, contrast=0.1)
    names = dir(spec)
    assert {*kind.parameters(), "draw", "changed", "digest", "levels", "to_dict"} <= {
        *names
    }
    assert len(names) <= len(kind.parameters()) + 24
    assert not [
        name for name in names if name.startswith("_") or not hasattr(spec, name)
    ]
    assert "measure_planes" not in names and "bounds" not in names
