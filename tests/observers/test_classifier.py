"""A packaged network names 16 categories by its classes, as one answer for each image."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import psyprobe as pp
from psyprobe.cli import main
from psyprobe.errors import InputError, UnknownNameError
from psyprobe.experiment import load_experiment
from psyprobe.observers import list_observers, load_observer
from psyprobe.observers.readers.classifier import CATEGORIES, CategoryClassifier
from psyprobe.probes.words.identification import read_alternatives

NAME = "classifier:efficientnet_lite0"
#: Settings with two contrasts.
FEW = {
    "asking.design": "constant",
    "asking.options": {},
    "asking.repeats": 4,
    "levels.contrast.values": [0.002, 0.2],
}
(ROW,) = list_observers(NAME)
needs_weights = pytest.mark.skipif(bool(ROW.obstacle), reason=ROW.obstacle)


def test_sixteen_categories_share_no_class_and_hold_what_their_names_say() -> None:
    numbers = [number for classes in CATEGORIES.values() for number in classes]
    assert len(CATEGORIES) == 16 and len({*numbers}) == len(numbers)
    info = pytest.importorskip("timm.data").ImageNetInfo("imagenet-1k")
    for name in ("bear", "elephant", "bottle", "chair", "clock", "keyboard"):
        for number in CATEGORIES[name]:
            text = info.index_to_description(number).replace("throne", "chair")
            assert name in text, (number, text)


def test_a_classifier_without_its_weights_is_listed_with_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for package in ("torch", "timm"):
        pytest.importorskip(package)
    monkeypatch.setattr("psyprobe.observers.encoders.packaged._find", lambda _: None)
    (row,) = list_observers(NAME)
    assert "needs the weights" in row.obstacle


@needs_weights
def test_photographs_are_named_by_their_files_until_their_contrast_is_gone() -> None:
    page = load_experiment("photograph_categories").with_settings(FEW)
    table = pp.analysis.trials(pp.run(page, NAME, progress=False))
    strong = table["contrast"].values > 0.1
    labels = table["shown"].values
    assert {*labels[strong]} == {"cat", "clock"}
    assert (table["answer"].values[strong] == labels[strong]).all()
    margin = table["logprob_cat"].values - table["logprob_clock"].values
    cat = labels == "cat"
    assert margin[cat & strong].min() > margin[~cat & strong].max()
    # Most of what it sees at 0.2 is gone at 0.002.
    faint = margin[cat & ~strong].mean() - margin[~cat & ~strong].mean()
    clear = margin[cat & strong].mean() - margin[~cat & strong].mean()
    assert abs(faint) < 0.1 * clear


@needs_weights
def test_a_folder_of_sixteen_is_asked_in_one_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Noise stands in for photographs: none of all sixteen categories may be passed on."""
    rng = np.random.default_rng(1)
    for name in CATEGORIES:
        codes = rng.integers(0, 256, (224, 224), dtype=np.uint8)
        Image.fromarray(codes).save(tmp_path / f"{name}.png")
    command = ["run", "photograph_categories", "--observer", NAME, "--output"]
    file = f"stimulus.parameters.file={tmp_path}"
    out = tmp_path / "out"
    assert main([*command, str(out), "--set", file, "asking.options.n_max=16"]) == 0
    assert "16 alternatives" in " ".join(capsys.readouterr().out.split())
    (result,) = pp.load_results(out / "runs.sqlite")
    table = pp.analysis.trials(result)
    assert sorted(table["shown"].values) == sorted(CATEGORIES)


def test_files_of_one_name_have_no_words(tmp_path: Path) -> None:
    for suffix in ("png", "jpg"):
        Image.new("L", (224, 224)).save(tmp_path / f"cat.{suffix}")
    page = load_experiment("photograph_categories").with_settings(
        {"stimulus.parameters.file": str(tmp_path)}
    )
    with pytest.raises(InputError, match="whose values have no words"):
        read_alternatives(page)


@needs_weights
def test_the_mean_over_classes_counts_and_not_their_sum() -> None:
    observer = load_observer(NAME)
    assert isinstance(observer, CategoryClassifier)
    image = np.full((224, 224, 3), 0.4, np.float32)
    values = observer.log_probabilities(image, tuple(CATEGORIES))
    shares = {
        name: np.exp(value) * len(CATEGORIES[name]) for name, value in values.items()
    }
    assert 0 < sum(shares.values()) < 1


@needs_weights
def test_other_words_and_networks_are_refused() -> None:
    image = np.full((224, 224, 3), 0.4, np.float32)
    with pytest.raises(InputError, match="truck, and 'horse' is none of them"):
        load_observer(NAME).answer([image], "?", words=("cat", "horse"))
    with pytest.raises(UnknownNameError, match="unknown observer 'classifier:hed'"):
        load_observer("classifier:hed")
