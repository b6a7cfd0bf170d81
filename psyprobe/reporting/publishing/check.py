"""Check the runs of a registry: files, digests, scores, and the run derived again from its page.

Nothing of a stranger's is executed: pages that name code are refused before they are read.
"""

from __future__ import annotations

import math
import multiprocessing
import random
import re
import stat
import tomllib
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from time import process_time
from typing import Any

from psyprobe.errors import InputError, PsyprobeError, UnknownNameError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import write_text
from psyprobe.files.terminal import printable_line
from psyprobe.observers.protocol import card_digest
from psyprobe.reporting.publishing.derive import (
    NOT_DERIVED,
    RecordingStore,
    derive,
    page_alone,
    same_record,
)
from psyprobe.reporting.publishing.identity import find_private, observer_kind, run_path
from psyprobe.reporting.publishing.items import (
    derive_items,
    plan_again,
    refuse_items,
    set_folders,
)
from psyprobe.reporting.publishing.people import identity_faults
from psyprobe.reporting.publishing.plausible import implausible
from psyprobe.reporting.publishing.repeat import Repeater, load_here
from psyprobe.reporting.publishing.schema import run_schema, schema_errors
from psyprobe.reporting.publishing.scoring import score_records
from psyprobe.running.maintenance import verify_contents
from psyprobe.running.protocol import RunRecord
from psyprobe.running.registry_run import (
    ANSWERS_FILE,
    FILE_SIZES,
    PAGE_FILE,
    REGISTRY_PAGE,
    RUN_FILE,
    SCORES_FILE,
    UnsoundError,
    answers_digest,
    is_about_items,
    load_run,
    parse_json,
    read_file,
    run_folders,
    scores_text,
    unpack,
)

#: Largest difference of a score from ours, as a share, or as it is near 0.
_TOLERANCE = 1e-9
_PATH_PART = re.compile(r"[A-Za-z0-9._-]{1,120}")
#: Keys of a page that hold prose.
_PROSE = ("title", "source", "differences", "assumed", "people", "changed")
#: Text that names a file.
_FILE_NAME = re.compile(
    r"\.(py|toml|csv|npy|npz|png|json|mat)(:\w+)?$|^[^\s\\]*\\\S*$|^[./~]"
)
#: File of a benchmark's questions, which lies in its folder.
_QUESTIONS = re.compile(r"[\w-]+\.json")
_NAMED_ERRORS = 3
#: Fewest runs for which a process is started, as it loads psyprobe first.
_RUNS_A_PROCESS = 10


@dataclass(frozen=True)
class Checked:
    """What a check made of one run."""

    path: str
    #: What is wrong, as (code, words); none of a sound run.
    problems: tuple[tuple[str, str], ...] = ()
    #: Checks that could not be made here.
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    def to_dict(self) -> JsonObject:
        """Return the outcome as JSON values."""
        return {
            "path": self.path,
            "codes": [code for code, _ in self.problems],
            "notes": list(self.notes),
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True)
class Repeats:
    """How much of each run is put again, and whether it is scored anew."""

    #: Share of images that are drawn again, in [0, 1]; at least 20.
    redraw: float = 0.1
    #: Number of runs, chosen at random, whose observers are asked again where they are here.
    rerun: int = 0
    #: Chooses which, with the digest of the answers.
    seed: str = ""
    #: Whether scores that another psyprobe computed otherwise are written anew.
    rescore: bool = False
    #: Folder of a benchmark's items, or of several such, which are published by digest alone.
    sets: str = ""


@dataclass
class Findings:
    """What was seen of one run so far."""

    problems: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_registry_page(registry: str | Path) -> JsonObject:
    """Read ``registry.toml``, which says what a registry is and takes.

    Parameters
    ----------
    registry : str or Path
        The folder of the registry.

    Raises
    ------
    InputError
        There is none, or it is no page of a registry.
    """
    path = Path(registry) / REGISTRY_PAGE
    try:
        page = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"{registry} is no registry: {REGISTRY_PAGE} cannot be read ({error.strerror}); "
            "psyprobe publish makes one"
        ) from None
    except ValueError as error:
        raise InputError(f"{path} is no TOML: {error}") from None
    if page.get("schema") != "psyprobe-registry/1":
        raise InputError(
            f"{path}: schema is {page.get('schema')!r:.60}, and this psyprobe reads "
            "psyprobe-registry/1"
        )
    return page


