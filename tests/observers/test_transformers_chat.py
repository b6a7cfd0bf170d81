"""Chat models of the transformers library: real architectures, tiny, with random weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psyprobe import load_observer
from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, PsyprobeError, WeightsError
from psyprobe.observers.chat.protocol import Answer, AnswerObserver, Decoding, Inquiry
from psyprobe.observers.chat.transformers_chat import (
    Noise,
    TransformersChat,
    prefix_inputs,
)

torch = pytest.importorskip("torch", reason="the chat extra is not installed")
transformers = pytest.importorskip(
    "transformers", reason="the chat extra is not installed"
)

FAMILIES = ("llava", "qwen", "smolvlm", "blip2", "blip2_t5", "instructblip")
PROMPTS = (
    "Is there a pattern visible in the image? Answer with yes or no.",
    "Is the image uniform?",
    "Can you see a texture?",
)
Folders = Callable[[str], Path]


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """Networks this small lose more by waiting for threads than they gain."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def observers(chat_folders: Folders) -> dict[str, TransformersChat]:
    return {
        family: load_observer(f"transformers:{chat_folders(family)}", device="cpu")
        for family in FAMILIES
    }


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture()
def observer(family: str, observers: dict[str, TransformersChat]) -> TransformersChat:
    return observers[family]


def images_for(
    observer: TransformersChat, count: int = 1, seed: int = 1
) -> list[FloatArray]:
    """Noise of drive values that lie between 8-bit codes, at the native size."""
    assert observer.card.input_size is not None
    return list(
        np.random.default_rng(seed).random((count, *observer.card.input_size, 3))
    )


def words_of(answer: Answer) -> list[tuple[str, float]]:
    """The first tokens that spell yes or no, in one order; other tokens may share a text."""
    assert answer.first_tokens is not None
    return sorted(
        pair
        for pair in answer.first_tokens
        if pair[0].strip().casefold() in ("yes", "no")
    )


def assert_same_words(answers: Sequence[Answer], expected: Sequence[Answer]) -> None:
    for answer, other in zip(answers, expected, strict=True):
        assert [token for token, _ in words_of(answer)] == [
            token for token, _ in words_of(other)
        ]
        values = [
            np.array([value for _, value in words_of(reply)])
            for reply in (answer, other)
        ]
        np.testing.assert_allclose(*values, rtol=0, atol=2e-5)
        assert answer.text == other.text
        assert (answer.tokens_in, answer.tokens_out, answer.finish) == (
            other.tokens_in,
            other.tokens_out,
            other.finish,
        )


ONE_STEP = Decoding(max_tokens=1)


def in_order(observer: TransformersChat, inquiries: Sequence[Inquiry]) -> list[Answer]:
    answers = {id(inquiry): answer for inquiry, answer in observer.answers(inquiries)}
    return [answers[id(inquiry)] for inquiry in inquiries]


def test_declares_and_keeps_the_protocol(observer: TransformersChat) -> None:
    assert isinstance(observer, AnswerObserver)
    assert observer.card.ability == "answer" and observer.card.features == ()
    assert observer.bits is None
    answer = observer.answer(
        images_for(observer), PROMPTS[0], decoding=Decoding(max_tokens=4)
    )
    assert answer.complete and answer.attempts == 1 and answer.latency > 0
    assert answer.tokens_out is not None and 1 <= answer.tokens_out <= 4
    assert answer.server.startswith("transformers ")


def test_results_of_random_weights_say_so(observer: TransformersChat) -> None:
    assert observer.card.random_weights
    assert (
        "RANDOM WEIGHTS" in observer.card.label
        and "not a trained network" in observer.card.weights
    )


