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
import urllib.parse
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from psyprobe._typing import Option
from psyprobe.errors import InputError, PsyprobeError, describe_failure, unknown_name
from psyprobe.files.json_types import JsonObject
from psyprobe.files.listing import Listing
from psyprobe.files.parsing import packaged_toml, parse_toml, read_text
from psyprobe.files.programs import package_digest
from psyprobe.files.terminal import settings
from psyprobe.observers.protocol import Ability, Observer, add_sources, is_observer

Loader = TypeVar("Loader", bound=Callable[..., Any])

ENTRY_POINTS = "psyprobe.observers"
#: The observer that runs when none is named: a real encoder whose ImageNet weights come with a
#: dependency, and whose feature of a uniform field never all but vanishes (docs/observers.md).
DEFAULT_OBSERVER = "packaged:efficientnet_lite2"
#: The kinds that come with psyprobe, as tables of ``kinds.toml``, and those that users added.
_TABLES = packaged_toml("psyprobe.observers", "kinds.toml")
_KINDS: dict[str, ObserverKind] = {}
#: The kind of observers in a Python file of the user's.
_FILE = "FILE.py"
#: The names and options of live observers, by their identities.
_LOADED: dict[int, tuple[weakref.ref[Any], tuple[str, JsonObject]]] = {}


@dataclass(frozen=True)
class ObserverRow:
    """One line of the listing: an observer, or a family of them, and whether it can run here.

    Parameters
    ----------
    name : str
        Name for `load_observer`; capitals stand for what one fills in ("timm:NAME").
    summary : str
        A description in a few words.
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
        The part of a name before the colon ("timm"), or the whole name ("pixels").
    load : callable
        ``load(rest, **options)`` returns the observer; `rest` is the part after the colon.
    form : str
        Form of a full name: "timm:NAME[.TAG]".
    summary : str
        A description in a few words.
    ability : {"features", "difference", "answer"}
        What a probe may ask of it.
    requires : tuple of str
        Packages that must be importable.
    install : str
        How to get them.
    rows : callable, optional
        Lists its observers one by one, where they are known; must not import a heavy package.
    problem : str
        Why the package that it comes from cannot be loaded; empty where it can.
    options : dataclass, optional
        The options of `load`, which is then called as ``load(rest, options(...))``.
    """

    prefix: str
    load: Callable[..., object]
    form: str
    summary: str
    ability: Ability = "features"
    requires: tuple[str, ...] = ()
    install: str = ""
    rows: Callable[[], Iterable[ObserverRow]] | None = None
    options: type[Option] | None = None
    problem: str = ""

    @property
    def obstacle(self) -> str:
        """What is missing to run observers of this kind, and how to get it; "" if nothing."""
        if self.problem:
            return self.problem
        return describe_missing(self.requires, self.install)

    def listing(self) -> list[ObserverRow]:
        """List the observers of this kind, a row each, with what is missing to run."""
        rows = self.rows or (
            lambda: [ObserverRow(self.form, self.summary, self.ability)]
        )
        obstacle = self.obstacle
        return [
            dataclasses.replace(row, obstacle=obstacle or row.obstacle)
            for row in rows()
        ]


def describe_missing(packages: Iterable[str], install: str) -> str:
    """Describe which of some packages are missing, and how to get them; "" if none."""
    missing = [
        package for package in packages if importlib.util.find_spec(package) is None
    ]
    return f"needs {' and '.join(missing)}: {install}" if missing else ""


