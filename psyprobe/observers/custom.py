"""Make observers of torch modules, functions and network files of your own.

A file is named "torch:FILE.pt" for TorchScript, "torch:FILE.py:FUNCTION" for Python that builds a
module.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any, cast, get_args

import numpy as np

from psyprobe._json import JsonMapping, JsonObject
from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError, PsyprobeError, describe_failure, unknown_name
from psyprobe.files.programs import run_file
from psyprobe.observers.chat.protocol import Answer, Answering, Inquiry
from psyprobe.observers.clips import DifferenceOfClips, FeaturesOfClips, clip_network
from psyprobe.observers.encoders.network import (
    Network,
    NetworkObserver,
    NetworkOptions,
    state_digest,
    weights_file,
)
from psyprobe.observers.images import (
    as_numpy,
    check_finite,
    check_images,
    check_light,
    checked_size,
    drive_range,
    three_channels,
)
from psyprobe.observers.protocol import Ability, Card, Observer, is_observer

Function = Callable[..., Any]
Size = int | tuple[int, int] | None
Names = tuple[str, ...]
#: The ability of a function by the name of its second parameter.
_SECOND = {"prompt": "answer", "question": "answer", "reference": "difference"}
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
    """Make an observer of a torch module or a function of your own.

    What it can be asked follows from `thing`, unless `ability` states it:

    * a ``torch.nn.Module`` gives features: it is called with drive, normalised, of shape (N, 3, H,
      W);
    * a function whose second parameter is called `prompt` or `question` answers: ``function(images,
      prompt)`` gets a list of arrays (H, W, 3) of drive and returns the reply as a string, or with
      the log-probabilities of its first token, ``(text, {token: logprob})``, or an `Answer`; where
      it has parameters called `system`, `decoding` or `words`, it gets those of the question too;
    * a function whose second parameter is called `reference` is a metric: ``function(test,
      reference)`` gets light in cd/m², two arrays of shape (N, H, W, 3), and returns N numbers, 0
      for no difference; a parameter called `ppd` gets the pixels per degree;
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
        since a function cannot be seen through. A module is told by its weights and its layers too.
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
    name = _name(thing) if name is None else name
    if ability is not None and ability not in get_args(Ability):
        raise unknown_name("ability", ability, get_args(Ability))
    torch = sys.modules.get(
        "torch"
    )  # where torch was never imported there is no module of its
    module = (
        torch is not None
        and isinstance(thing, torch.nn.Module)
        and ability in (None, "features")
    )
    purpose = "features" if module else ability or _ability(thing, name)
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
    if clips:
        role = "module" if module else purpose
        return cast(Observer, _of_clips(thing, name, version, role, options))
    make = _OF_FUNCTION[purpose]
    takes = list(inspect.signature(make).parameters)[3:]
    subject = f"function with the ability {purpose!r}"
    if module:
        takes = [field.name for field in fields(TorchOptions)]
        subject = "torch module"
    _check_options(options, takes, f"{name}: a {subject}")
    if not module:
        return cast(Observer, make(thing, name, version, **options))
    digest = hashlib.sha256(
        f"{thing}{state_digest(cast(Any, thing).state_dict())}".encode()
    ).hexdigest()
    return _module_observer(
        name,
        thing,
        TorchOptions(**options),
        stages=_children(thing),
        weights_digest=digest,
        options={"version": version},
    )


def _check_options(options: Iterable[str], takes: Sequence[str], subject: str) -> None:
    for option in options:
        if option not in takes:
            raise InputError(
                f"{subject} takes no option {option!r}; it takes {', '.join(takes) or 'none'}"
            )


def _of_clips(
    thing: Any, name: str, version: str, purpose: str, options: JsonMapping
) -> Any:
    """Make an observer of a function or a torch module that takes clips."""
    takes = {
        "module": ("mean", "std", "device", "input_size", "features"),
        "features": ("input_size", "features"),
    }
    if purpose == "answer":
        raise InputError(
            f"{name} answers in words, which are asked about images; leave clips=True out"
        )
    _check_options(options, takes.get(purpose, ()), f"{name}: what takes clips")
    size = options.get("input_size")
    if purpose == "difference":
        card = _card("difference", name, version, ("difference",))
        return DifferenceOfClips(thing, card, _parameters_among(thing, "ppd", "fps"))
    card = _card(
        "features", name, version, tuple(options.get("features", ("output",))), size
    )
    if purpose == "features":
        return FeaturesOfClips(thing, card, _parameters_among(thing, "fps"))
    mean, std = (
        three_channels(name, key, options.get(key, default))
        for key, default in (("mean", card.mean), ("std", card.std))
    )
    card = replace(card, weights="given by the caller", mean=mean, std=std)
    return clip_network(thing, card, device=options.get("device"), input_size=size)