def test_first_tokens_are_those_of_a_plain_pass(
    family: str, observer: TransformersChat, chat_folders: Folders
) -> None:
    """Against the model and processor as their own documentation uses them, with nothing of ours
    between."""
    (image,) = images_for(observer)
    model = transformers.AutoModelForImageTextToText.from_pretrained(
        chat_folders(family), dtype=torch.float32
    ).eval()
    processor = transformers.AutoProcessor.from_pretrained(chat_folders(family))
    text = PROMPTS[0]
    if processor.chat_template:
        content = [{"type": "image"}, {"type": "text", "text": text}]
        text = processor.apply_chat_template(
            [{"role": "user", "content": content}], add_generation_prompt=True
        )
    options = (
        {"do_image_splitting": False, "do_resize": False} if family == "smolvlm" else {}
    )
    drive = torch.tensor(image, dtype=torch.float32).permute(2, 0, 1)
    inputs = processor(
        images=[drive], text=text, return_tensors="pt", do_rescale=False, **options
    )
    if family == "blip2_t5":
        inputs["decoder_input_ids"] = torch.zeros((1, 1), dtype=torch.long)
    with torch.no_grad():
        expected = torch.log_softmax(model(**inputs).logits[0, -1].double(), -1).numpy()
    answer = observer.answer([image], PROMPTS[0], decoding=ONE_STEP)
    assert answer.first_tokens is not None
    assert answer.tokens_in == inputs["input_ids"].shape[1]
    best = np.sort(expected)[::-1][:20]
    np.testing.assert_allclose(
        [value for _, value in answer.first_tokens[:20]], best, rtol=0, atol=2e-5
    )
    spelled = {
        token: expected[number]
        for token, number in processor.tokenizer.get_vocab().items()
        if processor.tokenizer.decode([number]).strip().lower() in ("yes", "no")
    }
    assert len(spelled) >= 6, "the tokenizer knows yes and no in several forms"
    np.testing.assert_allclose(
        sorted(value for _, value in words_of(answer)),
        sorted(spelled.values()),
        rtol=0,
        atol=2e-5,
    )


def test_a_batch_is_a_loop_and_sharing_an_image_changes_nothing(
    observer: TransformersChat,
) -> None:
    images = images_for(observer, 3)
    decoding = Decoding(max_tokens=2)
    inquiries = [
        Inquiry(prompt, (image,), decoding=decoding)
        for image in images
        for prompt in PROMPTS
    ]
    alone = [
        observer.answer(inquiry.images, inquiry.prompt, decoding=decoding)
        for inquiry in inquiries
    ]
    assert_same_words(in_order(observer, inquiries), alone)
    answers = {words_of(answer)[0][1] for answer in alone}
    assert len(answers) == len(alone), (
        "each image and each prompt has an answer of its own"
    )


