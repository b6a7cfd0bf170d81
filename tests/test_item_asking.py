"""Asking about the items of a benchmark: each once, nothing lost, images loaded only for what is
asked."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.files.images import file_digest
from psyprobe.observers.chat.protocol import Answer, Decoding
from psyprobe.observers.protocol import Card
from psyprobe.running.store import Store
from psyprobe.tasks import items
from psyprobe.tasks.items import ItemQuestion, ask_items, batches_of

PLAIN = Decoding(logprobs=False)


class Echo:
    """Answers what it was asked, and counts; after so many answers it breaks off."""

    bits = 8

    def __init__(
        self,
        name: str = "echo",
        breaks_after: int = 10_000,
        images_at_once: int | None = 1,
    ) -> None:
        self.card = Card(name, "answer")
        self.prompts: list[str] = []
        self.breaks_after, self.images_at_once = breaks_after, images_at_once

    def delivered(self, image: FloatArray) -> FloatArray:
        return image

    def answer(
        self,
        images: Sequence[FloatArray],
        prompt: str,
        *,
        system: str = "",
        decoding: Decoding | None = None,
        words: Sequence[str] = (),
    ) -> Answer:
        if len(self.prompts) == self.breaks_after:
            raise KeyboardInterrupt
        self.prompts.append(prompt)
        return Answer(f"{prompt} {len(images)}")


@pytest.fixture
def images(tmp_path: Path) -> list[tuple[str, str]]:
    """Path and digest of three image files."""
    for i in range(3):
        Image.fromarray(np.full((8, 8, 3), i, dtype=np.uint8)).save(
            tmp_path / f"{i}.png"
        )
    return [
        (str(tmp_path / f"{i}.png"), file_digest(tmp_path / f"{i}.png"))
        for i in range(3)
    ]


def questions(n: int, images: list[tuple[str, str]]) -> list[ItemQuestion]:
    return [
        ItemQuestion(f"item {i}", f"prompt {i}", PLAIN, (images[i % 3],))
        for i in range(n)
    ]


def test_each_is_asked_once_and_answered_by_name(images: list[tuple[str, str]]) -> None:
    observer = Echo()
    answers = ask_items(questions(7, images), observer, version="1", progress=False)
    assert {name: answer.text for name, answer in answers.items()} == {
        f"item {i}": f"prompt {i} 1" for i in range(7)
    }
    assert len(observer.prompts) == 7


def test_a_store_is_asked_first_and_images_are_loaded_once(
    tmp_path: Path, images: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, loaded = tmp_path / "runs.sqlite", []
    ask_items(questions(4, images), Echo(), version="1", store=store, progress=False)
    decode = items.decode_image
    monkeypatch.setattr(
        items,
        "decode_image",
        lambda raw, name: loaded.append(name) or decode(raw, name),
    )
    observer = Echo()
    answers = ask_items(
        questions(7, images), observer, version="1", store=store, progress=False
    )
    # A few of the stored ones are asked again before.
    assert sorted(observer.prompts[:4]) == [f"prompt {i}" for i in range(4)]
    assert sorted(observer.prompts[4:]) == ["prompt 4", "prompt 5", "prompt 6"]
    assert sorted(loaded[-3:]) == [path for path, _ in images]
    assert len(answers) == 7


def test_an_image_that_has_changed_is_not_asked_about(
    images: list[tuple[str, str]],
) -> None:
    question_list = questions(1, images)
    Path(images[0][0]).write_bytes(Path(images[1][0]).read_bytes())
    with pytest.raises(InputError, match="has changed since the questions were made"):
        ask_items(question_list, Echo(), version="1", progress=False)


def test_work_is_plain_data_that_another_process_could_take(
    images: list[tuple[str, str]],
) -> None:
    (first, *_) = batches_of(questions(7, images), Echo(), "1")
    assert pickle.loads(pickle.dumps(first)) == first
    assert len(pickle.dumps(first)) < 5_000


@pytest.mark.parametrize(
    ("name", "version", "request_count"),
    [("other", "1", 3), ("echo", "2", 3), ("echo", "1", 0)],
)
def test_another_observer_or_version_asks_anew(
    tmp_path: Path,
    images: list[tuple[str, str]],
    name: str,
    version: str,
    request_count: int,
) -> None:
    store = tmp_path / "runs.sqlite"
    ask_items(questions(3, images), Echo(), version="1", store=store, progress=False)
    observer = Echo(name)
    ask_items(
        questions(3, images), observer, version=version, store=store, progress=False
    )
    with Store(store) as opened:
        assert sum(1 for _ in opened.all_answers()) == 3 + request_count


def test_what_was_answered_before_an_interruption_is_kept(
    tmp_path: Path, images: list[tuple[str, str]]
) -> None:
    store, broken, second = tmp_path / "runs.sqlite", Echo(breaks_after=5), Echo()
    with pytest.raises(KeyboardInterrupt):
        ask_items(
            questions(9, images), broken, version="1", store=store, progress=False
        )
    ask_items(questions(9, images), second, version="1", store=store, progress=False)
    assert {*second.prompts[:5]} == {*broken.prompts}
    assert len(broken.prompts) + len(second.prompts[5:]) == 9


def test_questions_alike_are_asked_once() -> None:
    observer = Echo()
    alike = [ItemQuestion(f"item {i}", "the same", PLAIN) for i in range(3)]
    answers = ask_items(alike, observer, version="1", progress=False)
    assert observer.prompts == ["the same"]
    assert len({id(answer) for answer in answers.values()}) == 1


def test_bad_requests_are_one_sentence() -> None:
    twice: list[Any] = [
        ItemQuestion("a", "one", PLAIN),
        ItemQuestion("a", "two", PLAIN),
    ]
    with pytest.raises(InputError, match="two questions are called 'a'"):
        ask_items(twice, Echo(), version="1")
    with pytest.raises(InputError, match="shows 2 images, and echo takes 1 at once"):
        ask_items(
            [ItemQuestion("a", "one", PLAIN, (("x", "1"), ("y", "2")))],
            Echo(),
            version="1",
        )
    features = Echo()
    features.card = Card("encoder", "features")
    with pytest.raises(InputError, match="one that answers in words"):
        ask_items([ItemQuestion("a", "one", PLAIN)], features, version="1")
