"""Pages of experiments and stimuli with values of the wrong kind, size and depth."""

from __future__ import annotations

from hostile_cases import ANY, REFUSED, Case, mutations
from small_experiment import EXPERIMENT, STIMULUS

#: Values that no number, name or list of a page can have; the codes are for a number's place.
ODD = {
    "text": '"many"',
    "empty list": "[]",
    "nested lists": "[[1], [2, [3]]]",
    "table": "{ a = 1 }",
    "true": "true",
    "nan": "nan",
    "infinity": "inf",
    "400 digits": "9" * 400,
    "5000 digits": "9" * 5000,
    "date": "1979-05-27",
    "NUL": '"\\u0000"',
    "long text": '"' + "long " * 2000 + '"',
    "200 brackets": "[" * 200 + "]" * 200,
    "5000 brackets": "[" * 5000 + "]" * 5000,
    "escapes": '"\\u001b[2J\\u202e"',
}
#: Keys of the experiment as (old text, its key).
KEYS = {
    "probe": '"detection"',
    "stimulus": '"small_gabors.toml"',
    "peak": "400",
    "frequency": '{ from = 1, to = 4, n = 3, scale = "log" }',
    "contrast": '{ from = 0.01, to = 1, n = 3, scale = "log" }',
    "multiplier": '{ from = 0.5, to = 2, n = 2, scale = "log" }',
    "model": '"castle_csf"',
}
STIMULUS_KEYS = {
    "kind": '"gabor"',
    "contrast": "0.5",
    "radius": "0.3",
    "size": "16",
    "ppd": "16",
}
PLAN = ("run", "page.toml", "--observer", "pixels", "--plan")


def page_case(
    name: str, page: str, stimulus: str = STIMULUS, codes: tuple[int, ...] = REFUSED
) -> Case:
    files = {
        "page.toml": page.encode("utf-8", "surrogatepass"),
        "small_gabors.toml": stimulus.encode(),
    }
    return Case(f"page: {name}", PLAN, files, codes=codes)


def changed(text: str, key: str, old: str, new: str) -> str:
    assert f"{key} = {old}" in text
    return text.replace(f"{key} = {old}", f"{key} = {new}")


def _values() -> list[Case]:
    cases = [
        page_case(f"{key} is {name}", changed(EXPERIMENT, key, old, value))
        for key, old in KEYS.items()
        for name, value in ODD.items()
    ]
    return cases + [
        page_case(
            f"stimulus {key} is {name}", EXPERIMENT, changed(STIMULUS, key, old, value)
        )
        for key, old in STIMULUS_KEYS.items()
        for name, value in ODD.items()
    ]


