"""Define a hostile case, and the mutations that make many of a valid file."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

#: Refused with one line.
REFUSED = (2,)
#: A mutation may leave a file that means what it meant, or one that `check` finds changed.
ANY = (0, 1, 2)


@dataclass(frozen=True)
class Hole:
    """A file that is nothing but zeros after its head, and takes no room on the disk."""

    head: bytes
    size: int


@dataclass(frozen=True)
class Case:
    """A command, in a folder of its own, and what it must come to."""

    name: str
    #: Arguments after ``psyprobe``; "{url}" is the address of the server of the case.
    arguments: tuple[str, ...]
    #: What lies in the folder: contents by name, or a function that makes them where that takes
    #: long.
    files: Mapping[str, bytes] | Callable[[], Mapping[str, bytes | Hole]] = field(
        default_factory=dict
    )
    #: What the server of the case sends to every request, piece by piece; None where there is none.
    reply: Callable[[], Iterator[bytes]] | None = None
    #: The exit codes that are right.
    codes: tuple[int, ...] = REFUSED
    #: How many lines the command says, of what it read so far, before the one of the error.
    remarks: int = 0


def mutation(content: bytes, number: int) -> bytes:
    """The file cut off somewhere, for an even number, or with a few bytes that are others, for an
    odd one."""
    draw = random.Random(number)
    if number % 2 == 0:
        return content[
            : {0: 0, 2: len(content) - 1}.get(number, draw.randrange(len(content)))
        ]
    changed = bytearray(content)
    for _ in range(draw.choice((1, 4, 32))):
        changed[draw.randrange(len(changed))] = draw.randrange(256)
    return bytes(changed)


def mutations(content: bytes, count: int) -> dict[str, bytes]:
    """So many mutations of a file, by name."""
    return {f"mutation {number}": mutation(content, number) for number in range(count)}
