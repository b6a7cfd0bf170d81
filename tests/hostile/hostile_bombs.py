"""Files that are small and unpack to gigabytes, or claim to: workbooks, logs, arrays, monitors."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import rooms
from hostile_cases import ANY, REFUSED, Case, Hole, mutation
from hostile_files import ANSWERS, BIG, DEEP, ITEMS, array, npy, rendered, workbook
from hostile_stores import CHAT

import psyprobe as pp
from psyprobe.cli import main

#: A file, or its pieces.
Content = bytes | Iterable[bytes]


def repeated(piece: bytes, size: int) -> Iterable[bytes]:
    """A piece over and over, to about a size; never whole in memory."""
    block = piece * (2**20 // len(piece) + 1)
    return (block for _ in range(size // len(block)))


def packed(members: Mapping[str, Content]) -> bytes:
    """A zip file of members that need not fit into memory."""
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        for name, content in members.items():
            with file.open(name, "w", force_zip64=True) as member:
                for piece in [content] if isinstance(content, bytes) else content:
                    member.write(piece)
    return into.getvalue()


def repacked(
    content: bytes, changes: Mapping[str, Content | None]
) -> dict[str, Content]:
    """Return the members of a zip file with some replaced; None leaves one out."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        members: dict[str, Content] = {
            name: file.read(name) for name in file.namelist()
        }
    merged = {**members, **changes}
    return {name: content for name, content in merged.items() if content is not None}


def framed(head: bytes, pieces: Iterable[bytes], tail: bytes) -> Iterable[bytes]:
    yield head
    yield from pieces
    yield tail


# -- workbooks

SHEET, STRINGS = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"
HEAD = (
    b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
    b"<sheetData>"
)
TITLES = (
    b'<row r="1"><c r="A1" t="inlineStr"><is><t>name</t></is></c>'
    b'<c r="B1" t="inlineStr"><is><t>answer</t></is></c></row>'
)
TAIL = b"</sheetData></worksheet>"
#: A text of 10^9 times "ha", and one that stands in another file.
LAUGHS = b'<!DOCTYPE s [<!ENTITY a "ha">%s]>' % b"".join(
    b'<!ENTITY %c "%s">' % (entity, b"&%c;" % before * 10)
    for before, entity in zip(b"abcdefghi", b"bcdefghij", strict=True)
)
OUTSIDE = b'<!DOCTYPE s [<!ENTITY j SYSTEM "file:///dev/zero">]>'
REFERRING = b'<row><c t="inlineStr"><is><t>&j;</t></is></c></row>'


def bombed_workbook(name: str) -> dict[str, bytes]:
    workbook_bytes = workbook([["name", "answer"], ["m1.png", "A"]])
    wide = b'<row><c r="A%d"><v>1</v></c><c r="XFD%d"><v>1</v></c></row>'
    changes: dict[str, Mapping[str, Content]] = {
        "rows": {SHEET: framed(HEAD + TITLES, repeated(b"<row/>", 250_000_000), TAIL)},
        "cells": {
            SHEET: framed(HEAD + TITLES, repeated(b"<row><c/></row>", 3 * 10**6), TAIL)
        },
        "wide rows": {
            SHEET: framed(
                HEAD + TITLES, (wide % (n, n) for n in range(2, 30_000)), TAIL
            )
        },
        "a row 2^31": {
            SHEET: HEAD + TITLES + b'<row r="2147483647"><c><v>1</v></c></row>' + TAIL
        },
        "a row 10^6": {
            SHEET: HEAD + TITLES + b'<row r="1000000"><c><v>1</v></c></row>' + TAIL
        },
        "a text of 200 MB": {
            SHEET: framed(
                HEAD + TITLES + b'<row><c t="inlineStr"><is><t>',
                repeated(b"a", 2 * 10**8),
                b"</t></is></c></row>" + TAIL,
            )
        },
        "strings": {
            STRINGS: framed(
                b'<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">',
                repeated(b"<si><t>a</t></si>", 250_000_000),
                b"</sst>",
            )
        },
        "300 MB": {SHEET: framed(HEAD, repeated(b" ", 3 * 10**8), TAIL)},
        "entities": {SHEET: LAUGHS + HEAD + TITLES + REFERRING + TAIL},
        "a file outside": {SHEET: OUTSIDE + HEAD + TITLES + REFERRING + TAIL},
        "no sheet": {SHEET: b""},
        "deep": {SHEET: b"<a>" * 10**6},
        "a dimension": {
            SHEET: HEAD.replace(
                b"<sheetData>", b'<dimension ref="A1:XFD1048576"/><sheetData>'
            )
            + TITLES
            + b"<row><c><v>1</v></c></row>"
            + TAIL
        },
    }
    return {
        "a.xlsx": packed(repacked(workbook_bytes, changes[name])),
        "items.csv": ITEMS,
        "ref.csv": ANSWERS,
    }


BOOKS = (
    "rows",
    "cells",
    "wide rows",
    "a row 2^31",
    "a row 10^6",
    "a text of 200 MB",
    "strings",
    "300 MB",
    "entities",
    "a file outside",
    "no sheet",
    "deep",
    "a dimension",
)


