"""Make observers of torch modules, functions and network files of your own.

A file is named "torch:FILE.pt" for TorchScript, "torch:FILE.py:FUNCTION" for Python that builds a
module.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
import warnings
import weakref
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, cast, get_args

from psyprobe.errors import InputError, describe_failure, unknown_name
from psyprobe.files.json_types import JsonObject
from psyprobe.files.programs import read_sources, run_file
from psyprobe.observers.clips import DifferenceOfClips, FeaturesOfClips, clip_network
from psyprobe.observers.encoders.network import (
    Network,
    NetworkObserver,
    NetworkOptions,
    module_digest,
    state_digest,
    weights_file,
)
from psyprobe.observers.functions import (
    AnswersOfFunction,
    DifferenceOfFunction,
    FeaturesOfFunction,
    parameters_of,
)
from psyprobe.observers.images import checked_size, three_channels
from psyprobe.observers.protocol import (
    Ability,
    Card,
    Observer,
    add_sources,
    is_observer,
)

#: The ability of a function by the name of its second parameter.
_SECOND: dict[str, Ability] = {
    "prompt": "answer",
    "question": "answer",
    "reference": "difference",
    "reference_light": "difference",
    "reference_drive": "difference",
}
#: The modules of observers, whose weights their users may change.
_MODULES: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
#: Parameters that a function may have besides.
_OPTIONAL = ("ppd", "fps")


def observer(
    thing: object,
    *,
    name: str | None = None,
    version: str = "1",
    ability: Ability | None = None,
    input_size: int | tuple[int, int] | None = None,
    features: tuple[str, ...] | None = None,
    mean: Iterable[float] | None = None,
    std: Iterable[float] | None = None,
    input: str | None = None,
    layers: str | Iterable[str] | None = None,
    device: str | None = None,
    dtype: str | None = None,
    bits: int | None = None,
    images_at_once: int | None = None,
    complete: bool | None = None,
    clips: bool = False,
) -> Observer:
    """Wrap a torch module or a function of your own as an observer.

    What it can be asked follows from `thing`, unless `ability` states it:

    * a ``torch.nn.Module`` gives features: it is called with drive, normalised, of shape (N, 3, H,
      W);
    * a function whose second parameter is called `prompt` or `question` answers: ``function(images,
      prompt)`` gets a list of arrays (H, W, 3) of drive and returns the reply as a string, or with
      the log-probabilities of its first token, ``(text, {token: logprob})``, or an `Answer`; where
      it has parameters called `system`, `decoding` or `words`, it gets those of the question too;
    * a function whose second parameter is called `reference` or `reference_light` is a metric:
      ``function(test, reference)`` gets light in cd/m², two arrays of shape (N, H, W, 3), and
      returns N numbers, 0 for no difference; called `reference_drive`, it gets drive in [0, 1]; a
      parameter called `ppd` gets the pixels per degree;
    * a function that needs one argument gives features: ``function(images)`` gets drive, float32,
      of shape (N, H, W, 3), and returns an array (N, ...), or a mapping from name to such arrays.

    Parameters
    ----------
    thing : torch.nn.Module or callable
        A module is set to evaluation mode and moved to its device.
    name : str, optional
        Its name in results; by default that of the function or of the module's class.
    version : str
        Change it when the function changes: stored answers are told apart by name and version,
        since a function cannot be seen through. A module is told by its weights and its layers too,
        as they are when a run begins. Where a run would use stored answers, a few are compared with
        new ones, and a run whose observer has changed is refused.
    ability : {"features", "difference", "answer"}, optional
        Where the names of the parameters do not tell.
    input_size : int or tuple of int, optional
        Side, or (height, width), in px that stimuli are drawn at; any size if not given.
    features : tuple of str, optional
        Names of the features in the mapping that a function returns.
    mean, std : iterable of float, optional
        The normalisation that a module was trained with, a value a channel, for drive in [0, 1].
    input, layers, device, dtype
        Those of `psyprobe.observers.encoders.network.NetworkOptions`, for a module.
    bits : int, optional
        8 where an answering function takes whole 8-bit codes only (drive k/255).
    images_at_once : int, optional
        How many images an answering function takes at most; any number if not given.
    complete : bool, optional
        Whether the tokens that an answering function returns are all that spell the words.
    clips : bool
        Whether it takes clips in place of images: arrays (N, T, H, W, 3), and frames a second where
        a function has a parameter called `fps`; a module gets a tensor (N, 3, T, H, W).

    Raises
    ------
    InputError
        If `thing` is neither, what it is for cannot be told, or an option does not fit it.

    Examples
    --------
    >>> import numpy as np
    >>> def mean_colour(images):
    ...     return images.mean(axis=(1, 2))
    >>> observer(mean_colour).features(np.full((2, 8, 8, 3), 0.5, "float32"))["output"]
    array([[0.5, 0.5, 0.5],
           [0.5, 0.5, 0.5]], dtype=float32)
    >>> says = observer(
    ...     lambda images, prompt: "Yes" if images[0].std() > 0.01 else "No",
    ...     name="contrast",
    ... )
    >>> says.answer([np.full((8, 8, 3), 0.5)], "Is there a pattern?").text
    'No'
    >>> observer(lambda left, right: 0.0, name="mine")
    Traceback (most recent call last):
    psyprobe.errors.InputError: what mine(left, right) is for cannot be told: call its
    second parameter 'prompt' or 'reference', or state ability='features', 'difference'
    or 'answer'
    """
    if isinstance(thing, type) or not callable(thing):
        raise InputError(
            f"{thing!r:.80} is no torch module and no function, of which an observer could be made"
        )
    name = _name_of(thing) if name is None else name
    if ability is not None and ability not in get_args(Ability):
        raise unknown_name("ability", ability, get_args(Ability))
    # Where torch was never imported there is no module of its.
    torch = sys.modules.get("torch")
    is_module = (
        torch is not None
        and isinstance(thing, torch.nn.Module)
        and ability in (None, "features")
    )
    purpose: Ability = "features" if is_module else ability or _ability(thing, name)
    options: JsonObject = {
        "input_size": input_size,
        "features": features,
        "mean": mean,
        "std": std,
        "input": input,
        "layers": layers,
        "device": device,
        "dtype": dtype,
        "bits": bits,
        "images_at_once": images_at_once,
        "complete": complete,
    }
    options = {key: value for key, value in options.items() if value is not None}
    make = _OF_CLIPS.get(purpose) if clips else _OF_FUNCTION[purpose]
    subject = f"function with the ability {purpose!r}"
    if is_module:
        make = clip_network if clips else _wrap_network
        subject = "torch module"
    if make is None:
        raise InputError(
            f"{name} answers in words, which are asked about images; leave clips=True out"
        )
    takes = (
        list(inspect.signature(TorchOptions).parameters)
        if make is _wrap_network
        else list(inspect.signature(make).parameters)[2:]
    )
    for option in options:
        if option not in takes:
            raise InputError(
                f"{name}: a {subject} takes no option {option!r}; it takes "
                f"{', '.join(takes) or 'none'}"
            )
    card = Card(
        name,
        purpose,
        weights="given by the caller" if is_module else "inside the function",
        options={"version": version},
        clips=clips,
    )
    made = make(thing, card, **options)
    if is_module:
        _MODULES[made] = thing
        update_weights(made)
    return cast(Observer, made)


def update_weights(observer: Any) -> None:
    """Hash a module's current weights anew into its observer's card.

    A module may have been trained since an observer was made of it.
    """
    if _has_module(observer):
        digest = module_digest(_MODULES[observer])
        observer.card = replace(observer.card, weights_digest=digest)


def _has_module(observer: Any) -> bool:
    """Tell whether an observer was made of a torch module."""
    return isinstance(observer, Hashable) and observer in _MODULES


def _wrap_network(module: Any, card: Card, **options: Any) -> NetworkObserver:
    """Wrap a torch module as an observer with given loading options."""
    return _module_observer(
        card.name,
        module,
        TorchOptions(**options),
        stages=_list_children(module),
        options=card.options,
    )


def _name_of(thing: Any) -> str:
    """Return the name of a function or type, refusing a lambda or partial without one."""
    function_name: str = getattr(thing, "__name__", type(thing).__name__)
    if function_name in ("<lambda>", "partial"):
        raise InputError(
            f"a {function_name.strip('<>')} has no name of its own: give name=..., by which its "
            "answers "
            "are kept"
        )
    return function_name


def _ability(function: Callable[..., Any], name: str) -> Ability:
    """Infer the ability of a function from its parameters."""
    parameters = parameters_of(function)
    if len(parameters) > 1 and parameters[1].name in _SECOND:
        return _SECOND[parameters[1].name]
    required = [
        parameter
        for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.kind is not parameter.VAR_KEYWORD
    ]
    if sum(parameter.name not in _OPTIONAL for parameter in required) == 1:
        return "features"
    names = ", ".join(parameter.name for parameter in parameters) or "..."
    raise InputError(
        f"what {name}({names}) is for cannot be told: call its second parameter 'prompt' or "
        "'reference', or state ability='features', 'difference' or 'answer'"
    )


_OF_FUNCTION: dict[str, Callable[..., Any]] = {
    "features": FeaturesOfFunction,
    "difference": DifferenceOfFunction,
    "answer": AnswersOfFunction,
}
_OF_CLIPS: dict[str, Callable[..., Any]] = {
    "features": FeaturesOfClips,
    "difference": DifferenceOfClips,
}


@dataclass(frozen=True)
class TorchOptions(NetworkOptions):
    """The options of a network of your own.

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


