"""Names for array types, used in annotations throughout the package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.floating[Any]]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
#: Arrays by name, such as the values of each level, or the features of each layer.
NamedArrays: TypeAlias = Mapping[str, FloatArray]
StrArray: TypeAlias = npt.NDArray[np.str_]
#: Codes of 8 bits, as images of files have them.
ByteArray: TypeAlias = npt.NDArray[np.uint8]
#: A numpy array of any type.
AnyArray: TypeAlias = npt.NDArray[Any]
#: A numpy array or a torch tensor: drawing and display code runs on both.
Array: TypeAlias = Any
#: A parameter of a stimulus: a number, or an array that broadcasts against the others. A union
#: would ask each reader of a single image to prove that it is one.
Levels: TypeAlias = Any
#: The value of an option: what the kind, probe or figure that takes it says.
Option: TypeAlias = Any
#: The shape of an array.
Shape: TypeAlias = tuple[int, ...]
#: Height and width of an image, pixels.
Size: TypeAlias = tuple[int, int]
IntArray: TypeAlias = npt.NDArray[np.integer[Any]]
