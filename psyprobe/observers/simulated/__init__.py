"""A real HTTP server on loopback that speaks the OpenAI chat-completions protocol for any observer that answers.

What is true of the observer is known, and so is every fault of the server: the network path of a measurement can be
tested as it will run.
"""

from __future__ import annotations

from psyprobe.observers.simulated.completions import Behaviour
from psyprobe.observers.simulated.faults import Faults
from psyprobe.observers.simulated.serving import SimulatedServer, serve

__all__ = ["Behaviour", "Faults", "SimulatedServer", "serve"]
