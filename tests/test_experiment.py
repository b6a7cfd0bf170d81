"""Running experiments: everything is asked once, nothing answered is lost, and results come back
bit for bit."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest
import xarray
from children import child
from small_experiment import Counting, write_experiment

import psyprobe as pp
from psyprobe.analysis.distance import angular_distance_float32
from psyprobe.errors import GamutError, InputError, StoreError
from psyprobe.experiment import load_experiment
from psyprobe.probes.experiments import load_results, plan, run
from psyprobe.probes.pairs import fixed_batches
from psyprobe.running.store import Store

#: 3 x 3 grid, 3 x 2 score points, 1 background; the background again for the noise floor, and one
#: rounding step away.
IMAGES, PRESENTATIONS = 9 + 6 + 1, 9 + 6 + 1 + 1 + 1


def bytes_of(result: xarray.Dataset, folder: Path) -> bytes:
    path = folder / "bytes.nc"
    result.to_netcdf(path, engine="scipy")
    return path.read_bytes()


def test_result_has_the_promised_shape(tmp_path: Path) -> None:
    result = run(write_experiment(tmp_path), Counting())
    sizes = {
        "layer": 1,
        "frequency": 3,
        "contrast": 3,
        "scored_frequency": 3,
        "multiplier": 2,
        "curve_frequency": 200,
    }
    assert dict(result.sizes) == sizes
    for measure in ("angular", "cosine", "l1", "l2"):
        assert result[f"response_{measure}"].dims == ("layer", "frequency", "contrast")
        scored = result[f"scored_response_{measure}"]
        assert scored.dims == ("layer", "scored_frequency", "multiplier")
    for name, variable in result.variables.items():
        assert variable.attrs["units"] and variable.attrs["long_name"], name
        if variable.dtype.kind == "f":
            assert np.isfinite(variable.values).all(), name
    attributes = result.attrs
    assert (json.loads(attributes["levels"]), result["frequency"].attrs["units"]) == (
        ["frequency"],
        "cycles/degree",
    )
    assert attributes["contrast_kind"] == "michelson"
    assert attributes["random_weights"] == 0
    assert json.loads(attributes["observer_card"])["name"] == "counting"
    assert json.loads(attributes["display"])["peak"] == 400
    assert "numpy" in json.loads(attributes["software"])
    assert attributes["experiment_toml"].startswith("\ntitle")


def test_responses_stand_where_they_belong(tmp_path: Path) -> None:
    path = write_experiment(tmp_path)
    experiment = load_experiment(path)
    result = run(path, "pixels")
    for dims, variable in (
        (("frequency", "contrast"), "response"),
        (("scored_frequency", "multiplier"), "scored_response"),
    ):
        for i, x in enumerate(result[dims[0]].values):
            for j in range(result.sizes[dims[1]]):
                contrast = (
                    result["contrast"].values[j]
                    if variable == "response"
                    else result["scored_contrast"].values[i, j]
                )
                spec = experiment.spec(frequency=x, contrast=contrast)
                test, reference = (
                    np.asarray(experiment.display.encode(s.draw())).ravel()
                    for s in (spec, spec.reference())
                )
                expected = pp.angular_distance(test, reference)
                response = result[f"{variable}_angular"].values[0, i, j]
                assert response == pytest.approx(float(expected), rel=1e-6)
    np.testing.assert_array_equal(
        result["response_l2"].values[0], result["pixels_response_l2"].values
    )
    np.testing.assert_array_equal(result["noise_floor_angular"], 0)
    np.testing.assert_array_equal(result["noise_floor_cosine"], 1)


def test_each_image_is_shown_once_and_once_more_to_compare(tmp_path: Path) -> None:
    observer = Counting()
    path, store = write_experiment(tmp_path), tmp_path / "runs.sqlite"
    assert plan(path, observer).images == IMAGES
    first = run(path, observer, store=store)
    assert len(observer.images) == PRESENTATIONS
    assert len({image.tobytes() for image in observer.images}) == IMAGES + 1
    # The last stored batch, which is the only one, is compared with new answers.
    second = run(path, observer, store=store)
    assert len(observer.images) == 2 * PRESENTATIONS
    assert bytes_of(first, tmp_path) == bytes_of(second, tmp_path)


def test_experiments_share_answers(tmp_path: Path) -> None:
    observer, store = Counting(), tmp_path / "runs.sqlite"
    run(write_experiment(tmp_path), observer, store=store)
    wider = write_experiment(
        tmp_path,
        (
            'frequency = { from = 1, to = 4, n = 3, scale = "log" }',
            "frequency = { values = [1, 2, 3, 4] }",
        ),
        name="wider",
    )
    observer.images.clear()
    assert plan(wider, observer, store=store).answered == 1 + 9 + 6
    run(wider, observer, store=store)
    # The one new frequency, and the background that they are compared with, which is shown a step
    # away, too; before, the stored batch, to compare it.
    assert len(observer.images) == 3 + 2 + 1 + 1 + PRESENTATIONS


def test_another_observer_is_asked_anew_but_the_pixels_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, store = write_experiment(tmp_path), tmp_path / "runs.sqlite"
    run(path, "pixels", store=store)
    observer = Counting()
    result = run(path, observer, store=store)
    assert len(observer.images) == PRESENTATIONS
    np.testing.assert_array_equal(
        result["pixels_response_l1"], load_results(store)[0]["response_l1"].values[0]
    )


def test_results_come_from_the_store_alone(tmp_path: Path) -> None:
    path, store = write_experiment(tmp_path), tmp_path / "runs.sqlite"
    result = run(path, Counting(), store=store)
    path.unlink()
    (loaded,) = load_results(store)
    xarray.testing.assert_identical(loaded, result)
    result.to_netcdf(tmp_path / "result.nc", engine="scipy")
    (read_result,) = load_results(tmp_path / "result.nc")
    xarray.testing.assert_identical(read_result, result)


def test_unfinished_runs_are_no_results(tmp_path: Path) -> None:
    class Tired(Counting):
        def features(self, images):  # type: ignore[no-untyped-def]
            if len(self.images) > 6:
                raise KeyboardInterrupt
            return super().features(images)

    path, store = write_experiment(tmp_path), tmp_path / "runs.sqlite"
    observer = Tired()
    with pytest.raises(KeyboardInterrupt):
        run(path, observer, store=store, batch_size=4)
    with pytest.raises(InputError, match=r"no finished run \(1 unfinished"):
        load_results(store)
    rested = Counting()
    planned = plan(path, rested, store=store)
    assert planned.answered == 8 and planned.batch_size == 4
    # The batches stay as they were begun, whatever size is asked for now.
    resumed = run(path, rested, store=store, batch_size=7)
    # Both stored batches are shown again, each with its background, and compared.
    assert len(rested.images) == PRESENTATIONS - 8 + 2 * (4 + 1)
    assert bytes_of(resumed, tmp_path) == bytes_of(
        run(path, Counting(), batch_size=4), tmp_path
    )


@pytest.mark.parametrize("size", [1, 3, 32])
def test_batch_size_changes_rounding_at_most(tmp_path: Path, size: int) -> None:
    path = write_experiment(tmp_path)
    xarray.testing.assert_allclose(
        run(path, "pixels", batch_size=size), run(path, "pixels"), rtol=1e-12
    )


def test_batches_keep_few_references_at_a_time() -> None:
    batches = fixed_batches(["a", "b", "c", "a", "b", "c"], range(6), size=2)
    assert batches == [
        {"references": ["a", "b"], "pairs": [0, 1]},
        {"references": ["a", "b"], "pairs": [3, 4]},
        {"references": ["c"], "pairs": [2, 5]},
    ]
    with pytest.raises(InputError, match="batch size is -1"):
        fixed_batches([], [], -1)


def test_encoders_see_images_of_their_own_size(tmp_path: Path) -> None:
    observer = Counting(input_size=24)
    result = run(write_experiment(tmp_path), observer)
    assert {image.shape for image in observer.images} == {(24, 24, 3)}
    assert result.attrs["ppd"] == 24.0 and json.loads(result.attrs["size"]) == [24, 24]


def test_what_cannot_be_shown_costs_no_pass(tmp_path: Path) -> None:
    observer = Counting()
    path = write_experiment(tmp_path, ("peak = 400", "peak = 150"))
    with pytest.raises(
        GamutError, match=r"small, frequency \S+ cpd, contrast 1: light of .* above"
    ):
        run(path, observer, store=tmp_path / "runs.sqlite")
    with pytest.raises(GamutError):
        plan(path, observer)
    assert not observer.images


def test_levels_above_nyquist_name_the_file(tmp_path: Path) -> None:
    path = write_experiment(tmp_path, ("to = 4", "to = 9"))
    with pytest.raises(InputError, match="small: frequency is 9 cpd"):
        run(path, "pixels")


def test_published_experiments_insist_on_raw_input(tmp_path: Path) -> None:
    path = write_experiment(
        tmp_path, ("[display]", '[observer]\ninput = "raw"\n[display]')
    )
    run(path, Counting())
    observer = Counting()
    observer.card = observer.card.from_dict(
        observer.card.to_dict() | {"input": "normalised"}
    )
    with pytest.raises(InputError, match="load it with input='raw'"):
        run(path, observer)


def test_an_observer_without_features_is_refused(tmp_path: Path) -> None:
    observer = Counting()
    observer.card = observer.card.from_dict(
        observer.card.to_dict() | {"ability": "answer"}
    )
    with pytest.raises(
        InputError, match="needs an observer with the ability 'features'"
    ):
        run(write_experiment(tmp_path), observer)


def test_features_that_are_not_finite_are_not_stored(tmp_path: Path) -> None:
    class Broken(Counting):
        def features(self, images):  # type: ignore[no-untyped-def]
            return {
                name: np.full_like(rows, np.nan)
                for name, rows in super().features(images).items()
            }

    with pytest.raises(InputError, match=r"counting, features output: .*not finite"):
        run(write_experiment(tmp_path), Broken(), store=tmp_path / "runs.sqlite")
    with pytest.raises(InputError, match="no finished run"):
        load_results(tmp_path / "runs.sqlite")


def test_published_arithmetic_is_stored_where_it_is_scored(tmp_path: Path) -> None:
    path = write_experiment(
        tmp_path, ("[score]", '[score]\nmeasure = "angular_float32"')
    )
    experiment, store = load_experiment(path), tmp_path / "runs.sqlite"
    run(write_experiment(tmp_path, name="plain"), "pixels", store=store)
    result = run(path, "pixels", store=store)
    assert json.loads(result.attrs["measures"])[-1] == "angular_float32"
    spec = experiment.spec(
        frequency=float(result["frequency"][1]), contrast=float(result["contrast"][0])
    )
    test, reference = (
        np.moveaxis(np.asarray(experiment.display.encode(s.draw())), -1, 0).ravel()
        for s in (spec, spec.reference())
    )
    response = float(result["response_angular_float32"][0, 1, 0])
    assert response == pytest.approx(
        float(angular_distance_float32(test, reference)), abs=1e-12
    )


def test_results_of_another_kind_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.nc").write_text("no NetCDF")
    with pytest.raises(InputError, match="no result that psyprobe wrote"):
        load_results(tmp_path / "text.nc")
    with pytest.raises(InputError, match="there is no result file"):
        load_results(tmp_path / "nothing.nc")
    xarray.Dataset({"a": ("x", [1.0])}).to_netcdf(tmp_path / "other.nc", engine="scipy")
    with pytest.raises(InputError, match="has no responses"):
        load_results(tmp_path / "other.nc")
    with pytest.raises(StoreError, match="does not exist"):
        load_results(tmp_path / "nothing.sqlite")


@pytest.mark.parametrize(
    "name",
    ["gabor_achromatic", "gabor_red_green", "luminance", "area", "gabor_yellow_violet"],
)
def test_every_plain_experiment_can_be_shown(name: str) -> None:
    planned = plan(name, "pixels")
    assert planned.grid == 400 and planned.score == 200 and planned.size == (224, 224)


# -- killed at any moment
# ------------------------------------------------------------------------------------------

_SCRIPT = textwrap.dedent(
    """
    import sys, time
    from pathlib import Path
    import numpy as np
    import psyprobe as pp
    from psyprobe.probes.results import score_layers
    from psyprobe.files.output import json_text

    def look(images):
        global passes
        passes -= 1
        if not passes:
            Path(output + ".ready").touch()
            time.sleep(600)
        # Depends on the company that an image keeps, as an encoder's rounding does.
        return images.reshape(len(images), -1) * np.float32(1 + 1e-3 * images.mean())

    experiment, store, output, passes = *sys.argv[1:4], int(sys.argv[4])
    result = pp.run(experiment, pp.observer(look, name="slow"), store=store, batch_size=3, progress=False)
    result.to_netcdf(output + ".nc", engine="scipy")
    scores = [score.to_dict() for score in score_layers(result, resamples=100)]
    Path(output + ".json").write_text(json_text(scores), encoding="utf-8")
    """
)


@contextmanager
def start(
    folder: Path, experiment: Path, store: str, output: str, passes: int = 0
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs the experiment and, if told, looks at so many batches, of which the last
    never ends."""
    (folder / "slow.py").write_text(_SCRIPT, encoding="utf-8")
    arguments = [
        folder / "slow.py",
        experiment,
        folder / store,
        folder / output,
        passes,
    ]
    with child([sys.executable, *map(str, arguments)]) as process:
        yield process


