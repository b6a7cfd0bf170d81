"""`observer`: a torch module or a function of one's own, made an observer in one line."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any, get_args

from psyprobe.errors import InputError, unknown_name
from psyprobe.observers.encoders.network import NetworkObserver
from psyprobe.observers.encoders.torch_files import TorchOptions, module_observer
from psyprobe.observers.encoders.weights import state_digest
from psyprobe.observers.function import AnswersOfFunction, DifferenceOfFunction, FeaturesOfFunction, parameters_of
from psyprobe.observers.protocol import Ability

#: What the second parameter of a function is called, by what the function is for.
_SECOND = {"prompt": "answer", "question": "answer", "reference": "difference"}


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
) -> Any:
    """An observer made of a torch module or a function of one's own.

    What it can be asked follows from `thing`, unless `ability` states it:

    * a ``torch.nn.Module`` gives features: it is called with drive, normalised, of shape (N, 3, H, W);
    * a function whose second parameter is called `prompt` or `question` answers: ``function(images, prompt)`` gets a
      list of arrays (H, W, 3) of drive and returns the reply as a string, or with the log-probabilities of its first
      token, ``(text, {token: logprob})``, or an `Answer`; where it has parameters called `system`, `decoding` or
      `words`, it gets those of the question too;
    * a function whose second parameter is called `reference` is a metric: ``function(test, reference)`` gets light in
      cd/m², two arrays of shape (N, H, W, 3), and returns N numbers, 0 for no difference; a parameter called `ppd` gets
      the pixels per degree;
    * a function that needs one argument gives features: ``function(images)`` gets drive, float32, of shape
      (N, H, W, 3), and returns an array (N, ...), or a mapping from name to such arrays.

    Parameters
    ----------
    thing : torch.nn.Module or callable
        A module is set to evaluation mode and moved to its device.
    name : str, optional
        What to call it in results; by default that of the function or of the module's class.
    version : str
        Change it when the function changes: stored answers are told apart by name and version, since a function
        cannot be seen through. A module is told by its weights and its layers too.
    ability : {"features", "difference", "answer"}, optional
        Where the names of the parameters do not tell.
    input_size : int or tuple of int, optional
        Side, or (height, width), in px that stimuli are drawn at; any size if not given.
    features : tuple of str, optional
        The names of what a function returns, where it returns a mapping.
    mean, std : iterable of float, optional
        The normalisation that a module was trained with, a value a channel, for drive in [0, 1].
    input, layers, device, dtype
        Of a module; as in `psyprobe.observers.encoders.options.NetworkOptions`.
    bits : int, optional
        8 where an answering function takes whole 8-bit codes only (drive k/255).
    images_at_once : int, optional
        How many images an answering function takes at most; any number if not given.
    complete : bool, optional
        Whether the tokens that an answering function returns are all that spell the words.

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
        raise InputError(f"{thing!r:.80} is no torch module and no function, of which an observer could be made")
    called = _name(thing) if name is None else name
    if ability is not None and ability not in get_args(Ability):
        raise unknown_name("ability", ability, get_args(Ability))
    torch = sys.modules.get("torch")  # where torch was never imported there is no module of its
    module = torch is not None and isinstance(thing, torch.nn.Module) and ability in (None, "features")
    told = "features" if module else ability or _ability(thing, called)
    options: dict[str, Any] = {
        "input_size": input_size, "features": features, "mean": mean, "std": std, "input": input, "layers": layers,
        "device": device, "dtype": dtype, "bits": bits, "images_at_once": images_at_once, "complete": complete,
    }  # fmt: skip
    given = {key: value for key, value in options.items() if value is not None}
    make = _OF_FUNCTION[told]
    takes = [each.name for each in fields(TorchOptions)] if module else list(inspect.signature(make).parameters)[3:]
    for key in given:
        if key not in takes:
            what = "torch module" if module else f"function with the ability {told!r}"
            raise InputError(f"{called}: a {what} takes no option {key!r}; it takes {', '.join(takes) or 'none'}")
    if module:
        return _of_module(thing, called, version, TorchOptions(**given))
    return make(thing, called, version, **given)


def _of_module(module: Any, name: str, version: str, options: TorchOptions) -> NetworkObserver:
    told = f"{module}{state_digest(module.state_dict())}"
    return module_observer(
        name,
        module,
        options,
        stages=tuple(child for child, _ in module.named_children()),
        weights_digest=hashlib.sha256(told.encode()).hexdigest(),
        options={"version": version},
    )


_OF_FUNCTION: dict[str, Callable[..., Any]] = {
    "features": FeaturesOfFunction,
    "difference": DifferenceOfFunction,
    "answer": AnswersOfFunction,
}


def _name(thing: Any) -> str:
    found: str = getattr(thing, "__name__", type(thing).__name__)
    if found in ("<lambda>", "partial"):
        raise InputError(f"a {found.strip('<>')} has no name of its own: give name=..., by which its answers are kept")
    return found


def _ability(function: Callable[..., Any], name: str) -> str:
    parameters = parameters_of(function)
    needed = [each for each in parameters if each.default is each.empty and each.kind is not each.VAR_KEYWORD]
    if len(parameters) > 1 and parameters[1].name in _SECOND:
        return _SECOND[parameters[1].name]
    if len(needed) == 1:
        return "features"
    names = ", ".join(each.name for each in parameters) or "..."
    raise InputError(
        f"what {name}({names}) is for cannot be told: call its second parameter 'prompt' or 'reference', or state "
        "ability='features', 'difference' or 'answer'"
    )