def _workbooks() -> list[Case]:
    score = (
        "r-bench",
        "score",
        "items.csv",
        "--model",
        "m",
        "dis=a.xlsx",
        "ref=ref.csv",
        "--task",
        "MCQ",
    )
    return [
        Case(f"workbook bomb: {name}", score, partial(bombed_workbook, name), remarks=1)
        for name in BOOKS
    ]


# -- logs of inspect-ai


@cache
def log() -> dict[str, bytes]:
    """A page, and a log of a run of it."""
    with (
        tempfile.TemporaryDirectory() as name,
        redirect_stdout(io.StringIO()),
        redirect_stderr(io.StringIO()),
    ):
        folder = Path(name)
        (folder / "small.toml").write_text(CHAT, encoding="utf-8")
        store = folder / "runs.sqlite"
        pp.run(folder / "small.toml", "simulated:watson-malo", store=store)
        export = ["store", "export", str(store), "--as", "inspect"]
        assert main([*export, "-o", f"{folder}/logs"]) == 0
        (path,) = (folder / "logs").glob("*.eval")
        return {"small.toml": CHAT.encode(), "a.eval": path.read_bytes()}


def sample_name() -> str:
    with zipfile.ZipFile(io.BytesIO(log()["a.eval"])) as file:
        return next(name for name in file.namelist() if name.startswith("samples/"))


def bombed_log(name: str) -> dict[str, bytes]:
    log_files = log()["a.eval"]
    gigabytes = partial(repeated, b" ")
    if name == "samples":
        with zipfile.ZipFile(io.BytesIO(log_files)) as file:
            sample = file.read(sample_name())
        changes: dict[str, Content | None] = {
            f"samples/{n}_epoch_1.json": sample for n in range(20_000)
        }
    else:
        changes = {
            "a header of 300 MB": {
                "header.json": framed(b"{", gigabytes(3 * 10**8), b"}")
            },
            "a sample of 300 MB": {
                sample_name(): framed(b"{", gigabytes(3 * 10**8), b"}")
            },
            "a member of 300 MB": {"more": gigabytes(3 * 10**8)},
            "a deep header": {"header.json": DEEP.encode()},
            "a deep sample": {sample_name(): DEEP.encode()},
            "a header of a list": {"header.json": b"[]"},
            "a header of NaN": {"header.json": b"NaN"},
            "a number": {sample_name(): f'{{"id": {BIG}}}'.encode()},
            "no header": {"header.json": None},
            "no samples": {"summaries.json": None, sample_name(): None},
            "a name outside": {"../../samples/x_epoch_1.json": b"{}"},
        }[name]  # type: ignore[assignment]
    return log() | {"a.eval": packed(repacked(log_files, changes))}


def mutated_log(number: int) -> dict[str, bytes]:
    return log() | {"a.eval": mutation(log()["a.eval"], number)}


LOGS = {
    "a header of 300 MB": REFUSED,
    "a sample of 300 MB": REFUSED,
    "a member of 300 MB": REFUSED,
    "a deep header": REFUSED,
    "a deep sample": REFUSED,
    "a header of a list": REFUSED,
    "a header of NaN": REFUSED,
    "a number": REFUSED,
    # It stands in the journal too.
    "no header": ANY,
    "no samples": ANY,
    "a name outside": ANY,
    "samples": ANY,
}


def _logs() -> list[Case]:
    if find_spec("inspect_ai") is None or not rooms.is_there("tasks/bridges"):
        return []
    take = ("store", "import", "a.eval", "--as", "inspect", "-o", "runs.sqlite")
    return [
        *(
            Case(f"log: {name}", take, partial(bombed_log, name), codes=codes)
            for name, codes in LOGS.items()
        ),
        *(
            Case(f"log: mutation {n}", take, partial(mutated_log, n), codes=ANY)
            for n in range(12)
        ),
    ]


# -- arrays


def _arrays() -> list[Case]:
    head = npy("'<f8'", "(32768, 32768)")
    flat = npy("'<f4'", f"({2 * 10**9},)")
    plain = {"space.npy": array("luminance"), "ppd.npy": array(60.0)}
    cases = [
        Case(
            f"array: {name}",
            ("check", "a.npy"),
            partial(with_certificate, {"a.npy": hole}),
            codes=(1, 2),
        )
        for name, hole in {
            "8 GiB of holes": Hole(head, 8 * 2**30),
            "8 GB in one row": Hole(flat, 8 * 10**9),
        }.items()
    ]
    big = framed(npy("'<f8'", "(20000, 20000)"), repeated(b"\0", 32 * 10**8), b"")
    bombs: dict[str, Mapping[str, Content]] = {
        "pixels of 3 GB": {"pixels.npy": big, **plain},
    }
    return cases + [
        Case(
            f"archive: {name}",
            ("check", "a.npz"),
            partial(with_certificate, members, ".npz"),
            codes=(1, 2),
        )
        for name, members in bombs.items()
    ]


