"""The recogniser of rapidocr gives the answers of the reference, tests/data/letters."""

from __future__ import annotations

import csv
import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest

import psyprobe as pp
from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, PsyprobeError, UnknownNameError
from psyprobe.experiment import load_experiment
from psyprobe.observers import load_observer
from psyprobe.observers.readers import recogniser
from psyprobe.observers.readers.recogniser import LetterRecogniser
from psyprobe.stimulus.coverage import coverage
from psyprobe.stimulus.kinds.letters import letter_outlines

SLOAN = tuple("CDHKNORSVZ")
MISSING = [
    package
    for package in ("onnxruntime", "rapidocr")
    if importlib.util.find_spec(package) is None
]
needs_reader = pytest.mark.skipif(bool(MISSING), reason=f"without {MISSING}")


@pytest.fixture(scope="module")
def reader() -> LetterRecogniser:
    observer = load_observer("reader:rapidocr")
    assert isinstance(observer, LetterRecogniser)
    return observer


def letter_image(
    letter: str, height: float, weber: float, x: float = 0, y: float = 0
) -> FloatArray:
    """Draw a letter on drive 0.5, its middle x px right and y px above that of the image."""
    outlines = [
        height / 5 * outline + x + 1j * y for outline in letter_outlines(letter)
    ]
    drive = 0.5 * (1 + weber * coverage(outlines, (48, 96)))
    return np.repeat(drive[..., None], 3, axis=-1)


@needs_reader
def test_probabilities_and_choices_are_those_of_the_reference(
    reader: LetterRecogniser, oracle_data: Path
) -> None:
    with (oracle_data / "letters" / "recogniser.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 150
    for row in rows:
        numbers = (float(row[key]) for key in ("letter_px", "weber", "x_px", "y_px"))
        image = letter_image(row["letter"], *numbers)
        values = reader.log_probabilities(image, SLOAN)
        log10 = {letter: value / math.log(10) for letter, value in values.items()}
        first, second = sorted(log10.values(), reverse=True)[:2]
        assert first == pytest.approx(float(row["log10_best"]), abs=2e-3), row
        log10_probability = log10[row["letter"]]
        assert log10_probability == pytest.approx(
            float(row["log10_shown"]), abs=2e-3
        ), row
        share = 10**first / sum(10**value for value in log10.values())
        assert share == pytest.approx(float(row["share_of_best"]), abs=5e-3), row
        if first - second > 2e-3:
            assert max(log10, key=log10.__getitem__) == row["by_paths"], row


@needs_reader
def test_it_answers_a_page_of_letters_with_a_probability_for_each(
    reader: LetterRecogniser,
) -> None:
    answer = reader.answer([letter_image("K", 16, -1)], "Which letter?", words=SLOAN)
    assert answer.text == "K" and answer.complete
    assert {token for token, _ in answer.first_tokens or ()} == {*SLOAN}
    page = load_experiment("letter_acuity").with_settings(
        {
            "stimulus.parameters.allow_alias": True,
            "levels.logmar": {"from": -0.6, "to": 0.3, "n": 19, "scale": "linear"},
        }
    )
    result = pp.run(page, reader, progress=False)
    table = pp.analysis.trials(result)
    logs = np.array([table[f"logprob_{name}"].values for name in SLOAN])
    likeliest = [SLOAN[i] for i in logs.argmax(axis=0)]
    assert likeliest == table["answer"].values.tolist()
    height = 120 * result["letter_size"].values.ravel()
    right = (result["shown"].values == result["answer"].values).ravel()
    # The reference: from 14 px on it reads every letter, and at 6.1 px two in three.
    assert right[height > 8].mean() > 0.9
    assert right[height < 4].mean() < 0.7


#: Pages that it answers as they are, with the page's easiest levels, and one that needs a `ppd`.
PAGES = {
    "letter_acuity": {},
    "letter_acuity_contrast": {},
    "letter_csf": {},
    "letter_contrast": {},
    "letter_channel": {},
    "letter_noise": {},
    "crowding": {},
    "pelli_robson": {
        "stimulus.parameters.ppd": 15,
    },
}


@needs_reader
@pytest.mark.parametrize("name", PAGES)
def test_pages_of_letters_are_drawn_at_its_size(name: str) -> None:
    page = load_experiment(name).with_settings(PAGES[name])
    axis = page.asking.axis or "contrast"
    levels = {
        f"levels.{level}": {
            "values": sorted(sorted(values, key=abs)[-1 - (level == axis) :])
        }
        for level, values in page.levels.items()
    }
    asking = {"asking.design": "constant", "asking.options": {}, "asking.repeats": 5}
    reader = load_observer(
        "reader:rapidocr", **({"within": 8} if name == "crowding" else {})
    )
    result = pp.run(page.with_settings({**levels, **asking}), reader, progress=False)
    assert result["response"].mean() >= 0.8


@needs_reader
def test_a_letter_that_does_not_fit_is_refused_and_never_cut(
    reader: LetterRecogniser,
) -> None:
    with pytest.raises(InputError, match="must lie within the 96 pixels of the image"):
        pp.run(load_experiment("pelli_robson"), reader)


@needs_reader
def test_what_it_cannot_read_is_refused(reader: LetterRecogniser) -> None:
    image = letter_image("K", 16, -1)
    for rows, columns in ((48, 48), (96, 192)):
        other = np.resize(image, (rows, columns, 3))
        with pytest.raises(InputError, match=f"and this one has {rows} x {columns} px"):
            reader.answer([other], "Which letter?", words=SLOAN)
    with pytest.raises(InputError, match="within is 2 px; give 4 or more"):
        load_observer("reader:rapidocr", within=2)
    with pytest.raises(InputError, match="single characters, and 'yes' is none"):
        reader.answer([image], "Is it a letter?")
    with pytest.raises(UnknownNameError, match="unknown reader 'rapidocrr'"):
        load_observer("reader:rapidocrr")


@needs_reader
def test_another_file_than_the_pinned_one_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(recogniser._TABLE, "sha256", "0" * 64)
    with pytest.raises(PsyprobeError, match=r"of SHA-256 000000000000\.\.\.; pip"):
        load_observer("reader:rapidocr")


@pytest.mark.parametrize("package", ["onnxruntime", "rapidocr"])
def test_one_sentence_says_what_is_missing(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec",
        lambda name: None if name == package else find_spec(name) or object(),
    )
    with pytest.raises(PsyprobeError, match=f"reader:rapidocr needs {package}: pip"):
        load_observer("reader:rapidocr")
