"""Answer with the likeliest of the labels that a question gives."""

from __future__ import annotations

from time import perf_counter

from psyprobe._typing import FloatArray
from psyprobe.observers.chat.protocol import Answer, Answering, Inquiry


class LabelObserver(Answering):
    """The base of observers that compute the log-probability of each label of one image."""

    fewest_images = images_at_once = 1

    def log_probabilities(
        self, image: FloatArray, labels: tuple[str, ...]
    ) -> dict[str, float]:
        """Compute the natural log-probability of each label."""
        raise NotImplementedError

    def _reply(self, inquiry: Inquiry) -> Answer:
        """Name the likeliest of the alternatives, and give the log-probability of each."""
        start = perf_counter()
        values = self.log_probabilities(inquiry.images[0], inquiry.words)
        ranked = sorted(values.items(), key=lambda item: -item[1])
        return Answer(
            ranked[0][0],
            tuple(ranked),
            complete=True,
            latency=perf_counter() - start,
            model=self.card.name,
        )
