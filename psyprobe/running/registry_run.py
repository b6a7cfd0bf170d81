"""Read and write one run of a registry: a folder of four files, which may come from strangers.

No file is trusted: sizes are looked at before bytes, bytes before JSON, and JSON before anything is
built from it.
"""

from __future__ import annotations

import json
import math
import re
import stat
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.running.protocol import (
    DIGEST_DIGITS,
    Answered,
    Content,
    Origin,
    Question,
    RunRecord,
)
from psyprobe.running.store import Store

#: The file that makes a folder a registry.
REGISTRY_PAGE = "registry.toml"
RUN_FILE = "run.json"
PAGE_FILE = "page.toml"
ANSWERS_FILE = "answers.jsonl.gz"
SCORES_FILE = "scores.json"
#: Largest size of each file, bytes, as it lies on the disk.
FILE_SIZES = {
    RUN_FILE: 256 * 2**10,
    PAGE_FILE: 256 * 2**10,
    ANSWERS_FILE: 4 * 2**20,
    SCORES_FILE: 4 * 2**20,
}
#: Largest size of the answers of a run, bytes, and how far they may unpack.
_ANSWERS_SIZE = 64 * 2**20
_PACKING_RATIO = 200
#: Fewest bytes of a question in packed answers: no packing shortens its digests, of what was shown
#: where the run names it and where it is described, and of the question.
_QUESTION_SIZE = 3 * DIGEST_DIGITS // 2
#: Most observers, revisions, experiments and runs; of each.
_MOST_FOLDERS = 50_000
#: Longest line of answers, bytes: a list of nothing takes 24 times its text in memory.
_LINE_SIZE = 2**22
#: What each kind of line of answers holds.
_LINE_FIELDS = {
    "record": {"k", "v"},
    "content": {"k", "d", "kind", "v"},
    "way": {"k", "v"},
    "origin": {"k", "v"},
    "a": {"k", "s", "w", "o", "t", "v"},
}
#: Kinds of contents with text of a benchmark's items, of which digests alone are published.
WITHHELD_KINDS = ("items", "request")
_WITHHELD_FIELDS = {"k", "d", "kind", "withheld"}
_DEPTH = 32
#: Bytes without which no number is infinite and no character is half a one.
_SUSPICIOUS = re.compile(rb"[eE]\+?\d{3}|\d{200}|\\u[dD]")
#: Types of what JSON nests.
_NESTING = (dict, list)
_BLOCK = 2**16
#: What zlib takes for the format of gzip.
_GZIP = 31

_encode = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False
).encode


