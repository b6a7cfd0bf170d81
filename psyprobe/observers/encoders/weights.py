"""Where trained weights are looked for, how they are told apart, and what stands in for them in tests."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from psyprobe.errors import InputError, PsyprobeError, WeightsError
from psyprobe.observers.encoders.options import FileOptions

#: Random weights are the same ones everywhere.
SEED = 0
RANDOM = f"random numbers, seed {SEED}: not a trained network"
#: How long, in s, the model hub may take to answer before its caches must do.
PATIENCE = 5.0


def state_digest(state: Mapping[str, Any]) -> str:
    """SHA-256, hexadecimal, of named tensors: of their names, formats, shapes and bytes."""
    import torch

    digest = hashlib.sha256()
    for name in sorted(state):
        tensor = state[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


@contextmanager
def seeded() -> Iterator[None]:
    """A network built in here gets the same random weights each time; the caller's random state is untouched."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        yield


def weights_file(path: str | Path, name: str) -> Path:
    """The path, if a file is there; else a WeightsError."""
    found = Path(path).expanduser()
    if not found.is_file():
        raise WeightsError(f"{name}: there is no weights file {str(path)!r}")
    return found


def own_weights(name: str, options: FileOptions) -> Path | None:
    """The file of weights that is asked for, if one is; random weights besides it are refused."""
    if options.weights is None:
        return None
    if options.random_weights:
        raise InputError(f"{name}: ask for random_weights or for weights={str(options.weights)!r}, not for both")
    return weights_file(options.weights, name)


def first_line(problem: BaseException) -> str:
    """What a library says went wrong, without what it goes on to print."""
    return str(problem).strip().partition("\n")[0]


@contextmanager
def hub_weights(name: str) -> Iterator[None]:
    """Let a library fetch pretrained weights its own way, in here, and say plainly when there are none.

    A library without a network tries for most of a minute. So the model hub is asked once whether it is there;
    if not, the library is told to make do with its cache, and answers at once.
    """
    from huggingface_hub import constants

    asked_offline = constants.HF_HUB_OFFLINE
    reached = not asked_offline and _hub_answers()
    constants.HF_HUB_OFFLINE = not reached
    try:
        yield
    except PsyprobeError:
        raise
    except Exception as problem:  # each library and transport raises its own
        hub = (
            "the model hub is switched off (HF_HUB_OFFLINE)"
            if asked_offline
            else f"the model hub answered but did not give them ({type(problem).__name__})"
            if reached
            else "the model hub cannot be reached"
        )
        raise WeightsError(
            f"{name}: no weights in the cache {constants.HF_HUB_CACHE}, and {hub}; load it once where there is a "
            "network and copy that cache here, or name a file with weights=FILE; list_observers('packaged:*') "
            "lists encoders that need no download, and random_weights=True serves tests only"
        ) from problem
    finally:
        constants.HF_HUB_OFFLINE = asked_offline


def _hub_answers() -> bool:
    from huggingface_hub import constants, get_session

    try:
        get_session().head(constants.ENDPOINT, timeout=PATIENCE)
    except Exception:  # whatever the transport in use raises: there is no hub for us
        return False
    return True
