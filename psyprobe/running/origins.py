"""Answers belong to whoever gave them: before stored ones are used again, it is checked who would
answer now.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from psyprobe.errors import ConditionWarning, PsyprobeError, StoreError, UnfinishedError
from psyprobe.files.output import software_versions
from psyprobe.files.terminal import printable_line
from psyprobe.observers.protocol import ServedObserver
from psyprobe.running.protocol import Origin
from psyprobe.running.store import Store

#: What stands among the versions and moves no number.
_MOVES_NOTHING = ("python", "xarray", "aiohttp", "server", "model", "logprobs")


class Origins:
    """Who answers in one run, by the digests of the cards; a server is asked once what it serves.

    Parameters
    ----------
    store : Store
        Knows who answered before.
    observers : mapping of str to observer
        Who would answer now.

    Raises
    ------
    StoreError
        A server serves another model than the one whose answers the store holds, or cannot be asked
        which it is.
    """

    def __init__(self, store: Store, observers: Mapping[str, Any]) -> None:
        self._store = store
        self._names = {digest: who.card.name for digest, who in observers.items()}
        self._before = {digest: store.origins_of(digest) for digest in observers}
        self._serving = {
            digest for digest, who in observers.items() if isinstance(who, ServedObserver)
        }
        self._said: set[tuple[str, str]] = set()
        #: What came with the last answer, and who that was.
        self._last: dict[str, tuple[Origin, Origin]] = {}
        self._now = {digest: self._present(digest, who) for digest, who in observers.items()}

    def of(self, asked: str, told: Origin) -> Origin:
        """All that is known of who gave an answer, of whom the digest of the card was asked, and
        what came with it.

        Raises
        ------
        StoreError
            The server says that another model answered than before.
        """
        last = self._last.get(asked)
        if last is not None and last[0] == told:
            return last[1]
        now = self._now[asked]
        if told.software and (told.software, told.device) != (now.software, now.device):
            # A worker on another machine.
            here = _moving(now)
            there = _moving(told)
            for name in sorted(here.keys() & there.keys()):
                if here[name] != there[name]:
                    self._say(asked, name, here[name], there[name], "answers of other workers")
            now = replace(told, served=now.served)
        if asked not in self._serving:
            return now
        served = {**now.served, **told.served}
        self._check(asked, served, ("model",))
        known = self._known(asked, "fingerprint")
        if known and served.get("fingerprint", "") not in ("", *known):
            self._say(asked, "server", " and ".join(known), served["fingerprint"])
        origin = replace(now, served=served)
        known_before = self._before[asked]
        if origin not in known_before:
            known_before.append(origin)
        # One object for all its answers: it is spelt out once.
        same = known_before[known_before.index(origin)]
        self._last[asked] = (told, same)
        return same

    def say_what_changed(self) -> None:
        """Say in one line for each observer with what its stored answers were computed, where that
        was another.
        """
        for digest, before in self._before.items():
            now = _moving(self._now[digest])
            for name in sorted(now):
                known = sorted({told[name] for told in map(_moving, before) if name in told})
                if known and now[name] not in known:
                    self._say(digest, name, " and ".join(known), now[name])

    def _present(self, digest: str, observer: Any) -> Origin:
        card = observer.card
        before = self._before[digest]
        origin = Origin({**software_versions(), **card.software}, card.device)
        if digest not in self._serving:
            return origin
        try:
            served = observer.served(certain=bool(before))
        except PsyprobeError as problem:
            if not before or isinstance(problem, UnfinishedError):
                raise
            raise StoreError(
                f"{self._store.name} holds answers of {card.name}, and its server cannot be "
                "asked whether it still "
                f"serves the same ({_short(str(problem), 120)}); start it, or read the results "
                "with psyprobe score"
            ) from problem
        self._check(
            digest,
            served,
            ("listed", "model") if served.get("listed") else ("model", "fingerprint"),
        )
        return replace(origin, served=served)

    def _known(self, digest: str, part: str) -> list[str]:
        return sorted(
            {origin.served[part] for origin in self._before[digest] if origin.served.get(part)}
        )

    def _check(self, digest: str, served: Mapping[str, str], parts: Iterable[str]) -> None:
        for part in parts:
            known = self._known(digest, part)
            now = served.get(part, "")
            if known and now and now not in known:
                raise StoreError(
                    f"{self._names[digest]}: the server now serves {_short(now)!r}, and "
                    f"{self._store.name} holds "
                    f"answers of {_short(known[0])!r}; tell the two apart by the observer "
                    "option server=NAME, or use a "
                    "new store"
                )

    def _say(
        self, digest: str, what: str, before: str, now: str, asked_before: str = "stored answers"
    ) -> None:
        if (digest, what) in self._said:
            return
        self._said.add((digest, what))
        warnings.warn(
            f"{self._names[digest]}: {asked_before} were computed with {what} {_short(before)}, "
            "and new ones with "
            f"{_short(now)}, which can move numbers; for one origin of all, use a new store",
            ConditionWarning,
            stacklevel=4,
        )


def _moving(origin: Origin) -> dict[str, str]:
    told = {**origin.software, "device": origin.device}
    return {name: version for name, version in told.items() if name not in _MOVES_NOTHING}


def _short(text: str, most: int = 60) -> str:
    line = printable_line(text)
    return line if len(line) <= most else f"{line[: most - 3]}..."
