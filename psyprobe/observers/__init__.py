"""What looks at a stimulus: encoders by name, functions of the user's own, and the image itself."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from psyprobe.observers.protocol import Card, DifferenceObserver, FeatureObserver, Observer
from psyprobe.observers.registry import (
    DEFAULT_OBSERVER,
    ObserverKind,
    ObserverRow,
    as_observer,
    list_observers,
    load_observer,
    register_observer,
)

if TYPE_CHECKING:
    from psyprobe.observers.encoders.network import Network, NetworkObserver
    from psyprobe.observers.wrap import observer

__all__ = [
    "DEFAULT_OBSERVER",
    "Card",
    "DifferenceObserver",
    "FeatureObserver",
    "Network",
    "NetworkObserver",
    "Observer",
    "ObserverKind",
    "ObserverRow",
    "as_observer",
    "list_observers",
    "load_observer",
    "observer",
    "register_observer",
]

#: Names that load when they are first used, and the modules that define them.
_LATER = {"Network": "encoders.network", "NetworkObserver": "encoders.network", "observer": "wrap"}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(f"psyprobe.observers.{_LATER[name]}"), name)
    raise AttributeError(f"module 'psyprobe.observers' has no attribute {name!r}")
