"""What an observer is, and which there are by name: "pixels", "timm:NAME" and whatever users and
other packages add.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fnmatch
import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import json
import tomllib
import urllib.parse
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError, PsyprobeError, own_failure, unknown_name
from psyprobe.files.parsing import parse_toml, read_text
from psyprobe.files.terminal import settings

Ability: TypeAlias = Literal["features", "difference", "answer"]
Loader = TypeVar("Loader", bound=Callable[..., Any])

ENTRY_POINTS = "psyprobe.observers"
#: The observer that runs when none is named: a real encoder whose ImageNet weights come with a
#: dependency, and whose feature of a uniform field never all but vanishes (docs/observers.md).
DEFAULT_OBSERVER = "packaged:efficientnet_lite2"
#: What stands under "ppd" in the options of a metric that takes the geometry of each stimulus.
STIMULUS_PPD = "of the stimulus"
#: Where an observer ran, where its weights were found, what else it can be asked: no part of what
#: it computes.
_CIRCUMSTANCES = ("device", "weights", "licence", "paper", "software", "clips")
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
class Card:
    """Everything one must know of an observer to repeat what it said.

    Parameters
    ----------
    name : str
        The name that loads it ("timm:resnet18"), without regard to options.
    ability : {"features", "difference", "answer"}
        What a probe may ask of it.
    features : tuple of str
        The names of what ``features`` returns: layers, tokens, or the embedding.
    input_size : tuple of int, optional
        (height, width) in px of the images it looks at; None for any size.
    input : {"normalised", "raw"}
        Whether `mean` and `std` are applied, or the display drive goes in as it is.
    mean, std : tuple of float
        The observer's own normalisation, one value a channel, in units of `pixel_range`.
    pixel_range : tuple of float
        The drive values that stand for black and peak white.
    encoding : str
        The transfer function that the observer expects its pixels to carry.
    dtype : str
        The floating-point format that the network computes in.
    device : str
        Where it ran.
    weights : str
        Where its weights come from.
    weights_digest : str, optional
        SHA-256 of the weights, hexadecimal; None where there are none or they cannot be seen.
    random_weights : bool
        True where the weights are random numbers: then no response means anything.
    licence, paper : str, optional
        As stated by whoever published the weights.
    options : mapping
        Choices that change what is computed, such as ``{"quick_gelu": True}``.
    software : mapping
        Versions of the packages that computed.
    clips : bool
        Whether it takes clips whole: then it has `clip_features` or `clip_difference`, as
        `ClipFeatureObserver` and `ClipDifferenceObserver`. Others are shown clips frame by frame.

    Examples
    --------
    >>> card = Card("mine", "features", ("output",), random_weights=True)
    >>> print(card.label)
    mine [RANDOM WEIGHTS]
    >>> Card.from_dict(card.to_dict()) == card
    True
    """

    name: str
    ability: Ability
    features: tuple[str, ...] = ()
    input_size: tuple[int, int] | None = None
    input: Literal["normalised", "raw"] = "raw"
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    std: tuple[float, ...] = (1.0, 1.0, 1.0)
    pixel_range: tuple[float, float] = (0.0, 1.0)
    encoding: str = "sRGB"
    dtype: str = "float32"
    device: str = "cpu"
    weights: str = "none"
    weights_digest: str | None = None
    random_weights: bool = False
    licence: str | None = None
    paper: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    software: Mapping[str, str] = field(default_factory=dict, hash=False)
    clips: bool = False

    @property
    def label(self) -> str:
        """The name for titles and tables; it shouts where the weights are random."""
        return f"{self.name} [RANDOM WEIGHTS]" if self.random_weights else self.name

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256, hexadecimal, of what is computed: equal wherever and whenever the same card is
        made.

        Device, software versions and the place of the weights are left out: they change a response
        by rounding at most, and the weights themselves are told by their own digest.
        """
        told = {key: value for key, value in self.to_dict().items() if key not in _CIRCUMSTANCES}
        return hashlib.sha256(
            json.dumps(told, sort_keys=True, separators=(",", ":")).encode()
        ).hexdigest()

    def _repr_html_(self) -> str:
        from psyprobe.files import html

        values = {
            name: value for name, value in self.to_dict().items() if value not in (None, {}, [])
        }
        return html.fields(values, self.label)

    def to_dict(self) -> dict[str, Any]:
        """The card as plain values that JSON can hold."""
        plain = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        tuples = {name: list(value) for name, value in plain.items() if isinstance(value, tuple)}
        return plain | tuples | {"options": dict(self.options), "software": dict(self.software)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Card:
        """The card that `to_dict` was called on.

        Raises
        ------
        InputError
            If a key is not a field of the card.
        """
        unknown = set(values) - {each.name for each in dataclasses.fields(cls)}
        if unknown:
            raise InputError(f"an observer card has no field {', '.join(sorted(unknown))}")
        tuples = {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
        return cls(**{**values, **tuples})


class Observer(Protocol):
    """Anything that responds to a shown stimulus; its card says how it may be asked."""

    @property
    def card(self) -> Card:
        """What it is."""


@runtime_checkable
class FeatureObserver(Observer, Protocol):
    """An observer that turns images into feature vectors, such as an image encoder.

    Examples
    --------
    >>> isinstance(load_observer("pixels"), FeatureObserver)
    True
    """

    def features(self, images: Array) -> Mapping[str, FloatArray]:
        """Feature vectors of a batch of images.

        Parameters
        ----------
        images : ndarray, shape (N, H, W, 3)
            Display drive, float, 0 = black and 1 = peak white; may exceed 1 on an extended display.
            May be a read-only view whose channels are one and the same plane (stride 0), as a grey
            drive is.

        Returns
        -------
        mapping of str to ndarray, shape (N, D)
            One array a name in ``card.features``, in that order; D may differ from name to name.
        """


@runtime_checkable
class DifferenceObserver(Observer, Protocol):
    """An observer that says how different two images look, such as a full-reference metric.

    Examples
    --------
    >>> isinstance(load_observer("pixels"), DifferenceObserver)
    False
    """

    def difference(self, test: Array, reference: Array, *, ppd: float) -> FloatArray:
        """How different each test image looks from its reference; shape (N,), 0 = not at all.

        Parameters
        ----------
        test, reference : ndarray, shape (N, H, W, 3)
            Linear light of BT.709 primaries as the display emits it, cd/m² a channel. May be
            read-only views whose channels are one and the same plane (stride 0), as grey light is.
        ppd : float
            Pixels per degree of visual angle.
        """


class Clips(Protocol):
    """Shown clips, drawn as their frames are taken."""

    @property
    def shape(self) -> tuple[int, int, int, int, int]:
        """(N, T, H, W, 3)."""

    @property
    def fps(self) -> float:
        """Frames a second."""

    def frames(self, start: int, stop: int) -> FloatArray:
        """The frames from `start` on and before `stop`, shape (N, stop - start, H, W, 3).

        Drive for an observer with features, linear light for one that gives differences; both as of
        images.
        """


@runtime_checkable
class ClipFeatureObserver(Observer, Protocol):
    """An observer that turns whole clips into feature vectors, such as a video encoder."""

    def clip_features(self, clips: Clips) -> Mapping[str, FloatArray]:
        """Feature vectors of clips, as `FeatureObserver.features` of images."""


@runtime_checkable
class ClipDifferenceObserver(Observer, Protocol):
    """An observer that says how different two clips look, such as a video quality metric."""

    def clip_difference(self, test: Clips, reference: Clips, *, ppd: float) -> FloatArray:
        """How different each test clip looks from its reference, as `DifferenceObserver.difference`
        of images.
        """


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
    name, sign, told = name.partition("?")
    options = {**_options(name, told), **options} if sign else options
    prefix, _, rest = name.partition(":")
    if prefix.endswith(".py"):
        prefix = _FILE
        rest = name
    kinds = {prefix: _own(prefix)} if prefix in _PAGES else _kinds()
    if prefix not in kinds:
        known = [row.name for row in list_observers()]
        raise (
            unknown_name("observer", name, known)
            if not rest
            else unknown_name("observer kind", prefix, kinds)
        )
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
    standard = {
        "random_weights": random_weights,
        "input": input,
        "layers": layers,
        "device": device,
    }
    asked = options | {key: value for key, value in standard.items() if value != defaults[key]}
    if kind.options is not None:
        names = [each.name for each in dataclasses.fields(kind.options)]
    else:
        _, *parameters = inspect.signature(kind.load).parameters.values()
        names = (
            list(asked)
            if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
            else []
        )
        names += [parameter.name for parameter in parameters]
    for option in asked:
        if option not in names:
            raise InputError(
                f"{kind.form} takes no option {option!r}; it takes "
                f"{', '.join(sorted(names)) or 'none'}"
            )
    loaded = (
        kind.load(rest, **asked) if kind.options is None else kind.load(rest, kind.options(**asked))
    )
    with contextlib.suppress(
        TypeError
    ):  # of an object to which no reference is kept, nothing is known
        _LOADED[id(loaded)] = (
            weakref.ref(loaded, functools.partial(_forget, id(loaded))),
            (name, asked),
        )
    return loaded


def _options(name: str, told: str) -> dict[str, Any]:
    """The options behind a name, as a query is written."""
    return settings([urllib.parse.unquote(part) for part in told.split("&") if part], f"{name}?")


def read_observers(path: str | Path) -> list[str]:
    """Observers by name from a page of TOML, a table ``[[observers]]`` each, with what they take
    besides.

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
    found = []
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
        told = "&".join(
            urllib.parse.quote(option, safe="=:/")
            for option in options
            if not option.startswith("name=")
        )
        found.append(f"{name}?{told}" if told else name)
    return found


def loaded_as(observer: Any) -> tuple[str, dict[str, Any]] | None:
    """The name and the options with which `load_observer` gave an observer; None of any other.

    Examples
    --------
    >>> loaded_as(load_observer("pixels"))
    ('pixels', {})
    """
    found, told = _LOADED.get(id(observer), (None, None))
    return told if found is not None and found() is observer else None


def _forget(identity: int, _: Any) -> None:
    _LOADED.pop(identity, None)


def list_observers(pattern: str = "*") -> list[ObserverRow]:
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
    return sorted(
        (row for row in rows if fnmatch.fnmatchcase(row.name, pattern)), key=lambda row: row.name
    )


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
    if isinstance(thing, type) or not isinstance(getattr(thing, "card", None), Card):
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
        what = "module" if hasattr(thing, "named_modules") else "function"
        name = getattr(thing, "__name__", kind)
        return InputError(f"the {what} {name} is no observer yet; wrap it: pp.observer({what})")
    return InputError(
        f"{thing!r:.80} is a {kind}, and neither the name of an observer nor an observer"
    )


def kind_obstacle(name: str) -> str:
    """Which package the kind of the observer `name` misses here and how to get it; empty where
    none.
    """
    return _own(name.partition(":")[0]).obstacle


@functools.cache
def _own(prefix: str) -> ObserverKind:
    """A kind that comes with psyprobe; its module is loaded."""
    page = dict(_PAGES[prefix])
    module = importlib.import_module(f"psyprobe.observers.{page.pop('module')}")
    named = {key: getattr(module, page[key]) for key in ("load", "options", "rows") if key in page}
    return ObserverKind(prefix, **{**page, **named, "requires": tuple(page.get("requires", ()))})


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
        told = f"cannot be loaded from {entry.value}: {own_failure(problem)}"
        return ObserverKind(prefix, _no_observer, f"{prefix}:NAME", "broken", problem=told)
    return kind


def _check_new(prefix: str, kinds: Mapping[str, ObserverKind]) -> None:
    if prefix in kinds:
        raise InputError(
            f"an observer kind {prefix!r} exists already ({kinds[prefix].form}): choose another "
            "prefix"
        )
