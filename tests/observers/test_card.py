"""The card: a value that survives JSON, and a digest that says whether two observers compute the
same."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

import pytest

from psyprobe.errors import InputError
from psyprobe.observers import Card

CARD = Card(
    "timm:resnet18",
    "features",
    ("layer1", "embedding"),
    input_size=(224, 224),
    input="normalised",
    mean=(0.485, 0.456, 0.406),
    std=(0.229, 0.224, 0.225),
    weights_digest="0" * 64,
    options={"quick_gelu": True},
    software={"torch": "2.1"},
)


def test_survives_json() -> None:
    assert Card.from_dict(json.loads(json.dumps(CARD.to_dict()))) == CARD


def test_refuses_unknown_fields() -> None:
    with pytest.raises(InputError, match="has no field colour"):
        Card.from_dict(CARD.to_dict() | {"colour": "red"})


@pytest.mark.parametrize(
    "change",
    [
        {"name": "timm:resnet34"},
        {"features": ("embedding",)},
        {"input_size": (256, 256)},
        {"input": "raw"},
        {"mean": (0.5, 0.5, 0.5)},
        {"dtype": "float16"},
        {"weights_digest": "1" * 64},
        {"random_weights": True},
        {"options": {"quick_gelu": False}},
    ],
)
def test_digest_changes_with_what_is_computed(change: dict[str, object]) -> None:
    assert dataclasses.replace(CARD, **change).digest != CARD.digest


@pytest.mark.parametrize(
    "change",
    [
        {"device": "cuda"},
        {"weights": "file elsewhere.pth"},
        {"software": {"torch": "9"}},
        {"licence": "MIT"},
    ],
)
def test_digest_is_the_same_elsewhere(change: dict[str, object]) -> None:
    assert dataclasses.replace(CARD, **change).digest == CARD.digest


def test_digest_is_the_same_in_another_process() -> None:
    program = f"from psyprobe.observers import Card; print(Card.from_dict({CARD.to_dict()!r}).digest)"
    output = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=1200,
    ).stdout
    assert output.strip() == CARD.digest


def test_can_be_a_key() -> None:
    assert {CARD: 1}[Card.from_dict(CARD.to_dict())] == 1