@pytest.mark.parametrize("family", ["llava", "qwen", "smolvlm"])
def test_decoders_go_on_from_the_image(
    observer: TransformersChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    (image,) = images_for(observer)
    inquiries = [Inquiry(prompt, (image,), decoding=ONE_STEP) for prompt in PROMPTS]
    in_order(observer, inquiries)
    assert observer.shares_prefix, (
        "shared and unshared answers were compared and found alike"
    )
    monkeypatch.setattr(
        observer, "_from_scratch", None
    )  # so no answer can come from there
    in_order(observer, inquiries)


def test_images_arrive_as_drawn(observer: TransformersChat) -> None:
    (image,) = images_for(observer)
    delivered = observer.delivered(image)
    assert delivered.shape == image.shape
    np.testing.assert_allclose(delivered, image, rtol=0, atol=5e-7)


def test_what_the_network_gets_is_what_delivered_tells(
    observer: TransformersChat,
) -> None:
    """Caught at the network's first layer, not at the processor."""
    (image,) = images_for(observer)
    caught = []
    first = next(
        module
        for module in observer._model.modules()
        if isinstance(module, (torch.nn.Conv2d, torch.nn.Conv3d))
    )
    hook = first.register_forward_hook(
        lambda module, inputs, output: caught.append(inputs[0])
    )
    observer.answer([image], PROMPTS[0], decoding=ONE_STEP)
    hook.remove()
    network_input = caught[0].double().numpy()
    mean, std = np.array(observer.card.mean), np.array(observer.card.std)
    if (
        network_input.ndim == 5
    ):  # patches of two equal frames; whichever their order, the pixels are the same
        network_input = network_input[:, :, 0]
    assert (
        network_input.shape[0] * network_input.shape[2] * network_input.shape[3]
        == image.shape[0] * image.shape[1]
    )
    pixels = network_input.transpose(0, 2, 3, 1).reshape(-1, 3) * std + mean
    for channel in range(3):
        np.testing.assert_allclose(
            np.sort(pixels[:, channel]), np.sort(image[..., channel].ravel()), atol=5e-7
        )


def test_a_pattern_below_one_code_survives(observer: TransformersChat) -> None:
    (image,) = images_for(observer)
    faint = np.where(
        np.arange(image.shape[1])[:, None] % 2, 0.5 + 1e-5, 0.5 - 1e-5
    ) * np.ones(image.shape)
    delivered = observer.delivered(faint)
    assert 1.8e-5 < delivered.max() - delivered.min() < 2.2e-5


def test_another_size_is_told_not_hidden(
    observers: dict[str, TransformersChat],
) -> None:
    image = np.full((70, 70, 3), 0.5)
    assert observers["llava"].delivered(image).shape == (56, 56, 3)
    assert observers["qwen"].delivered(image).shape == (56, 56, 3)
    assert observers["qwen"].card.input_size == (252, 252), (
        "256 px, in whole blocks of 28"
    )


def test_greedy_text_and_its_end(observer: TransformersChat) -> None:
    images = images_for(observer)
    long = observer.answer(images, PROMPTS[1], decoding=Decoding(max_tokens=4))
    short = observer.answer(images, PROMPTS[1], decoding=Decoding(max_tokens=1))
    assert short.tokens_out == 1 and long.tokens_out is not None
    assert long.finish == ("length" if long.tokens_out == 4 else "stop")
    assert (
        observer.answer(
            images, PROMPTS[1], decoding=Decoding(max_tokens=1, logprobs=False)
        ).first_tokens
        is None
    )
    answers = in_order(
        observer,
        [
            Inquiry(PROMPTS[1], tuple(images), decoding=Decoding(max_tokens=number))
            for number in (1, 4)
        ],
    )
    assert_same_words(answers, [short, long])


def test_draws_follow_their_seed_and_nothing_else(observer: TransformersChat) -> None:
    images = images_for(observer)
    inquiries = [
        Inquiry(
            PROMPTS[0],
            tuple(images),
            decoding=Decoding(temperature=1, max_tokens=3, seed=seed),
        )
        for seed in (1, 2, 1, 3)
    ]
    answers = in_order(observer, inquiries)
    assert (
        answers[0].text == answers[2].text
        and len({answer.text for answer in answers}) == 3
    )
    assert (
        observer.answer(images, PROMPTS[0], decoding=inquiries[3].decoding).text
        == answers[3].text
    )


def test_draws_have_the_probabilities_that_the_temperature_gives() -> None:
    logits = torch.tensor([1.0, 0.0, -0.5, 2.0])
    expected = torch.softmax(logits / 0.5, -1).numpy()
    noise = Noise(
        [Decoding(temperature=0.5, seed=seed) for seed in range(4000)] + [Decoding()]
    )
    tokens = noise(None, logits.repeat(4001, 1)).argmax(-1).numpy()
    shares = np.bincount(tokens[:-1], minlength=4) / 4000
    np.testing.assert_allclose(shares, expected, rtol=0, atol=4 * np.sqrt(0.25 / 4000))
    assert tokens[-1] == 3, "without a temperature the likeliest"


def test_several_images_where_the_model_takes_them(observer: TransformersChat) -> None:
    images = images_for(observer, 2)
    if observer.images_at_once == 1:
        with pytest.raises(
            InputError, match="takes one image at a time and was shown 2"
        ):
            observer.answer(images, PROMPTS[0], decoding=ONE_STEP)
        return
    of_two, of_single = (
        observer.answer(images[:count], PROMPTS[0], decoding=ONE_STEP)
        for count in (2, 1)
    )
    assert (
        of_two.tokens_in is not None
        and of_single.tokens_in is not None
        and of_two.tokens_in > of_single.tokens_in + 3
    )
    assert words_of(
        observer.answer(images[::-1], PROMPTS[0], decoding=ONE_STEP)
    ) != words_of(of_two)
    inquiries = [
        Inquiry(prompt, tuple(images), decoding=ONE_STEP) for prompt in PROMPTS
    ]
    assert_same_words(in_order(observer, inquiries)[:1], [of_two])


def test_system_instructions(observer: TransformersChat) -> None:
    images = images_for(observer)
    if not observer._has_template:
        with pytest.raises(InputError, match="no place for a system instruction"):
            observer.answer(
                images, PROMPTS[0], system="Answer truly.", decoding=ONE_STEP
            )
        return
    plain, instructed = (
        observer.answer(images, PROMPTS[0], system=system, decoding=ONE_STEP)
        for system in ("", "Answer truly.")
    )
    assert (
        plain.tokens_in is not None
        and instructed.tokens_in is not None
        and instructed.tokens_in > plain.tokens_in
    )


def test_a_template_may_refuse_a_system_instruction(
    chat_folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    observer = load_observer(f"transformers:{chat_folders('llava')}", device="cpu")
    refuses = (
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') "
        "}}{% endif %}<image>"
    )
    monkeypatch.setattr(observer._processor, "chat_template", refuses)
    with pytest.raises(
        InputError,
        match="takes no system instruction: its chat template says 'no system role'",
    ):
        observer.answer(images_for(observer), PROMPTS[0], system="Answer truly.")


def test_other_words(observer: TransformersChat) -> None:
    answer = observer.answer(
        images_for(observer), PROMPTS[0], words=("a", "B"), decoding=ONE_STEP
    )
    assert answer.first_tokens is not None
    assert {"A", "a", "B"} <= {token.strip() for token, _ in answer.first_tokens}


def test_a_template_for_models_without_one(
    chat_folders: Folders, observers: dict[str, TransformersChat]
) -> None:
    with_template = load_observer(
        f"transformers:{chat_folders('blip2')}",
        device="cpu",
        template="Question: {prompt} Answer:",
        batch_size=2,
    )
    plain = observers["blip2"]
    images = images_for(plain)
    expected = plain.answer(
        images, f"Question: {PROMPTS[0]} Answer:", decoding=ONE_STEP
    )
    assert_same_words(
        [with_template.answer(images, PROMPTS[0], decoding=ONE_STEP)], [expected]
    )
    assert with_template.card.digest != plain.card.digest


def test_random_weights_on_request(chat_folders: Folders) -> None:
    name = f"transformers:{chat_folders('llava')}"
    state = torch.get_rng_state()
    first, second = (
        load_observer(name, random_weights=True, device="cpu") for _ in range(2)
    )
    assert torch.equal(torch.get_rng_state(), state)
    assert first.card == second.card and first.card.random_weights
    assert (
        first.card.weights_digest
        != load_observer(name, device="cpu").card.weights_digest
    )


def test_shorter_formats_round_the_pixels_and_say_so(chat_folders: Folders) -> None:
    observer = load_observer(
        f"transformers:{chat_folders('llava')}", device="cpu", dtype="bfloat16"
    )
    (image,) = images_for(observer)
    assert observer.card.dtype == "bfloat16"
    assert 1e-4 < np.abs(observer.delivered(image) - image).max() < 1e-2
    answers = in_order(
        observer, [Inquiry(prompt, (image,), decoding=ONE_STEP) for prompt in PROMPTS]
    )
    assert all(words_of(answer) for answer in answers)


def test_another_native_size(chat_folders: Folders) -> None:
    name = f"transformers:{chat_folders('qwen')}"
    observer = load_observer(name, device="cpu", input_size=(56, 84))
    (image,) = images_for(observer)
    np.testing.assert_allclose(observer.delivered(image), image, rtol=0, atol=5e-7)
    with pytest.raises(
        InputError, match="does not take images of 57 x 84 px as they are"
    ):
        load_observer(name, device="cpu", input_size=(57, 84))
    with pytest.raises(InputError, match="draw at 56 x 56 px"):
        load_observer(
            f"transformers:{chat_folders('llava')}", device="cpu", input_size=112
        )


def test_a_processor_that_wants_codes_gets_codes(
    chat_folders: Folders, tmp_path: Path
) -> None:
    """The library's processors on Pillow resize 8-bit images; they are found out by sending a
    fraction of a code."""
    from transformers.models.llava.image_processing_pil_llava import (
        LlavaImageProcessorPil,
    )

    from psyprobe.observers.chat.transformers_model import PixelPath

    pillow = LlavaImageProcessorPil(
        size={"shortest_edge": 56}, crop_size={"height": 56, "width": 56}
    )
    path = PixelPath("pillow", pillow, torch.float32)
    assert path.bits == 8 and path.input_size == (56, 56)
    codes = np.random.default_rng(0).integers(0, 256, (56, 56, 3)) / 255
    np.testing.assert_allclose(path.delivered(codes), codes, rtol=0, atol=5e-7)
    with pytest.raises(InputError, match="off the 8-bit codes"):
        path.delivered(codes * 0.999)


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("transformers:/nowhere/at/all", {}, WeightsError, "there is no folder"),
        (
            "transformers:{empty}",
            {},
            WeightsError,
            "holds no model that transformers can load",
        ),
        ("transformers:{llava}", {"dtype": "float8"}, InputError, "unknown dtype"),
        ("transformers:{llava}", {"batch_size": 0}, InputError, "batch_size is 0"),
        (
            "transformers:{llava}",
            {"template": "Question:"},
            InputError,
            "lacks {prompt}",
        ),
        (
            "transformers:{llava}",
            {"layers": "all"},
            InputError,
            "takes no option 'layers'",
        ),
    ],
)
def test_one_clear_line(
    name: str,
    options: dict[str, Any],
    error: type[Exception],
    message: str,
    chat_folders: Folders,
    tmp_path: Path,
) -> None:
    with pytest.raises(error, match=message) as caught:
        load_observer(
            name.format(empty=tmp_path, llava=chat_folders("llava")), **options
        )
    assert "\n" not in str(caught.value)