def _shapes() -> list[Case]:
    wide = '{ from = 0.01, to = 1, n = 10000, scale = "log" }'
    contrasts = changed(EXPERIMENT, "contrast", KEYS["contrast"], wide)
    texts = {
        "empty": "",
        "no TOML": "%PDF-1.4 \x00\x01",
        "not UTF-8": EXPERIMENT.replace("small", "sm\udcffall"),
        "a byte order mark": "\ufeff" + EXPERIMENT,
        "a key twice": EXPERIMENT + "peak = 3\n",
        "an unknown key": EXPERIMENT + "peek = 3\n",
        "an unknown table": EXPERIMENT + "[screen]\npeak = 3\n",
        "5000 tables deep": EXPERIMENT + "[" + ".".join("a" * 5000) + "]\n",
        "a long key": EXPERIMENT + "k" * 20000 + " = 3\n",
        "a hundred thousand keys": EXPERIMENT
        + "\n".join(f"k{n} = 1" for n in range(20000)),
        "a list for a page": 'title = ["x"]\nprobe = 3',
        "10^8 conditions": changed(contrasts, "frequency", KEYS["frequency"], wide),
        "n is 10^18": changed(
            EXPERIMENT,
            "frequency",
            KEYS["frequency"],
            f"{{ from = 1, to = 4, n = {10**18} }}",
        ),
        "n is -3": changed(
            EXPERIMENT, "frequency", KEYS["frequency"], "{ from = 1, to = 4, n = -3 }"
        ),
        "levels fall": changed(
            EXPERIMENT, "frequency", KEYS["frequency"], "{ values = [4, 2, 1] }"
        ),
        "levels repeat": changed(
            EXPERIMENT, "frequency", KEYS["frequency"], "{ values = [1, 1] }"
        ),
        "a level is none": changed(
            EXPERIMENT, "frequency", KEYS["frequency"], "{ values = [1, nan] }"
        ),
        "a level is a string": changed(
            EXPERIMENT, "frequency", KEYS["frequency"], '{ values = [1, "2"] }'
        ),
        "a level of nothing": EXPERIMENT.replace("frequency = {", "sharpness = {"),
        "contrast above 1": changed(
            EXPERIMENT, "contrast", KEYS["contrast"], "{ values = [0.1, 17] }"
        ),
        "the stimulus is the page": changed(
            EXPERIMENT, "stimulus", KEYS["stimulus"], '"page.toml"'
        ),
        "the stimulus is no file": changed(
            EXPERIMENT, "stimulus", KEYS["stimulus"], '"../../nowhere.toml"'
        ),
        "the stimulus is a folder": changed(
            EXPERIMENT, "stimulus", KEYS["stimulus"], '"/.toml"'
        ),
        "people in no file": changed(
            EXPERIMENT, "model", KEYS["model"], '"nowhere.py:csf"'
        ),
        "people in a folder": changed(EXPERIMENT, "model", KEYS["model"], '".py:csf"'),
        "people's table is absent": EXPERIMENT.replace(
            'model = "castle_csf"', 'data = "nowhere.csv"'
        ),
        "people twice": EXPERIMENT.replace("[human]", '[human]\ndata = "foley1994"'),
        "peak below black": EXPERIMENT + "black = 500\n",
    }
    stimuli = {
        "empty": "",
        "size is 10^9": changed(STIMULUS, "size", "16", str(10**9)),
        "size is negative": changed(STIMULUS, "size", "16", "-16"),
        "size is a fraction": changed(STIMULUS, "size", "16", "16.5"),
        "ppd is 0": changed(STIMULUS, "ppd", "16", "0"),
        "ppd is 10^300": changed(STIMULUS, "ppd", "16", "1e300"),
        "luminance beyond the display": changed(STIMULUS, "luminance", "100.0", "1e9"),
        "kind is no kind": changed(STIMULUS, "kind", '"gabor"', '"garbor"'),
        "kind in no file": changed(STIMULUS, "kind", '"gabor"', '"nowhere.py:Mine"'),
        "kind is a folder": changed(STIMULUS, "kind", '"gabor"', '".py:Mine"'),
        "kind in a file of no Python": changed(
            STIMULUS, "kind", '"gabor"', '"page.toml:Mine"'
        ),
        "parts are numbers": STIMULUS + "[parts]\nmask = 3\n",
        "levels are text": STIMULUS + '[levels]\nfrequency = "all"\n',
    }
    numbers = ", ".join(f"{1 + n / 10**5:.5f}" for n in range(10**5))
    plain = EXPERIMENT.replace('[human]\nmodel = "castle_csf"\n', "")
    large = changed(
        plain, "frequency", KEYS["frequency"], f"{{ values = [{numbers}] }}"
    )
    large = changed(large, "contrast", KEYS["contrast"], "{ values = [0.5] }")
    return (
        [page_case(name, text) for name, text in texts.items()]
        + [page_case("10^5 levels", large, codes=ANY)]
        + [
            page_case(f"stimulus: {name}", EXPERIMENT, text)
            for name, text in stimuli.items()
        ]
    )


def _mutated() -> list[Case]:
    files = {"small_gabors.toml": STIMULUS.encode()}
    return [
        Case(f"page: {name}", PLAN, {**files, "page.toml": text}, codes=ANY)
        for name, text in mutations(EXPERIMENT.encode(), 16).items()
    ]


def _people() -> list[Case]:
    page = EXPERIMENT.replace('model = "castle_csf"', 'data = "people.csv"').encode()
    tables = {
        "empty": b"",
        "no rows": b"frequency,threshold\n",
        "no column": b"frequency,answer\n1,2\n",
        "text for numbers": b"frequency,threshold\n1,many\n4,few\n",
        "nan": b"frequency,threshold\n1,nan\n4,inf\n",
        "negative": b"frequency,threshold\n1,-2\n4,-3\n",
        "zero": b"frequency,threshold\n1,0\n4,0\n",
        "NUL": b"frequency,threshold\n1,0.1\x00\n4,0.2\n",
        "not UTF-8": b"frequency,threshold\n1,0.1\xff\n4,0.2\n",
        "a row too long": b"frequency,threshold\n1,0.1,3,4,5\n4,0.2\n",
        "400 digits": b"frequency,threshold\n1," + b"9" * 400 + b"\n4,0.2\n",
        "a quote is open": b'frequency,threshold\n1,"0.1\n4,0.2\n',
        "10^5 columns": b",".join(b"c%d" % n for n in range(10**5)) + b"\n",
    }
    small = {"small_gabors.toml": STIMULUS.encode(), "page.toml": page}
    return [
        Case(f"people: {name}", PLAN, {**small, "people.csv": text})
        for name, text in tables.items()
    ]


PAGE_CASES = [*_values(), *_shapes(), *_mutated(), *_people()]
