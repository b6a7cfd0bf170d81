"""Everything that the package computed before it was rebuilt, computed again: the same numbers, bit
for bit.

The last bits of a sum depend on the processor and on the versions of libraries. On another machine
than the one that `data/machine.json` tells of, numbers are therefore compared to 1e-9 (absolutely
1e-12; float32 to four steps of it; scores of answers in words to 1e-5), numbers inside texts too,
and digests of pixels and files are not.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pandas as pd
import pytest

import psyprobe as pp
from tests.goldens import golden_files
from tests.goldens.cases import CASES, Bench

pytest.importorskip("cv2", reason="the corruption extra is not installed")
pytest.importorskip("skimage", reason="the corruption extra is not installed")

pytestmark = pytest.mark.slow

SAME_MACHINE = golden_files.machine() == json.loads(
    golden_files.MACHINE.read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("goldens"))


@pytest.mark.parametrize("name", CASES)
def test_every_number_is_as_it_was(bench: Bench, name: str) -> None:
    current, golden = CASES[name](bench), golden_files.read(name)
    differing = golden_files.differing(current, golden, exact=SAME_MACHINE)
    differences = [
        f"{key}: {current.get(key, 'missing')!r}, was {golden.get(key, 'missing')!r}"
        for key in differing[:5]
    ]
    assert not differing, "\n".join(
        [f"{len(differing)} of {len(golden)} values differ:", *differences]
    )


@pytest.mark.parametrize(
    ("name", "test"),
    [
        ("gabor_achromatic", "sf_gabor_ach"),
        ("noise_achromatic", "sf_noise_ach"),
        ("gabor_red_green", "sf_gabor_rg"),
        ("gabor_yellow_violet", "sf_gabor_yv"),
        ("luminance", "luminance"),
        ("area", "area"),
    ],
)
def test_pixels_reproduce_their_published_scores(
    bench: Bench, name: str, test: str, oracle_data: Path
) -> None:
    """From stimulus to score, without an encoder: the printed number and the exact one (issue 2,
    point 4)."""
    with (oracle_data / "encoder_protocol" / "no_encoder_scores.csv").open() as file:
        row = next(row for row in csv.DictReader(file) if row["quantity"] == test)
    result = bench.published[name]
    printed = pp.score(result, resamples=100).score.alignment.value
    exact = pp.score(result, measure="angular", resamples=100).score.alignment.value
    stored = pd.read_csv(
        oracle_data / "encoder_protocol" / "published_sac_along_curve.csv.gz",
        dtype={"s_ac": str},
    )
    stored = stored[(stored["model"] == "no_encoder") & (stored["test"] == test)]
    ours = result["scored_response_angular_float32"].sel(layer="pixels").values
    theirs = stored.pivot(
        index="x_index", columns="multiplier", values="s_ac"
    ).to_numpy()
    assert [
        [f"{value:.9g}" for value in row] for row in ours[: len(theirs)]
    ] == theirs.tolist()
    assert printed == pytest.approx(float(row["authors"]), abs=5e-4)
    assert exact == pytest.approx(float(row["exact_float64"]), abs=1e-4)


def test_numbers_are_compared_bit_for_bit_here() -> None:
    if not SAME_MACHINE:
        pytest.skip(
            "another processor or other libraries than the goldens': numbers were compared to 1e-9"
        )
