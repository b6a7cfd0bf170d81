"""Find at which size a server shows images: limits of 448, 512 and 768 px and none, by filter.

    python benchmarks/served_size.py [SEEDS]

Each server is real, on loopback, and shrinks what is larger than its limit before a simulated
reader looks. Prints the side that is found, its 95 % interval, and the error.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from PIL import Image

import psyprobe as pp
from psyprobe.observers.chat.protocol import Answer, Answering, Inquiry
from psyprobe.observers.simulated.letters import LetterMind, LetterReader
from psyprobe.observers.simulated.serving import SimulatedServer
from psyprobe.tasks.served_size import measure_served_size

LIMITS = (448, 512, 768, 0)
FILTERS = ("NEAREST", "BILINEAR", "BICUBIC", "LANCZOS")


class Shrinking(Answering):
    """A reader behind a step that shrinks images with a given filter, in 8 bits."""

    fewest_images = images_at_once = 1

    def __init__(self, limit: int, name: str, seed: int) -> None:
        self._reader = LetterReader("letters", LetterMind(seed=seed, lapse=0.02))
        self._limit = limit
        self._filter = Image.Resampling[name]
        self.card = self._reader.card

    def _reply(self, inquiry: Inquiry) -> Answer:
        """Shrink the image and have it read."""
        (image,) = inquiry.images
        side = max(image.shape)
        if self._limit and side > self._limit:
            codes = np.rint(255 * np.asarray(image[..., 0])).astype(np.uint8)
            size = self._limit, self._limit
            shrunk: Any = Image.fromarray(codes).resize(size, self._filter)
            plane = np.asarray(shrunk, np.float32)[..., None] / np.float32(255)
            image = np.repeat(plane, 3, axis=-1)
        return self._reader.answer([image], inquiry.prompt, decoding=inquiry.decoding)


def main(seeds: int = 1) -> None:
    """Measure every limit with every filter, and print what is found."""
    for limit in LIMITS:
        for name in FILTERS if limit else FILTERS[:1]:
            for seed in range(seeds):
                with SimulatedServer(Shrinking(limit, name, seed)) as server:
                    observer: Any = pp.load_observer(
                        f"openai:{server.model}", base_url=server.base_url
                    )
                    measurement = measure_served_size(
                        observer, seed=seed, progress=False
                    )
                text = measurement.finding
                if measurement.limit and limit:
                    error = 100 * (measurement.limit / limit - 1)
                    text = f"{measurement.limit:.0f} ({measurement.low:.0f} to {measurement.high:.0f}), {error:+.1f} %"
                print(
                    f"limit {limit or 'none'} {name.lower()} seed {seed}: {text}",
                    flush=True,
                )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
