"""Choose the keys by which a person answers."""

from __future__ import annotations

from collections.abc import Sequence

#: Keys of two and four answers, by the names that browsers give them, in lower case.
_KEYS = {
    2: (("f", "arrowup"), ("j", "arrowright")),
    4: (("1", "d"), ("2", "f"), ("3", "j"), ("4", "k")),
}
#: Keys of first and second.
_INTERVAL_KEYS = (("1", "f"), ("2", "j"))
#: Keys of directions, by the angle from the right in deg: those of the number pad, and arrows.
_DIRECTIONS = {
    0.0: ("6", "arrowright"),
    45.0: ("9",),
    90.0: ("8", "arrowup"),
    135.0: ("7",),
    180.0: ("4", "arrowleft"),
    225.0: ("1",),
    270.0: ("2", "arrowdown"),
    315.0: ("3",),
}
#: Keys of other labels, in their order.
_OTHERS = "123456789abcdefghijklmnoqrstuvwxyz"


def answer_keys(words: Sequence[str], intervals: int = 1) -> list[tuple[str, ...]]:
    """Return the keys of each answer of a probe that has words of its own.

    Examples
    --------
    >>> answer_keys(("vertical", "horizontal"))
    [('f', 'arrowup'), ('j', 'arrowright')]
    """
    return list(_KEYS[len(words)] if intervals == 1 else _INTERVAL_KEYS)


def label_keys(
    names: Sequence[str], parameter: str, values: Sequence[float]
) -> list[tuple[str, ...]]:
    """Return the keys of each label: its letter, its direction, or a number or letter in order.

    Parameters
    ----------
    names : sequence of str
        The labels.
    parameter : str
        The parameter that they are values of.
    values : sequence of float
        Its values; orientations in deg counter-clockwise from the right.

    Examples
    --------
    >>> label_keys(("C", "D"), "letter", (0, 1))
    [('c',), ('d',)]
    >>> label_keys(("right", "up"), "orientation", (0, 90))
    [('6', 'arrowright'), ('8', 'arrowup')]
    """
    letters = {name.lower() for name in names if len(name) == 1}
    if len(letters) == len(names):
        return [(name.lower(),) for name in names]
    if parameter == "orientation" and {*values} <= {*_DIRECTIONS}:
        return [_DIRECTIONS[value] for value in values]
    return [(key,) for key in _OTHERS[: len(names)]]
