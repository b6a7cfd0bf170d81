"""Publish people under codes: without names, dates, times of day, or words of their own."""

from __future__ import annotations

import json
import os
import re
import secrets
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import json_text, write_whole
from psyprobe.reporting.publishing.derive import RecordingStore
from psyprobe.running.maintenance import content_digest
from psyprobe.running.protocol import DIGEST_DIGITS, Answered, Content, RunRecord
from psyprobe.running.store import Store

#: What is published of a trial besides the answer: numbers of the page, and why it was given up.
_TRIAL_FIELDS = (
    "session",
    "number",
    "attempt",
    "reaction_ms",
    "frames_shown",
    "frames_dropped",
    "period_ms",
    "dither_seed",
    "clear_right",
    "why",
    "scales",
)
_SECOND = 1000
_CODE_SIZE = 10
_CODE = re.compile(r"[a-z0-9]{6,16}")
#: Of a run only the month stays, so it begins with it.
_MONTH_DIGITS = len("2026-11")
_MONTH_BEGIN = "-01T00:00:00+00:00"


class Codes:
    """Random codes of persons and sessions, in a file that its owner alone can read.

    Parameters
    ----------
    path : Path
        The file; a new one is written with the first code.

    Raises
    ------
    InputError
        The file holds something else.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._codes: dict[str, str] = {}
        if not path.exists():
            return
        try:
            codes = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(
                f"{path} cannot be read as codes of people: {error}"
            ) from None
        if not isinstance(codes, dict) or not all(
            isinstance(code, str) and _CODE.fullmatch(code) for code in codes.values()
        ):
            raise InputError(
                f"{path} holds no codes of people; give the file that psyprobe publish wrote"
            )
        self._codes = codes

    def code(self, name: str) -> str:
        """Return the code of a person or session, drawing a new one at random."""
        if name not in self._codes:
            letters = string.ascii_lowercase + string.digits
            code = "".join(secrets.choice(letters) for _ in range(_CODE_SIZE))
            self._codes[name] = code
            write_whole(self._path, self._write)
        return self._codes[name]

    def _write(self, path: Path) -> None:
        """Write the codes into a new file for its owner alone."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(json_text(self._codes))


def with_codes(
    records: Sequence[RunRecord], store: Store, codes: Codes
) -> tuple[list[RunRecord], RecordingStore]:
    """Copy a person's run without what tells who and when, every digest made to fit.

    Parameters
    ----------
    records : sequence of RunRecord
        The run.
    store : Store
        Holds its answers.
    codes : Codes
        Name person and session.

    Raises
    ------
    InputError
        The person answered in words of their own.
    """
    card = records[0].observer_card
    own_card = _with_codes_of_card(card, codes)
    contents = list(store.all_contents())
    names, copies = _copy_contents(contents, card, own_card)
    requests = {name: value for name, kind, value in contents if kind == "request"}
    observer = records[0].observer_digest[:DIGEST_DIGITS]
    answers = [
        (answered, milliseconds)
        for answered, milliseconds in store.all_answers()
        if answered.question.observer == observer
    ]
    times = [milliseconds for _, milliseconds in answers]
    month = f"{records[0].started:.{_MONTH_DIGITS}}{_MONTH_BEGIN}"
    zero = round(datetime.fromisoformat(month).timestamp() * _SECOND)
    shift = zero - min(times, default=zero)
    copy = RecordingStore()
    copy.add_contents(copies)
    own_answers = []
    for answered, milliseconds in answers:
        if _is_free(answered.answer, requests.get(answered.question.request, {})):
            raise InputError(
                "the person answered in words of their own, which may tell who it is; these are "
                "not published"
            )
        own = _copy_answer(answered, names, codes)
        names[answered.question.key] = own.question.key
        own_answers.append((own, milliseconds + shift))
    copy.add_timed(own_answers)
    latest = (max(times, default=0) + shift) // _SECOND + 1
    own_records = [
        replace(
            record,
            observer=own_card["name"],
            observer_digest=content_digest("observer", own_card),
            observer_card=own_card,
            layout=_renamed(record.layout, names),
            outcome=_renamed(record.outcome, names),
            started=month,
            finished=datetime.fromtimestamp(latest, UTC).isoformat(),
        )
        for record in records
    ]
    return own_records, copy


