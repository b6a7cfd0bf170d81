"""What is one's own as an observer: a torch module or a function, with `observer`, and a network in
a file.

The file's name is "torch:FILE.pt" for TorchScript, "torch:FILE.py:FUNCTION" for Python that builds
a module.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import numpy as np

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
from psyprobe.observers.protocol import Ability, Card, is_observer

Function = Callable[..., Any]
Size = int | tuple[int, int] | None
Names = tuple[str, ...]
#: What the second parameter of a function is called, by what the function is for.
_SECOND = {"prompt": "answer", "question": "answer", "reference": "difference"}
#: Parameters that a function is given where it has them.
_TOLD = ("ppd", "fps")


def observer(
    thing: Any,
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
) -> Any:
    """An observer made of a torch module or a function of one's own.

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
        What to call it in results; by default that of the function or of the module's class.
    version : str
        Change it when the function changes: stored answers are told apart by name and version,
        since a function cannot be seen through. A module is told by its weights and its layers too.
    ability : {"features", "difference", "answer"}, optional
        Where the names of the parameters do not tell.
    input_size : int or tuple of int, optional
        Side, or (height, width), in px that stimuli are drawn at; any size if not given.
    features : tuple of str, optional
        The names of what a function returns, where it returns a mapping.
    mean, std : iterable of float, optional
        The normalisation that a module was trained with, a value a channel, for drive in [0, 1].
    input, layers, device, dtype
        Of a module; as in `psyprobe.observers.encoders.network.NetworkOptions`.
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
    >>> says = observer(lambda images, prompt: "Yes" if images[0].std() > 0.01 else "No", name="contrast")
    >>> says.answer([np.full((8, 8, 3), 0.5)], "Is there a pattern?").text
    'No'
    >>> observer(lambda left, right: 0.0, name="mine")
    Traceback (most recent call last):
    psyprobe.errors.InputError: what mine(left, right) is for cannot be told: call its second parameter 'prompt' or
    'reference', or state ability='features', 'difference' or 'answer'
    """
    if isinstance(thing, type) or not callable(thing):
        raise InputError(
            f"{thing!r:.80} is no torch module and no function, of which an observer could be made"
        )
    observer_name = _name(thing) if name is None else name
    if ability is not None and ability not in get_args(Ability):
        raise unknown_name("ability", ability, get_args(Ability))
    torch = sys.modules.get("torch")  # where torch was never imported there is no module of its
    module = (
        torch is not None and isinstance(thing, torch.nn.Module) and ability in (None, "features")
    )
    purpose = "features" if module else ability or _ability(thing, observer_name)
    options: dict[str, Any] = {
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
    options_given = {key: value for key, value in options.items() if value is not None}
    if clips:
        return _of_clips(
            thing, observer_name, version, "module" if module else purpose, options_given
        )
    make = _OF_FUNCTION[purpose]
    takes = (
        [field.name for field in fields(TorchOptions)]
        if module
        else list(inspect.signature(make).parameters)[3:]
    )
    for key in options_given:
        if key not in takes:
            subject = "torch module" if module else f"function with the ability {purpose!r}"
            raise InputError(
                f"{observer_name}: a {subject} takes no option {key!r}; it takes {', '.join(takes) or 'none'}"
            )
    if not module:
        return make(thing, observer_name, version, **options_given)
    digest = hashlib.sha256(f"{thing}{state_digest(thing.state_dict())}".encode()).hexdigest()
    network_fields = {
        "stages": _children(thing),
        "weights_digest": digest,
        "options": {"version": version},
    }
    return _module_observer(observer_name, thing, TorchOptions(**options_given), **network_fields)


def _of_clips(thing: Any, name: str, version: str, purpose: str, options: Mapping[str, Any]) -> Any:
    """Make an observer of a function or a torch module that takes clips."""
    takes = {
        "module": ("mean", "std", "device", "input_size", "features"),
        "features": ("input_size", "features"),
    }
    if purpose == "answer":
        raise InputError(
            f"{name} answers in words, which are asked about images; leave clips=True out"
        )
    allowed = takes.get(purpose, ())
    for key in options:
        if key not in allowed:
            raise InputError(
                f"{name}: what takes clips takes no option {key!r}; it takes "
                f"{', '.join(allowed) or 'none'}"
            )
    size = options.get("input_size")
    if purpose == "difference":
        return DifferenceOfClips(
            thing, _card("difference", name, version, ("difference",)), _taken(thing, "ppd", "fps")
        )
    card = _card("features", name, version, tuple(options.get("features", ("output",))), size)
    if purpose == "features":
        return FeaturesOfClips(thing, card, _taken(thing, "fps"))
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
            f"a {function_name.strip('<>')} has no name of its own: give name=..., by which its answers "
            "are kept"
        )
    return function_name


def _ability(function: Callable[..., Any], name: str) -> str:
    parameters = parameters_of(function)
    needed = [
        parameter
        for parameter in parameters
        if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
    ]
    needed = [parameter for parameter in needed if parameter.name not in _TOLD]
    if len(parameters) > 1 and parameters[1].name in _SECOND:
        return _SECOND[parameters[1].name]
    if len(needed) == 1:
        return "features"
    names = ", ".join(parameter.name for parameter in parameters) or "..."
    raise InputError(
        f"what {name}({names}) is for cannot be told: call its second parameter 'prompt' or "
        "'reference', or state "
        "ability='features', 'difference' or 'answer'"
    )


class FeaturesOfFunction:
    """A function from a batch of images to features: ``function(images)``, as in
    `psyprobe.observers.observer`.
    """

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
        """What the function makes of the images, one array (N, D) a name in ``card.features``.

        Raises
        ------
        InputError
            If the images are not what it takes, or the function returns something else than its
            card says.
        PsyprobeError
            If a feature is not finite.
        """
        card = self.card
        looked_at = check_images(
            images, card.name, input_size=card.input_size, pixel_range=drive_range(card)
        )
        shown = np.asarray(looked_at, dtype=np.float32)
        returned = self._function(shown)
        named = returned if isinstance(returned, Mapping) else {card.features[0]: returned}
        if set(named) != set(card.features):
            raise InputError(
                f"{card.name} returned {sorted(named)} and its card says "
                f"{sorted(card.features)}: name what it returns "
                "with features=(...)"
            )
        return {name: self._rows(name, as_numpy(named[name]), len(shown)) for name in card.features}

    def _rows(self, name: str, rows: FloatArray, count: int) -> FloatArray:
        if rows.ndim < 2 or len(rows) != count or rows.dtype.kind != "f":
            raise InputError(
                f"{self.card.name}: {name!r} has shape {rows.shape} and format {rows.dtype} for "
                f"{count} images; "
                "wanted is one row of floating-point numbers an image"
            )
        check_finite(self.card.name, name, rows)
        return rows.reshape(count, -1)


class DifferenceOfFunction:
    """A function of two batches of images: ``function(test, reference)``, as in
    `psyprobe.observers.observer`.
    """

    def __init__(self, function: Function, name: str, version: str) -> None:
        self._function = function
        self._takes = _taken(function, "ppd")
        self.card = replace(
            _card("difference", name, version, ("difference",)), encoding="linear light, cd/m²"
        )

    def difference(self, test: Array, reference: Array, *, ppd: float) -> FloatArray:
        """How different the function finds each test image from its reference, shape (N,).

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
        found = as_numpy(self._function(test, reference, **dict.fromkeys(self._takes, ppd)))
        if found.shape != (len(test),) or found.dtype.kind != "f":
            raise InputError(
                f"{name} returned shape {found.shape} and format {found.dtype} for {len(test)} "
                "pairs of images; wanted "
                "is one floating-point number a pair"
            )
        if not np.isfinite(found).all():
            raise PsyprobeError(f"{name}: a difference is NaN or infinity")
        return found