def register_observer(prefix: str, **fields: Option) -> Callable[[Loader], Loader]:
    """Decorate a function that loads observers, to register them under a name's prefix.

    The keywords are the fields of `ObserverKind`. The function stays as it is; a prefix that is
    taken is an InputError.

    Parameters
    ----------
    prefix : str
        The part of a name before the colon.
    **fields
        Those of `ObserverKind`.

    Examples
    --------
    >>> @register_observer("pixels", form="pixels", summary="mine")
    ... def load(name):
    ...     pass
    Traceback (most recent call last):
    psyprobe.errors.InputError: an observer kind 'pixels' exists already (pixels): choose
    another prefix
    """

    def register(load: Loader) -> Loader:
        _check_new(prefix, {prefix: _builtin(prefix)} if prefix in _TABLES else _KINDS)
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
    **options: Option,
) -> Observer:
    """Load an observer by name.

    Parameters
    ----------
    name : str
        "pixels", "timm:NAME[.TAG]", "open_clip:ARCH/TAG", "torch:FILE", "packaged:NAME", or another
        name of `list_observers`. Options may stand behind it:
        "openai:MODEL?concurrency=16&input_size=336".
    random_weights, input, layers, device
        Those of `psyprobe.observers.encoders.network`; kinds that do not take one refuse it.
    **options
        Further options of the kind: `dtype`, `input_size`, `weights` (see the page on observers).

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
        raise _not_observer_error(name)
    name, sign, query = name.partition("?")
    options = {**_options(name, query), **options} if sign else options
    prefix, rest = _prefix_and_rest(name)
    if not rest and _kind(prefix) is None:
        raise unknown_name("observer", name, [row.name for row in list_observers()])
    kind = observer_kind(name)
    if kind.problem:
        raise PsyprobeError(f"the observer kind {prefix!r} {kind.problem}")
    if bool(rest) != (":" in kind.form):
        raise InputError(
            f"the observer name {name!r} is incomplete or too long: write {kind.form}"
        )
    if input not in ("normalised", "raw"):
        raise InputError(f"input {input!r} is neither 'normalised' nor 'raw'")
    if kind.obstacle:
        raise PsyprobeError(f"{name} {kind.obstacle}")
    # Options at their defaults are left out, so that kinds without them do not refuse them.
    common = {
        "random_weights": random_weights or None,
        "input": None if input == "normalised" else input,
        "layers": layers,
        "device": device,
    }
    options |= {key: value for key, value in common.items() if value is not None}
    parameters = _option_parameters(kind)
    names = [parameter.name for parameter in parameters]
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    for option in options:
        if option not in names and not takes_any:
            raise InputError(
                f"{kind.form} takes no option {option!r}; it takes "
                f"{', '.join(sorted(names)) or 'none'}"
            )
    if kind.options is None:
        observer = kind.load(rest, **options)
    else:
        observer = kind.load(rest, kind.options(**options))
    # A function that was run from text has no module.
    module = getattr(kind.load, "__module__", None) or ""
    add_sources(observer, package_digest(module))
    with contextlib.suppress(
        TypeError
    ):  # an object that takes no weak reference is not recalled
        reference = weakref.ref(observer, functools.partial(_forget, id(observer)))
        _LOADED[id(observer)] = (reference, (name, options))
    return cast(Observer, observer)


def takes_option(name: str, option: str) -> bool:
    """Tell whether the kind of an observer names an option.

    Parameters
    ----------
    name : str
        Name for `load_observer`.
    option : str
        Name of the option, such as "layers".

    Examples
    --------
    >>> takes_option("timm:resnet18", "layers"), takes_option("pixels", "layers")
    (True, False)
    """
    prefix, _ = _prefix_and_rest(name.partition("?")[0])
    kind = _kind(prefix)
    return (
        kind is not None
        and not kind.problem
        and any(parameter.name == option for parameter in _option_parameters(kind))
    )


def _prefix_and_rest(name: str) -> tuple[str, str]:
    """Split an observer's name into its kind's prefix and the rest."""
    prefix, _, rest = name.partition(":")
    if prefix.endswith(".py"):
        return _FILE, name
    if prefix in _TABLES:
        kinds = {*_TABLES}
    else:
        points = importlib.metadata.entry_points(group=ENTRY_POINTS)
        kinds = {*_KINDS, *(point.name for point in points)}
    # Some are a kind of their own among those of one prefix.
    return (name if name in kinds and rest else prefix), rest


def _option_parameters(kind: ObserverKind) -> list[inspect.Parameter]:
    """List the options that a kind of observer names."""
    if kind.options is not None:
        return [*inspect.signature(kind.options).parameters.values()]
    return [*inspect.signature(kind.load).parameters.values()][1:]


def _options(name: str, query: str) -> JsonObject:
    """Parse options that are written after an observer's name, as in a URL query."""
    return settings(
        [urllib.parse.unquote(part) for part in query.split("&") if part], f"{name}?"
    )


