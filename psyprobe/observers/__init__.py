"""What looks at a stimulus: encoders by name, functions of the user's own, and the image itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psyprobe.observers.encoders.network import Network, NetworkObserver, NetworkOptions
from psyprobe.observers.protocol import (
    Card,
    DifferenceObserver,
    FeatureObserver,
    Observer,
)
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
    from psyprobe.observers.custom import observer

__all__ = [
    "DEFAULT_OBSERVER",
    "Card",
    "DifferenceObserver",
    "FeatureObserver",
    "Network",
    "NetworkObserver",
    "NetworkOptions",
    "Observer",
    "ObserverKind",
    "ObserverRow",
    "as_observer",
    "list_observers",
    "load_observer",
    "observer",
    "register_observer",
]


def __getattr__(name: str) -> Any:
    if name == "observer":  # loads on use, with all that answers in words
        from psyprobe.observers.custom import observer

        return observer
    raise AttributeError(f"module 'psyprobe.observers' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
