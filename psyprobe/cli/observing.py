"""``psyprobe ask``: one question about one image, or a server calibrated.

``psyprobe serve-simulated``: an observer of known truth to ask.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from dataclasses import fields

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.cli.checking import specification_from
from psyprobe.errors import InputError, unknown_name
from psyprobe.experiment.prompts import Prompt
from psyprobe.files.images import read_image
from psyprobe.files.terminal import say, settings, show, stop_event, tell
from psyprobe.light.screen import display_from
from psyprobe.observers import load_observer
from psyprobe.observers.chat.cost_summary import told as spending_told
from psyprobe.observers.chat.prices import charge, money, read_prices
from psyprobe.observers.chat.protocol import Answer, AnswerObserver, Decoding
from psyprobe.observers.protocol import PaidObserver
from psyprobe.observers.simulated.serving import Behaviour, Faults, serve
from psyprobe.probes.displayed_images import at_native_size
from psyprobe.probes.words.answer_table import read_answer
from psyprobe.probes.words.delivery import Delivery, deliver
from psyprobe.stimulus.catalogue import load_stimulus
from psyprobe.tasks.calibration import calibrate, check_calibrated, most_questions


def ask_command(arguments: argparse.Namespace) -> int:
    """Ask, and print the answer, with first-token probabilities where the observer gives them; or
    calibrate.
    """
    if arguments.calibrate:
        return _calibrate(arguments)
    if arguments.trials is not None or arguments.plan:
        raise InputError("--trials and --plan are about --calibrate; add it, or leave them out")
    if not (arguments.prompt or "").strip():
        raise InputError('the question is empty; write for example "Do you see a pattern?"')
    observer = load_observer(
        arguments.observer, **settings(arguments.observer_option, "--observer-option")
    )
    if observer.card.ability != "answer":
        raise InputError(
            f"{observer.card.name} does not answer in words; name an observer that does, such "
            "as simulated:watson-malo "
            "or openai:MODEL"
        )
    if isinstance(observer, PaidObserver):
        charge([observer], read_prices(arguments.prices), None)
    decoding = Decoding(temperature=arguments.temperature, max_tokens=arguments.max_tokens)
    images = _images(arguments, observer)
    answer = observer.answer(images, arguments.prompt, system=arguments.system, decoding=decoding)
    read = read_answer(answer, Prompt("asked", "?"))
    p_yes, mass = (None if math.isnan(value) else value for value in (read.p_yes, read.mass))
    told = {"observer": observer.card.name, "prompt": arguments.prompt, **answer.to_dict()}
    show(
        {**told, "read": read.text, "p_yes": p_yes, "answer_mass": mass},
        answer.text,
        as_json=arguments.json,
    )
    if not arguments.json:
        parts = [f"read as {read.text}"]
        if p_yes is not None:
            parts.append(
                f"P(yes) = {p_yes:.3g} of the first token (yes and no together {mass:.3g})"
            )
        tell("; ".join([*parts, *_spent(answer)]))
    return 0


def _calibrate(arguments: argparse.Namespace) -> int:
    if (
        arguments.prompt is not None
        or arguments.image
        or arguments.stimulus is not None
        or arguments.system
    ):
        raise InputError(
            "--calibrate asks questions of its own about images of its own; leave out all others"
        )
    trials = 20 if arguments.trials is None else arguments.trials
    observer = load_observer(
        arguments.observer, **settings(arguments.observer_option, "--observer-option")
    )
    check_calibrated(observer, trials)
    if arguments.plan:
        most = most_questions(trials)
        told = (
            f"{trials} questions, if not even the coarsest stripes are told, to {most} about "
            "as many images"
        )
        show(
            {"observer": observer.card.name, "fewest": trials, "most": most},
            told,
            as_json=arguments.json,
        )
        return 0
    if isinstance(observer, PaidObserver):
        charge([observer], read_prices(arguments.prices), None)
    decoding = Decoding(
        temperature=arguments.temperature, max_tokens=arguments.max_tokens, logprobs=False
    )
    found = calibrate(observer, trials, seed=arguments.seed, decoding=decoding)
    show(found.to_dict(), str(found), as_json=arguments.json)
    if not arguments.json:
        took = spending_told(found.spent)
        tell(f"{found.spent['answers']} questions{': ' if took else ''}{took}")
    return 0


def _images(arguments: argparse.Namespace, observer: AnswerObserver) -> tuple[FloatArray, ...]:
    if arguments.image and arguments.stimulus is not None:
        raise InputError("--stimulus is not allowed with --image; leave one out")
    if arguments.stimulus is None:
        if arguments.set or arguments.display:
            raise InputError("--set and --display are about a stimulus; add --stimulus NAME")
        return tuple(read_image(name) / np.float64(255) for name in arguments.image or ())
    spec = specification_from(arguments.stimulus, arguments.set)
    drawn = at_native_size(load_stimulus(arguments.stimulus).name, spec, observer.card)
    shown = np.asarray(display_from(arguments.display).encode(drawn.draw()))
    return (
        deliver(shown, Delivery(bits=8 if observer.bits is not None else None), arguments.seed),
    )


def _spent(answer: Answer) -> list[str]:
    tokens = (
        []
        if answer.tokens_in is None
        else [f"{answer.tokens_in} tokens in, {answer.tokens_out} out"]
    )
    cost = [] if answer.cost is None else [money(answer.cost, answer.currency)]
    return [*tokens, *cost, f"{answer.latency:.2f} s"]


def serve_simulated_command(parsed: argparse.Namespace) -> int:
    """Serve until Ctrl-C or SIGTERM; the line that says where is printed when it is ready."""
    if len(parsed.latency) > 2:
        raise InputError(
            f"--latency takes one or two numbers of seconds, not {len(parsed.latency)}"
        )
    key = None
    if parsed.key_variable:
        key = os.environ.get(parsed.key_variable)
        if not key:
            raise InputError(
                f"the environment variable {parsed.key_variable} is empty; put the key into it"
            )
    observer = load_observer(
        f"simulated:{parsed.name.removeprefix('simulated:')}", **settings(parsed.set, "--set")
    )
    refused = settings(parsed.refuse, "--refuse")
    known = [
        field.name
        for field in fields(Behaviour)
        if field.name not in ("logprobs", "images_at_once", "key")
    ]
    for name in refused:
        if name not in known:
            raise unknown_name("refusal of a simulated server", name, known)
    behaviour = Behaviour(
        logprobs=parsed.logprobs, images_at_once=parsed.images, key=key, **refused
    )
    latency = (parsed.latency[0], parsed.latency[-1])
    faults = Faults.parse(parsed.faults)
    with (
        stop_event() as told,
        serve(
            observer, port=parsed.port, faults=faults, latency=latency, behaviour=behaviour
        ) as server,
    ):
        if parsed.json:
            ready = {
                "base_url": server.base_url,
                "model": server.model,
                "port": server.port,
                "pid": os.getpid(),
            }
            print(json.dumps(ready))
        else:
            say(f"serving {server.model} at {server.base_url} (Ctrl-C ends it)")
        sys.stdout.flush()
        told.wait()
    became = ", ".join(f"{count} {what}" for what, count in sorted(server.counts.items()))
    tell(f"psyprobe serve-simulated: ended; requests: {became or 'none'}")
    return 0