def test_weights_that_are_nowhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(
        WeightsError, match=r"no weights in the cache .* switched off"
    ) as caught:
        load_observer("transformers:nobody/nothing")
    assert "\n" not in str(caught.value)


def test_what_is_asked_must_be_answerable(observer: TransformersChat) -> None:
    with pytest.raises(InputError, match=r"takes .* at a time and was shown 0 images"):
        observer.answer([], PROMPTS[0], decoding=ONE_STEP)
    with pytest.raises(InputError, match="uint8"):
        observer.answer(
            [np.zeros((56, 56, 3), np.uint8)], PROMPTS[0], decoding=ONE_STEP
        )
    with pytest.raises(InputError, match="three channels"):
        observer.answer([np.zeros((56, 56, 1))], PROMPTS[0], decoding=ONE_STEP)


def test_pixels_that_cannot_be_read_back_are_not_guessed() -> None:
    from transformers.models.llava.image_processing_llava import LlavaImageProcessor

    from psyprobe.observers.chat.transformers_model import PixelPath

    class Flattening(LlavaImageProcessor):
        def __call__(self, *arguments: Any, **options: Any) -> Any:
            batch = super().__call__(*arguments, **options)
            batch["pixel_values"] = batch["pixel_values"].flatten(1)
            return batch

    path = PixelPath("flat", Flattening(size={"shortest_edge": 56}), torch.float32)
    assert path.bits == 8 and path.input_size is None
    with pytest.raises(
        PsyprobeError,
        match="what reaches the network cannot be told: its pixels come in the shape",
    ):
        path.delivered(np.full((56, 56, 3), 128 / 255))


def test_what_texts_share_ends_where_they_part() -> None:
    image, pad = 9, 0
    inputs = {
        "input_ids": torch.tensor([[1, 9, 9, 2, 3, 4], [0, 0, 1, 9, 9, 5]]),
        "attention_mask": torch.tensor([[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1]]),
        "pixel_values": torch.zeros(2, 3, 4, 4),
    }
    parts = prefix_inputs(inputs, image, pad)
    assert parts is not None
    prefix, rest = parts
    assert (
        prefix["input_ids"].tolist() == [[1, 9, 9]] and len(prefix["pixel_values"]) == 1
    )
    assert rest["input_ids"].tolist() == [[1, 9, 9, 2, 3, 4], [1, 9, 9, 0, 0, 5]]
    assert rest["attention_mask"].tolist() == [[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 1]]
    assert "pixel_values" not in rest
    words_first = {
        "input_ids": torch.tensor([[1, 2, 9], [1, 3, 9]]),
        "attention_mask": torch.ones((2, 3), dtype=torch.long),
    }
    assert prefix_inputs(words_first, image, pad) is None
