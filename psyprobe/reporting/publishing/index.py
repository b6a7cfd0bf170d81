"""The index of a registry: a row for each run and number, from a folder or from the web."""

from __future__ import annotations

import json
import os
import urllib.parse
import urllib.request
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psyprobe.errors import ConditionWarning, InputError, PsyprobeError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import make_folder, write_whole
from psyprobe.reporting.publishing.check import (
    check_files,
    read_registry_page,
)
from psyprobe.reporting.publishing.derive import RecordingStore
from psyprobe.reporting.publishing.reproductions import count_reproductions
from psyprobe.reporting.publishing.scoring import score_records
from psyprobe.running.registry_run import (
    ANSWERS_FILE,
    FILE_SIZES,
    PAGE_FILE,
    REGISTRY_PAGE,
    SCORES_FILE,
    load_run,
    parse_json,
    run_folders,
    unpack,
)

if TYPE_CHECKING:
    import pandas as pd

INDEX_FILE = "index.json"
#: Largest index and largest retraction that are read, bytes.
_LARGEST_INDEX = 256 * 2**20
_LARGEST_RETRACTION = 2**16
_TIMEOUT = 30.0
_SCHEMA = "psyprobe-index/1"
#: Names by which this machine is reached, without encryption.
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Index:
    """What a registry holds: facts of each run, and why others are left out."""

    name: str
    runs: list[JsonObject]
    #: Path and reason of each run that is not sound.
    unsound: list[tuple[str, str]]


def read_index(registry: str | Path) -> Index:
    """Read the runs of a registry from their files, without scoring or asking anything.

    Files and digests are checked; scores are those of ``scores.json``, as ``psyprobe registry
    check`` finds them right.

    Parameters
    ----------
    registry : str or Path
        The folder of the registry.
    """
    root = Path(registry)
    page = read_registry_page(root)
    retractions = {run: (reason, date) for run, reason, date in read_retractions(root)}
    runs = []
    unsound = []
    for folder in run_folders(root):
        path = folder.relative_to(root).as_posix()
        try:
            runs.append(_read_facts(folder, page, path, retractions))
        except (PsyprobeError, ValueError, KeyError, TypeError) as error:
            unsound.append((path, str(error)))
    for run, count in zip(runs, count_reproductions(runs), strict=True):
        run["reproduced"] = count
    return Index(str(page.get("name", root.resolve().name)), runs, unsound)


def read_retractions(root: Path) -> Iterator[tuple[str, str, str]]:
    """Iterate over the runs that were taken back, with reason and date; "" of none."""
    for path in sorted((root / "retractions").glob("*.json")):
        if path.is_symlink() or path.stat().st_size > _LARGEST_RETRACTION:
            continue
        table = parse_json(path.read_bytes(), path.name)
        if isinstance(table, dict) and isinstance(table.get("run"), str):
            yield table["run"], str(table.get("reason", "")), str(table.get("date", ""))


def _read_facts(
    folder: Path,
    page: JsonObject,
    path: str,
    retractions: Mapping[str, tuple[str, str]],
) -> JsonObject:
    """Read what an index tells of one run."""
    run, files = check_files(folder, page)
    observer = run["observer"]
    experiment = run["experiment"]
    served = [origin["served"] for origin in run["origins"] if origin["served"]]
    failed = run["status"] == "failed"
    reason, date = retractions.get(run["run"], (None, ""))
    entries, scored_by = ([], {}) if failed else _read_board(run, files)
    return {
        "path": path,
        "run": run["run"],
        "label": run.get("label", ""),
        "status": run["status"],
        "failure": run.get("failure", {}).get("message", ""),
        "observer": observer["name"],
        "kind": observer["kind"],
        "ability": observer["card"].get("ability", ""),
        "revision": observer["revision"],
        "random_weights": observer["random_weights"],
        "experiment": experiment["name"],
        "digest": experiment["digest"],
        "probe": experiment["probe"],
        "started": run["when"]["started"],
        "model": ", ".join(sorted({entry.get("model", "") for entry in served} - {""})),
        "fingerprint": ", ".join(
            sorted({entry.get("fingerprint", "") for entry in served} - {""})
        ),
        "answers": run["answers"]["count"],
        "contributor": run["contributor"]["name"],
        "licence": run["licence"],
        "retracted": reason,
        "retracted_on": date,
        "scored_by": scored_by.get("psyprobe", ""),
        "files": {name: _digest(content) for name, content in files.items()},
        "board": entries,
    }


