"""A packaged network names 16 categories by its classes, as one answer for each image."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import psyprobe as pp
from psyprobe.errors import InputError, UnknownNameError
from psyprobe.experiment import load_experiment
from psyprobe.observers import list_observers, load_observer
from psyprobe.observers.readers.classifier import CATEGORIES, CategoryClassifier

NAME = "classifier:efficientnet_lite0"
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
def test_a_photograph_of_a_cat_is_named_until_its_contrast_is_gone(
    tmp_path: Path,
) -> None:
    data = pytest.importorskip("skimage.data")
    for number, name in enumerate(("chelsea", "rocket")):
        Image.fromarray(getattr(data, name)()).save(tmp_path / f"{number}.png")
    observer = load_observer(NAME)
    assert isinstance(observer, CategoryClassifier)
    page = load_experiment("photograph_contrast").with_settings(
        {
            "probe": "identify",
            "stimulus": {
                "kind": "image",
                "parameters": {
                    "file": str(tmp_path),
                    "contrast": 0.2,
                    "radius": 4.0,
                    "luminance": 100,
                    "ppd": 32,
                    "size": 224,
                },
            },
            "options": {
                "label": "picture",
                "values": [0, 1],
                "names": ["cat", "truck"],
            },
            "levels": {"contrast": {"values": [0.002, 0.3]}},
            "asking": {"prompts": "identify", "readout": "text", "repeats": 4},
        }
    )
    result = pp.run(page, observer, progress=False)
    table = pp.analysis.trials(result)
    shown = table["shown"].values == "cat"
    strong = table["contrast"].values > 0.1
    assert (table["answer"].values[shown & strong] == "cat").all()
    margin = table["logprob_cat"].values - table["logprob_truck"].values
    assert margin[shown & strong].min() > margin[~shown & strong].max()


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
