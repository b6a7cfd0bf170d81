"""Which human curve a questioning run is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.analysis.chat_counts import experiment_table

if TYPE_CHECKING:
    import xarray as xr


def human_names(csf: xr.Dataset) -> tuple[str, ...]:
    return ("watson_malo",)


def default_human(csf: xr.Dataset) -> str:
    return str(experiment_table(csf, "human").get("model", "watson_malo")).removesuffix("_csf")


def human_curve(csf: xr.Dataset, human: str | Mapping[str, npt.ArrayLike] | npt.ArrayLike) -> tuple[str, FloatArray]:
    from psyprobe.human import watson_malo_csf

    frequency = csf["frequency"].values
    if isinstance(human, str):
        return human, watson_malo_csf(frequency)
    if isinstance(human, Mapping):
        ((name, values),) = human.items()
    else:
        name, values = "given", human
    return name, np.asarray(values, dtype=float)


def human_at(csf: xr.Dataset, human: str, frequency: FloatArray) -> tuple[str, FloatArray]:
    from psyprobe.human import watson_malo_csf

    return "Human (Watson-Malo)", watson_malo_csf(frequency)
