"""How the code reads, counted: tokens a code line, assignments of tuples, names that are no nouns."""

from __future__ import annotations

import ast
import io
import tokenize
from dataclasses import dataclass
from pathlib import Path

#: Names that say what happened to a value, or point at it, and not what it is.
NO_NOUNS = frozenset(
    [
        "found",
        "told",
        "each",
        "known",
        "given",
        "shown",
        "asked",
        "one",
        "who",
        "own",
        "others",
        "held",
        "heard",
        "said",
        "taken",
        "whole",
        "beside",
        "together",
        "every",
        "these",
        "those",
        "some",
        "wanted",
        "kept",
        "put",
        "read",
        "here",
        "there",
        "both",
        "called",
        "chosen",
        "made",
        "seen",
        "drawn",
        "named",
        "sent",
        "added",
        "began",
        "about",
        "instead",
        "least",
        "most",
        "ruler",
        "way",
        "whom",
        "what",
        "which",
        "that",
        "this",
        "it",
        "them",
        "they",
        "all",
        "many",
        "few",
        "much",
        "more",
        "less",
        "same",
        "another",
        "such",
        "so",
        "then",
        "now",
        "once",
        "again",
        "still",
        "yet",
        "already",
    ]
)
_COUNTED = {tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING}
_STATEMENTS = ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr | ast.Return
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Reading:
    """Counts of one file, or sums over several."""

    code_lines: int = 0
    tokens: int = 0
    statements: int = 0
    tuple_assignments: int = 0
    names: int = 0
    vague_names: int = 0

    def __add__(self, other: Reading) -> Reading:
        return Reading(*(a + b for a, b in zip(self.counts, other.counts, strict=True)))

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(vars(self).values())

    @property
    def tokens_a_line(self) -> float:
        return self.tokens / max(1, self.code_lines)

    @property
    def tuple_assignments_per_thousand(self) -> float:
        return 1000 * self.tuple_assignments / max(1, self.statements)

    @property
    def vague_percent(self) -> float:
        return 100 * self.vague_names / max(1, self.names)


def reading_of(text: str) -> Reading:
    """Count a file of Python; docstrings, comments and empty lines are no code lines."""
    tree = ast.parse(text)
    docstrings = set()
    statements = tuple_assignments = names = vague_names = 0
    for node in ast.walk(tree):
        if (
            isinstance(node, _DOCUMENTED)
            and ast.get_docstring(node, clean=False) is not None
        ):
            docstring = node.body[0]
            docstrings.update(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
        if isinstance(node, _STATEMENTS):
            statements += 1
            tuple_assignments += _assigns_tuple(node)
        name = _bound_name(node)
        if name and not name.startswith("__"):
            names += 1
            vague_names += name.strip("_") in NO_NOUNS
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = enumerate(text.splitlines(), 1)
    return Reading(
        sum(number not in docstrings and _is_code(line) for number, line in lines),
        sum(token.type in _COUNTED for token in tokens),
        statements,
        tuple_assignments,
        names,
        vague_names,
    )


def _is_code(line: str) -> bool:
    return bool(line.strip()) and not line.strip().startswith("#")


def _assigns_tuple(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and isinstance(node.value, ast.Tuple)
    )


def _bound_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    return node.arg if isinstance(node, ast.arg) else None


def readings_by_room(package: Path) -> dict[str, Reading]:
    """Counts of each room of a package: a folder right below it, or its own files."""
    rooms: dict[str, Reading] = {}
    for path in sorted(package.rglob("*.py")):
        room = room_of(package, path)
        rooms[room] = rooms.get(room, Reading()) + reading_of(
            path.read_text(encoding="utf-8")
        )
    return rooms


def room_of(package: Path, path: Path) -> str:
    """Name the room of a file: the folder right below the package, or the package itself."""
    parts = path.relative_to(package).parts
    return parts[0] if len(parts) > 1 else "psyprobe"