def with_certificate(
    changes: Mapping[str, Any], ending: str = ".npy"
) -> dict[str, bytes | Hole]:
    if ending == ".npz":
        changes = {"a.npz": packed(changes)}
    return {**rendered(ending), **changes}


# -- monitors of PsychoPy

MONITOR: dict[str, Any] = {
    "2026_01_01": {
        "sizePix": [1920, 1080],
        "width": 53.0,
        "distance": 57.0,
        "lumsPre": [[0.2 + 250 * (n / 16) ** 2.2 for n in range(17)]] * 4,
        "levelsPre": [255 * n / 16 for n in range(17)],
        "gammaGrid": [[0.2, 250, 2.2]] * 4,
        "linearizeMethod": 1,
    }
}


def monitor(**changes: Any) -> bytes:
    return json.dumps({"2026_01_01": MONITOR["2026_01_01"] | changes}).encode()


def _monitors() -> list[Case]:
    texts = {
        "whole": monitor(),
        "empty": b"",
        "null": b"null",
        "a list": b"[]",
        "no calibration": b"{}",
        "a calibration of text": b'{"a": "b"}',
        "deep": b'{"a": ' + DEEP.encode() + b"}",
        "deep luminances": monitor(lumsPre="deep").replace(b'"deep"', DEEP.encode()),
        "a big number": monitor(lumsPre="big").replace(b'"big"', BIG.encode()),
        "a big luminance": monitor(lumsPre=[[*range(16), 10**300]] * 4),
        "luminances of NaN": monitor(lumsPre=[[*range(16), float("nan")]] * 4),
        "luminances of text": monitor(lumsPre=[["a"] * 17] * 4),
        "luminances below 0": monitor(lumsPre=[[*range(-17, 0)]] * 4),
        "luminances that fall": monitor(lumsPre=[[*range(250, 233, -1)]] * 4),
        "luminances of one gun": monitor(lumsPre=[[*range(234, 251)]] * 5),
        "no luminances": monitor(lumsPre=[[]] * 4, levelsPre=[]),
        "a ragged list": monitor(lumsPre=[[1, 2], [1], [1, 2], [1]]),
        "10^6 levels": monitor(
            lumsPre=[list(range(10**6))] * 4, levelsPre=list(range(10**6))
        ),
        "levels of one value": monitor(levelsPre=[0] * 17),
        "levels of 1e400": monitor().replace(b"255.0", b"1e400"),
        "a gamma of NaN": monitor(
            lumsPre=None, gammaGrid=[[0.2, 100, float("nan")]] * 4
        ),
        "a gamma of 10^9": monitor(lumsPre=None, gammaGrid=[[0.2, 100, 1e9]] * 4),
        "a gamma of text": monitor(lumsPre=None, gammaGrid="many"),
        "a method of a list": monitor(lumsPre=None, linearizeMethod=[1]),
        "a width of 0": monitor(width=0),
        "a width of text": monitor(width="wide"),
        "a size of nothing": monitor(sizePix=[]),
        "a size of 10^400": monitor(sizePix=[10**400, 1]),
        "luminances without levels": monitor(levelsPre=None),
        "luminances of a number": monitor(lumsPre=250),
        "spectra of text": monitor(spectraNM=["a"], spectraRGB=[["b"]] * 3),
        "spectra of other wavelengths": monitor(
            spectraNM=[500, 600], spectraRGB=[[1, 2, 3]] * 3
        ),
        "spectra of NaN": monitor(
            spectraNM=[400, 500, 600], spectraRGB=[[float("nan")] * 3] * 3
        ),
        "spectra of 0": monitor(spectraNM=[400, 500, 600], spectraRGB=[[0, 0, 0]] * 3),
        "spectra of one wavelength": monitor(
            spectraNM=[500, 500, 500], spectraRGB=[[1, 2, 3]] * 3
        ),
    }
    fine = {"whole"}
    either = {
        # No measurement that counts where there are luminances.
        name
        for name in texts
        if name.startswith(("a width", "a size", "spectra of NaN", "spectra of 0"))
        or name in ("10^6 levels", "no luminances", "spectra of one wavelength")
    }
    render = (
        "render",
        "gabor_achromatic",
        "--set",
        "size=32",
        "radius=0.1",
        "--display",
        "m.json",
        "-o",
        "a.png",
    )
    pickled = {"m.calib": b"cos\nsystem\n(S'touch harm'\ntR."}
    return [
        *(
            Case(
                f"monitor: {name}",
                render,
                {"m.json": text},
                codes=(0,) if name in fine else (0, 2) if name in either else REFUSED,
            )
            for name, text in texts.items()
        ),
        Case(
            "monitor: pickled",
            tuple("m.calib" if word == "m.json" else word for word in render),
            pickled,
        ),
        *(
            Case(
                f"monitor: mutation {n}",
                render,
                {"m.json": mutation(monitor(), n)},
                codes=ANY,
            )
            for n in range(10)
        ),
    ]


BOMB_CASES = [*_workbooks(), *_logs(), *_arrays(), *_monitors()]