class UnsoundError(InputError):
    """A run of a registry that is refused.

    Parameters
    ----------
    code : str
        The code of the check that refuses it, such as "answers-digest".
    message : str
        What is wrong.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def is_registry(path: Any) -> bool:
    """Tell whether a path is the folder of a registry."""
    return isinstance(path, str | Path) and (Path(path) / REGISTRY_PAGE).is_file()


def run_folders(registry: str | Path) -> list[Path]:
    """List the folders of a registry's runs, in order; links are not followed.

    Parameters
    ----------
    registry : str or Path
        The folder of the registry.

    Raises
    ------
    UnsoundError
        There are so many files or folders that it is no registry of runs.
    """
    folders = [Path(registry) / "results"]
    for _ in ("observer", "revision", "experiment", "run"):
        paths = (
            path
            for folder in folders
            if folder.is_dir() and not folder.is_symlink()
            for path in folder.iterdir()
        )
        folders = sorted(islice(paths, _MOST_FOLDERS + 1))
        if len(folders) > _MOST_FOLDERS:
            raise UnsoundError(
                "size",
                f"more than {_MOST_FOLDERS:,} files or folders lie beside each other, such as "
                f"{folders[0].name!r:.80}; give a registry a year",
            )
    return folders


def read_file(path: Path) -> bytes:
    """Read a file of a run, refusing a link, what is no file, and one that is too large."""
    try:
        status = path.lstat()
    except OSError as error:
        raise UnsoundError("path", f"no {path.name}: {error.strerror}") from None
    if not stat.S_ISREG(status.st_mode):
        raise UnsoundError("path", f"{path.name} is no file but a link or a folder")
    _check_size(path.name, status.st_size)
    return path.read_bytes()


def _check_size(name: str, size: int) -> None:
    """Refuse a file of a run that is too large."""
    if size > FILE_SIZES[name]:
        raise UnsoundError(
            "size", f"{name} has {size:,} bytes; give at most {FILE_SIZES[name]:,}"
        )


def refuse_many(records: Sequence[RunRecord]) -> None:
    """Refuse a run, by its records alone, of which the answers cannot fit into a registry's file.

    Parameters
    ----------
    records : sequence of RunRecord
        The run; one record for each variant.

    Raises
    ------
    UnsoundError
        There are so many questions.
    """
    most = FILE_SIZES[ANSWERS_FILE] // _QUESTION_SIZE
    names: set[str] = set()
    for record in records:
        texts = _texts([record.layout, record.outcome])
        names.update(text for text in texts if len(text) == DIGEST_DIGITS)
        if len(names) > most:
            raise UnsoundError(
                "size",
                f"it has more than {most:,} questions, and packed answers of a run may have "
                f"{FILE_SIZES[ANSWERS_FILE]:,} bytes; publish an experiment with fewer levels or "
                "variants",
            )


def unpack(packed: bytes) -> bytes:
    """Unpack the answers of a run, refusing a bomb before it is in memory."""
    largest = min(_ANSWERS_SIZE, _PACKING_RATIO * len(packed))
    decoder = zlib.decompressobj(_GZIP)
    try:
        unpacked = decoder.decompress(packed, largest + 1)
    except zlib.error as error:
        raise UnsoundError("json", f"{ANSWERS_FILE} is no gzip file: {error}") from None
    if len(unpacked) > largest:
        raise UnsoundError(
            "size", f"{ANSWERS_FILE} unpacks to more than {largest:,} bytes"
        )
    if not decoder.eof or decoder.unused_data:
        raise UnsoundError("json", f"{ANSWERS_FILE} is cut off, or more follows it")
    return unpacked


def pack(unpacked: bytes) -> bytes:
    """Pack the answers of a run, the same bytes whenever and wherever by one version of zlib.

    Raises
    ------
    UnsoundError
        They are more than a registry takes.
    """
    if len(unpacked) > _ANSWERS_SIZE:
        raise UnsoundError(
            "size",
            f"the answers have {len(unpacked):,} bytes; give at most {_ANSWERS_SIZE:,}",
        )
    # Digits and digests repeat little: packed as filtered data they take a tenth less.
    encoder = zlib.compressobj(9, zlib.DEFLATED, _GZIP, strategy=zlib.Z_FILTERED)
    packed = encoder.compress(unpacked) + encoder.flush()
    _check_size(ANSWERS_FILE, len(packed))
    return packed


def scores_text(scores: JsonMapping) -> str:
    """Write what ``scores.json`` holds, a line an entry: indented, most of it would be spaces."""
    lines = ",\n".join(
        f"{_encode(name)}:{_encode(scores[name])}" for name in sorted(scores)
    )
    return f"{{{lines}}}\n"


def parse_json(text: bytes, name: str) -> Any:
    """Parse JSON strictly.

    Parameters
    ----------
    text : bytes
        The JSON.
    name : str
        Name of the file, for messages.

    Raises
    ------
    UnsoundError
        It is no UTF-8 or no JSON, holds NaN, infinity, a key twice or half a character, or is
        nested deeper than 32.
    """
    try:
        value = json.loads(
            text.decode(), object_pairs_hook=_unique_keys, parse_constant=_refuse
        )
        if _SUSPICIOUS.search(text) or text.count(b"[") + text.count(b"{") > _DEPTH:
            _check_value(value)
    except (ValueError, RecursionError) as error:
        raise UnsoundError("json", f"{name} is no strict JSON: {error}") from None
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> JsonObject:
    """Build a JSON object, refusing a key that comes twice."""
    table = dict(pairs)
    if len(table) < len(pairs):
        raise ValueError("a key comes twice")
    return table


def _refuse(constant: str) -> float:
    """Refuse NaN and infinity."""
    raise ValueError(f"it holds {constant}")


def _check_value(value: Any, depth: int = 0) -> None:
    """Refuse depth, numbers that are infinite, and text that no file can hold."""
    if depth > _DEPTH:
        raise ValueError(f"it is nested deeper than {_DEPTH}")
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number is too large")
    elif isinstance(value, _NESTING):
        entries: Iterable[Any] = (
            [*value, *value.values()] if isinstance(value, dict) else value
        )
        for entry in entries:
            _check_value(entry, depth + 1)


def write_answers(
    records: Sequence[RunRecord],
    store: Store,
    keys: Collection[str],
    clean: Callable[[Any], Any],
) -> bytes:
    """Write the answers of a run, and all that is needed to score them, as lines of JSON.

    Of a benchmark's items, which have no licence, digests are written.

    Parameters
    ----------
    records : sequence of RunRecord
        The run; one record for each variant.
    store : Store
        The store that holds its answers.
    keys : collection of str
        Keys of the questions that the run reads.
    clean : callable
        Takes what is private out of contents and origins.
    """
    procedures: dict[tuple[str, str, str], int] = {}
    origins: dict[str, int] = {}
    answers: list[JsonObject] = []
    for answered, milliseconds in store.all_answers(keys):
        question = answered.question
        procedure = (question.request, question.observer, question.version)
        origin = _encode(clean(asdict(answered.origin)))
        answers.append(
            {
                "k": "a",
                "s": question.stimulus,
                "w": procedures.setdefault(procedure, len(procedures)),
                "o": origins.setdefault(origin, len(origins)),
                "t": milliseconds,
                "v": answered.answer,
            }
        )
    lines: list[JsonObject] = [
        {
            "k": "record",
            "v": {
                "digest": record.experiment_digest,
                "layout": record.layout,
                "outcome": record.outcome,
                "grouping": record.grouping,
            },
        }
        for record in records
    ]
    digests = {text for line in lines for text in _texts(line)}
    digests |= {answer["s"] for answer in answers}
    digests |= {part for procedure in procedures for part in procedure[:2]}
    withheld: dict[str, str] = {}
    if is_about_items(records[0]):
        withheld = {procedure[0]: "request" for procedure in procedures}
        withheld[records[0].layout["items"][:DIGEST_DIGITS]] = "items"
    lines += [
        {"k": "content", "d": digest, "kind": kind, "v": clean(value)}
        for digest, kind, value in _contents_of(store, digests - {*withheld})
    ]
    lines += [
        {"k": "content", "d": digest, "kind": kind, "withheld": True}
        for digest, kind in sorted(withheld.items())
    ]
    lines += [{"k": "way", "v": list(procedure)} for procedure in procedures]
    lines += [{"k": "origin", "v": json.loads(origin)} for origin in origins]
    return "".join(f"{_encode(line)}\n" for line in [*lines, *answers]).encode()


def is_about_items(record: RunRecord) -> bool:
    """Tell whether a run is about the items of a benchmark."""
    return "items" in record.layout


def _contents_of(store: Store, digests: Iterable[str]) -> Iterator[Content]:
    """Iterate over what digests stand for, and what these name in turn, sorted by digest."""
    waiting = {*digests}
    reached: dict[str, Content] = {}
    while waiting:
        contents = [*store.all_contents(waiting)]
        reached |= {content[0]: content for content in contents}
        waiting = {text for *_, value in contents for text in _texts(value)} - {
            *reached
        }
    for digest in sorted(reached):
        yield reached[digest]


def _texts(value: Any) -> Iterator[str]:
    """Iterate over all text in nested JSON, as a store shortens a digest."""
    if isinstance(value, str):
        yield value[:32]
    elif isinstance(value, dict):
        yield from (text for entry in value.values() for text in _texts(entry))
    elif isinstance(value, list):
        yield from (text for entry in value for text in _texts(entry))


def answers_digest(unpacked: bytes) -> str:
    """Hash the answers of a run, as they are unpacked."""
    return sha256(unpacked).hexdigest()


def load_run(
    run: JsonMapping, page: str, unpacked: bytes, store: Store
) -> list[RunRecord]:
    """Load the answers of a run into a store.

    Parameters
    ----------
    run : mapping
        What ``run.json`` holds.
    page : str
        The experiment's page.
    unpacked : bytes
        The unpacked answers.
    store : Store
        Takes the answers and what they refer to.

    Returns
    -------
    list of RunRecord
        The run, one record for each variant; the store does not hold them yet.

    Raises
    ------
    UnsoundError
        A line is no strict JSON or has another form.
    """
    try:
        return _load(run, page, unpacked, store)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise UnsoundError(
            "json", f"{ANSWERS_FILE} has a line of another form: {error!r:.80}"
        ) from None


def _load(
    run: JsonMapping, page: str, unpacked: bytes, store: Store
) -> list[RunRecord]:
    """Put the lines of a run into a store, and build its records."""
    lines: dict[str, list[JsonObject]] = {kind: [] for kind in _LINE_FIELDS}
    for line in unpacked.splitlines():
        if len(line) > _LINE_SIZE:
            raise UnsoundError("size", f"a line of answers has {len(line):,} bytes")
        entry = parse_json(line, ANSWERS_FILE)
        if {*entry} == _WITHHELD_FIELDS and entry["withheld"] is True:
            continue
        if {*entry} != _LINE_FIELDS[entry["k"]]:
            raise KeyError(*sorted(entry))
        lines[entry["k"]].append(entry)
    origins = [Origin(**entry["v"]) for entry in lines["origin"]]
    procedures = [entry["v"] for entry in lines["way"]]
    label = run.get("label", "")
    experiment = run["experiment"]
    observer = run["observer"]
    with store.transaction():
        store.add_contents(
            (entry["d"], entry["kind"], entry["v"]) for entry in lines["content"]
        )
        store.add_timed(
            (
                Answered(
                    replace(Question(entry["s"], *procedures[entry["w"]]), label=label),
                    entry["v"],
                    origin=origins[entry["o"]],
                    experiment=experiment["name"],
                ),
                entry["t"],
            )
            for entry in lines["a"]
        )
    return [
        RunRecord(
            experiment=experiment["name"],
            experiment_digest=entry["v"]["digest"],
            experiment_toml=page,
            observer=observer["name"],
            observer_digest=observer["digest"],
            observer_card=observer["card"],
            probe=experiment["probe"],
            layout=entry["v"]["layout"],
            software=run["software"],
            grouping=entry["v"]["grouping"],
            outcome=entry["v"]["outcome"],
            origins=tuple(Origin(**origin) for origin in run["origins"]),
            started=run["when"]["started"],
            finished=run["when"]["finished"],
        )
        for entry in lines["record"]
    ]


def open_run(folder: Path) -> Store:
    """Read a run of a registry into a store in memory, trusting what it says.

    Parameters
    ----------
    folder : Path
        The folder of the run.

    Raises
    ------
    UnsoundError
        A file cannot be read.
    """
    run = parse_json(read_file(folder / RUN_FILE), RUN_FILE)
    if run.get("status") == "failed":
        message = run.get("failure", {}).get("message", "")
        raise UnsoundError("failed", f"it failed: {message!s:.500}")
    try:
        page = read_file(folder / PAGE_FILE).decode()
    except UnicodeDecodeError as error:
        raise UnsoundError("json", f"{PAGE_FILE} is no UTF-8: {error}") from None
    store = Store(None)
    unpacked = unpack(read_file(folder / ANSWERS_FILE))
    for record in load_run(run, page, unpacked, store):
        store.adopt_run(record)
    return store