def load_torch(name: str, options: TorchOptions) -> NetworkObserver:
    """Load a network of your own: a TorchScript file, or FILE.py:FUNCTION that builds one.

    The function takes nothing and returns a ``torch.nn.Module``. The file is run: load none that
    you do not trust.
    """
    full = f"torch:{name}"
    path, colon, function = name.rpartition(":")
    if colon and path.endswith(".py"):
        module, digest, stages = _load_python(full, weights_file(path, full), function)
    elif name.endswith(".py"):
        raise InputError(
            f"{full} names no function: write torch:{name}:FUNCTION, one that returns the module"
        )
    else:
        module, digest, stages = _load_torchscript(full, weights_file(name, full))
    origin = f"file {path if stages else name}"
    return _module_observer(
        full,
        module,
        options,
        stages=stages,
        resizable=True,
        weights=origin,
        weights_digest=digest,
    )


def load_file(place: str, **options: Any) -> Observer:
    """Load an observer from a Python file: FILE.py:NAME.

    NAME is an observer, or a torch module or function as `observer` takes it, with the options of
    `observer`. The file is run: load none that you do not trust.

    Parameters
    ----------
    place : str
        "FILE.py:NAME".
    **options
        Those of `observer`, for a module or a function.

    Raises
    ------
    InputError
        If the file cannot be run, or what it names is no observer and none can be made of it.
    UnknownNameError
        If the file defines no such name.
    """
    file, _, attribute = place.rpartition(":")
    path = weights_file(file, place)
    thing = _attribute(_run(place, path), path, attribute, "observer")
    # What code computes cannot be read off it, so its version is the digest of its sources.
    digest = hashlib.sha256(read_sources(path)).hexdigest()
    if is_observer(thing):
        if options:
            raise InputError(
                f"{place} is an observer already and takes no options; leave "
                f"{', '.join(sorted(options))} out"
            )
        add_sources(thing, digest)
        return cast(Observer, thing)
    return observer(thing, **{"name": place, "version": digest[:16], **options})


