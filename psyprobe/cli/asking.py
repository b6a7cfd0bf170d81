"""``psyprobe ask``: one question about one image, and what an observer says."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from psyprobe.cli.options import add_observer_options, add_stimulus_options
from psyprobe.errors import InputError
from psyprobe.files.terminal import settings, show, tell

if TYPE_CHECKING:
    from psyprobe._typing import FloatArray
    from psyprobe.observers.chat.answering import Answer, AnswerObserver


def add_ask_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("prompt", metavar="PROMPT", help="the question")
    parser.add_argument("--observer", required=True, metavar="NAME", help="see psyprobe list observers")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--image", nargs="+", metavar="FILE", help="image files, shown as they are")
    shown.add_argument("--stimulus", metavar="STIMULUS", help="a name of the catalogue, or the path of a TOML file")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the dither (default %(default)s)")
    parser.add_argument("--system", default="", metavar="TEXT", help="system text")
    parser.add_argument("--temperature", type=float, default=0.0, metavar="T", help="(default %(default)s)")
    parser.add_argument("--max-tokens", type=int, default=64, metavar="N", help="(default %(default)s)")
    add_stimulus_options(parser)
    add_observer_options(parser)


def ask_command(arguments: argparse.Namespace) -> int:
    """Ask, and print the answer; with first-token probabilities where the observer gives them."""
    from psyprobe.observers import load_observer
    from psyprobe.observers.chat.answering import Decoding

    if not arguments.prompt.strip():
        raise InputError('the question is empty; write for example "Do you see a pattern?"')
    observer = load_observer(arguments.observer, **settings(arguments.observer_option, "--observer-option"))
    if observer.card.ability != "answer":
        raise InputError(
            f"{observer.card.name} does not answer in words; name an observer that does, such as simulated:watson-malo "
            "or openai:MODEL"
        )
    decoding = Decoding(temperature=arguments.temperature, max_tokens=arguments.max_tokens)
    images = _images(arguments, observer)
    answer = observer.answer(images, arguments.prompt, system=arguments.system, decoding=decoding)
    told = {"observer": observer.card.name, "prompt": arguments.prompt, **answer.to_dict(), **_read(answer)}
    show(told, answer.text, as_json=arguments.json)
    if not arguments.json:
        tell(_remark(answer))
    return 0


def _images(arguments: argparse.Namespace, observer: AnswerObserver) -> tuple[FloatArray, ...]:
    if arguments.stimulus is None:
        if arguments.set or arguments.display:
            raise InputError("--set and --display are about a stimulus; add --stimulus NAME")
        return tuple(_file(name) for name in arguments.image or ())
    import numpy as np

    from psyprobe.cli.images import display_from, specification_from
    from psyprobe.probes.asking import at_native_size
    from psyprobe.probes.words.delivery import Delivery, deliver
    from psyprobe.stimulus.catalogue import load_stimulus

    spec = specification_from(arguments.stimulus, arguments.set)
    drawn = at_native_size(load_stimulus(arguments.stimulus).name, spec, observer.card)
    shown = np.asarray(display_from(arguments.display).encode(drawn.draw()))
    return (deliver(shown, Delivery(bits=8 if observer.bits is not None else None), arguments.seed),)


def _file(name: str) -> FloatArray:
    import numpy as np

    from psyprobe.files.images import read_image

    return read_image(name) / np.float64(255)


def _read(answer: Answer) -> dict[str, Any]:
    import math

    from psyprobe.experiment.prompts import Prompt
    from psyprobe.probes.words.reading import read_answer

    read = read_answer(answer, Prompt("asked", "?"))
    known = {"p_yes": read.p_yes, "answer_mass": read.mass}
    return {"read": read.text, **{name: None if math.isnan(value) else value for name, value in known.items()}}


def _remark(answer: Answer) -> str:
    read = _read(answer)
    parts = [f"read as {read['read']}"]
    if read["p_yes"] is not None:
        parts.append(f"P(yes) = {read['p_yes']:.3g} of the first token (yes and no together {read['answer_mass']:.3g})")
    if answer.tokens_in is not None:
        parts.append(f"{answer.tokens_in} tokens in, {answer.tokens_out} out")
    if answer.cost is not None:
        parts.append(f"{answer.cost:.2g} USD")
    return "; ".join([*parts, f"{answer.latency:.2f} s"])