def _copy_contents(
    contents: Sequence[Content], card: JsonMapping, own_card: JsonMapping
) -> tuple[dict[str, str], list[Content]]:
    """Copy contents with another card, and tell the new name of each digest."""
    names: dict[str, str] = {}
    while True:
        copies = [
            (kind, own_card if value == card else _renamed(value, names))
            for _, kind, value in contents
        ]
        digests = [
            (content_digest(kind, value), content_digest(*own))
            for (_, kind, value), own in zip(contents, copies, strict=True)
        ]
        # What names a renamed content is renamed in turn.
        renamed = dict(_both_forms(digests))
        if renamed == names:
            break
        names = renamed
    return names, [
        (own[:DIGEST_DIGITS], *copy)
        for (_, own), copy in zip(digests, copies, strict=True)
    ]


def _both_forms(digests: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Iterate over digests and their copies, each whole and as a store shortens it."""
    for digest, own in digests:
        yield digest, own
        yield digest[:DIGEST_DIGITS], own[:DIGEST_DIGITS]


def _copy_answer(
    answered: Answered, names: Mapping[str, str], codes: Codes
) -> Answered:
    """Copy an answer with other names, and with what tells nothing of who and when."""
    question = answered.question
    own_question = replace(
        question,
        stimulus=names.get(question.stimulus, question.stimulus),
        request=names.get(question.request, question.request),
        observer=names.get(question.observer, question.observer),
    )
    answer = _without_identity(answered.answer, codes)
    return replace(answered, question=own_question, answer=answer, contents=())


def _with_codes_of_card(card: JsonMapping, codes: Codes) -> JsonObject:
    """Copy a person's card with the codes of person and session."""
    options = dict(card["options"])
    for name in ("person", "session"):
        options[name] = codes.code(options[name])
    return {**card, "name": f"person:{options['person']}", "options": options}


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Copy nested JSON with other names for digests."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, dict):
        return {name: _renamed(entry, names) for name, entry in value.items()}
    return (
        [_renamed(entry, names) for entry in value]
        if isinstance(value, list)
        else value
    )


def _is_free(answer: JsonMapping, request: JsonMapping) -> bool:
    """Tell whether an answer is none of the words that were to choose from."""
    text = (answer.get("reply") or {}).get("text", "")
    return bool(text) and text not in request.get("words", ())


def _without_identity(answer: JsonMapping, codes: Codes) -> JsonObject:
    """Copy an answer with the fields of its trial that tell nothing of who and when."""
    reply = answer.get("reply") or {}
    session = {
        name: value
        for name, value in (reply.get("session") or {}).items()
        if name in _TRIAL_FIELDS
    }
    if "session" in session:
        session["session"] = codes.code(session["session"])
    return {**answer, "reply": {**reply, "session": session}} if reply else {**answer}


def identity_faults(run: JsonMapping, store: Store) -> Iterator[str]:
    """Iterate over what a person's run tells and must not: dates, sessions, words of their own.

    Parameters
    ----------
    run : mapping
        What ``run.json`` holds.
    store : Store
        The answers.
    """
    if not run["when"]["started"].endswith(_MONTH_BEGIN):
        yield "it tells the day; a run of a person begins with its month"
    options = run["observer"]["card"].get("options", {})
    code = run["observer"]["name"].partition(":")[2]
    if options.get("person") != code or not _CODE.fullmatch(
        str(options.get("session"))
    ):
        yield "its card has another name than the code, or names the session"
    requests = {
        name: value for name, kind, value in store.all_contents() if kind == "request"
    }
    for answered, _ in store.all_answers():
        session = (answered.answer.get("reply") or {}).get("session") or {}
        if further := sorted({*session}.difference(_TRIAL_FIELDS)):
            yield f"an answer tells {further[0]!r:.60} of its trial"
            return
        if _is_free(answered.answer, requests.get(answered.question.request, {})):
            yield "an answer is in words of their own"
            return