def _module_observer(
    name: str, module: Any, options: TorchOptions, /, **network_fields: Any
) -> NetworkObserver:
    """Wrap a torch module as an observer; `network_fields` are further fields of `Network`."""
    network = Network(
        name,
        module,
        module,
        main="output",
        input_size=None
        if options.input_size is None
        else checked_size(options.input_size),
        mean=three_channels(name, "mean", options.mean),
        std=three_channels(name, "std", options.std),
        **network_fields,
    )
    return NetworkObserver(network, options)


def _load_torchscript(full: str, path: Path) -> tuple[Any, str, tuple[str, ...]]:
    """Load a TorchScript file: the module, the file's SHA-256, and no layer names."""
    import torch

    with warnings.catch_warnings():
        # torch advises authors to export in a newer format; users of the file cannot.
        warnings.filterwarnings(
            "ignore", "`torch.jit.load` is deprecated", FutureWarning
        )
        try:
            module = torch.jit.load(str(path), map_location="cpu")
        except (
            Exception
        ) as problem:  # a damaged file makes torch raise whatever it stumbles over
            raise InputError(
                f"{full}: {path} is no TorchScript file: save one with "
                "torch.jit.script(module).save(FILE), or name a "
                "function that builds the module as torch:FILE.py:FUNCTION"
            ) from problem
    return module, hashlib.sha256(path.read_bytes()).hexdigest(), ()


def _run(name: str, path: Path) -> ModuleType:
    """Run the Python file of an observer as a module."""
    try:
        return run_file(path, f"psyprobe_observer_{path.stem}")
    except (Exception, SystemExit) as problem:
        # Users read any failure of their own program.
        raise InputError(
            f"{name} cannot be loaded: {describe_failure(problem, str(path))}"
        ) from problem


def _attribute(module: ModuleType, path: Path, attribute: str, kind: str) -> Any:
    """Return what a Python file defines under a name, or list the names it has."""
    if not hasattr(module, attribute):
        names = [name for name in vars(module) if not name.startswith("_")]
        raise unknown_name(f"{kind} in {path}", attribute, names)
    return getattr(module, attribute)


def _load_python(
    full: str, path: Path, function: str
) -> tuple[Any, str, tuple[str, ...]]:
    """Build a torch module by a function of a Python file: module, digest, layer names."""
    import torch

    build = _attribute(_run(full, path), path, function, "function")
    if not callable(build):
        raise InputError(f"{full}: {function} is {build!r:.80}, not a function")
    module = build()
    if not isinstance(module, torch.nn.Module):
        raise InputError(
            f"{full}: {function}() returned a {type(module).__name__}; wanted is a torch.nn.Module"
        )
    digest = hashlib.sha256(
        read_sources(path) + state_digest(module.state_dict()).encode()
    ).hexdigest()
    return module, digest, _list_children(module)


def _list_children(module: Any) -> tuple[str, ...]:
    """List the names of a module's direct children."""
    return tuple(child for child, _ in module.named_children())