class AnswersOfFunction(Answering):
    """A function from images and a question to an answer: ``function(images, prompt)``, as in
    `psyprobe.observers.observer`.
    """

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
        self._takes = _taken(function, "system", "decoding", "words")
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
        besides = {take: getattr(inquiry, take) for take in self._takes}
        began = time.perf_counter()
        returned = self._function(list(inquiry.images), inquiry.prompt, **besides)
        took = time.perf_counter() - began
        answer = _answer(name, returned, self._complete)
        return replace(answer, latency=answer.latency or took, model=answer.model or name)


def _card(
    ability: Ability, name: str, version: str, features: tuple[str, ...], input_size: Size = None
) -> Card:
    size = None if input_size is None else checked_size(input_size)
    return Card(
        name, ability, features, size, weights="inside the function", options={"version": version}
    )


def parameters_of(function: Function) -> list[inspect.Parameter]:
    """Its parameters in their order; none where it does not tell, as some functions written in
    C.
    """
    try:
        return list(inspect.signature(function).parameters.values())
    except ValueError:
        return []


def _taken(function: Function, *optional: str) -> tuple[str, ...]:
    """Name those of some optional arguments for which a function has parameters."""
    names = {parameter.name for parameter in parameters_of(function)}
    return tuple(option for option in optional if option in names)


