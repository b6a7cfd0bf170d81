"""A user's own network: "torch:FILE.pt" for TorchScript, "torch:FILE.py:FUNCTION" for Python that builds a module."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psyprobe.errors import InputError, unknown_name
from psyprobe.observers.encoders.images import checked_size, three_channels
from psyprobe.observers.encoders.network import Network, NetworkObserver
from psyprobe.observers.encoders.options import NetworkOptions
from psyprobe.observers.encoders.weights import state_digest, weights_file
from psyprobe.observers.registry import register_observer


@dataclass(frozen=True)
class TorchOptions(NetworkOptions):
    """A network of one's own.

    Parameters
    ----------
    mean, std : iterable of float
        The normalisation that the network was trained with, a value a channel, for drive in [0, 1].
    input_size : int or tuple of int, optional
        Side, or (height, width), in px of the images it looks at; any size if not given.
    """

    mean: Iterable[float] = (0.0, 0.0, 0.0)
    std: Iterable[float] = (1.0, 1.0, 1.0)
    input_size: int | tuple[int, int] | None = None


@register_observer(
    "torch",
    form="torch:FILE.pt or torch:FILE.py:FUNCTION",
    summary="a network of your own: TorchScript, or a Python function that returns a module",
    requires=("torch",),
    install="pip install torch",
    options=TorchOptions,
)
def load_torch(name: str, options: TorchOptions) -> NetworkObserver:
    """A network of your own: a TorchScript file, which shows no layers, or FILE.py:FUNCTION.

    The function takes nothing and returns a ``torch.nn.Module``. The file is run: load none that you do not trust.
    """
    full = f"torch:{name}"
    path, colon, function = name.rpartition(":")
    if colon and path.endswith(".py"):
        module, digest, stages = _from_python(full, weights_file(path, full), function)
    elif name.endswith(".py"):
        raise InputError(f"{full} names no function: write torch:{name}:FUNCTION, one that returns the module")
    else:
        module, digest, stages = _from_torchscript(full, weights_file(name, full))
    origin = f"file {path if stages else name}"
    return module_observer(full, module, options, stages=stages, resizable=True, weights=origin, weights_digest=digest)


def module_observer(name: str, module: Any, options: TorchOptions, /, **known: Any) -> NetworkObserver:
    """A torch module in memory as an observer; `known` are further fields of `Network`."""
    network = Network(
        name,
        module,
        module,
        main="output",
        input_size=None if options.input_size is None else checked_size(options.input_size),
        mean=three_channels(name, "mean", options.mean),
        std=three_channels(name, "std", options.std),
        **known,
    )
    return NetworkObserver(network, **options.looking)


def _from_torchscript(full: str, path: Path) -> tuple[Any, str, tuple[str, ...]]:
    import torch

    with warnings.catch_warnings():
        # torch advises authors to export in a newer format; whoever has the file in hand cannot act on it
        warnings.filterwarnings("ignore", "`torch.jit.load` is deprecated", FutureWarning)
        try:
            module = torch.jit.load(str(path), map_location="cpu")
        except (RuntimeError, ValueError, EOFError) as problem:
            raise InputError(
                f"{full}: {path} is no TorchScript file: save one with torch.jit.script(module).save(FILE), or name a "
                "function that builds the module as torch:FILE.py:FUNCTION"
            ) from problem
    return module, hashlib.sha256(path.read_bytes()).hexdigest(), ()


def _from_python(full: str, path: Path, function: str) -> tuple[Any, str, tuple[str, ...]]:
    import torch

    spec = importlib.util.spec_from_file_location(f"psyprobe_observer_{path.stem}", path)
    assert spec is not None and spec.loader is not None  # for a path that ends in .py there always is one
    source = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = source
    try:
        spec.loader.exec_module(source)
    except Exception as problem:  # it is the user's program: any failure of it is theirs to read
        raise InputError(f"{full}: {path} fails with {type(problem).__name__}: {problem}") from problem
    build = getattr(source, function, None)
    if not callable(build):
        raise unknown_name(f"function in {path}", function, [key for key in vars(source) if not key.startswith("_")])
    module = build()
    if not isinstance(module, torch.nn.Module):
        raise InputError(f"{full}: {function}() returned a {type(module).__name__}; wanted is a torch.nn.Module")
    digest = hashlib.sha256(path.read_bytes() + state_digest(module.state_dict()).encode()).hexdigest()
    return module, digest, tuple(child for child, _ in module.named_children())
