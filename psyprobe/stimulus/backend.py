"""Where pixels are drawn: in numpy or on a torch device, and in which precision."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from psyprobe._typing import Array, FloatArray


class Backend(NamedTuple):
    """A precision of pixels, and the library and device that hold them."""

    #: {"float64", "float32"}: Precision of the pixels.
    dtype: str = "float64"
    #: A torch device; None for numpy.
    device: str | None = None

    def array(self, values: FloatArray) -> Array:
        """Round a float64 numpy array once to `dtype`, and move it to the device."""
        rounded = np.ascontiguousarray(values, dtype=self.dtype)
        if self.device is None:
            return rounded
        import torch

        # Torch warns of arrays that cannot be written to, such as a parameter that was broadcast.
        writeable = rounded if rounded.flags.writeable else rounded.copy()
        return torch.from_numpy(writeable).to(self.device)
