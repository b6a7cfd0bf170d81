"""Load observers by name: "pixels", "timm:NAME" and whatever users and other packages add."""

from __future__ import annotations

import contextlib
import dataclasses
import fnmatch
import functools
import importlib
import importlib.metadata
import importlib.util
import inspect
import json
import tomllib
import urllib.parse
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from psyprobe.errors import InputError, PsyprobeError, describe_failure, unknown_name
from psyprobe.files.listing import Listing
from psyprobe.files.parsing import parse_toml, read_text
from psyprobe.files.terminal import settings
from psyprobe.observers.protocol import Ability, is_observer

Loader = TypeVar("Loader", bound=Callable[..., Any])

ENTRY_POINTS = "psyprobe.observers"
#: The observer that runs when none is named: a real encoder whose ImageNet weights come with a
#: dependency, and whose feature of a uniform field never all but vanishes (docs/observers.md).
DEFAULT_OBSERVER = "packaged:efficientnet_lite2"
#: The kinds that come with psyprobe, as ``kinds.toml`` has them, and those that users added.
_PAGES = tomllib.loads(
    files("psyprobe.observers").joinpath("kinds.toml").read_text(encoding="utf-8")
)
_KINDS: dict[str, ObserverKind] = {}
#: The kind of observers that stand in a Python file of the user's.
_FILE = "FILE.py"
#: How the observers that are alive were loaded, by their identities.
_LOADED: dict[int, tuple[weakref.ref[Any], tuple[str, dict[str, Any]]]] = {}


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
        """Which required package is missing and how to get it, or what else is wrong; empty where
        nothing is.
        """
        if self.problem:
            return self.problem
        missing = [
            package for package in self.requires if importlib.util.find_spec(package) is None
        ]
        return f"needs {' and '.join(missing)}: {self.install}" if missing else ""

    def listing(self) -> list[ObserverRow]:
        """Its rows; each carries the obstacle of the kind where the kind has one."""
        rows = (
            [ObserverRow(self.form, self.summary, self.ability)]
            if self.rows is None
            else self.rows()
        )
        return [dataclasses.replace(row, obstacle=self.obstacle or row.obstacle) for row in rows]


def register_observer(prefix: str, **fields: Any) -> Callable[[Loader], Loader]:
    """Add a kind of observer; decorates the function that loads one.

    The keywords are the fields of `ObserverKind`. The function stays as it is; a prefix that is
    taken is an InputError.

    Parameters
    ----------
    prefix : str
        What stands before the colon in a name.
    **fields
        Those of `ObserverKind`.

    Examples
    --------
    >>> @register_observer("pixels", form="pixels", summary="mine")
    ... def load(name):
    ...     pass
    Traceback (most recent call last):
    psyprobe.errors.InputError: an observer kind 'pixels' exists already (pixels): choose another prefix
    """

    def register(load: Loader) -> Loader:
        _check_new(prefix, {prefix: _own(prefix)} if prefix in _PAGES else _KINDS)
        _KINDS[prefix] = ObserverKind(prefix, load, **fields)
        return load

    return register