@pytest.mark.slow
def test_killed_at_six_moments_ends_with_the_same_bytes(tmp_path: Path) -> None:
    """Issue 2, point 8: SIGKILL, each time further into the same run."""
    path = write_experiment(
        tmp_path,
        ("to = 4, n = 3", "to = 4, n = 14"),
        ("to = 1, n = 3", "to = 1, n = 14"),
    )
    with start(tmp_path, path, "whole.sqlite", "whole") as process:
        assert process.wait() == 0
    rng = np.random.default_rng(20250612)
    ready, answered = tmp_path / "broken.ready", [0]
    for written in [False, True] * 3:
        # Some passes are of references and of what a resumed run asks again; what follows is
        # answered, but for the last, which holds the run until it is killed: before, amid or after
        # the writing, which comes within half a second; every other time after it.
        with start(
            tmp_path, path, "broken.sqlite", "broken", passes=int(rng.integers(13, 29))
        ) as process:
            while not ready.exists() and process.poll() is None:
                time.sleep(0.005)
            while (
                written
                and _answered(tmp_path / "broken.sqlite") == answered[-1]
                and process.poll() is None
            ):
                time.sleep(0.005)
            time.sleep(float(rng.uniform(0.0, 0.6)))
            process.kill()
            assert process.wait() == -signal.SIGKILL
        ready.unlink()
        answered.append(_answered(tmp_path / "broken.sqlite"))
    assert answered == sorted(answered) and len(set(answered)) > 3
    assert answered[-1] < 2 * (1 + 14 * 14 + 14 * 2)
    with start(tmp_path, path, "broken.sqlite", "broken") as process:
        assert process.wait() == 0
    for ending in ("nc", "json"):
        assert (tmp_path / f"broken.{ending}").read_bytes() == (
            tmp_path / f"whole.{ending}"
        ).read_bytes()