def _answer(name: str, returned: Any, complete: bool) -> Answer:
    if isinstance(returned, Answer):
        return returned
    if isinstance(returned, str):
        return Answer(returned)
    match returned:
        case (str() as text, Mapping() as tokens):
            ordered = sorted(
                ((str(token), float(value)) for token, value in tokens.items()),
                key=lambda token_and_value: -token_and_value[1],
            )
            if any(np.isnan(value) or value > 1e-6 for _, value in ordered):
                raise InputError(
                    f"{name} returned {dict(tokens)} as log-probabilities: they lie at or below 0"
                )
            return Answer(text, tuple(ordered), complete)
    raise InputError(
        f"{name} returned a {type(returned).__name__}; wanted is the reply as a string, or (text, "
        "{token: logprob}), or an Answer"
    )


_OF_FUNCTION: dict[str, Callable[..., Any]] = {
    "features": FeaturesOfFunction,
    "difference": DifferenceOfFunction,
    "answer": AnswersOfFunction,
}


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


def load_torch(name: str, options: TorchOptions) -> NetworkObserver:
    """A network of your own: a TorchScript file, which shows no layers, or FILE.py:FUNCTION.

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
        full, module, options, stages=stages, resizable=True, weights=origin, weights_digest=digest
    )


def load_file(place: str, **options: Any) -> Any:
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
        return thing
    # A function cannot be seen through, so what tells its answers from others' is its file.
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return observer(thing, **{"name": place, "version": digest[:16], **options})


def _module_observer(
    name: str, module: Any, options: TorchOptions, /, **network_fields: Any
) -> NetworkObserver:
    """A torch module in memory as an observer; `network_fields` are further fields of `Network`."""
    network = Network(
        name,
        module,
        module,
        main="output",
        input_size=None if options.input_size is None else checked_size(options.input_size),
        mean=three_channels(name, "mean", options.mean),
        std=three_channels(name, "std", options.std),
        **network_fields,
    )
    return NetworkObserver(network, options)


def _from_torchscript(full: str, path: Path) -> tuple[Any, str, tuple[str, ...]]:
    import torch

    with warnings.catch_warnings():
        # torch advises authors to export in a newer format; whoever has the file in hand cannot act
        # on it
        warnings.filterwarnings("ignore", "`torch.jit.load` is deprecated", FutureWarning)
        try:
            module = torch.jit.load(str(path), map_location="cpu")
        except Exception as problem:  # a damaged file makes torch raise whatever it stumbles over
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
        # It is the user's program: any failure of it is theirs to read.
        raise InputError(
            f"{name} cannot be loaded: {describe_failure(problem, str(path))}"
        ) from problem


def _attribute(module: ModuleType, path: Path, attribute: str, kind: str) -> Any:
    """Return what a file defines under a name, or say which names it has."""
    if not hasattr(module, attribute):
        names = [name for name in vars(module) if not name.startswith("_")]
        raise unknown_name(f"{kind} in {path}", attribute, names)
    return getattr(module, attribute)


def _from_python(full: str, path: Path, function: str) -> tuple[Any, str, tuple[str, ...]]:
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
