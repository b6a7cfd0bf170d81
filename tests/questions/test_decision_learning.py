"""The learning curve of decision stages: variables with intervals, and their figure."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from test_decided import write

import psyprobe as pp
from psyprobe.analysis.words.csf import chat_csf
from psyprobe.errors import InputError
from psyprobe.observers.decisions.stages import area_d_prime


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> xr.Dataset:
    """Two stages, asked so often that each level has a threshold."""
    page = write(tmp_path_factory.mktemp("page"), ("repeats = 40", "repeats = 10"))
    return pp.run(page, pp.decide("pixels", stage="template", pairs=20))


def test_each_measure_of_training_is_a_variable_of_its_own(result: xr.Dataset) -> None:
    csf = chat_csf(result)
    assert csf["learning_d_prime"].dims == ("frequency", "training_fields")
    assert csf["training_fields"].values.tolist() == [4, 8, 16]
    for index, stage in enumerate(json.loads(result.attrs["training"])):
        learning = csf.isel(frequency=index)
        assert learning["learning_d_prime"].values.tolist() == [
            d for _, d in stage["learning"]
        ]
        assert float(learning["training_contrast"]) == stage["contrasts"][0]
        if stage["endless_d_prime"] is None:
            assert np.isnan(learning["endless_d_prime"])
        else:
            assert float(learning["endless_d_prime"]) == stage["endless_d_prime"]
    for name in ("learning_d_prime", "endless_d_prime", "training_contrast"):
        assert csf[name].attrs["units"] == "1"
    low, middle, high = (csf[f"learning_d_prime{end}"] for end in ("_low", "", "_high"))
    assert bool((low < middle).all() and (middle < high).all())


def test_intervals_are_as_wide_as_d_prime_scatters(result: xr.Dataset) -> None:
    """At 60 held-out fields and a d' of 1.5 the scatter is that of normal samples."""
    generator = np.random.default_rng(1)
    samples = generator.normal(size=(300, 2, 60))
    values = [area_d_prime(signals + 1.5, blanks) for signals, blanks in samples]
    stage = {
        "value": 4.0,
        "contrasts": [0.1],
        "learning": [[12, 1.5], [24, 1.5], [48, 1.5]],
        "endless_d_prime": 1.5,
    }
    trained_result = result.assign_attrs(training=json.dumps([stage]))
    csf = chat_csf(trained_result, confidence=0.6827).sel(frequency=4)
    high = float(csf["learning_d_prime_high"][-1])
    assert high - 1.5 == pytest.approx(np.std(values), rel=0.12)
    assert float(csf["endless_d_prime_high"]) == pytest.approx(high)


def test_the_learning_curve_is_drawn_with_its_end(result: xr.Dataset) -> None:
    ax = pp.plot(result, measure="learning")
    assert isinstance(ax, Axes)
    labels = [line.get_label() for line in ax.get_lines()]
    assert {"2 cpd", "4 cpd"} <= {*labels}
    assert ax.get_xticklabels()[-1].get_text() == "endless"
    # Both stages have intervals at three numbers of fields, and at the end where it is known.
    assert len(ax.containers) >= 2


def test_without_training_there_is_nothing_to_draw(tmp_path: Path) -> None:
    page = write(tmp_path, ("repeats = 40", "repeats = 2"))
    ideal = pp.run(page, pp.decide("pixels", stage="ideal"))
    with pytest.raises(InputError, match="no decision stage was trained"):
        pp.plot(ideal, measure="learning")
