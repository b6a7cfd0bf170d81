"""Before stored answers are used again: check that the same observer would answer now."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from psyprobe.errors import ConditionWarning, PsyprobeError, StoreError, UnfinishedError
from psyprobe.files.json_types import JsonMapping
from psyprobe.files.output import software_versions
from psyprobe.files.terminal import printable_line
from psyprobe.observers.protocol import ServedObserver
from psyprobe.running.protocol import Origin
from psyprobe.running.repeats import Answer, Repeats
from psyprobe.running.store import Store

#: Entries among the versions that move no number.
_WITHOUT_EFFECT = ("python", "xarray", "aiohttp", "server", "model", "logprobs")


class Origins:
    """The origin of each answer of one run; a server is asked once what it serves.

    Parameters
    ----------
    store : Store
        Has the origins of earlier answers.
    observers : mapping of str to observer
        The observers that would answer now, by the digests of their cards.
    answer : callable, optional
        Puts batches to observers, as `Probe.answer` does; without it no question is asked again.

    Raises
    ------
    StoreError
        A server serves another model than the one whose answers the store holds, or cannot be asked
        which it is.
    """

    def __init__(
        self, store: Store, observers: JsonMapping, answer: Answer | None = None
    ) -> None:
        self._store = store
        #: Asks some stored questions again.
        self.repeats = Repeats(store, observers, answer)
        self._names = {
            digest: observer.card.name for digest, observer in observers.items()
        }
        self._stored = {digest: store.origins(digest) for digest in observers}
        self._servers = {
            digest
            for digest, observer in observers.items()
            if isinstance(observer, ServedObserver)
        }
        #: Names of observers with answers whose servers name no model.
        self._unnamed: list[str] = []
        self._warnings: set[tuple[str, str]] = set()
        self._current = {
            digest: self._find_current(digest, observer)
            for digest, observer in observers.items()
        }

    def resolve(self, observer_digest: str, reply: Origin) -> Origin:
        """Merge what a reply says of its origin (software, server) with the observer's.

        Raises
        ------
        StoreError
            The server says that another model answered than before.
        """
        current = self._current[observer_digest]
        if reply.software and (reply.software, reply.device) != (
            current.software,
            current.device,
        ):
            for name, before, now in _changed_versions([current], reply):
                self._warn(
                    observer_digest, name, before, now, "answers of other workers"
                )
            current = replace(reply, served=current.served)
        if observer_digest not in self._servers and current.device != "server":
            return current
        served = {**current.served, **reply.served}
        self._check_served(observer_digest, served, ("model",))
        self._check_fingerprint(observer_digest, served)
        origin = replace(current, served=served)
        stored_origins = self._stored[observer_digest]
        if origin not in stored_origins:
            stored_origins.append(origin)
        # One object for all its answers: the store spells it out once.
        return stored_origins[stored_origins.index(origin)]

    def report_changes(self) -> None:
        """Warn of observers whose stored answers were computed by other, or unknown, software or
        devices.
        """
        for digest, origins in self._stored.items():
            for change in _changed_versions(origins, self._current[digest]):
                self._warn(digest, *change)
        while self._unnamed:
            name = self._unnamed.pop()
            warnings.warn(
                f"{name}: its server says no more of the model than this name, so nothing tells "
                "whether stored answers and new ones are of one model; if not, tell the two apart "
                "by the observer option server=NAME, or use a new store",
                ConditionWarning,
                stacklevel=4,
            )

    def _find_current(self, digest: str, observer: Any) -> Origin:
        """Return what computes an observer's answers now, asking a server what it serves."""
        card = observer.card
        has_answers = bool(self._stored[digest])
        origin = Origin({**software_versions(), **card.software}, card.device)
        if digest not in self._servers:
            return origin
        try:
            served = observer.served(certain=has_answers)
        except PsyprobeError as problem:
            if not has_answers or isinstance(problem, UnfinishedError):
                raise
            raise StoreError(
                f"{self._store.name} holds answers of {card.name}, and its server cannot be "
                f"asked whether it still serves the same ({_shorten(str(problem), 120)}); start "
                "it, or read the results with psyprobe score"
            ) from problem
        entries = (
            ("listed", "model") if served.get("listed") else ("model", "fingerprint")
        )
        self._check_served(digest, served, entries)
        self._check_fingerprint(digest, served)
        # Other fingerprints are those of a program, whichever model it serves.
        has_fingerprint = served.get("fingerprint", "").startswith("fp_")
        names = {served.get("listed", ""), served.get("model", "")}
        is_named = has_fingerprint or names - {"", card.name.partition(":")[2]}
        if has_answers and not is_named:
            self._unnamed.append(card.name)
        return replace(origin, served=served)

    def _stored_values(self, digest: str, entry: str) -> list[str]:
        """Return all values of a key in what a server said of itself with stored answers."""
        values = {origin.served.get(entry) for origin in self._stored[digest]}
        return sorted(value for value in values if value)

    def _check_served(
        self, digest: str, served: Mapping[str, str], entries: Iterable[str]
    ) -> None:
        """Refuse a server whose model differs from that of stored answers."""
        for entry in entries:
            stored_values = self._stored_values(digest, entry)
            value = served.get(entry, "")
            if stored_values and value and value not in stored_values:
                raise StoreError(
                    f"{self._names[digest]}: the server now serves {_shorten(value)!r}, and "
                    f"{self._store.name} holds answers of {_shorten(stored_values[0])!r}; tell "
                    "the two apart by the observer option server=NAME, or use a new store"
                )

    def _check_fingerprint(self, digest: str, served: Mapping[str, str]) -> None:
        """Warn if a server's fingerprint is not one of those of stored answers."""
        stored_fingerprints = self._stored_values(digest, "fingerprint")
        fingerprint = served.get("fingerprint", "")
        if stored_fingerprints and fingerprint not in ("", *stored_fingerprints):
            self._warn(digest, "server", " and ".join(stored_fingerprints), fingerprint)

    def _warn(
        self,
        digest: str,
        name: str,
        stored_version: str,
        current_version: str,
        answers: str = "stored answers",
    ) -> None:
        """Warn once of two versions of what computed an observer's answers."""
        if (digest, name) in self._warnings:
            return
        self._warnings.add((digest, name))
        warnings.warn(
            f"{self._names[digest]}: {answers} were computed with {name} "
            f"{_shorten(stored_version)}, and new ones with {_shorten(current_version)}, which can "
            "move numbers; for one origin of all, use a new store",
            ConditionWarning,
            stacklevel=4,
        )


def _changed_versions(
    earlier: Sequence[Origin], later: Origin
) -> Iterator[tuple[str, str, str]]:
    """Iterate over the packages whose version changed, with both versions."""
    tables = [_effective_versions(origin) for origin in earlier]
    for name, version in sorted(_effective_versions(later).items()):
        versions = sorted({table[name] for table in tables if name in table})
        if versions and version not in versions:
            yield name, " and ".join(versions), version


def _effective_versions(origin: Origin) -> dict[str, str]:
    """Select the package versions that can change a number, and the device."""
    versions = {**origin.software, "device": origin.device}
    return {
        name: version
        for name, version in versions.items()
        if name not in _WITHOUT_EFFECT
    }


def _shorten(text: str, length: int = 60) -> str:
    """Make text one printable line of at most `length` characters."""
    line = printable_line(text)
    return line if len(line) <= length else f"{line[: length - 3]}..."
