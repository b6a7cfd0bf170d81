"""``psyprobe serve-simulated``: an observer of known truth behind a real HTTP server on loopback."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading

from psyprobe.cli.options import add_settings
from psyprobe.errors import InputError
from psyprobe.files.terminal import say, settings, tell


def add_serving_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="watson-malo, hpmh, castlecsf, stelacsf, barten or flat")
    parser.add_argument("--port", type=int, default=8000, help="0 for any that is free (default %(default)s)")
    truth = "what is true of the observer, for example guess=0.25 width=0.8 prompt_sd=0.2 logit_sd=0.5 refusal=0.05"
    faults = "of requests: overload (429), error (500), hang, truncated, reset; besides retry-after (s) and seed"
    add_settings(parser, "--set", "NAME=VALUE", truth)
    add_settings(parser, "--faults", "NAME=SHARE", faults)
    parser.add_argument(
        "--latency", nargs="+", type=float, default=[0.0], metavar="S", help="of an answer, s, or a range of two"
    )
    parser.add_argument(
        "--logprobs", choices=("given", "refused", "absent"), default="given", help="when asked (default %(default)s)"
    )
    parser.add_argument("--images", type=int, metavar="N", help="images a question may hold at most")
    parser.add_argument(
        "--key-variable", metavar="VARIABLE", help="environment variable with the key that is asked for"
    )


def serve_simulated_command(parsed: argparse.Namespace) -> int:
    """Serve until Ctrl-C or SIGTERM; the line that says where is printed when it is ready."""
    from psyprobe.observers import load_observer
    from psyprobe.observers.simulated.serving import Behaviour, Faults, serve

    if len(parsed.latency) > 2:
        raise InputError(f"--latency takes one or two numbers of seconds, not {len(parsed.latency)}")
    key = None
    if parsed.key_variable:
        key = os.environ.get(parsed.key_variable)
        if not key:
            raise InputError(f"the environment variable {parsed.key_variable} is empty; put the key into it")
    observer = load_observer(f"simulated:{parsed.name.removeprefix('simulated:')}", **settings(parsed.set, "--set"))
    behaviour = Behaviour(logprobs=parsed.logprobs, images_at_once=parsed.images, key=key)
    latency = (parsed.latency[0], parsed.latency[-1])
    stop = threading.Event()
    earlier = {each: signal.signal(each, lambda *_: stop.set()) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        with serve(
            observer, port=parsed.port, faults=Faults.parse(parsed.faults), latency=latency, behaviour=behaviour
        ) as server:
            if parsed.json:
                ready = {"base_url": server.base_url, "model": server.model, "port": server.port, "pid": os.getpid()}
                print(json.dumps(ready))
            else:
                say(f"serving {server.model} at {server.base_url} (Ctrl-C ends it)")
            sys.stdout.flush()
            stop.wait()
    finally:
        for each, handler in earlier.items():
            signal.signal(each, handler)
    became = ", ".join(f"{count} {what}" for what, count in sorted(server.counts.items()))
    tell(f"psyprobe serve-simulated: ended; requests: {became or 'none'}")
    return 0