def _answered(path: Path) -> int:
    if not path.exists():
        return 0
    with Store(path) as store:
        count = store.database.count("answer")
    return count


def test_two_processes_on_one_store_agree(tmp_path: Path) -> None:
    path = write_experiment(tmp_path)
    with (
        start(tmp_path, path, "runs.sqlite", "one") as first_process,
        start(tmp_path, path, "runs.sqlite", "two") as two,
    ):
        assert [first_process.wait(), two.wait()] == [0, 0]
    assert (tmp_path / "one.nc").read_bytes() == (tmp_path / "two.nc").read_bytes()
    assert len(load_results(tmp_path / "runs.sqlite")) == 1


def test_layers_come_in_the_order_of_the_card(tmp_path: Path) -> None:
    observer = pp.observer(
        lambda images: {
            "deep": images[:, :4].reshape(len(images), -1),
            "early": images.reshape(len(images), -1),
        },
        name="two layers",
        features=("early", "deep"),
    )
    result = run(write_experiment(tmp_path), observer)
    assert result["layer"].values.tolist() == ["early", "deep"]


def test_the_store_is_free_while_an_observer_works(tmp_path: Path) -> None:
    path, free = tmp_path / "runs.sqlite", []

    def look(images: np.ndarray) -> np.ndarray:
        with closing(sqlite3.connect(path, timeout=0.0)) as other:
            other.execute(
                "BEGIN IMMEDIATE"
            )  # raises at once where another connection holds the lock
            other.rollback()
        free.append(True)
        return images.reshape(len(images), -1)

    run(write_experiment(tmp_path), pp.observer(look, name="slow"), store=path)
    assert len(free) >= 2
