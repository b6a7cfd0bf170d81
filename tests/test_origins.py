"""By what answers were computed is kept with them, and said before another version of it mixes its
own in."""

from __future__ import annotations

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from small_experiment import write_experiment

from psyprobe.cli import main
from psyprobe.errors import ConditionWarning
from psyprobe.probes.experiments import load_results, run
from psyprobe.running import origins
from psyprobe.running.store import Store

NETWORK = """
import torch

def build():
    torch.manual_seed({seed})
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 4, stride=4), torch.nn.Flatten())
"""


def versions(**changed: str) -> Any:
    return lambda: (
        {
            "python": "3.12",
            "psyprobe": "0.1.0",
            "numpy": "2.0",
            "scipy": "1.14",
            "xarray": "2024",
        }
        | changed
    )


@pytest.fixture
def half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A page, and a store that numpy 2.0 filled for an experiment that shares some of its
    conditions."""
    monkeypatch.setattr(origins, "software_versions", versions())
    narrow = write_experiment(
        tmp_path, ("from = 1, to = 4, n = 3", "from = 1, to = 2, n = 2"), name="narrow"
    )
    run(narrow, "pixels", store=tmp_path / "runs.sqlite")
    return write_experiment(tmp_path), tmp_path / "runs.sqlite"


def test_other_software_is_said_in_one_line_before_it_mixes(
    half: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page, store = half
    monkeypatch.setattr(
        origins, "software_versions", versions(numpy="2.1", python="3.13")
    )
    assert (
        main(
            [
                "run",
                str(page),
                "--observer",
                "pixels",
                "--store",
                str(store),
                "--output",
                str(page.parent),
            ]
        )
        == 0
    )
    notes = [
        line
        for line in capsys.readouterr().err.splitlines()
        if line.startswith("Note: pixels")
    ]
    assert notes == [
        "Note: pixels: stored answers were computed with numpy 2.0, and new ones with 2.1, "
        "which can move numbers; for "
        "one origin of all, use a new store"
    ]
    _, result = load_results(store)
    assert json.loads(result.attrs["software"])["numpy"].split(" and ")[1:] == [
        "2.0",
        "2.1",
    ]
    with Store(store) as opened:
        narrow, full_run = opened.runs()
    assert [origin.software["numpy"] for origin in narrow.origins] == ["2.0"]
    assert [origin.software["numpy"] for origin in full_run.origins] == ["2.0", "2.1"]


def test_nothing_is_said_where_nothing_mixes(
    half: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    page, store = half
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConditionWarning)
        # Software that moves no number, and a run whose answers are all stored.
        monkeypatch.setattr(
            origins, "software_versions", versions(python="3.13", xarray="2025")
        )
        first = run(page, "pixels", store=store)
        monkeypatch.setattr(origins, "software_versions", versions(numpy="2.1"))
        second = run(page, "pixels", store=store)
    xarray.testing.assert_identical(first, second)


def test_a_network_that_changed_in_its_file_does_not_overwrite_the_result_of_the_old_one(
    tmp_path: Path,
) -> None:
    pytest.importorskip("torch", reason="the encoders extra is not installed")
    page, network, folder = (
        write_experiment(tmp_path),
        tmp_path / "own.py",
        tmp_path / "results",
    )
    command = [
        "run",
        str(page),
        "--observer",
        f"torch:{network}:build",
        "--output",
        str(folder),
    ]
    network.write_text(NETWORK.format(seed=1))
    assert main(command) == 0
    old = {
        file.name: file.read_bytes()
        for file in folder.iterdir()
        if file.suffix != ".sqlite"
    }
    network.write_text(NETWORK.format(seed=2))
    assert main(command) == 0
    new = {
        file.name: file.read_bytes()
        for file in folder.iterdir()
        if file.suffix != ".sqlite"
    }
    assert len(old) == 3 and len(new) == 6 and {name: new[name] for name in old} == old
    # Either one again writes its own files again.
    for seed in (1, 2):
        network.write_text(NETWORK.format(seed=seed))
        assert main(command) == 0
    assert {
        file.name: file.read_bytes()
        for file in folder.iterdir()
        if file.suffix != ".sqlite"
    } == new
    first, other = load_results(folder / "runs.sqlite")
    assert not np.array_equal(first["response_angular"], other["response_angular"])


@pytest.mark.parametrize(
    ("draw", "sha256"),
    [
        (
            lambda: np.random.default_rng(12).standard_normal(4096, dtype=np.float32),
            "e1afd9137eab3988463f00239a859a56158cd9031c52bdaceb01daf930cb933a",
        ),  # annulus_noise
        (
            lambda: np.random.default_rng(12).uniform(0, 2 * np.pi, 4096),
            "72d9b7c010f3f8ca0e94258e2c1acc6801d4f7fa26571a346792e0e37db02914",
        ),  # noise
        (
            lambda: np.random.RandomState(1).standard_normal((64, 64)),
            "a911b99a04f7d7a87b1697dc27642c6caff8806857b9409dcf62a27639c45e0e",
        ),  # cai2025
        (
            lambda: np.random.default_rng(12).random((64, 64)),
            "b7bc93c1baf257f03c6ece92f3bf6a56ccbd57b0b31e1c1a29f91e6a2a738c1c",
        ),  # dither
        (
            lambda: np.random.default_rng(12).standard_normal((64, 64)),
            "5bf2866b4bab5be6baaa92aeaf9056a5544eecb33f27c32673638766dca26675",
        ),  # corruption in float64
        (
            lambda: np.random.default_rng(12).integers(
                0, 65536, size=4096, dtype=np.uint16
            ),
            "ec3aa33d4db6821db81c6904fa67ffdda7512d5eaf32eb49149f5b9d3a754aae",
        ),  # corruption in 8 bits
    ],
)
def test_numpy_draws_the_stream_that_stored_images_were_drawn_from(
    draw: Any, sha256: str
) -> None:
    """Images are named by kind, parameters and seed: where a seed gave other noise, the name would
    lie."""
    values = draw()
    # In float32, since a mathematical library may differ in the last bit of a double.
    assert (
        hashlib.sha256(
            values.astype("<u2" if values.dtype.kind == "u" else "<f4").tobytes()
        ).hexdigest()
        == sha256
    )
