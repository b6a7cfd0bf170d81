"""Whether the first token says what the text says.

References
----------
Wang et al. (2024). "My answer is C": first-token probabilities do not match text answers in instruction-tuned language
models. Findings of ACL: for some models the two disagree in most answers.
Cohen (1960). A coefficient of agreement for nominal scales. Educational and Psychological Measurement 20(1), 37-46.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from psyprobe.analysis.score import Recorded

if TYPE_CHECKING:
    import xarray as xr

#: Below this agreement, text should count and not the first token.
ENOUGH = 0.95


@dataclass(frozen=True)
class Agreement(Recorded):
    """Agreement between the first token and the text of answers."""

    #: Share of answers in which both say the same.
    agreement: float
    #: Cohen's kappa, agreement beyond chance; None where only one answer was ever given.
    kappa: float | None
    #: Answers of which both were read.
    n: int
    #: Answers with first-token probabilities whose text says neither yes nor no.
    unread: int
    #: Agreement wording by wording.
    by_prompt: dict[str, float]

    @property
    def enough(self) -> bool:
        """Whether first tokens may stand for the text: agreement of at least 0.95."""
        return self.agreement >= ENOUGH


def answer_agreement(result: xr.Dataset) -> Agreement | None:
    """Compare what the first token says with what the text says.

    Parameters
    ----------
    result : xarray.Dataset
        Of a questioning run.

    Returns
    -------
    Agreement or None
        Over the answers that were let run on to a text; None where there are none.
    """
    if not {"p_yes", "read", "text_asked", "prompt"} <= set(result.variables):
        return None
    p = result["p_yes"].values.astype(np.float64)
    read = result["read"].values.astype(str)
    asked = np.isfinite(p) & result["text_asked"].values.astype(bool)
    both = asked & np.isin(read, ("yes", "no"))
    if not both.any():
        return None
    token, words = p[both] > 0.5, read[both] == "yes"
    same = token == words
    by_chance = token.mean() * words.mean() + (1 - token.mean()) * (1 - words.mean())
    prompts = result["prompt"].values.astype(str)[both]
    return Agreement(
        agreement=float(same.mean()),
        kappa=None if by_chance >= 1 else float((same.mean() - by_chance) / (1 - by_chance)),
        n=int(both.sum()),
        unread=int((asked & ~both).sum()),
        by_prompt={str(name): float(same[prompts == name].mean()) for name in dict.fromkeys(prompts.tolist())},
    )