def _read_board(
    run: JsonObject, files: Mapping[str, bytes]
) -> tuple[list[JsonObject], JsonObject]:
    """Read the entries of a run on a board; of one that was scored before boards, from answers."""
    scores = parse_json(files[SCORES_FILE], SCORES_FILE)
    if scores["answers_sha256"] != run["answers"]["sha256"]:
        raise InputError(f"{SCORES_FILE} is of other answers")
    if "board" not in scores:
        with RecordingStore() as store:
            text = files[PAGE_FILE].decode()
            unpacked = unpack(files[ANSWERS_FILE])
            scores = score_records(run, load_run(run, text, unpacked, store), store)
    return scores["board"], scores["scored_by"]


def registry(
    source: str | Path,
    *,
    cache: str | Path | None = None,
    offline: bool = False,
    answers: bool = False,
) -> pd.DataFrame:
    """Read a registry as a tidy table: a row for each run and number on its board.

    Parameters
    ----------
    source : str or Path
        The folder of a registry, or the address of its site (https, or this machine).
    cache : str or Path, optional
        Folder for what comes from the web; by default ``~/.cache/psyprobe/registry``.
    offline : bool, optional
        Use what was read before, and say of which date it is.
    answers : bool, optional
        Fetch the files of all runs too, each checked by its digest, so that `load_results` of
        ``table.attrs["folder"]`` gives the results.

    Returns
    -------
    pandas.DataFrame
        Columns: observer, experiment, their digests and revision, run, label, when it began, what
        the server named, contributor and licence; "reproduced", how many other contributors came
        to the run's numbers; responder ("observer", or a baseline, people or
        ceiling beside it), metric, value, interval, flags. A failed run has no value.

    Raises
    ------
    InputError
        The source is no registry, or cannot be reached and was not read before.

    Examples
    --------
    >>> import psyprobe as pp
    >>> table = pp.registry("registry")  # doctest: +SKIP
    >>> table[table.responder == "observer"].groupby("experiment").value.max()  # doctest: +SKIP
    """
    text = str(source)
    if not text.startswith(("http://", "https://")):
        index = read_index(source)
        for path, reason in index.unsound:
            warnings.warn(
                f"{path} is left out: {reason}", ConditionWarning, stacklevel=2
            )
        return make_frame(index.runs, str(source))
    folder = _cache_folder(text, cache)
    runs = _fetch_index(text.rstrip("/"), folder, offline)
    if answers and not offline:
        _fetch_answers(text.rstrip("/"), runs, folder)
    return make_frame(runs, str(folder))


def make_frame(runs: list[JsonObject], folder: str) -> pd.DataFrame:
    """Build a tidy table of the runs of an index."""
    import pandas as pd

    table = pd.DataFrame(table_rows(runs))
    table.attrs["folder"] = folder
    return table


def table_rows(runs: Sequence[JsonMapping]) -> list[JsonObject]:
    """Build the rows of a tidy table: one for each number on the board of each run."""
    return [
        {
            **{name: run[name] for name in run if name not in ("files", "board")},
            **{name: entry[name] for name in entry if name != "sample"},
            "flags": "".join(entry.get("flags", ())),
        }
        for run in runs
        for entry in run["board"] or [{"responder": "observer", "value": None}]
    ]