def load_observer(
    name: str = DEFAULT_OBSERVER,
    /,
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
        `list_observers` lists. Options may stand behind it:
        "openai:MODEL?concurrency=16&input_size=336".
    random_weights, input, layers, device
        As in `psyprobe.observers.encoders.network`; kinds that take one of them less refuse it.
    **options
        What the kind takes besides: `dtype`, `input_size`, `weights` (see the page on observers).

    Raises
    ------
    UnknownNameError
        If no kind or no observer has this name; the message guesses the meant one.
    InputError
        If the kind does not take an option, or not this value of it.
    WeightsError
        If the weights are not on this machine; the message says where they were looked for and how
        to get them.

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
    name, sign, query = name.partition("?")
    options = {**_options(name, query), **options} if sign else options
    prefix, rest = _prefix_and_rest(name)
    kind = _kind(prefix)
    if kind is None and not rest:
        raise unknown_name("observer", name, [row.name for row in list_observers()])
    if kind is None:
        raise unknown_name("observer kind", prefix, _kinds())
    if kind.problem:
        raise PsyprobeError(f"the observer kind {prefix!r} {kind.problem}")
    if bool(rest) != (":" in kind.form):
        raise InputError(f"the observer name {name!r} is incomplete or too long: write {kind.form}")
    if input not in ("normalised", "raw"):
        raise InputError(f"input {input!r} is neither 'normalised' nor 'raw'")
    if kind.obstacle:
        raise PsyprobeError(f"{name} {kind.obstacle}")
    defaults = {"random_weights": False, "input": "normalised", "layers": None, "device": None}
    standard = {
        "random_weights": random_weights,
        "input": input,
        "layers": layers,
        "device": device,
    }
    chosen_options = options | {
        key: value for key, value in standard.items() if value != defaults[key]
    }
    names = _option_names(kind)
    for option in chosen_options:
        if option not in names and not _takes_any_option(kind):
            raise InputError(
                f"{kind.form} takes no option {option!r}; it takes "
                f"{', '.join(sorted(names)) or 'none'}"
            )
    loaded = (
        kind.load(rest, **chosen_options)
        if kind.options is None
        else kind.load(rest, kind.options(**chosen_options))
    )
    with contextlib.suppress(
        TypeError
    ):  # of an object to which no reference is kept, nothing is known
        _LOADED[id(loaded)] = (
            weakref.ref(loaded, functools.partial(_forget, id(loaded))),
            (name, chosen_options),
        )
    return loaded


def takes_option(name: str, option: str) -> bool:
    """Tell whether the kind of an observer names an option.

    Parameters
    ----------
    name : str
        As `load_observer` takes it.
    option : str
        Such as "layers".

    Examples
    --------
    >>> takes_option("timm:resnet18", "layers"), takes_option("pixels", "layers")
    (True, False)
    """
    prefix, _ = _prefix_and_rest(name.partition("?")[0])
    kind = _kind(prefix)
    return kind is not None and not kind.problem and option in _option_names(kind)


def _prefix_and_rest(name: str) -> tuple[str, str]:
    """The prefix that names the kind, and what that kind loads."""
    prefix, _, rest = name.partition(":")
    return (_FILE, name) if prefix.endswith(".py") else (prefix, rest)


def _option_names(kind: ObserverKind) -> list[str]:
    """The options that a kind names: fields of its options, or keywords of its function."""
    if kind.options is not None:
        return [option.name for option in dataclasses.fields(kind.options)]
    _, *parameters = inspect.signature(kind.load).parameters.values()
    return [parameter.name for parameter in parameters]


def _takes_any_option(kind: ObserverKind) -> bool:
    parameters = inspect.signature(kind.load).parameters.values()
    return kind.options is None and any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in parameters
    )


def _options(name: str, query: str) -> dict[str, Any]:
    """Read the options behind a name, written as a query."""
    return settings([urllib.parse.unquote(part) for part in query.split("&") if part], f"{name}?")


def read_observers(path: str | Path) -> list[str]:
    """Read names of observers with their options from a TOML file, a table ``[[observers]]`` each.

    Parameters
    ----------
    path : str or Path
        Each table has a `name`, and options beside it.

    Returns
    -------
    list of str
        As `load_observer` takes them.

    Raises
    ------
    InputError
        The page is none, or a table has no name.
    """
    page = parse_toml(read_text(Path(path)), str(path))
    tables = page.get("observers")
    if set(page) != {"observers"} or not isinstance(tables, list) or not tables:
        raise InputError(
            f"{path} holds {', '.join(page) or 'nothing'}; give a table [[observers]] for each, "
            "with name"
        )
    names = []
    for table in tables:
        name = table.get("name") if isinstance(table, dict) else None
        if not isinstance(name, str) or not name:
            raise InputError(
                f"{path}: a table of [[observers]] has no name; give for example name = "
                "'openai:MODEL'"
            )
        options = [
            f"{key}={value if isinstance(value, str) else json.dumps(value)}"
            for key, value in table.items()
        ]
        query = "&".join(
            urllib.parse.quote(option, safe="=:/")
            for option in options
            if not option.startswith("name=")
        )
        names.append(f"{name}?{query}" if query else name)
    return names


def loaded_as(observer: Any) -> tuple[str, dict[str, Any]] | None:
    """Recall the name and options with which an observer was loaded; None of one that was not.

    Examples
    --------
    >>> loaded_as(load_observer("pixels"))
    ('pixels', {})
    """
    reference, name_and_options = _LOADED.get(id(observer), (None, None))
    return name_and_options if reference is not None and reference() is observer else None


