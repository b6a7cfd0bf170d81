"""What looks at a stimulus: encoders by name, functions of the user's own, and the image itself."""

from __future__ import annotations

# Those that come with psyprobe: each of these modules registers its own kind.
from psyprobe.observers import castlecsf, cvvdp, pixels  # noqa: F401
from psyprobe.observers.chat import openai_chat, transformers_chat, vlmevalkit  # noqa: F401
from psyprobe.observers.encoders import (  # noqa: F401
    diffusers_models,
    open_clip_models,
    packaged,
    timm_models,
    torch_files,
    transformers_models,
    transformers_vision,
    zoo,
)
from psyprobe.observers.encoders.network import Network, NetworkObserver
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
from psyprobe.observers.simulated import observer as simulated  # noqa: F401
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