def _cache_folder(address: str, cache: str | Path | None) -> Path:
    """Return the folder in which what comes from an address is kept."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    root = Path(home) / "psyprobe" / "registry" if cache is None else Path(cache)
    return root / sha256(address.rstrip("/").encode()).hexdigest()[:16]


def _fetch_index(address: str, folder: Path, offline: bool) -> list[JsonObject]:
    """Read an index from the web, or as it was read before, with a line that says when."""
    stored = folder / INDEX_FILE
    if not offline:
        try:
            content = _fetch(f"{address}/{INDEX_FILE}", _LARGEST_INDEX)
            runs = _parse_index(content, address)
            make_folder(folder)
            write_file(stored, content)
            return runs
        except (OSError, HTTPException) as error:
            if not stored.exists():
                raise InputError(
                    f"{address} cannot be read ({error}); give the address of a site that "
                    "psyprobe registry build wrote"
                ) from None
    if not stored.exists():
        raise InputError(f"{address} was not read before; read it once with a network")
    date = datetime.fromtimestamp(stored.stat().st_mtime, UTC)
    warnings.warn(
        f"{address}: read from {stored}, as it was on {date:%Y-%m-%d %H:%M} UTC",
        ConditionWarning,
        stacklevel=3,
    )
    return _parse_index(stored.read_bytes(), address)


def _parse_index(content: bytes, address: str) -> list[JsonObject]:
    """Parse an index from elsewhere, refusing a text that is no index."""
    table = parse_json(content, INDEX_FILE)
    if not isinstance(table, dict) or table.get("schema") != _SCHEMA:
        raise InputError(f"{address}/{INDEX_FILE} is no {_SCHEMA}")
    runs = table["runs"]
    for run in runs:
        parts = str(run["path"]).split("/")
        if len(parts) != 5 or parts[0] != "results" or {"", ".", ".."} & set(parts):
            raise InputError(f"{address}: a run has the path {run['path']!r:.80}")
    return list(runs)


def _fetch_answers(address: str, runs: list[JsonObject], folder: Path) -> None:
    """Fetch the files of runs that are not here yet, each checked by its digest."""
    write_file(folder / REGISTRY_PAGE, _fetch(f"{address}/{REGISTRY_PAGE}", 2**20))
    for run in runs:
        for name, expected in run["files"].items():
            if name not in FILE_SIZES:
                raise InputError(
                    f"{run['path']}: {name!r:.80} is none of the four files"
                )
            path = folder / run["path"] / name
            if path.exists() and _digest(path.read_bytes()) == expected:
                continue
            content = _fetch(f"{address}/{run['path']}/{name}", FILE_SIZES[name])
            if _digest(content) != expected:
                raise InputError(
                    f"{address}/{run['path']}/{name} is not the file of the index; the site is "
                    "being changed or was tampered with: read it again"
                )
            make_folder(path.parent)
            write_file(path, content)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect to another address."""

    def redirect_request(self, *_: Any) -> None:
        """Refuse."""


def _fetch(address: str, largest: int) -> bytes:
    """Read a file from the web, refusing other schemes, redirects, and what is too large."""
    parts = urllib.parse.urlsplit(address)
    if parts.scheme != "https" and parts.hostname not in _LOOPBACK:
        raise InputError(f"{address} is not encrypted; give https://")
    opener = urllib.request.build_opener(_NoRedirect)
    with opener.open(address, timeout=_TIMEOUT) as reply:
        content: bytes = reply.read(largest + 1)
    if len(content) > largest:
        raise InputError(f"{address} has more than {largest:,} bytes")
    return content


def write_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    write_whole(path, lambda partial: partial.write_bytes(content))


def _digest(content: bytes) -> str:
    """Hash a file."""
    return sha256(content).hexdigest()


def index_text(index: Index) -> str:
    """Write an index as JSON, a run a line."""
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    lines = ",\n".join(map(encode, index.runs))
    head = f'"schema": {encode(_SCHEMA)}, "name": {encode(index.name)}'
    return f'{{{head}, "runs": [\n{lines}\n]}}\n'
