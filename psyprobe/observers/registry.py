"""Observers by name: "pixels", "timm:NAME", "packaged:NAME" and whatever users and other packages add."""

from __future__ import annotations

import dataclasses
import fnmatch
import importlib
import importlib.metadata
import importlib.util
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from psyprobe.errors import InputError, PsyprobeError, unknown_name
from psyprobe.observers.protocol import Ability, Card

ENTRY_POINTS = "psyprobe.observers"
#: The observer that runs when none is named: a real encoder whose ImageNet weights come with a dependency.
DEFAULT_OBSERVER = "packaged:efficientnet_lite0"

Loader = TypeVar("Loader", bound=Callable[..., Any])


@dataclass(frozen=True)
class ObserverRow:
    """One line of the listing: an observer, or a family of them, and whether it can run here.

    Parameters
    ----------
    name : str
        What `load_observer` takes; capitals stand for what one fills in ("timm:NAME").
    summary : str
        What it is, in a few words.
    ability : {"features", "difference", "answer"}
        What a probe may ask of it.
    obstacle : str
        What is missing here and how to get it; empty where it can run.
    """

    name: str
    summary: str
    ability: Ability = "features"
    obstacle: str = ""


@dataclass(frozen=True)
class ObserverKind:
    """A family of observers that share a prefix.

    Parameters
    ----------
    prefix : str
        What stands before the colon in a name ("timm"), or the whole name ("pixels").
    load : callable
        ``load(rest, **options)`` returns the observer; `rest` is what follows the colon.
    form : str
        How a full name is written: "timm:NAME[.TAG]".
    summary : str
        What it is, in a few words.
    ability : {"features", "difference", "answer"}
        What a probe may ask of it.
    requires : tuple of str
        Packages that must be importable.
    install : str
        How to get them.
    rows : callable, optional
        Its observers one by one, where they are known; must not import a heavy package.
    problem : str
        Why the package that it comes from cannot be loaded; empty where it can.
    options : dataclass, optional
        What `load` takes: then it is called as ``load(rest, options(...))``.
    """

    prefix: str
    load: Callable[..., Any]
    form: str
    summary: str
    ability: Ability = "features"
    requires: tuple[str, ...] = ()
    install: str = ""
    rows: Callable[[], Iterable[ObserverRow]] | None = None
    options: type[Any] | None = None
    problem: str = ""

    @property
    def obstacle(self) -> str:
        """Which required package is missing and how to get it, or what else is wrong; empty where nothing is."""
        if self.problem:
            return self.problem
        missing = [package for package in self.requires if importlib.util.find_spec(package) is None]
        return f"needs {' and '.join(missing)}: {self.install}" if missing else ""

    def listing(self) -> list[ObserverRow]:
        """Its rows; each carries the obstacle of the kind where the kind has one."""
        rows = [ObserverRow(self.form, self.summary, self.ability)] if self.rows is None else self.rows()
        return [dataclasses.replace(row, obstacle=self.obstacle or row.obstacle) for row in rows]


#: Where each kind that comes with psyprobe registers; its module loads when the kind is asked for.
_MODULES = {
    "pixels": "pixels",
    "castlecsf": "castlecsf",
    "cvvdp": "cvvdp",
    "packaged": "encoders.packaged",
    "timm": "encoders.timm_models",
    "open_clip": "encoders.open_clip_models",
    "torch": "encoders.torch_files",
    "diffusers": "encoders.diffusers_models",
    "vit_mae": "encoders.transformers_models",
    "sam2": "encoders.transformers_models",
    "transformers_vision": "encoders.transformers_vision",
    "zoo": "encoders.zoo",
    "simulated": "simulated.observer",
    "openai": "chat.openai_chat",
    "transformers": "chat.transformers_chat",
    "vlmevalkit": "chat.vlmevalkit",
}
#: Kinds of loaded modules of psyprobe, and those that users added.
_OWN: dict[str, ObserverKind] = {}
_KINDS: dict[str, ObserverKind] = {}


