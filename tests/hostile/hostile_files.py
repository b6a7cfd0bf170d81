"""Images, arrays, certificates, tables, replies, journals and weights files that are cut, flipped,
huge or lies."""

from __future__ import annotations

import io
import json
import struct
import tempfile
import warnings
import zipfile
import zlib
from contextlib import redirect_stderr, redirect_stdout
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hostile_cases import ANY, REFUSED, Case, mutation, mutations
from PIL import Image

from psyprobe.cli import main

DEEP = "[" * 5000 + "]" * 5000
BIG = "9" * 5000


@cache
def rendered(ending: str) -> dict[str, bytes]:
    """A small picture and its certificate, as `psyprobe render` writes them."""
    render = ["render", "gabor_achromatic", "--set", "size=32", "radius=0.1", "-o"]
    with (
        tempfile.TemporaryDirectory() as folder,
        redirect_stdout(io.StringIO()),
        redirect_stderr(io.StringIO()),
    ):
        assert main([*render, f"{folder}/a{ending}"]) == 0
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def chunk(name: bytes, data: bytes) -> bytes:
    return (
        struct.pack(">I", len(data))
        + name
        + data
        + struct.pack(">I", zlib.crc32(name + data))
    )


def png(width: int, height: int, data: bytes) -> bytes:
    """A PNG that claims a size, whatever its data hold."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return (
        b"\x89PNG\r\n\x1a\n"
        + head
        + chunk(b"IDAT", zlib.compress(data))
        + chunk(b"IEND", b"")
    )


BOMB = png(32, 32, b"\0" * 5 * 10**7)


def npy(descr: str, shape: str, data: bytes = b"") -> bytes:
    """An array file that claims a format and a shape."""
    head = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data


def zipped(members: dict[str, bytes]) -> bytes:
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return into.getvalue()


def array(values: Any) -> bytes:
    into = io.BytesIO()
    np.save(into, np.asarray(values))
    return into.getvalue()


def picture(values: Any) -> bytes:
    into = io.BytesIO()
    Image.fromarray(np.asarray(values, np.uint8)).save(into, "PNG")
    return into.getvalue()


def _check(
    name: str, ending: str, changes: dict[str, bytes], codes: tuple[int, ...] = REFUSED
) -> Case:
    return Case(
        f"check: {name}",
        ("check", f"a{ending}"),
        {**rendered(ending), **changes},
        codes=codes,
    )


def _images() -> list[Case]:
    cases = []
    for ending in (".png", ".npy", ".npz", ".tiff"):
        content = rendered(ending)[f"a{ending}"]
        for name, data in mutations(content, 10).items():
            cases.append(_check(f"{ending} {name}", ending, {f"a{ending}": data}, ANY))
        other = rendered(".tiff" if ending == ".png" else ".png")
        cases.append(
            _check(
                f"{ending} is another format",
                ending,
                {f"a{ending}": next(iter(other.values()))},
            )
        )
    pictures = {
        "claims 60000 x 60000 px": png(60000, 60000, b"\0" * 100),
        "claims 2^31 x 2^31 px": png(2**31 - 1, 2**31 - 1, b"\0" * 100),
        "holds too little": png(32, 32, b"\0" * 10),
        "claims no px": png(0, 0, b""),
        "is a bomb": BOMB,
    }
    # Nobody unpacks the content of a bomb beyond the picture: it is black.
    may = {"is a bomb": (1, 2)}
    cases += [
        _check(f"png {name}", ".png", {"a.png": data}, may.get(name, REFUSED))
        for name, data in pictures.items()
    ]
    cases.append(
        _check("png all black", ".png", {"a.png": picture(np.zeros((32, 32)))})
    )
    cases.append(
        _check(
            "png of another size",
            ".png",
            {"a.png": picture(np.full((16, 48), 128))},
            (1, 2),
        )
    )
    arrays = {
        "7 TiB": npy("'<f4'", "(1000000, 1000000)"),
        "negative": npy("'<f4'", "(-3, 32)"),
        "pickled": npy("'|O'", "(1,)", b"cos\nsystem\n(S'true'\ntR."),
        "complex": array(np.ones((32, 32, 3), complex)),
        "text": array(["a"]),
        "empty": array(np.ones((0, 32, 3))),
        "a number": array(3.0),
        "nan": array(np.full((32, 32, 3), np.nan, np.float32)),
        "infinity": array(np.full((32, 32, 3), np.inf, np.float32)),
        "1e300": array(np.full((32, 32, 3), 1e300)),
        "7 dimensions": array(np.ones((1, 1, 1, 1, 2, 2, 3))),
        "one plane": array(np.ones((32, 32))),
        "a format of nothing": npy("'<q9'", "(32, 32)"),
        "a head of code": npy("__import__('os')", "(1,)"),
    }
    cases += [
        _check(f"npy {name}", ".npy", {"a.npy": data}, (1, 2))
        for name, data in arrays.items()
    ]
    parts = {
        "drive.npy": array(np.ones((32, 32, 3), np.float32)),
        "pixels.npy": array(np.ones((32, 32))),
        "space.npy": array("luminance"),
        "ppd.npy": array(60.0),
    }
    archives = {
        "without pixels": {
            name: data for name, data in parts.items() if name != "pixels.npy"
        },
        "without a space": {
            name: data for name, data in parts.items() if name != "space.npy"
        },
        "of no space": parts | {"space.npy": array("smell")},
        "of 7 TiB": parts | {"pixels.npy": npy("'<f8'", "(1000000, 1000000)")},
        "of pickles": parts
        | {"pixels.npy": npy("'|O'", "(1,)", b"cos\nsystem\n(S'true'\ntR.")},
        "of text": parts | {"pixels.npy": array("a")},
        "of no arrays": {"pixels.npy": b"no array", "space.npy": b"none"},
        "of nothing": {},
    }
    return cases + [
        _check(f"npz {name}", ".npz", {"a.npz": zipped(m)})
        for name, m in archives.items()
    ]


def _certificates() -> list[Case]:
    content = rendered(".png")["a.png.json"]
    record = json.loads(content)
    texts = {
        "empty": b"",
        "no JSON": b"no JSON",
        "not UTF-8": b"\xff\xfe",
        "deep": DEEP.encode(),
        "a big number": f'{{"stimulus": {BIG}}}'.encode(),
        "a list": b"[]",
        "a number": b"3",
        "null": b"null",
    }
    for key in ("stimulus", "display", "sha256"):
        for name, value in {
            "absent": ...,
            "null": None,
            "a number": 3,
            "a list": [3],
            "a text": "x" * 3000,
        }.items():
            changed = {k: v for k, v in record.items() if k != key} | (
                {} if value is ... else {key: value}
            )
            texts[f"{key} {name}"] = json.dumps(changed).encode()
    inner = {
        "size 10^9": ("stimulus", {"size": 10**9}),
        "size of text": ("stimulus", {"size": "many"}),
        "contrast in lists": ("stimulus", {"contrast": [[[0.1]], [0.2]]}),
        "contrast of null": ("stimulus", {"contrast": None}),
        "a kind in a file": ("stimulus", {"kind": "a.py:Mine"}),
        "a kind of a list": ("stimulus", {"kind": [1]}),
        "a part too much": ("stimulus", {"parts": [3]}),
        "a peak of text": ("display", {"peak": "many"}),
        "a peak of 0": ("display", {"peak": 0}),
        "a peak of a list": ("display", {"peak": [1, 2]}),
        "no transfer": ("display", {"transfer": 7}),
    }
    for name, (key, change) in inner.items():
        texts[name] = json.dumps(record | {key: record[key] | change}).encode()
    code_by_name = {
        "sha256 null": (1, 2),
        "sha256 a number": (1, 2),
        "sha256 a list": (1, 2),
        "sha256 a text": (1, 2),
    }
    cases = [
        _check(
            f"certificate {name}",
            ".png",
            {"a.png.json": text},
            code_by_name.get(name, REFUSED),
        )
        for name, text in texts.items()
    ]
    return cases + [
        _check(f"certificate {name}", ".png", {"a.png.json": text}, ANY)
        for name, text in mutations(content, 14).items()
    ]


def _pictures_to_corrupt() -> list[Case]:
    content = picture(np.arange(32 * 32).reshape(32, 32) % 256)
    into = io.BytesIO()
    Image.fromarray(np.full((32, 32, 3), 99, np.uint8)).save(into, "JPEG")
    odd = {
        "empty.png": b"",
        "text.png": b"no picture",
        "cut.png": content[: len(content) // 2],
        "huge.png": png(60000, 60000, b"\0" * 100),
        "bomb.png": BOMB,
        "cut.jpg": into.getvalue()[:300],
        "picture.svg": b"<svg/>",
    }
    corrupt = ("--name", "jpeg", "--strength", "low", "--output", "out")
    ask = ("ask", "Is it?", "--observer", "simulated:watson-malo", "--image")
    may = {"bomb.png": (0, 2)}
    return [
        case
        for name, data in odd.items()
        for case in (
            Case(
                f"corrupt: {name}",
                ("corrupt", name, *corrupt),
                {name: data},
                codes=may.get(name, REFUSED),
            ),
            Case(
                f"ask about: {name}",
                (*ask, name),
                {name: data},
                codes=may.get(name, REFUSED),
            ),
        )
    ]


ITEMS = (
    b"name,question,choice,answer,type,score,distortion,strength\n"
    b"m1.png,What is it?,A.a ramp; B.a cat,A,MCQ,4.0,1,1\n"
    b"v1.png,What is left?,N,the dark side,VQA,4.0,2,2\n"
    b"c1.png,Describe it.,N,\"['Grey.', 'A ramp.']\",CAP,4.0,3,3\n"
)
ANSWERS = b"name,answer\nm1.png,A\nv1.png,dark\nc1.png,Grey.\n"
QUESTION_AND_REPLY = {
    "question_id": "1",
    "id": 1,
    "image": "1_o.png",
    "question": "Is it light?",
    "answer": "yes",
    "type": "y/n-s",
    "level": "low",
}
QUESTIONS = b"".join(
    json.dumps(QUESTION_AND_REPLY | change).encode() + b"\n"
    for change in ({}, {"question_id": "2", "image": "1_e.png", "type": "y/n-e"})
)


def workbook(rows: list[list[object]]) -> bytes:
    into = io.BytesIO()
    pd.DataFrame(rows[1:], columns=rows[0]).to_excel(into, index=False)
    return into.getvalue()


def _tables() -> list[Case]:
    check, score = (
        ("r-bench", "check", "items.csv"),
        ("r-bench", "score", "items.csv", "--model", "m"),
    )
    lines = ITEMS.decode().split("\n")
    texts: dict[str, bytes] = {
        "empty": b"",
        "a blank": b"\n",
        "a head alone": lines[0].encode(),
        "NUL": ITEMS.replace(b"ramp", b"ra\x00mp"),
        "no encoding": b"\xff\x80\x81" * 30,
        "a quote is open": ITEMS.replace(b"What", b'"What'),
        "a column too much": ITEMS.replace(b"4.0,1,1", b"4.0,1,1,1,1,1"),
        "10^6 columns": b",".join(b"c%d" % n for n in range(10**6)),
        "dimension 99": ITEMS.replace(b"4.0,1,1", b"4.0,99,1"),
        "dimension of text": ITEMS.replace(b"4.0,1,1", b"4.0,many,1"),
        "dimension of 400 digits": ITEMS.replace(
            b"4.0,1,1", b"4.0," + b"9" * 400 + b",1"
        ),
        "a type of nothing": ITEMS.replace(b"MCQ", b"XYZ"),
        "an answer of no option": ITEMS.replace(b"a cat,A", b"a cat,Q"),
        "captions of code": ITEMS.replace(
            b"['Grey.', 'A ramp.']", b"__import__('os').system('true')"
        ),
        "captions too deep": ITEMS.replace(b"['Grey.', 'A ramp.']", DEEP.encode()),
        "an image twice": ITEMS + lines[1].encode() + b"\n",
        "a column twice": ITEMS.replace(b"name,question", b"name,name,question"),
    }
    may = {
        "NUL": ANY,
        "a quote is open": ANY,
        "a column too much": ANY,
        "captions of code": ANY,
        "captions too deep": ANY,
        "a column twice": ANY,
        "an answer of no option": ANY,
    }
    cases = [
        Case(f"items: {n}", check, {"items.csv": t}, codes=may.get(n, REFUSED))
        for n, t in texts.items()
    ]
    cases += [
        Case(f"items: {n}", check, {"items.csv": t}, codes=ANY)
        for n, t in mutations(ITEMS, 10).items()
    ]
    book = workbook(
        [["name", "answer"], ["m1.png", "A"], ["v1.png", "dark"], ["c1.png", "Grey."]]
    )
    answers: dict[str, bytes] = {
        **{f"a{n}.xlsx": data for n, data in enumerate(mutations(book, 16).values())},
        "text.xlsx": b"no workbook",
        "zip.xlsx": zipped({"a": b"b"}),
        "bomb.xlsx": zipped(
            {"[Content_Types].xml": b" " * 5 * 10**7, "xl/workbook.xml": b"<a/>"}
        ),
        "whole.json": json.dumps(
            [{"name": f"{n}1.png", "answer": "A"} for n in "mvc"]
        ).encode(),
        "deep.json": DEEP.encode(),
        "big.json": f'[{{"name": "m1.png", "answer": {BIG}}}]'.encode(),
        "number.json": b"3",
        "null.json": b"null",
        "numbers.json": b"[1, 2]",
        "ragged.json": b'{"name": ["a"], "answer": ["b", "c"]}',
        "nested.json": b'[{"name": {"a": [1]}, "answer": [[2]]}]',
        "nan.json": b'[{"name": NaN, "answer": Infinity}]',
        "deep.jsonl": b'{"name": "m1.png", "answer": ' + DEEP.encode() + b"}",
        "big.jsonl": f'{{"name": "m1.png", "answer": {BIG}}}'.encode(),
        "list.jsonl": b"[1, 2]\n3\n",
        "surrogate.jsonl": b'{"name": "m1.png", "answer": "\\ud800"}\n',
        "empty.csv": b"",
        "wide.csv": b",".join(b"c%d" % n for n in range(10**6)),
        "nul.csv": b"name,answer\nm1.png,\x00\n",
        "tabs.tsv": ANSWERS,
        "none.pdf": b"%PDF",
    }
    may = {"whole.json": (0,), "surrogate.jsonl": ANY, "nul.csv": ANY}
    return cases + [
        Case(
            f"answers: {name}",
            (*score, f"dis={name}", "ref=ref.csv", "--task", "MCQ"),
            {"items.csv": ITEMS, name: data, "ref.csv": ANSWERS},
            codes=may.get(name, ANY if name[0] == "a" else REFUSED),
            remarks=1,
        )
        for name, data in answers.items()
    ]


def _replies() -> list[Case]:
    content = (
        b'{"question_id": 1, "output": "yes"}\n{"question_id": 2, "output": "no"}\n'
    )
    rows = {
        "whole": content,
        "empty": b"",
        "no JSON": b"yes\n",
        "a list": b"[]\n",
        "a number": b"3\n",
        "null": b"null\n",
        "deep": b'{"question_id": 1, "output": ' + DEEP.encode() + b"}\n",
        "a big number": f'{{"question_id": {BIG}, "output": "yes"}}\n'.encode(),
        "an unknown question": b'{"question_id": 77, "output": "yes"}\n',
        "an id of a list": b'{"question_id": [1], "output": "yes"}\n',
        "an id of NaN": b'{"question_id": NaN, "output": "yes"}\n',
        "no reply": b'{"question_id": 1}\n',
        "a reply of null": b'{"question_id": 1, "output": null}\n',
        "a reply of a list": b'{"question_id": 1, "output": ["yes"]}\n',
        "not UTF-8": b'{"question_id": 1, "output": "\xff"}\n',
    }
    score = ("mvp-bench", "questions.json", "--model", "m", "replies.jsonl")
    files = {"questions.json": QUESTIONS}
    may = dict.fromkeys(
        ("whole", "an image outside", "an id twice", "a question of a list"), ANY
    )
    # Replies that answer no question are told as that, and score nothing.
    may |= dict.fromkeys(
        ("an id of a list", "a reply of null", "a reply of a list"), (0, 2)
    )
    cases = [
        Case(
            f"replies: {n}",
            score,
            {**files, "replies.jsonl": t},
            codes=may.get(n, REFUSED),
            remarks=1,
        )
        for n, t in rows.items()
    ]
    cases += [
        Case(
            f"replies: {n}", score, {**files, "replies.jsonl": t}, codes=ANY, remarks=1
        )
        for n, t in mutations(content, 8).items()
    ]
    question_files = {
        "empty": b"",
        "no JSON": b"?",
        "a number": b"3\n",
        "deep": DEEP.encode(),
        "a big number": f'{{"question_id": {BIG}}}'.encode(),
        "no question": QUESTIONS.replace(b'"question"', b'"words"'),
        "a question of a list": QUESTIONS.replace(
            b'"Is it light?"', b'["Is it light?"]'
        ),
        "an answer of null": QUESTIONS.replace(b'"yes"', b"null"),
        "an image outside": QUESTIONS.replace(b"1_o.png", b"../../1_o.png"),
        "an id twice": QUESTIONS.replace(b'"question_id": "2"', b'"question_id": "1"'),
    }
    return cases + [
        Case(
            f"questions: {n}",
            score[:2],
            {"questions.json": t},
            codes=may.get(n, REFUSED),
        )
        for n, t in question_files.items()
    ]


@cache
def review_set() -> dict[str, bytes]:
    """A set of one pair with its questions, and what one annotator said of one."""
    from psyprobe.tasks.mvp_construction.manipulation import Manipulated, write_pair
    from psyprobe.tasks.mvp_construction.steps import json_lines, question_rows
    from psyprobe.tasks.review.worklist import review_tasks

    choice = {
        "question": "What is new?",
        "right": "a lamp",
        "wrong": ["a cat", "a cup", "a sea", "a tea"],
    }
    single = {
        "question": "What is it?",
        "right": "day",
        "natural": "night",
        "wrong": ["1", "2", "3"],
    }
    written = {
        "low": "Is it light?",
        "high": "Is it day?",
        "single": single,
        "cross_low": choice,
        "cross_high": choice,
    }
    ramp = np.broadcast_to(
        np.arange(96, dtype=np.uint8)[None, :, None], (64, 96, 3)
    ).copy()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        account = {"photograph": "1.png", "sha256": "0" * 64, "key": "1"}
        write_pair(folder, 1, ramp, Manipulated(ramp + np.uint8(60), {}, {}), account)
        text = json_lines(question_rows(1, "S2", written, seed=1))
        (folder / "questions.json").write_text(text, encoding="utf-8")
        task = review_tasks(folder)[0]
        row = {
            "task": task.name,
            "content": task.content,
            "value": "accept",
            "text": "",
            "at": "2026-01-01T00:00:00",
        }
        (folder / "people").mkdir()
        (folder / "people" / "review-ann.jsonl").write_text(
            json.dumps(row) + "\n", encoding="utf-8"
        )
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }


JOURNAL = "people/review-ann.jsonl"


def with_line(**changes: Any) -> dict[str, bytes]:
    """The set, with a line more in the journal: one that is there already, but for some changes."""
    journal = review_set()[JOURNAL]
    return review_set() | {
        JOURNAL: journal + json.dumps(json.loads(journal) | changes).encode() + b"\n"
    }


def with_bytes(line: bytes) -> dict[str, bytes]:
    return review_set() | {JOURNAL: review_set()[JOURNAL] + line + b"\n"}


def with_mutation(name: str, number: int) -> dict[str, bytes]:
    return review_set() | {name: mutation(review_set()[name], number)}


def _journals() -> list[Case]:
    changes_by_name = {
        "deep": partial(with_bytes, DEEP.encode()),
        "a big number": partial(with_bytes, f'{{"content": {BIG}}}'.encode()),
        "a number": partial(with_bytes, b"3"),
        "null": partial(with_bytes, b"null"),
        "not UTF-8": partial(with_bytes, b"\xff\xfe"),
        "NUL": partial(with_bytes, b"\x00" * 100),
        "a content of a list": partial(with_line, content=[1]),
        "a value of a number": partial(with_line, value=3),
        "a value of a list": partial(with_line, value=[3]),
        "a value of nothing": partial(with_line, value="perhaps"),
        "a text of null": partial(with_line, text=None),
        "10 MB": partial(with_line, text="x" * 10**7),
    }
    changes_by_name |= {
        f"mutation {n} of the journal": partial(with_mutation, JOURNAL, n)
        for n in range(10)
    }
    changes_by_name |= {
        f"mutation {n} of the questions": partial(with_mutation, "questions.json", n)
        for n in range(10)
    }
    return [
        Case(f"review: {name}", ("review", "."), files, codes=ANY)
        for name, files in changes_by_name.items()
    ]


def _replayed() -> list[Case]:
    table = "model,test,x,multiplier,stimulus_contrast,s_ac\n" + "".join(
        f"{model},sf_gabor_ach,{x},{m},{0.01 * m},{0.1 * m}\n"
        for model in ("no_encoder", "mine")
        for x in (1, 2)
        for m in (0.5, 1, 2)
    )
    grid = {
        "s_ac": np.ones((2, 2, 3)),
        "x": np.array([1.0, 2]),
        "contrast": np.array([0.1, 0.2, 0.3]),
        "models": np.array(["no_encoder", "mine"]),
    }
    texts = {
        "empty": "",
        "no column": "a,b\n1,2\n",
        "text": table.replace("0.5", "few"),
        "nan": table.replace("0.5", "nan"),
        "400 digits": table.replace("0.5", "9" * 400),
        "a test outside": table.replace("sf_gabor_ach", "../../etc"),
        "a test of NUL": table.replace("sf_gabor_ach", "a\x00"),
        "no baseline": table.replace("no_encoder", "other"),
        "a row short": table + "mine,sf_gabor_ach\n",
        "a surrogate": table + "\udcff",
    }
    replay = ("replay", "table.csv", "--grids", ".", "--output", "out")
    cases = []
    tests = {"table.csv": table.encode()}
    # A test that is none of ours is left out.
    may = dict.fromkeys(("a test outside", "a test of NUL"), (0, 2))
    for name, text in texts.items():
        files = {
            "table.csv": text.encode("utf-8", "surrogateescape"),
            "sf_gabor_ach.npz": savez(grid),
        }
        cases.append(
            Case(f"replay: {name}", replay, files, codes=may.get(name, REFUSED))
        )
    cases.append(
        Case(
            "replay: no gzip",
            ("replay", "table.csv.gz", *replay[2:]),
            {"table.csv.gz": table.encode()},
        )
    )
    grids = {
        "no zip": b"no zip",
        "cut": savez(grid)[:200],
        "no models": savez({k: v for k, v in grid.items() if k != "models"}),
        "another shape": savez(grid | {"s_ac": np.ones(3)}),
        "objects": savez(grid | {"models": np.array([{}, 1], dtype=object)}),
        "7 TiB": zipped({"s_ac.npy": npy("'<f8'", "(1000000, 1000000)")}),
    }
    return cases + [
        Case(f"replay grid: {name}", replay, tests | {"sf_gabor_ach.npz": data})
        for name, data in grids.items()
    ]


def savez(arrays: dict[str, Any]) -> bytes:
    into = io.BytesIO()
    np.savez(into, **arrays)
    return into.getvalue()


@cache
def networks() -> dict[str, bytes]:
    """A TorchScript file, and one of weights without a network."""
    import torch

    into = io.BytesIO()
    torch.save({"weight": torch.zeros(3)}, into)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(torch.nn.Identity()).save(f"{folder}/a.pt")
        return {"script": Path(folder, "a.pt").read_bytes(), "weights": into.getvalue()}


def mutated_network(number: int) -> dict[str, bytes]:
    return {"a.pt": mutation(networks()["script"], number)}


def cut_weights(name: str, length: int) -> dict[str, bytes]:
    return {name: networks()["weights"][:length]}


def _weights() -> list[Case]:
    run = ("run", "gabor_achromatic", "--plan", "--observer")
    pickled = b"cos\nsystem\n(S'touch harm'\ntR."
    files = {
        "empty.pt": b"",
        "text.pt": b"no network",
        "zip.pt": zipped({"a": b"b"}),
        "pickle.pt": pickled,
    }
    cases = [
        Case(f"network: {name}", (*run, f"torch:{name}"), {name: data})
        for name, data in files.items()
    ]
    cases.append(
        Case(
            "network: weights.pt",
            (*run, "torch:weights.pt"),
            partial(cut_weights, "weights.pt", 10**6),
        )
    )
    cases += [
        Case(
            f"network: mutation {n}",
            (*run, "torch:a.pt"),
            partial(mutated_network, n),
            codes=ANY,
        )
        for n in range(8)
    ]
    header = b'{"a": {"dtype": "F32", "shape": [1000000, 1000000], "data_offsets": [0, 4000000000000]}}'
    weights: dict[str, Any] = {
        "empty.safetensors": b"",
        "text.safetensors": b"no weights at all",
        "huge.safetensors": struct.pack("<Q", 2**62) + b"{}",
        "claims.safetensors": struct.pack("<Q", len(header)) + header,
        "deep.safetensors": struct.pack("<Q", 10000) + DEEP.encode(),
        "pickle.pth": pickled,
        "empty.bin": b"",
        "other.pth": 10**6,
        "cut.pth": 300,
    }
    timm = (*run, "timm:test_vit.r160_in1k", "--observer-option")
    return cases + [
        Case(
            f"weights: {name}",
            (*timm, f"weights={name}"),
            {name: data}
            if isinstance(data, bytes)
            else partial(cut_weights, name, data),
        )
        for name, data in weights.items()
    ]


FILE_CASES = [
    *_images(),
    *_certificates(),
    *_pictures_to_corrupt(),
    *_tables(),
    *_replies(),
    *_journals(),
    *_replayed(),
    *_weights(),
]
