"""VLMEvalKit's models behind our protocol, tried on an object that behaves as its base classes
do."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psyprobe import load_observer
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.files.images import decode_png
from psyprobe.observers import registry
from psyprobe.observers.chat.protocol import AnswerObserver, Decoding
from psyprobe.observers.chat.vlmevalkit import VLMEvalKitObserver

IMAGE = np.random.default_rng(1).integers(0, 256, (12, 10, 3)) / 255
PROMPT = "Is there a pattern visible in the image?"


class KitModel:
    """What VLMEvalKit's base classes do with a message: check it, look at the files, hand it to
    ``generate_inner``."""

    INTERLEAVE = True
    fail_msg = "Failed to obtain answer via API."

    def __init__(self, reply: Any = "Yes, there is.") -> None:
        self.reply = reply
        self.messages: list[list[dict[str, Any]]] = []
        self.paths: list[Path] = []

    def generate(
        self, message: list[dict[str, str]], dataset: str | None = None
    ) -> Any:
        assert isinstance(message, list) and dataset is None
        for item in message:
            assert set(item) == {"type", "value"} and item["type"] in ("text", "image")
            if item["type"] == "image":
                assert Path(item["value"]).is_file() and item["value"].endswith(".png")
        return self.generate_inner(message, dataset)

    def generate_inner(
        self, message: list[dict[str, str]], dataset: str | None = None
    ) -> Any:
        self.paths = [
            Path(item["value"]) for item in message if item["type"] == "image"
        ]
        images = [decode_png(path.read_bytes()) for path in self.paths]
        texts = [item["value"] for item in message if item["type"] == "text"]
        self.messages.append(
            [{"codes": codes} for codes in images] + [{"text": text} for text in texts]
        )
        return self.reply


def test_images_and_words_arrive_as_they_are() -> None:
    model = KitModel()
    observer = VLMEvalKitObserver(model, "kit")
    assert isinstance(observer, AnswerObserver)
    answer = observer.answer([IMAGE, IMAGE[::-1]], PROMPT)
    assert (answer.text, answer.first_tokens, answer.server) == (
        "Yes, there is.",
        None,
        "VLMEvalKit",
    )
    first, second, text = model.messages[0]
    np.testing.assert_array_equal(first["codes"] / 255, IMAGE)
    np.testing.assert_array_equal(second["codes"] / 255, IMAGE[::-1])
    assert text["text"] == PROMPT
    assert observer.card.ability == "answer" and observer.card.name == "vlmevalkit:kit"


def test_files_are_removed_and_never_written_again() -> None:
    model = KitModel()
    observer = VLMEvalKitObserver(model, "kit")
    observer.answer([IMAGE], PROMPT)
    (path,) = model.paths
    observer.answer([IMAGE], "Another prompt")
    assert model.paths != [path] and not path.parent.exists()


def test_refuses_what_has_no_place() -> None:
    observer = VLMEvalKitObserver(KitModel(), "kit")
    with pytest.raises(InputError, match="takes no temperature"):
        observer.answer([IMAGE], PROMPT, decoding=Decoding(temperature=1))
    with pytest.raises(InputError, match="no place for a system instruction"):
        observer.answer([IMAGE], PROMPT, system="Be brief.")
    with pytest.raises(InputError, match="off the 8-bit codes"):
        observer.answer([IMAGE * 0.999], PROMPT)
    with pytest.raises(InputError, match="a dict has no method 'generate'"):
        VLMEvalKitObserver({}, "kit")
    single = KitModel()
    single.INTERLEAVE = False
    with pytest.raises(InputError, match="takes one image at a time and was shown 2"):
        VLMEvalKitObserver(single, "kit").answer([IMAGE, IMAGE], PROMPT)


def test_a_system_instruction_as_text_on_request() -> None:
    model = KitModel()
    VLMEvalKitObserver(model, "kit", system=True).answer(
        [IMAGE], PROMPT, system="Be brief."
    )
    assert model.messages[0][-1]["text"] == f"Be brief.\n{PROMPT}"


@pytest.mark.parametrize("reply", [KitModel.fail_msg, None, 3])
def test_what_is_no_answer_is_an_error(reply: Any) -> None:
    with pytest.raises(PsyprobeError, match=r"got no answer|instead of text"):
        VLMEvalKitObserver(KitModel(reply), "kit").answer([IMAGE], PROMPT)


def test_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        PsyprobeError, match="needs vlmeval: install VLMEvalKit from its repository"
    ):
        load_observer("vlmevalkit:llava_v1.5_7b")
    config = types.ModuleType("vlmeval.config")
    config.supported_VLM = {"llava_v1.5_7b": KitModel}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vlmeval.config", config)
    monkeypatch.setattr(registry.ObserverKind, "obstacle", "")
    assert (
        load_observer("vlmevalkit:llava_v1.5_7b").answer([IMAGE], PROMPT).text
        == "Yes, there is."
    )
    with pytest.raises(InputError, match=r"did you mean 'vlmevalkit:llava_v1.5_7b'"):
        load_observer("vlmevalkit:llava_v1.5_8b")