def register_observer(
    prefix: str,
    *,
    form: str,
    summary: str,
    ability: Ability = "features",
    requires: tuple[str, ...] = (),
    install: str = "",
    rows: Callable[[], Iterable[ObserverRow]] | None = None,
    options: type[Any] | None = None,
) -> Callable[[Loader], Loader]:
    """Add a kind of observer; decorates the function that loads one.

    The arguments are as in `ObserverKind`. The function stays as it is; a prefix that is taken is an InputError.

    Examples
    --------
    >>> @register_observer("pixels", form="pixels", summary="mine")
    ... def load(name):
    ...     pass
    Traceback (most recent call last):
    psyprobe.errors.InputError: an observer kind 'pixels' exists already (pixels): choose another prefix
    """

    def register(load: Loader) -> Loader:
        kind = ObserverKind(prefix, load, form, summary, ability, requires, install, rows, options)
        if load.__module__ == f"psyprobe.observers.{_MODULES.get(prefix)}":
            _OWN[prefix] = kind
            return load
        _check_new(prefix, {**_KINDS, **({prefix: _own(prefix)} if prefix in _MODULES else {})})
        _KINDS[prefix] = kind
        return load

    return register


def load_observer(
    name: str = DEFAULT_OBSERVER,
    *,
    random_weights: bool = False,
    input: str = "normalised",
    layers: str | Iterable[str] | None = None,
    device: str | None = None,
    **options: Any,
) -> Any:
    """An observer by name.

    Parameters
    ----------
    name : str
        "pixels", "timm:NAME[.TAG]", "open_clip:ARCH/TAG", "torch:FILE", "packaged:NAME", or what
        `list_observers` lists.
    random_weights, input, layers, device
        As in `psyprobe.observers.encoders.options`; kinds that take one of them less refuse it.
    **options
        What the kind takes besides: `dtype`, `input_size`, `weights` (see the page on observers).

    Raises
    ------
    UnknownNameError
        If no kind or no observer has this name; the message guesses the meant one.
    InputError
        If the kind does not take an option, or not this value of it.
    WeightsError
        If the weights are not on this machine; the message says where they were looked for and how to get them.

    Examples
    --------
    >>> load_observer("pixels").card.features
    ('pixels',)
    >>> load_observer("pixles")
    Traceback (most recent call last):
    psyprobe.errors.UnknownNameError: unknown observer 'pixles'; did you mean 'pixels'? Known: ...
    """
    if not isinstance(name, str):
        raise _no_observer(name)
    prefix, _, rest = name.partition(":")
    kinds = {prefix: _own(prefix)} if prefix in _MODULES else _kinds()
    if prefix not in kinds:
        known = [row.name for row in list_observers()]
        raise unknown_name("observer", name, known) if not rest else unknown_name("observer kind", prefix, kinds)
    kind = kinds[prefix]
    if kind.problem:
        raise PsyprobeError(f"the observer kind {prefix!r} {kind.problem}")
    if bool(rest) != (":" in kind.form):
        raise InputError(f"the observer name {name!r} is incomplete or too long: write {kind.form}")
    if input not in ("normalised", "raw"):
        raise InputError(f"input {input!r} is neither 'normalised' nor 'raw'")
    if kind.obstacle:
        raise PsyprobeError(f"{name} {kind.obstacle}")
    defaults = {"random_weights": False, "input": "normalised", "layers": None, "device": None}
    standard = {"random_weights": random_weights, "input": input, "layers": layers, "device": device}
    asked = options | {key: value for key, value in standard.items() if value != defaults[key]}
    _check_options(kind, asked)
    return kind.load(rest, **asked) if kind.options is None else kind.load(rest, kind.options(**asked))