def check_registry(
    registry: str | Path,
    folders: Sequence[Path] | None = None,
    repeats: Repeats | None = None,
    jobs: int = 1,
) -> Iterator[Checked]:
    """Check the runs of a registry one by one.

    Parameters
    ----------
    registry : str or Path
        The folder of the registry.
    folders : sequence of Path, optional
        The runs to check, by default all.
    repeats : Repeats, optional
        How much is put again.
    jobs : int, optional
        Number of processes; each checks at least ten runs.

    Yields
    ------
    Checked
        Of each run.
    """
    if jobs < 1:
        raise InputError(f"jobs is {jobs}; give at least 1 process")
    if repeats is not None and repeats.sets:
        set_folders(repeats.sets)
    page = read_registry_page(registry)
    root = Path(registry)
    try:
        runs = run_folders(root)
    except UnsoundError as error:
        yield Checked("results", ((error.code, str(error)),))
        return
    spellings = Counter(
        str(parent).lower()
        for parent in {part for run in runs for part in (run, *run.parents[:3])}
    )
    digests: dict[str, str] = {}
    repeats = repeats or Repeats()
    chosen = runs if folders is None else folders
    count = min(repeats.rerun, len(chosen))
    rerun = {*random.Random(repeats.seed).sample(range(len(chosen)), count)}
    shares = [
        replace(repeats, rerun=int(number in rerun)) for number in range(len(chosen))
    ]
    for folder, (answers, checked) in zip(
        chosen, _check_all(chosen, page, shares, jobs), strict=True
    ):
        path = folder.relative_to(root).as_posix()
        problems = checked.problems
        if any(
            spellings[str(part).lower()] > 1 for part in (folder, *folder.parents[:3])
        ):
            problems = (("path", "another folder has this name but for its case"),)
        elif answers in digests:
            words = f"{digests[answers]} has these answers"
            problems = (*problems, ("duplicate", words))
        elif answers:
            digests[answers] = path
        yield replace(checked, path=path, problems=problems)


