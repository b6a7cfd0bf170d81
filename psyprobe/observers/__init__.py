"""What looks at a stimulus: encoders by name, functions of the user's own, and the image itself.

Names load when they are first used: a room of observers that is looked into imports none.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psyprobe.observers.custom import observer
    from psyprobe.observers.encoders.network import (
        Network,
        NetworkObserver,
        NetworkOptions,
    )
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

#: Modules of the names that are not in `registry`.
_MODULES = {
    "observer": "custom",
    **dict.fromkeys(
        ("Network", "NetworkObserver", "NetworkOptions"), "encoders.network"
    ),
    **dict.fromkeys(
        ("Card", "DifferenceObserver", "FeatureObserver", "Observer"), "protocol"
    ),
}


def __getattr__(name: str) -> Any:
    if name in __all__:
        module = import_module(f"psyprobe.observers.{_MODULES.get(name, 'registry')}")
        return getattr(module, name)
    raise AttributeError(f"module 'psyprobe.observers' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