def list_observers(pattern: str = "*") -> list[ObserverRow]:
    """The observers whose names match a glob, whether they can run here, and what is missing where they cannot.

    Nothing heavy is imported and nothing is looked up on a network.

    Examples
    --------
    >>> list_observers("pix*")
    [ObserverRow(name='pixels', summary='no encoder: the image itself', ability='features', obstacle='')]
    """
    rows = [row for kind in _kinds().values() for row in kind.listing()]
    return sorted((row for row in rows if fnmatch.fnmatchcase(row.name, pattern)), key=lambda row: row.name)


def as_observer(thing: Any, **options: Any) -> Any:
    """The observer that is meant: one by name, with `options` of `load_observer`, or `thing` itself if it is one.

    Raises
    ------
    InputError
        If it is neither; the message says how to make an observer of a torch module or a function.

    Examples
    --------
    >>> as_observer("pixels").card.name
    'pixels'
    >>> as_observer(len)
    Traceback (most recent call last):
    psyprobe.errors.InputError: the function len is no observer yet; wrap it: pp.observer(function)
    """
    if isinstance(thing, str):
        return load_observer(thing, **options)
    if isinstance(thing, type) or not isinstance(getattr(thing, "card", None), Card):
        raise _no_observer(thing)
    return thing


def _no_observer(thing: Any) -> InputError:
    kind = type(thing).__name__
    if isinstance(thing, type):
        return InputError(f"the class {thing.__name__} is no observer: make one of it first, {thing.__name__}(...)")
    if callable(thing):
        what = "module" if hasattr(thing, "named_modules") else "function"
        name = getattr(thing, "__name__", kind)
        return InputError(f"the {what} {name} is no observer yet; wrap it: pp.observer({what})")
    return InputError(f"{thing!r:.80} is a {kind}, and neither the name of an observer nor an observer")


def kind_obstacle(name: str) -> str:
    """Which package the kind of the observer `name` misses here and how to get it; empty where none."""
    return _own(name.partition(":")[0]).obstacle


def _own(prefix: str) -> ObserverKind:
    importlib.import_module(f"psyprobe.observers.{_MODULES[prefix]}")
    return _OWN[prefix]


def _kinds() -> dict[str, ObserverKind]:
    """All kinds, those of installed packages too; a package that fails to load is one with a problem."""
    kinds = {prefix: _own(prefix) for prefix in _MODULES} | _KINDS
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        kind = _from_package(entry, kinds)
        kinds[kind.prefix] = kind
    return kinds


def _from_package(entry: importlib.metadata.EntryPoint, kinds: Mapping[str, ObserverKind]) -> ObserverKind:
    try:
        kind = entry.load()
        if not isinstance(kind, ObserverKind):
            raise TypeError(f"it is a {type(kind).__name__}, not an ObserverKind")
        _check_new(kind.prefix, kinds)
        kind.listing()
    except (Exception, SystemExit) as problem:  # one broken package must not take the others along
        reason = " ".join(f"{type(problem).__name__}: {problem}".split())
        prefix = entry.name if entry.name not in kinds else f"{entry.name} of {entry.value}"
        told = f"cannot be loaded from {entry.value}: {reason}"
        return ObserverKind(prefix, _no_observer, f"{prefix}:NAME", "broken", problem=told)
    return kind


def _check_new(prefix: str, kinds: Mapping[str, ObserverKind]) -> None:
    if prefix in kinds:
        raise InputError(f"an observer kind {prefix!r} exists already ({kinds[prefix].form}): choose another prefix")


def _check_options(kind: ObserverKind, asked: dict[str, Any]) -> None:
    if kind.options is not None:
        names = [each.name for each in dataclasses.fields(kind.options)]
    else:
        parameters = list(inspect.signature(kind.load).parameters.values())[1:]
        if any(each.kind is each.VAR_KEYWORD for each in parameters):
            return
        names = [each.name for each in parameters]
    for option in asked:
        if option not in names:
            raise InputError(f"{kind.form} takes no option {option!r}; it takes {', '.join(sorted(names)) or 'none'}")