def _check_all(
    folders: Sequence[Path],
    page: JsonMapping,
    repeats: Sequence[Repeats],
    jobs: int,
) -> Iterator[tuple[str, Checked]]:
    """Check runs in turn, or by processes of their own where each has enough of them."""
    jobs = min(jobs, len(folders) // _RUNS_A_PROCESS)
    check = partial(_check_safely, page)
    if jobs < 2:
        yield from map(check, folders, repeats)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as executor:
        try:
            yield from executor.map(check, folders, repeats)
        except BrokenProcessPool:
            raise PsyprobeError(
                "a process that checked runs was ended from outside, as when memory runs out; "
                "give fewer --jobs"
            ) from None


def _check_safely(
    page: JsonMapping, folder: Path, repeats: Repeats
) -> tuple[str, Checked]:
    """Check one run; return the digest of its answers, "" where it ended early, and the outcome."""
    begun = process_time()
    findings = Findings()
    answers = ""
    try:
        answers = check_run(folder, page, findings, repeats)
    except UnsoundError as error:
        findings.problems.append((error.code, str(error)))
    except (PsyprobeError, ValueError) as error:
        findings.problems.append(("record", str(error)))
    except (
        LookupError,
        TypeError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
        findings.problems.append(("record", f"it has another form: {error!r:.80}"))
    return answers, Checked(
        folder.name,
        tuple(findings.problems),
        tuple(findings.notes),
        process_time() - begun,
    )


def check_run(
    folder: Path,
    registry_page: JsonMapping,
    findings: Findings,
    repeats: Repeats | None = None,
    *,
    is_fresh: bool = False,
) -> str:
    """Check one run, and return the digest of its answers.

    Parameters
    ----------
    folder : Path
        The folder of the run.
    registry_page : mapping
        What ``registry.toml`` says.
    findings : Findings
        Collects notes, and problems that do not end the check.
    repeats : Repeats, optional
        How much is put again.
    is_fresh : bool, optional
        Whether this process has just scored the run and derived it from its page, which is then
        not done again.

    Raises
    ------
    UnsoundError
        Something is wrong after which nothing else can be looked at.
    """
    run, files = check_files(folder, registry_page)
    text = files.get(PAGE_FILE, b"").decode()
    for content, name in ((_text_of(run), RUN_FILE), (text, PAGE_FILE)):
        if private := find_private(content):
            raise UnsoundError("private", f"{name} holds {private!r}; take it out")
    if run["status"] == "failed":
        _check_path(run, folder)
        return str(run["run"])
    _check_code(text)
    unpacked = unpack(files[ANSWERS_FILE])
    with RecordingStore() as store:
        share = None if is_fresh else repeats or Repeats()
        _check_answers(run, folder, text, unpacked, store, findings, share)
    return str(run["answers"]["sha256"])


def check_files(
    folder: Path, registry_page: JsonMapping
) -> tuple[JsonObject, dict[str, bytes]]:
    """Read the files of one run, checking names, sizes, schema and digests.

    Parameters
    ----------
    folder : Path
        The folder of the run.
    registry_page : mapping
        What ``registry.toml`` says.

    Returns
    -------
    run : dict
        What ``run.json`` holds.
    files : dict of str to bytes
        The files by name; of a failed run ``run.json`` alone.

    Raises
    ------
    UnsoundError
        Something is wrong.
    """
    _check_folder(folder)
    files = {RUN_FILE: read_file(folder / RUN_FILE)}
    run = parse_json(files[RUN_FILE], RUN_FILE)
    _check_schema(run, registry_page)
    if run["status"] == "failed":
        return run, files
    for name in (ANSWERS_FILE, PAGE_FILE, SCORES_FILE):
        files[name] = read_file(folder / name)
    _check_digests(run, unpack(files[ANSWERS_FILE]), files[PAGE_FILE])
    return run, files


def _text_of(run: JsonMapping) -> str:
    """Return the text of ``run.json`` without its contributor, who may be named."""
    return repr({name: entry for name, entry in run.items() if name != "contributor"})


def _check_folder(folder: Path) -> None:
    """Refuse names, links, folders, programs and sizes before anything is read."""
    for part in (folder, *folder.parents[:3]):
        if not _PATH_PART.fullmatch(part.name) or part.name.strip(".") != part.name:
            raise UnsoundError("path", f"{part.name!r:.80} is no name of a folder")
    if folder.is_symlink() or not folder.is_dir():
        raise UnsoundError("path", "it is no folder")
    for entry in folder.iterdir():
        if entry.name not in FILE_SIZES:
            raise UnsoundError("path", f"{entry.name!r:.80} is none of the four files")
        status = entry.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_mode & 0o111:
            raise UnsoundError("path", f"{entry.name} is a link, a folder or a program")
        if status.st_size > FILE_SIZES[entry.name]:
            raise UnsoundError("size", f"{entry.name} has {status.st_size:,} bytes")


def _check_schema(run: Any, registry_page: JsonMapping) -> None:
    """Refuse a ``run.json`` of another form, without a licence, or of an observer not accepted."""
    errors = list(schema_errors(run, run_schema()))
    if errors:
        place, reason = errors[0]
        codes = {"licence": "licence", "consent": "person"}
        code = codes.get(
            place, "path" if place in ("answers.file", "page.file") else "schema"
        )
        raise UnsoundError(code, f"{RUN_FILE}: {place or 'the whole'}: {reason}")
    kind = run["observer"]["kind"]
    taken = registry_page.get("takes")
    is_person = kind.startswith("person")
    if is_person and "person" not in (taken or ()):
        raise UnsoundError("person", "this registry takes no people")
    if taken is not None and kind not in taken and not is_person:
        raise UnsoundError("kind", f"this registry takes no {kind}")
    card = run["observer"]["card"]
    if not isinstance(card.get("name"), str) or card["name"] != run["observer"]["name"]:
        raise UnsoundError("observer-digest", "the card has another name")
    is_random = bool(card.get("random_weights"))
    if is_random != run["observer"]["random_weights"] or observer_kind(card) != kind:
        raise UnsoundError(
            "kind",
            f"its card is that of a {observer_kind(card)}"
            f"{' with random weights' * is_random}, and {RUN_FILE} says otherwise",
        )


def _check_digests(run: JsonMapping, unpacked: bytes, page: bytes) -> None:
    """Check the digests of answers, page and card."""
    if answers_digest(unpacked) != run["answers"]["sha256"]:
        raise UnsoundError("answers-digest", f"{ANSWERS_FILE} has another SHA-256")
    if len(unpacked) != run["answers"]["bytes"]:
        raise UnsoundError("answers-digest", f"{ANSWERS_FILE} has another size")
    if sha256(page).hexdigest() != run["page"]["sha256"]:
        raise UnsoundError("page-digest", f"{PAGE_FILE} has another SHA-256")
    if card_digest(run["observer"]["card"]) != run["observer"]["digest"]:
        raise UnsoundError("observer-digest", "the card has another digest")
    try:
        tomllib.loads(page.decode())
    except (ValueError, RecursionError) as error:
        raise UnsoundError("page-digest", f"{PAGE_FILE} is no TOML: {error}") from None


def _check_code(text: str) -> None:
    """Refuse a page that names files, which may be code; it must say all itself."""
    page = tomllib.loads(text)
    values = {name: value for name, value in page.items() if name not in _PROSE}
    # These are lists of a benchmark's own questions, no code that the page brings.
    lists = page.get("options", {}).get("questions", ()) if "items" in page else ()
    for value in _strings(values):
        if value in lists and _QUESTIONS.fullmatch(value):
            continue
        if _FILE_NAME.search(value):
            raise UnsoundError("code", f"the page names a file, {value!r:.80}")


def _strings(value: Any) -> Iterator[str]:
    """Iterate over all text in nested values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _strings(list(value.values()))
    elif isinstance(value, list):
        for entry in value:
            yield from _strings(entry)


def _check_answers(
    run: JsonMapping,
    folder: Path,
    text: str,
    unpacked: bytes,
    store: RecordingStore,
    findings: Findings,
    repeats: Repeats | None,
) -> None:
    """Check the answers and, unless `repeats` is None, their scores and their derivation."""
    experiment = run["experiment"]
    variants = experiment["variants"]
    with page_alone(text, experiment["name"], variants) as page:
        if page.digest != experiment["digest"]:
            raise UnsoundError(
                "experiment-digest", f"{PAGE_FILE} is another experiment"
            )
        records = load_run(run, text, unpacked, store)
        try:
            verify_contents(store)
        except PsyprobeError as error:
            raise UnsoundError("content-digest", str(error)) from None
        _check_path(run, folder)
        count = store.database.count("answer")
        if count != run["answers"]["count"]:
            raise UnsoundError(
                "answers-missing",
                f"it holds {count:,} answers, and {RUN_FILE} says {run['answers']['count']:,}",
            )
        if run["observer"]["kind"].startswith("person"):
            for words in identity_faults(run, store):
                raise UnsoundError("person", words)
        schedule = None
        if is_about_items(records[0]):
            refuse_items(records[0], store)
            repeats, schedule = _with_items(records[0], store, repeats, findings)
        if repeats is not None:
            _check_scores(
                run, folder, records, store, findings, rescore=repeats.rescore
            )
        findings.problems += implausible(
            store, run, records[0].layout.get("measures", ())
        )
        if repeats is not None:
            _check_derivation(run, page, records, store, findings, repeats, schedule)


def _with_items(
    record: RunRecord,
    store: RecordingStore,
    repeats: Repeats | None,
    findings: Findings,
) -> tuple[Repeats | None, Any]:
    """Add a run's items from the sets that lie here, or note that they do not.

    Returns what is to be put again, nothing without items, and the schedule of the run.
    """
    if repeats is None:
        return None, None
    schedule = plan_again(record, repeats.sets) if repeats.sets else None
    if schedule is None:
        where = f"{repeats.sets} has other ones" if repeats.sets else "give --sets"
        findings.notes.append(
            f"neither scored nor derived again: its items are withheld; {where}"
        )
        return None, None
    store.add_contents(schedule.contents())
    return repeats, schedule


def _check_path(run: JsonMapping, folder: Path) -> None:
    """Refuse a run that lies elsewhere than what it holds says."""
    path = run_path(run)
    if path != folder.parts[-4:] or run["run"] != path[-1]:
        raise UnsoundError("path", f"it belongs to results/{'/'.join(path)}")


def _check_scores(
    run: JsonMapping,
    folder: Path,
    records: Sequence[RunRecord],
    store: RecordingStore,
    findings: Findings,
    *,
    rescore: bool,
) -> None:
    """Compare the submitted scores with those of the answers, and write these where allowed."""
    submitted = parse_json(read_file(folder / SCORES_FILE), SCORES_FILE)
    if not isinstance(submitted, dict) or (
        submitted.get("schema") != "psyprobe-scores/1"
        or submitted.get("run") != run["run"]
        or submitted.get("answers_sha256") != run["answers"]["sha256"]
    ):
        raise UnsoundError("schema", f"{SCORES_FILE} is not of this run")
    try:
        ours = score_records(run, records, store)
    except UnknownNameError as error:
        findings.notes.append(f"not scored: {error}")
        return
    except PsyprobeError as error:
        if "no answer yet" in str(error):
            raise UnsoundError("answers-missing", str(error)) from None
        raise
    # Older registries have no board; one that is there must be right.
    names = ("scores", "main", *(["board"] if "board" in submitted else []))
    places = [
        place
        for name in names
        for place in differences(submitted.get(name), ours[name], name)
    ]
    if not places:
        return
    words = f"{', '.join(places[:_NAMED_ERRORS])}: not what the answers give"
    if submitted.get("scored_by") == ours["scored_by"]:
        findings.problems.append(("score", words))
    elif rescore:
        write_text(folder / SCORES_FILE, scores_text(ours))
        findings.notes.append(f"{words} with this psyprobe; ours is written")
    else:
        findings.notes.append(f"{words} with this psyprobe; --rescore writes ours")


def differences(value: Any, ours: Any, place: str) -> Iterator[str]:
    """Iterate over the places in which scores differ by more than rounding.

    Examples
    --------
    >>> list(differences({"r": 0.99, "n": 1.0}, {"r": 0.5, "n": 1.0}, "main"))
    ['main.r']
    """
    if isinstance(value, dict) and isinstance(ours, dict):
        for name in sorted({*value, *ours}):
            yield from differences(value.get(name), ours.get(name), f"{place}.{name}")
    elif isinstance(value, list) and isinstance(ours, list) and len(value) == len(ours):
        for index, (entry, our_entry) in enumerate(zip(value, ours, strict=True)):
            yield from differences(entry, our_entry, f"{place}[{index}]")
    elif isinstance(value, float | int) and isinstance(ours, float | int):
        if not math.isclose(value, ours, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
            yield place
    elif value != ours:
        yield place


def _check_derivation(
    run: JsonMapping,
    page: Any,
    records: Sequence[RunRecord],
    store: RecordingStore,
    findings: Findings,
    repeats: Repeats,
    schedule: Any,
) -> None:
    """Run the page, or a schedule about items, over the answers again.

    It must read all, ask nothing, and end alike.
    """
    name = run["observer"]["name"]
    if name.startswith(NOT_DERIVED):
        findings.notes.append(f"not derived again: {name} needs what is not stored")
        return
    score_only = run["experiment"]["score_only"]
    first = records[0]
    # Items are no images that a page draws.
    observer = load_here(first) if repeats.rerun and schedule is None else None
    if repeats.rerun and observer is None:
        findings.notes.append(f"not asked again: {name} is not here, or another one is")
    repeater = Repeater(store, first, observer)
    # A network in the process that asked resized images itself.
    if observer is not None or first.observer_card.get("weights_digest") is None:
        share = 0.0 if observer is not None else repeats.redraw
        repeater.choose(share, f"{run['answers']['sha256']} {repeats.seed}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        derived = (
            derive(page, first, store, score_only=score_only, executor=repeater)
            if schedule is None
            else derive_items(schedule, first, store)
        )
    if repeater.differing:
        names = ", ".join(sorted({*repeater.differing}))
        findings.problems.append(
            (
                "drawn" if observer is None else "rerun",
                f"{names}: {len(repeater.differing)} of {repeater.count} that were put again "
                "come out otherwise",
            )
        )
    answered = {row[0] for row in store.database.iterate("answer")}
    if extra := answered - store.read_keys:
        findings.problems.append(
            ("answers-extra", f"the page asks for none of {len(extra):,} answers")
        )
    if not same_record(records, derived):
        findings.problems.append(
            ("record", "the page leads to another layout or outcome than the run's")
        )


def describe(checked: Checked) -> Iterator[str]:
    """Iterate over lines that say what is wrong with a run, and what could not be checked."""
    for code, words in checked.problems:
        yield printable_line(f"{checked.path}: {code}: {words}")
    for note in checked.notes:
        yield printable_line(f"{checked.path}: note: {note}")
