"""A real HTTP server on loopback that speaks the OpenAI chat-completions protocol for any observer that answers.

What is true of the observer is known, and so is every fault of the server: the network path of a measurement can be
tested as it will run.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psyprobe.observers.simulated.completions import Behaviour
    from psyprobe.observers.simulated.faults import Faults
    from psyprobe.observers.simulated.serving import SimulatedServer, serve

__all__ = ["Behaviour", "Faults", "SimulatedServer", "serve"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        # The observer of known truth answers in this process too, and needs no server then.
        return getattr(import_module("psyprobe.observers.simulated.serving"), name)
    raise AttributeError(f"module 'psyprobe.observers.simulated' has no attribute {name!r}")
