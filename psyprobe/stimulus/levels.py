"""STUB of the lead until the stimulus branch is merged."""
from __future__ import annotations
import math
from dataclasses import dataclass, replace
from typing import Any
from psyprobe.errors import unknown_name
@dataclass(frozen=True)
class Parameter:
    unit: str
    label: str
_U = {"frequency": ("cpd","Spatial frequency"), "luminance": ("cd/m²","Background luminance"), "area": ("deg²","Area"), "mask_contrast": ("1","Mask contrast"), "contrast": ("1","Contrast"), "orientation": ("deg","Orientation"), "phase": ("deg", "Phase"), "radius": ("deg","Radius")}
def level_of(spec: Any, name: str) -> Parameter:
    known = [*spec.numeric, *(["area"] if "radius" in spec.numeric else [])]
    if name not in known:
        raise unknown_name("key in [levels]", name, known)
    return Parameter(*_U.get(name, ("1", name)))
def with_levels(spec: Any, **values: Any) -> Any:
    for n in values: level_of(spec, n)
    if "area" in values:
        values["radius"] = math.sqrt(values.pop("area") / math.pi)
    return replace(spec, **values)
