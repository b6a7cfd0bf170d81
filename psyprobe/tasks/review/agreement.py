"""How far two people agree, and what both accept.

References
----------
Cohen (1960). A coefficient of agreement for nominal scales. Educational and Psychological Measurement 20.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Agreement:
    """Of two people on what both have decided.

    Attributes
    ----------
    first, second : str
        Their names.
    both : int
        Tasks that both have decided.
    equal : int
        Of these, decided alike.
    kappa : float or None
        Cohen's: agreement beyond what their shares of each verdict bring about by chance, from -1 to 1. None where
        nothing could be beyond it: nobody decided, or both always the same.
    """

    first: str
    second: str
    both: int
    equal: int
    kappa: float | None

    def to_dict(self) -> dict[str, Any]:
        """The agreement as plain values that JSON can hold."""
        return dict(vars(self))

    def __str__(self) -> str:
        if not self.both:
            return f"{self.first} and {self.second} have decided on nothing in common yet"
        kappa = "undefined, both said the same of all" if self.kappa is None else f"{self.kappa:.2f}"
        share = f"{self.equal} of {self.both} alike ({100 * self.equal / self.both:.1f} %)"
        return f"{self.first} and {self.second}: {share}, Cohen's kappa {kappa}"


def agreement(first: str, second: str, ones: Mapping[str, str], others: Mapping[str, str]) -> Agreement:
    """How far two people agree.

    Parameters
    ----------
    first, second : str
        Their names.
    ones, others : mapping of str to str
        What each said of what.

    Returns
    -------
    Agreement

    Examples
    --------
    >>> one, other = {"a": "yes", "b": "no", "c": "no"}, {"a": "yes", "b": "yes", "d": "no"}
    >>> print(agreement("Ann", "Bob", one, other))
    Ann and Bob: 1 of 2 alike (50.0 %), Cohen's kappa 0.00
    """
    both = [name for name in ones if name in others]
    equal = sum(ones[name] == others[name] for name in both)
    mine, theirs = (Counter(said[name] for name in both) for said in (ones, others))
    # In whole numbers: "by chance" times n squared.
    chance, certain = sum(mine[value] * theirs[value] for value in mine), len(both) ** 2
    kappa = None if chance == certain else (equal * len(both) - chance) / (certain - chance)
    return Agreement(first, second, len(both), equal, kappa)


def accepted_by_both(verdicts: Mapping[str, Mapping[str, str]], accept: str = "accept") -> set[str]:
    """What at least two people have decided on and all of them accept.

    Parameters
    ----------
    verdicts : mapping of str to mapping of str to str
        By person: what they said of what.
    accept : str
        The verdict that accepts.

    Returns
    -------
    set of str

    Examples
    --------
    >>> sorted(accepted_by_both({"Ann": {"a": "accept", "b": "accept"}, "Bob": {"a": "accept", "b": "reject"}}))
    ['a']
    """
    said: dict[str, list[str]] = {}
    for each in verdicts.values():
        for name, value in each.items():
            said.setdefault(name, []).append(value)
    return {name for name, values in said.items() if len(values) >= 2 and set(values) == {accept}}
