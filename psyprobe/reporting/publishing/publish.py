"""Publish the finished runs of a store in a registry."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import json_text, make_folder, toml_text, write_text
from psyprobe.probes.reproduce import is_score_only
from psyprobe.reporting.publishing.check import Findings, check_run, read_registry_page
from psyprobe.reporting.publishing.derive import (
    NOT_DERIVED,
    RecordingStore,
    derive,
    page_alone,
)
from psyprobe.reporting.publishing.identity import (
    observer_kind,
    run_path,
    slug,
    without_folders,
)
from psyprobe.reporting.publishing.items import item_contents, withhold_folder
from psyprobe.reporting.publishing.people import Codes, with_codes
from psyprobe.reporting.publishing.scoring import load_records, score_records
from psyprobe.running.protocol import DIGEST_DIGITS, RunRecord, labelled
from psyprobe.running.registry_run import (
    ANSWERS_FILE,
    PAGE_FILE,
    REGISTRY_PAGE,
    RUN_FILE,
    SCORES_FILE,
    UnsoundError,
    answers_digest,
    load_run,
    pack,
    refuse_many,
    scores_text,
    write_answers,
)
from psyprobe.running.store import Store

#: With fewer people of an experiment it is easier to tell who is who.
_FEWEST_PEOPLE = 5


@dataclass(frozen=True)
class Published:
    """What became of one run of a store."""

    experiment: str
    observer: str
    #: Where it lies in the registry; "" if it was left out.
    path: str = ""
    #: Whether it was there before.
    present: bool = False
    #: Why it was left out.
    reason: str = ""

    def __str__(self) -> str:
        if self.reason:
            return f"{self.experiment} with {self.observer}: left out: {self.reason}"
        return f"{self.path}{': there already' * self.present}"


@dataclass(frozen=True)
class Terms:
    """Who publishes, on which terms."""

    contributor: str
    contact: str = ""
    relation: str = ""
    licence: str = ""
    also_random: bool = False
    #: What people agreed to, in words; without it they are left out.
    consent: str = ""
    #: File of their codes; by default one beside the store.
    codes: str = ""
    #: Whether fewer than five people of an experiment are published too.
    few_people: bool = False

    def contributor_table(self) -> JsonObject:
        """Return what ``run.json`` says of the contributor."""
        table = {
            "name": self.contributor,
            "contact": self.contact,
            "relation": self.relation,
        }
        return {name: text for name, text in table.items() if text}


def publish(
    store: str | Path,
    registry: str | Path,
    terms: Terms,
    *,
    failed: bool = False,
) -> list[Published]:
    """Publish the finished runs of a store, each whole or not at all.

    Parameters
    ----------
    store : str or Path
        The store, which stays as it is.
    registry : str or Path
        The folder of the registry; a new one is made.
    terms : Terms
        Who publishes, on which terms.
    failed : bool
        Publish runs too whose last attempt failed, without answers and with the reason.

    Returns
    -------
    list of Published
        Where each run lies, or why it was left out.

    Raises
    ------
    InputError
        There is no finished run, or the folder is no registry.
    """
    root = _open_registry(Path(registry), terms)
    page = read_registry_page(root)
    licence = terms.licence or str(page.get("licence", ""))
    outcomes = []
    with Store(store, create=False) as source, RecordingStore() as copy:
        source.database.copy_answers(copy.database)
        groups = list(grouped_runs(source))
        failures = list(_failed_runs(source)) if failed else []
        if not groups and not failures:
            raise InputError(f"{store} has no finished run; go on with psyprobe run")
        codes = Codes(Path(terms.codes or f"{store}.codes.json"))
        for records in groups:
            first = records[0]
            names = (first.experiment, labelled(first.observer, first.label))
            try:
                check_terms(first, page, terms)
                refuse_many(records)
                if observer_kind(first.observer_card).startswith("person"):
                    refuse_few_people(first, groups, root, terms)
                    published, answers = with_codes(records, copy, codes)
                else:
                    published, answers = records, copy
                run, unpacked = describe_run(published, answers, terms, licence)
                path = "/".join(("results", *run_path(run)))
                present = (root / path).exists()
                if not present:
                    files = _build_files(published, answers, run, unpacked)
                    _write(root, page, path, files)
                outcomes.append(Published(*names, path, present))
            except PsyprobeError as error:
                outcomes.append(Published(*names, reason=str(error)))
        for record, failure in failures:
            names = (record.experiment, labelled(record.observer, record.label))
            try:
                check_terms(record, page, terms)
                path, files = _build_failed(record, failure, terms, licence)
                outcomes.append(
                    Published(*names, path, _write(root, page, path, files))
                )
            except PsyprobeError as error:
                outcomes.append(Published(*names, reason=str(error)))
    return outcomes


def _failed_runs(store: Store) -> Iterator[tuple[RunRecord, JsonObject]]:
    """Iterate over unfinished runs whose last attempt failed, with what it says of the failure."""
    for record in store.runs():
        attempt = store.last_attempt(record) if record.finished is None else None
        if attempt is not None and attempt.how == "failed":
            yield (
                withhold_folder(record),
                {
                    "kind": attempt.kind,
                    "message": attempt.message,
                    "answered": attempt.answers,
                    "questions": None,
                },
            )


def _build_failed(
    record: RunRecord, failure: JsonMapping, terms: Terms, licence: str
) -> tuple[str, dict[str, bytes]]:
    """Build the path and the only file of a run that failed."""
    run = _describe([record], b"", 0, terms, licence)
    run["status"] = "failed"
    run["failure"] = without_folders(dict(failure))
    _, run["observer"]["revision"], _, run["run"] = run_path(run)
    path = "/".join(("results", *run_path(run)))
    return path, {RUN_FILE: json_text(run).encode()}


def _open_registry(root: Path, terms: Terms) -> Path:
    """Make the folder of a registry, unless it is one; refuse a folder of something else."""
    if (root / REGISTRY_PAGE).exists():
        return root
    if root.exists() and any(root.iterdir()):
        raise InputError(
            f"{root} holds something else than a registry; give a new folder, or one with "
            f"{REGISTRY_PAGE}"
        )
    make_folder(root)
    page = {
        "schema": "psyprobe-registry/1",
        "name": root.resolve().name,
        "licence": terms.licence or "CC0-1.0",
    }
    write_text(root / REGISTRY_PAGE, toml_text(page))
    return root


def grouped_runs(store: Store) -> Iterator[list[RunRecord]]:
    """Iterate over finished runs, with all variants of one together."""
    records = [
        withhold_folder(record)
        for record in store.runs()
        if record.finished is not None
    ]

    def run_key(record: RunRecord) -> tuple[str, ...]:
        variants = json_text(record.layout.get("variants", {}))
        return (
            record.experiment,
            record.experiment_toml,
            record.observer_digest,
            record.label,
            variants,
            "" if "variant" in record.layout else record.key,
        )

    for _, group in groupby(sorted(records, key=run_key), run_key):
        yield list(group)


def check_terms(record: RunRecord, page: JsonMapping, terms: Terms) -> None:
    """Refuse what may not be published."""
    card = record.observer_card
    kind = observer_kind(card)
    taken = page.get("takes")
    if kind.startswith("person"):
        if not terms.consent:
            raise InputError(
                "answers of people need their consent; give --consent with the words in which "
                "they agreed that their answers are published"
            )
        if "person" not in (taken or ()):
            raise InputError(
                'the registry takes no people; "person" in takes of registry.toml changes that'
            )
        return
    refuse_random_weights(record, terms)
    if taken is not None and kind not in taken:
        raise InputError(f"it is {kind}, and the registry takes {', '.join(taken)}")


def refuse_few_people(
    record: RunRecord, groups: Sequence[Sequence[RunRecord]], root: Path, terms: Terms
) -> None:
    """Refuse people of an experiment of whom there are so few that one may tell who is who."""
    store_people = {
        first.observer
        for first, *_ in groups
        if first.experiment == record.experiment
        and observer_kind(first.observer_card).startswith("person")
    }
    pattern = f"results/person-*/*/{slug(record.experiment)}-????????"
    registry_people = {path.parts[-3] for path in root.glob(pattern)}
    count = max(len(store_people), len(registry_people))
    if count < _FEWEST_PEOPLE and not terms.few_people:
        raise InputError(
            f"{count} people of this experiment are so few that others may tell who is who; "
            "publish them with --yes"
        )


def refuse_random_weights(record: RunRecord, terms: Terms) -> None:
    """Refuse a run with random weights, unless the terms have it marked as such."""
    if record.observer_card.get("random_weights") and not terms.also_random:
        raise InputError(
            "its weights are random numbers; publish it with --also-random"
        )


def _build_files(
    records: Sequence[RunRecord],
    copy: RecordingStore,
    run: JsonMapping,
    unpacked: bytes,
) -> dict[str, bytes]:
    """Build the four files of a run, scored from what the files hold."""
    text = records[0].experiment_toml
    # First: what is too large is not scored.
    packed = pack(unpacked)
    with RecordingStore() as alone:
        loaded = load_run(run, text, unpacked, alone)
        alone.add_contents(item_contents(records, copy))
        scores = score_records(run, loaded, alone)
    return {
        RUN_FILE: json_text(run).encode(),
        PAGE_FILE: text.encode(),
        ANSWERS_FILE: packed,
        SCORES_FILE: scores_text(scores).encode(),
    }


def describe_run(
    records: Sequence[RunRecord], copy: RecordingStore, terms: Terms, licence: str
) -> tuple[JsonObject, bytes]:
    """Build what ``run.json`` tells of a run, and its unpacked answers.

    Which answers they are the page tells, or of people and of items of a benchmark the record.
    """
    record = records[0]
    text = record.experiment_toml
    variants = record.layout.get("variants", {}) if "variant" in record.layout else {}
    experiment_digest = record.experiment_digest
    score_only = False
    if keys := _recorded_keys(record):
        keys = set(copy.with_label(record.label).stored_names(keys))
    else:
        with page_alone(text, record.experiment, variants) as page:
            score_only = is_score_only(load_records(records, copy)[0], page)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                derive(page, record, copy, score_only=score_only)
            experiment_digest = page.digest
        keys = set(copy.read_keys)
    unpacked = write_answers(records, copy, keys, without_folders)
    versions = {
        answered.question.version
        for answered, _ in copy.all_answers(keys)
        if answered.question.observer == record.observer_digest[:DIGEST_DIGITS]
    }
    run = _describe(records, unpacked, len(keys), terms, licence)
    run["experiment"] |= {
        "digest": experiment_digest,
        "version": ", ".join(sorted(versions)),
        "score_only": score_only,
        "variants": variants,
    }
    _, run["observer"]["revision"], _, run["run"] = run_path(run)
    return run, unpacked


def _describe(
    records: Sequence[RunRecord],
    unpacked: bytes,
    count: int,
    terms: Terms,
    licence: str,
) -> JsonObject:
    """Build what ``run.json`` tells of any run, finished or failed."""
    record = records[0]
    card = without_folders(dict(record.observer_card))
    run: JsonObject = {
        "schema": "psyprobe-run/1",
        "run": "",
        "status": "finished",
        "experiment": {
            "name": record.experiment,
            "digest": record.experiment_digest,
            "probe": record.probe,
            "version": "",
            "score_only": False,
            "variants": {},
        },
        "observer": {
            "name": record.observer,
            "kind": observer_kind(card),
            "digest": record.observer_digest,
            "revision": "",
            "card": card,
            "random_weights": bool(card.get("random_weights")),
        },
        "when": {
            "started": min(str(member.started) for member in records),
            "finished": max(
                (member.finished for member in records if member.finished), default=None
            ),
        },
        "software": dict(record.software),
        "origins": _origins(records),
        "answers": {
            "file": ANSWERS_FILE,
            "sha256": answers_digest(unpacked),
            "bytes": len(unpacked),
            "count": count,
        },
        "page": {
            "file": PAGE_FILE,
            "sha256": sha256(record.experiment_toml.encode()).hexdigest(),
        },
        "contributor": terms.contributor_table(),
        "licence": licence,
        "source": {"kind": "run"},
    }
    if record.label:
        run["label"] = record.label
    if run["observer"]["kind"].startswith("person"):
        run["consent"] = {"open_data": True, "statement": terms.consent}
    return run


def _recorded_keys(record: RunRecord) -> set[str]:
    """Return the keys that the record of a person, of an encoder that decides, or of items names.

    None of another run.
    """
    layout = record.layout
    outcome = record.outcome
    if "keys" in layout:
        cases = [key for *_, keys in outcome.get("cases", ()) for key in keys]
        return {*outcome.get("keys", layout["keys"]), *cases}
    if not record.observer.startswith(NOT_DERIVED):
        return set()
    return {trial["key"] for trial in outcome.get("trials", ())}


def _origins(records: Sequence[RunRecord]) -> list[JsonObject]:
    """List what gave the answers of a run, each once, without folders of a disk."""
    origins: list[JsonObject] = []
    for record in records:
        for origin in record.origins:
            entry = without_folders(asdict(origin))
            if entry not in origins:
                origins.append(entry)
    return origins


def _write(
    root: Path, registry_page: JsonMapping, path: str, files: Mapping[str, bytes]
) -> bool:
    """Write a run's folder whole, once it is checked; return whether it was there before."""
    folder = root / path
    if folder.exists():
        return True
    with TemporaryDirectory(prefix=".publishing-", dir=root) as temporary:
        partial = Path(temporary) / path
        partial.mkdir(parents=True)
        for name, content in files.items():
            (partial / name).write_bytes(content)
        findings = Findings()
        check_run(partial, registry_page, findings, is_fresh=True)
        for code, words in findings.problems:
            raise UnsoundError(code, words)
        make_folder(folder.parent)
        partial.replace(folder)
    return False
