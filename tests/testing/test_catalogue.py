"""The whole catalogue is calibrated: every stimulus set, precision and backend, on every
display."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from psyprobe.light.display import Display, display_presets
from psyprobe.stimulus import Noise, Specification, Sum, Uniform
from psyprobe.stimulus.catalogue import StimulusSet, catalogue_names, load_stimulus
from psyprobe.testing import assert_calibrated

SETS = [
    name
    for name in catalogue_names("stimuli")
    if not load_stimulus(name).kind.startswith("cai2025")
]
BACKENDS = [None, "cpu"]


def levels(page: StimulusSet, count: int) -> dict[str, Any]:
    """Levels from end to end, each parameter's first with the others' first and so on; of fewer
    than are asked for, none twice."""
    places = [
        np.linspace(0, len(values) - 1, count).astype(int)
        for values in page.levels.values()
    ]
    distinct = np.unique(np.array(places), axis=1)
    return {
        name: values[chosen]
        for (name, values), chosen in zip(page.levels.items(), distinct, strict=True)
    }


def fitting(page: StimulusSet, display: Display, count: int) -> Specification:
    """At most 144 px of the field, two thirds of most, at a quarter of the display's range,
    contrasts lowered where the gamut ends earlier."""
    varied = levels(page, count)
    if max(page.spec().shape) > 144:
        varied["size"] = 144
    luminance = display.floor + 0.25 * (display.peak - display.black)
    spec = page.spec(**(varied | {"luminance": luminance}))
    if isinstance(spec, Uniform):
        return spec
    if isinstance(spec, Sum):
        half = 0.49 * display.max_contrast(luminance, "achromatic")
        names = [name for name in spec.levels() if name.endswith("contrast")]
        limits = [half / (6 if isinstance(part, Noise) else 1) for part in spec.parts]
        contrasts = {
            name: np.clip(spec.value(name), -limit, limit)
            for name, limit in zip(names, limits, strict=True)
        }
        return page.spec(**(varied | {"luminance": luminance} | contrasts))
    limit = display.max_contrast(luminance, spec.direction) * (
        1 / 6
        if page.kind in ("noise", "annulus_noise", "image", "dots", "film")
        else 1 - 1e-6
    )
    return page.spec(
        **(
            varied
            | {
                "luminance": luminance,
                "contrast": np.clip(spec.contrast, -limit, limit),
            }
        )
    )


def device_of(backend: str | None) -> str | None:
    if backend is not None:
        pytest.importorskip("torch", reason="the encoders extra is not installed")
    return backend


@pytest.mark.parametrize("backend", BACKENDS, ids=["numpy", "torch"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", SETS)
def test_every_level_of_the_catalogue(
    name: str, dtype: str, backend: str | None
) -> None:
    page = load_stimulus(name)
    spec = page.spec(**levels(page, 20))
    assert_calibrated(spec.draw(dtype=dtype, device=device_of(backend)))


@pytest.mark.parametrize("display", sorted(display_presets()))
@pytest.mark.parametrize("name", SETS)
def test_every_set_on_every_display(name: str, display: str) -> None:
    screen = Display.preset(display)
    spec = fitting(load_stimulus(name), screen, 2)
    for dtype in ("float64", "float32"):
        assert_calibrated(spec.draw(dtype=dtype), display=screen)


# Drawing knows nothing of displays, so that one of them tells of the other backend.
@pytest.mark.parametrize("name", SETS)
def test_every_set_of_the_other_backend_on_a_display(name: str) -> None:
    screen = Display.preset("hdr_p3")
    spec = fitting(load_stimulus(name), screen, 2)
    assert_calibrated(
        spec.draw(dtype="float32", device=device_of("cpu")), display=screen
    )