def _name(thing: Any) -> str:
    function_name: str = getattr(thing, "__name__", type(thing).__name__)
    if function_name in ("<lambda>", "partial"):
        raise InputError(
            f"a {function_name.strip('<>')} has no name of its own: give name=..., by which its "
            "answers "
            "are kept"
        )
    return function_name


def _ability(function: Callable[..., Any], name: str) -> str:
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


class FeaturesOfFunction:
    """A function from a batch of images to features; see `psyprobe.observers.observer`."""

    def __init__(
        self,
        function: Function,
        name: str,
        version: str,
        features: Names = ("output",),
        input_size: Size = None,
    ) -> None:
        self._function = function
        self.card = _card("features", name, version, tuple(features), input_size)

    def features(self, images: Array) -> Mapping[str, FloatArray]:
        """Return the function's features of images, one array (N, D) a name in ``card.features``.

        Raises
        ------
        InputError
            If the images are not what it takes, or the function returns something else than its
            card says.
        PsyprobeError
            If a feature is not finite.
        """
        card = self.card
        images = check_images(
            images, card.name, input_size=card.input_size, pixel_range=drive_range(card)
        )
        drive = np.asarray(images, dtype=np.float32)
        features = self._function(drive)
        if not isinstance(features, Mapping):
            features = {card.features[0]: features}
        if set(features) != set(card.features):
            raise InputError(
                f"{card.name} returned {sorted(features)} and its card says "
                f"{sorted(card.features)}: name what it returns with features=(...)"
            )
        return {
            name: self._rows(name, as_numpy(features[name]), len(drive))
            for name in card.features
        }

    def _rows(self, name: str, rows: FloatArray, count: int) -> FloatArray:
        if rows.ndim < 2 or len(rows) != count or rows.dtype.kind != "f":
            raise InputError(
                f"{self.card.name}: {name!r} has shape {rows.shape} and format {rows.dtype} for "
                f"{count} images; wanted is one row of floating-point numbers an image"
            )
        check_finite(self.card.name, name, rows)
        return rows.reshape(count, -1)


class DifferenceOfFunction:
    """A function that compares two batches of images; see `psyprobe.observers.observer`."""

    def __init__(self, function: Function, name: str, version: str) -> None:
        self._function = function
        self._takes = _parameters_among(function, "ppd")
        card = _card("difference", name, version, ("difference",))
        self.card = replace(card, encoding="linear light, cd/m²")

    def difference(self, test: Array, reference: Array, *, ppd: float) -> FloatArray:
        """Return the function's differences of test images from their references, shape (N,).

        Raises
        ------
        InputError
            If the images are no light, or the function returns something else than one number a
            pair.
        PsyprobeError
            If a difference is not finite.
        """
        name = self.card.name
        test, reference = check_light(test, reference, name)
        arguments = dict.fromkeys(self._takes, ppd)
        differences = as_numpy(self._function(test, reference, **arguments))
        if differences.shape != (len(test),) or differences.dtype.kind != "f":
            raise InputError(
                f"{name} returned shape {differences.shape} and format {differences.dtype} for "
                f"{len(test)} pairs of images; wanted is one floating-point number a pair"
            )
        if not np.isfinite(differences).all():
            raise PsyprobeError(f"{name}: a difference is NaN or infinity")
        return differences


