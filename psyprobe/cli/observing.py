"""``psyprobe ask`` puts one question or calibrates a server; ``serve-simulated`` serves an
observer.
"""

from __future__ import annotations

import json
import math
import os
import sys
from argparse import Namespace
from dataclasses import replace

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.cli.checking import specification_from
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.experiment.prompts import Prompt
from psyprobe.files.images import read_image
from psyprobe.files.terminal import say, show, stop_event, tell
from psyprobe.light.screen import display_from
from psyprobe.observers.chat.cost_summary import describe_cost
from psyprobe.observers.chat.prices import charge, money, read_prices
from psyprobe.observers.chat.protocol import Answer, AnswerObserver, Decoding
from psyprobe.observers.protocol import PaidObserver
from psyprobe.probes.displayed_images import at_native_size
from psyprobe.probes.words.answer_table import read_answer
from psyprobe.probes.words.delivery import Delivery, deliver
from psyprobe.stimulus.catalogue import load_stimulus
from psyprobe.tasks.calibration import calibrate, check_calibrated, most_questions
from psyprobe.tasks.items import load_answerer
from psyprobe.tasks.served_size import SIDES, measure_served_size


def ask_command(arguments: Namespace) -> int:
    """Ask an observer one question and print its answer, or calibrate a server."""
    if arguments.calibrate:
        return _calibrate(arguments)
    if arguments.trials is not None or arguments.plan:
        raise InputError(
            "--trials and --plan are about --calibrate; add it, or leave them out"
        )
    if not (arguments.prompt or "").strip():
        raise InputError(
            'the question is empty; write for example "Do you see a pattern?"'
        )
    observer = load_answerer(arguments.observer, arguments.observer_option)
    if observer.card.ability != "answer":
        raise InputError(
            f"{observer.card.name} does not answer in words; name an observer that does, such "
            "as simulated:watson-malo or openai:MODEL"
        )
    decoding = _charge(arguments, observer)
    images = _load_images(arguments, observer)
    answer = observer.answer(
        images, arguments.prompt, system=arguments.system, decoding=decoding
    )
    reading = read_answer(answer, Prompt("asked", "?"))
    has_logprobs = not math.isnan(reading.p_yes)
    record = {
        "observer": observer.card.name,
        "prompt": arguments.prompt,
        **answer.to_dict(),
        "reading": reading.text,
        "p_yes": reading.p_yes if has_logprobs else None,
        "answer_mass": None if math.isnan(reading.mass) else reading.mass,
    }
    show(record, answer.text or answer.refusal, arguments)
    if not arguments.json:
        parts = [f"read as {reading.text}"]
        if has_logprobs:
            parts.append(
                f"P(yes) = {reading.p_yes:.3g} of the first token (yes and no together "
                f"{reading.mass:.3g})"
            )
        tell("; ".join([*parts, *_describe_answer_cost(answer)]))
    return 0


def _calibrate(arguments: Namespace) -> int:
    """Ask an observer the calibration questions, or plan them, and print the outcome."""
    one_question = arguments.prompt is not None or arguments.stimulus is not None
    if one_question or arguments.image or arguments.system:
        raise InputError(
            "--calibrate asks questions of its own about images of its own; leave out all others"
        )
    by_letters = arguments.calibrate == "letters"
    default = 40 if by_letters else 20
    trials = default if arguments.trials is None else arguments.trials
    observer = load_answerer(arguments.observer, arguments.observer_option)
    check_calibrated(observer, trials)
    if arguments.plan and by_letters:
        count = trials * len(SIDES)
        plan = {"observer": observer.card.name, "fewest": count, "most": count}
        show(plan, f"{count} questions about as many images", arguments)
        return 0
    if arguments.plan:
        maximum = most_questions(trials)
        text = (
            f"{trials} questions, if not even the coarsest stripes are named rightly, to {maximum} "
            "about as many images"
        )
        plan = {"observer": observer.card.name, "fewest": trials, "most": maximum}
        show(plan, text, arguments)
        return 0
    decoding = replace(_charge(arguments, observer), logprobs=False)
    measure = measure_served_size if by_letters else calibrate
    calibration = measure(observer, trials, seed=arguments.seed, decoding=decoding)
    show(calibration.to_dict(), str(calibration), arguments)
    if not arguments.json:
        cost = describe_cost(calibration.spent)
        tell(f"{calibration.spent['answers']} questions{': ' if cost else ''}{cost}")
    return 0


def _charge(arguments: Namespace, observer: AnswerObserver) -> Decoding:
    """Set the prices of a paid observer, and return the decoding options asked for."""
    if isinstance(observer, PaidObserver):
        charge([observer], read_prices(arguments.prices), None)
    return Decoding(temperature=arguments.temperature, max_tokens=arguments.max_tokens)


def _load_images(
    arguments: Namespace, observer: AnswerObserver
) -> tuple[FloatArray, ...]:
    """Load the images that the arguments name, or draw their stimulus, as drive values (0 to 1)."""
    if arguments.image and arguments.stimulus is not None:
        raise InputError("--stimulus is not allowed with --image; leave one out")
    if arguments.stimulus is None:
        if arguments.set or arguments.display:
            raise InputError(
                "--set and --display are about a stimulus; add --stimulus NAME"
            )
        return tuple(
            read_image(name) / np.float64(255) for name in arguments.image or ()
        )
    requested = specification_from(arguments.stimulus, arguments.set)
    name = load_stimulus(arguments.stimulus).name
    specification = at_native_size(name, requested, observer.card)
    drive = np.asarray(display_from(arguments.display).encode(specification.draw()))
    delivery = Delivery(bits=8 if observer.bits is not None else None)
    return (deliver(drive, delivery, arguments.seed),)


def _describe_answer_cost(answer: Answer) -> list[str]:
    """Describe what an answer cost: tokens, money and seconds."""
    cost = []
    if answer.tokens_in is not None:
        cost.append(f"{answer.tokens_in} tokens in, {answer.tokens_out} out")
    if answer.cost is not None:
        cost.append(money(answer.cost, answer.currency))
    return [*cost, f"{answer.latency:.2f} s"]


def serve_simulated_command(parsed: Namespace) -> int:
    """Serve a simulated observer over HTTP until Ctrl-C or SIGTERM."""
    try:
        from psyprobe.observers.simulated.serving import Faults, SimulatedServer
    except ImportError:
        raise PsyprobeError(
            "the server needs starlette and uvicorn: pip install 'psyprobe[server]'"
        ) from None
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
    name = parsed.name.removeprefix("simulated:")
    observer = load_answerer(f"simulated:{name}", parsed.set, "--set")
    with (
        stop_event() as stopped,
        SimulatedServer(
            observer,
            parsed.port,
            faults=Faults.parse(parsed.faults),
            latency=(parsed.latency[0], parsed.latency[-1]),
            logprobs=parsed.logprobs,
            key=key,
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
        stopped.wait()
    requests = ", ".join(
        f"{count} {outcome}" for outcome, count in sorted(server.counts.items())
    )
    tell(f"psyprobe serve-simulated: ended; requests: {requests or 'none'}")
    return 0
