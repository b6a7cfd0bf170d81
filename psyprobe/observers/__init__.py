"""What looks at a stimulus: encoders by name, functions of the user's own, and the image itself."""

from __future__ import annotations

from psyprobe.observers import castlecsf, cvvdp, pixels
from psyprobe.observers.chat import openai_chat, transformers_chat, vlmevalkit
from psyprobe.observers.encoders import (
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
from psyprobe.observers.simulated import observer as simulated
from psyprobe.observers.wrap import observer

#: The kinds that come with psyprobe; each of these modules registers its own.
BUILT_IN = (
    pixels,
    castlecsf,
    cvvdp,
    packaged,
    timm_models,
    open_clip_models,
    torch_files,
    diffusers_models,
    transformers_models,
    zoo,
    simulated,
    openai_chat,
    transformers_chat,
    transformers_vision,
    vlmevalkit,
)

__all__ = [
    "BUILT_IN",
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