class AnswersOfFunction(Answering):
    """A function from images and a question to an answer; see `psyprobe.observers.observer`."""

    def __init__(
        self,
        function: Function,
        name: str,
        version: str,
        bits: int | None = None,
        images_at_once: int | None = None,
        input_size: Size = None,
        complete: bool = False,
    ) -> None:
        if bits not in (None, 8):
            raise InputError(f"bits is {bits}; give 8, or None for any float")
        self._function = function
        self._takes = _parameters_among(function, "system", "decoding", "words")
        self._complete = complete
        self.bits = bits
        self.images_at_once = images_at_once
        self.card = _card("answer", name, version, (), input_size)

    def _reply(self, inquiry: Inquiry) -> Answer:
        name = self.card.name
        if inquiry.system and "system" not in self._takes:
            raise InputError(
                f"{name} takes no system instruction: its function has no parameter 'system'"
            )
        arguments = {
            parameter: getattr(inquiry, parameter) for parameter in self._takes
        }
        start = time.perf_counter()
        reply = self._function(list(inquiry.images), inquiry.prompt, **arguments)
        latency = time.perf_counter() - start
        answer = _answer(name, reply, self._complete)
        return replace(
            answer, latency=answer.latency or latency, model=answer.model or name
        )


def _card(
    ability: Ability,
    name: str,
    version: str,
    features: tuple[str, ...],
    input_size: Size = None,
) -> Card:
    size = None if input_size is None else checked_size(input_size)
    return Card(
        name,
        ability,
        features,
        size,
        weights="inside the function",
        options={"version": version},
    )


def parameters_of(function: Function) -> list[inspect.Parameter]:
    """List the parameters of a function in order; none for some functions written in C."""
    try:
        return list(inspect.signature(function).parameters.values())
    except ValueError:
        return []


def _parameters_among(function: Function, *names: str) -> tuple[str, ...]:
    """Return those of some names that are parameters of a function."""
    parameters = {parameter.name for parameter in parameters_of(function)}
    return tuple(name for name in names if name in parameters)


def _answer(name: str, reply: Any, complete: bool) -> Answer:
    """Convert what a function returned to an answer."""
    match reply:
        case Answer():
            return reply
        case str():
            return Answer(reply)
        case (str() as text, Mapping() as tokens):
            pairs = [(str(token), float(value)) for token, value in tokens.items()]
            if not all(value <= 1e-6 for _, value in pairs):
                raise InputError(
                    f"{name} returned {dict(tokens)} as log-probabilities: they lie at or below 0"
                )
            pairs.sort(key=lambda pair: -pair[1])
            return Answer(text, tuple(pairs), complete)
    raise InputError(
        f"{name} returned a {type(reply).__name__}; wanted is the reply as a string, or (text, "
        "{token: logprob}), or an Answer"
    )


_OF_FUNCTION: dict[str, Callable[..., Any]] = {
    "features": FeaturesOfFunction,
    "difference": DifferenceOfFunction,
    "answer": AnswersOfFunction,
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
    """Load a network of your own: a TorchScript file, without layers, or FILE.py:FUNCTION.

    The function takes nothing and returns a ``torch.nn.Module``. The file is run: load none that
    you do not trust.
    """
    full = f"torch:{name}"
    path, colon, function = name.rpartition(":")
    if colon and path.endswith(".py"):
        module, digest, stages = _from_python(full, weights_file(path, full), function)
    elif name.endswith(".py"):
        raise InputError(
            f"{full} names no function: write torch:{name}:FUNCTION, one that returns the module"
        )
    else:
        module, digest, stages = _from_torchscript(full, weights_file(name, full))
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
    if is_observer(thing):
        if options:
            raise InputError(
                f"{place} is an observer already and takes no options; leave "
                f"{', '.join(sorted(options))} out"
            )
        return cast(Observer, thing)
    # What a function computes cannot be read off it, so its version is the digest of its file.
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return observer(thing, **{"name": place, "version": digest[:16], **options})


def _module_observer(
    name: str, module: Any, options: TorchOptions, /, **network_fields: Any
) -> NetworkObserver:
    """Make an observer of a torch module; `network_fields` are further fields of `Network`."""
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


def _from_torchscript(full: str, path: Path) -> tuple[Any, str, tuple[str, ...]]:
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
    """Return what a file defines under a name, or say which names it has."""
    if not hasattr(module, attribute):
        names = [name for name in vars(module) if not name.startswith("_")]
        raise unknown_name(f"{kind} in {path}", attribute, names)
    return getattr(module, attribute)


def _from_python(
    full: str, path: Path, function: str
) -> tuple[Any, str, tuple[str, ...]]:
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
        path.read_bytes() + state_digest(module.state_dict()).encode()
    ).hexdigest()
    return module, digest, _children(module)


def _children(module: Any) -> tuple[str, ...]:
    return tuple(child for child, _ in module.named_children())