def _forget(identity: int, _: Any) -> None:
    _LOADED.pop(identity, None)


def list_observers(pattern: str = "*") -> Listing[ObserverRow]:
    """The observers whose names match a glob, whether they can run here, and what is missing where
    they cannot.

    Nothing heavy is imported and nothing is looked up on a network.

    Parameters
    ----------
    pattern : str, optional
        Such as ``"timm:*"``; all without it.

    Examples
    --------
    >>> list_observers("pix*")
    [ObserverRow(name='pixels', summary='no encoder: the image itself', ability='features', obstacle='')]
    """
    rows = [row for kind in _kinds().values() for row in kind.listing()]
    matches = (row for row in rows if fnmatch.fnmatchcase(row.name, pattern))
    return Listing(sorted(matches, key=lambda row: row.name))


def as_observer(thing: Any, /, **options: Any) -> Any:
    """The observer that is meant: one by name, with `options` of `load_observer`, or `thing` itself
    if it is one.

    Parameters
    ----------
    thing : str or observer
        What is meant.
    **options
        Of `load_observer`, for a name.

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
    if not is_observer(thing):
        raise _no_observer(thing)
    return thing


def _no_observer(thing: Any) -> InputError:
    kind = type(thing).__name__
    if isinstance(thing, type):
        return InputError(
            f"the class {thing.__name__} is no observer: make one of it first, "
            f"{thing.__name__}(...)"
        )
    if callable(thing):
        type_name = "module" if hasattr(thing, "named_modules") else "function"
        name = getattr(thing, "__name__", kind)
        return InputError(
            f"the {type_name} {name} is no observer yet; wrap it: pp.observer({type_name})"
        )
    return InputError(
        f"{thing!r:.80} is a {kind}, and neither the name of an observer nor an observer"
    )


def kind_obstacle(name: str) -> str:
    """Which package the kind of the observer `name` misses here and how to get it; empty where
    none.
    """
    kind = _kind(name.partition(":")[0])
    return "" if kind is None else kind.obstacle


@functools.cache
def _own(prefix: str) -> ObserverKind:
    """Load a kind that comes with psyprobe."""
    page = dict(_PAGES[prefix])
    module = importlib.import_module(f"psyprobe.observers.{page.pop('module')}")
    parts = {key: getattr(module, page[key]) for key in ("load", "options", "rows") if key in page}
    return ObserverKind(prefix, **{**page, **parts, "requires": tuple(page.get("requires", ()))})


def _kind(prefix: str) -> ObserverKind | None:
    """The kind of a prefix; of packages only those that could have it are loaded."""
    if prefix in _PAGES:
        return _own(prefix)
    if prefix in _KINDS:
        return _KINDS[prefix]
    for point in importlib.metadata.entry_points(group=ENTRY_POINTS):
        if point.name == prefix:
            kind = _from_package(point, _KINDS)
            if kind.prefix == prefix:
                return kind
    return _kinds().get(prefix)


def _kinds() -> dict[str, ObserverKind]:
    """All kinds, those of installed packages too; a package that fails to load is one with a
    problem.
    """
    kinds = {prefix: _own(prefix) for prefix in _PAGES} | _KINDS
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        kind = _from_package(entry, kinds)
        kinds[kind.prefix] = kind
    return kinds


def _from_package(
    entry: importlib.metadata.EntryPoint, kinds: Mapping[str, ObserverKind]
) -> ObserverKind:
    try:
        kind = entry.load()
        if not isinstance(kind, ObserverKind):
            raise TypeError(f"it is a {type(kind).__name__}, not an ObserverKind")
        _check_new(kind.prefix, kinds)
        kind.listing()
    except (Exception, SystemExit) as problem:  # one broken package must not take the others along
        prefix = entry.name if entry.name not in kinds else f"{entry.name} of {entry.value}"
        reason = f"cannot be loaded from {entry.value}: {describe_failure(problem)}"
        return ObserverKind(prefix, _no_observer, f"{prefix}:NAME", "broken", problem=reason)
    return kind


def _check_new(prefix: str, kinds: Mapping[str, ObserverKind]) -> None:
    if prefix in kinds:
        raise InputError(
            f"an observer kind {prefix!r} exists already ({kinds[prefix].form}): choose another "
            "prefix"
        )
