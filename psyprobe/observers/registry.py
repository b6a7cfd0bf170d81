"""Observers by name: "pixels", "timm:NAME", "packaged:NAME" and whatever users and other packages add."""

from __future__ import annotations

import fnmatch
import importlib.metadata
import importlib.util
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from psyprobe.errors import InputError, PsyprobeError, unknown_name
from psyprobe.observers.protocol import Ability

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

    @property
    def runnable(self) -> bool:
        """Whether everything that can be checked without loading it is there."""
        return not self.obstacle


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
    """

    prefix: str
    load: Callable[..., Any]
    form: str
    summary: str
    ability: Ability = "features"
    requires: tuple[str, ...] = ()
    install: str = ""
    rows: Callable[[], Iterable[ObserverRow]] | None = None

    @property
    def obstacle(self) -> str:
        """Which required package is missing and how to get it; empty where none is."""
        missing = [package for package in self.requires if importlib.util.find_spec(package) is None]
        return f"needs {' and '.join(missing)}: {self.install}" if missing else ""

    def listing(self) -> list[ObserverRow]:
        """Its rows; each carries the obstacle of the kind where the kind has one."""
        own = ObserverRow(self.form, self.summary, self.ability)
        rows = [own] if self.rows is None else list(self.rows())
        if not self.obstacle:
            return rows
        return [ObserverRow(row.name, row.summary, row.ability, self.obstacle) for row in rows]


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
) -> Callable[[Loader], Loader]:
    """Add a kind of observer; decorates the function that loads one.

    Parameters
    ----------
    prefix, form, summary, ability, requires, install, rows
        As in `ObserverKind`.

    Returns
    -------
    callable
        The decorator; it returns the function unchanged.

    Raises
    ------
    InputError
        If the prefix is taken.

    Examples
    --------
    >>> @register_observer("pixels", form="pixels", summary="mine")
    ... def load(name):
    ...     pass
    Traceback (most recent call last):
    psyprobe.errors.InputError: an observer kind 'pixels' exists already (pixels): choose another prefix
    """

    def register(load: Loader) -> Loader:
        _add(ObserverKind(prefix, load, form, summary, ability, requires, install, rows), _KINDS)
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
    random_weights : bool
        Random numbers, always the same ones, instead of trained weights: for tests of the machinery. The card says so.
    input : {"normalised", "raw"}
        Whether the encoder's own mean and standard deviation are applied, or the display drive in [0, 1] goes in as
        it is (as in Cai et al. 2025).
    layers : "all" or iterable of str, optional
        Names of layers whose outputs are wanted, all from one pass; None for the embedding alone.
    device : str, optional
        A torch device; by default "cuda" where there is one, else "cpu".
    **options
        What the kind takes besides: `dtype`, `input_size`, `weights` (see the page on observers).

    Returns
    -------
    FeatureObserver
        Or whatever ability its card declares.

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
    prefix, _, rest = name.partition(":")
    kinds = _kinds()
    if prefix not in kinds:
        known = [row.name for row in list_observers()]
        raise unknown_name("observer", name, known) if not rest else unknown_name("observer kind", prefix, kinds)
    kind = kinds[prefix]
    if bool(rest) != (":" in kind.form):
        raise InputError(f"the observer name {name!r} is incomplete or too long: write {kind.form}")
    if input not in ("normalised", "raw"):
        raise InputError(f"input {input!r} is neither 'normalised' nor 'raw'")
    if kind.obstacle:
        raise PsyprobeError(f"{name} {kind.obstacle}")
    defaults = {"random_weights": False, "input": "normalised", "layers": None, "device": None}
    standard = {"random_weights": random_weights, "input": input, "layers": layers, "device": device}
    asked = options | {key: value for key, value in standard.items() if value != defaults[key]}
    return kind.load(rest, **_accepted(kind, asked))


def list_observers(pattern: str = "*") -> list[ObserverRow]:
    """The observers there are, whether they can run here, and what is missing where they cannot.

    Nothing heavy is imported and nothing is looked up on a network.

    Parameters
    ----------
    pattern : str
        A glob over the names: "packaged:*".

    Returns
    -------
    list of ObserverRow

    Examples
    --------
    >>> list_observers("pix*")
    [ObserverRow(name='pixels', summary='no encoder: the image itself', ability='features', obstacle='')]
    """
    rows = [row for kind in _kinds().values() for row in kind.listing()]
    return sorted((row for row in rows if fnmatch.fnmatchcase(row.name, pattern)), key=lambda row: row.name)


def kind_obstacle(name: str) -> str:
    """Which package an observer's kind misses here and how to get it; empty where none.

    Parameters
    ----------
    name : str
        As `load_observer` takes it.

    Returns
    -------
    str

    Examples
    --------
    >>> kind_obstacle("pixels")
    ''
    """
    return _KINDS[name.partition(":")[0]].obstacle


def _kinds() -> dict[str, ObserverKind]:
    """The registered kinds and those of installed packages; a package that fails to load is one with an obstacle."""
    kinds = dict(_KINDS)
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        try:
            kind = entry.load()
        except Exception as problem:  # one broken package must not take the others along
            kind = _broken(entry.name, entry.value, problem)
        if not isinstance(kind, ObserverKind):
            kind = _broken(entry.name, entry.value, TypeError("it is not an ObserverKind"))
        _add(kind, kinds, f"{entry.value}: ")
    return kinds


def _add(kind: ObserverKind, kinds: dict[str, ObserverKind], source: str = "") -> None:
    if kind.prefix in kinds:
        taken = kinds[kind.prefix]
        raise InputError(
            f"{source}an observer kind {kind.prefix!r} exists already ({taken.form}): choose another prefix"
        )
    kinds[kind.prefix] = kind


def _broken(prefix: str, value: str, problem: Exception) -> ObserverKind:
    obstacle = f"cannot be loaded from {value}: {type(problem).__name__}: {problem}"

    def refuse(rest: str, **options: Any) -> None:
        raise PsyprobeError(f"the observer kind {prefix!r} {obstacle}")

    form = f"{prefix}:NAME"
    return ObserverKind(prefix, refuse, form, "broken", rows=lambda: [ObserverRow(form, "broken", obstacle=obstacle)])


def _accepted(kind: ObserverKind, options: dict[str, Any]) -> dict[str, Any]:
    parameters = list(inspect.signature(kind.load).parameters.values())[1:]
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return options
    names = [each.name for each in parameters]
    for option in options:
        if option not in names:
            raise InputError(f"{kind.form} takes no option {option!r}; it takes {', '.join(sorted(names)) or 'none'}")
    return options