def read_observers(path: str | Path) -> list[str]:
    """Read names of observers with their options from a TOML file, a table ``[[observers]]`` each.

    Parameters
    ----------
    path : str or Path
        The file; each table has a `name`, and options beside it.

    Returns
    -------
    list of str
        Names for `load_observer`.

    Raises
    ------
    InputError
        The file has other keys than tables of observers, or a table has no name.
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
            if key != "name"
        ]
        query = "&".join(urllib.parse.quote(option, safe="=:/") for option in options)
        names.append(f"{name}?{query}" if query else name)
    return names


def loaded_as(observer: Any) -> tuple[str, JsonObject] | None:
    """Return the name and options with which an observer was loaded; None if it was not.

    Examples
    --------
    >>> loaded_as(load_observer("pixels"))
    ('pixels', {})
    """
    reference, name_and_options = _LOADED.get(id(observer), (lambda: None, None))
    return name_and_options if reference() is observer else None


def _forget(identity: int, _: Any) -> None:
    """Forget an observer object once it is garbage-collected."""
    _LOADED.pop(identity, None)


def list_observers(pattern: str = "*") -> Listing[ObserverRow]:
    """List the observers whose names match a glob, with what they lack to run here.

    Nothing heavy is imported and nothing is looked up on a network.

    Parameters
    ----------
    pattern : str, optional
        A glob, such as ``"timm:*"``; by default all match.

    Examples
    --------
    >>> list_observers("pix*")
    [ObserverRow(name='pixels', summary='no encoder: the image itself',
    ability='features', obstacle='')]
    """
    rows = [row for kind in _kinds().values() for row in kind.listing()]
    matches = (row for row in rows if fnmatch.fnmatchcase(row.name, pattern))
    return Listing(sorted(matches, key=lambda row: row.name))


def as_observer(thing: object, /, **options: Option) -> Observer:
    """Load an observer if a name is given; return an observer as it is.

    Parameters
    ----------
    thing : str or observer
        The name or the observer.
    **options
        Those of `load_observer`, for a name.

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
        raise _not_observer_error(thing)
    return cast(Observer, thing)


def _not_observer_error(thing: Any) -> InputError:
    """Build the error about a value that is no observer, with what to do."""
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


def observer_kind(name: str) -> ObserverKind:
    """Find the kind of an observer by the observer's name.

    Raises
    ------
    UnknownNameError
        There is no such kind.

    Examples
    --------
    >>> observer_kind("timm:resnet18").form
    'timm:NAME[.TAG]'
    """
    prefix, _ = _prefix_and_rest(name)
    kind = _kind(prefix)
    if kind is None:
        raise unknown_name("observer kind", prefix, _kinds())
    return kind


@functools.cache
def _builtin(prefix: str) -> ObserverKind:
    """Load a kind of observer that comes with psyprobe, by its prefix."""
    fields = dict(_TABLES[prefix])
    module = importlib.import_module(f"psyprobe.observers.{fields.pop('module')}")
    for key in ("load", "options", "rows"):
        if key in fields:
            fields[key] = getattr(module, fields[key])
    fields["requires"] = tuple(fields.get("requires", ()))
    return ObserverKind(prefix, **fields)


def _kind(prefix: str) -> ObserverKind | None:
    """Find the kind of observer of a prefix, loading as few packages as possible."""
    if prefix in _TABLES:
        return _builtin(prefix)
    if prefix in _KINDS:
        return _KINDS[prefix]
    for point in importlib.metadata.entry_points(group=ENTRY_POINTS):
        if point.name == prefix:
            kind = _load_entry_point(point, _KINDS)
            if kind.prefix == prefix:
                return kind
    return _kinds().get(prefix)


def _kinds() -> dict[str, ObserverKind]:
    """Load all kinds of observers, also those of packages; a broken one has a `problem`."""
    kinds = {prefix: _builtin(prefix) for prefix in _TABLES} | _KINDS
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        kind = _load_entry_point(entry, kinds)
        kinds[kind.prefix] = kind
    return kinds


def _load_entry_point(
    entry: importlib.metadata.EntryPoint, kinds: Mapping[str, ObserverKind]
) -> ObserverKind:
    """Load the observer kind that a package registers; a broken one says why."""
    try:
        kind = entry.load()
        if not isinstance(kind, ObserverKind):
            raise TypeError(f"it is a {type(kind).__name__}, not an ObserverKind")
        _check_new(kind.prefix, kinds)
        kind.listing()
    except (
        Exception,
        SystemExit,
    ) as problem:  # one broken package must not take the others along
        prefix = (
            entry.name if entry.name not in kinds else f"{entry.name} of {entry.value}"
        )
        reason = f"cannot be loaded from {entry.value}: {describe_failure(problem)}"
        return ObserverKind(
            prefix, _not_observer_error, f"{prefix}:NAME", "broken", problem=reason
        )
    return kind


def _check_new(prefix: str, kinds: Mapping[str, ObserverKind]) -> None:
    """Refuse a prefix of observer names that is taken."""
    if prefix in kinds:
        raise InputError(
            f"an observer kind {prefix!r} exists already ({kinds[prefix].form}): choose another "
            "prefix"
        )
