"""Names for array types, used in annotations throughout the package."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.floating[Any]]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
#: A numpy array or a torch tensor: drawing and display code runs on both.
Array: TypeAlias = Any
#: The shape of an array.
Shape: TypeAlias = tuple[int, ...]
#: Height and width of an image, pixels.
Size: TypeAlias = tuple[int, int]
IntArray: TypeAlias = npt.NDArray[np.integer[Any]]
