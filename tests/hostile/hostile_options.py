"""Options with values of the wrong kind, size and depth."""

from __future__ import annotations

from hostile_cases import ANY, REFUSED, Case
from small_experiment import EXPERIMENT, STIMULUS

FILES = {"page.toml": EXPERIMENT.encode(), "small_gabors.toml": STIMULUS.encode()}
RUN = ("run", "page.toml", "--plan")
RENDER = ("render", "gabor_achromatic", "-o", "a.png", "--set", "size=32", "radius=0.1")
CHECK = ("check", "gabor_achromatic", "--set")
CHAT = ("ask", "Is it?", "--observer", "openai:m", "--observer-option")
QUESTION = (
    "ask",
    "Is it?",
    "--observer",
    "simulated:watson-malo",
    "--stimulus",
    "noise_hernandez2025",
)
INTO = ("run", "page.toml", "--observer", "pixels", "--output")
NETWORK = (*RUN, "--observer", "packaged:efficientnet_lite0")
LONG = "9" * 400
DEEP = "[" * 3000 + "]" * 3000

_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "no command": (),
    "an unknown command": ("x" * 3000,),
    "an option of a command for none": ("--plan",),
    "no experiment": ("run",),
    "an experiment that is a folder": ("run", ".toml"),
    "an experiment of 5000 letters": ("run", "x" * 5000),
    "a page of 5000 letters": ("run", "x" * 5000 + ".toml"),
    "an experiment with escapes": ("run", "\x1b[31mred\x1b[0m"),
    "an experiment with a surrogate": ("run", "\udcff"),
    "no observer of this name": (*RUN, "--observer", "nobody"),
    "an observer without a name": (*RUN, "--observer", ""),
    "an observer of a colon": (*RUN, "--observer", ":"),
    "an observer of 5000 letters": (*RUN, "--observer", "timm:" + "x" * 5000),
    "a network in no file": (*RUN, "--observer", "torch:nowhere.pt"),
    "a network in a folder": (*RUN, "--observer", "torch:."),
    "batches of 0": (*RUN, "--observer", "pixels", "--batch-size", "0"),
    "batches of -3": (*RUN, "--observer", "pixels", "--batch-size", "-3"),
    "batches of 10^400": (*RUN, "--observer", "pixels", "--batch-size", LONG),
    "batches of text": (*RUN, "--observer", "pixels", "--batch-size", "many"),
    "layers that are none": (*NETWORK, "--layers", "nowhere", "--random-weights"),
    "layers of pixels": (*RUN, "--observer", "pixels", "--layers", "all"),
    "a device that is none": (*NETWORK, "--device", "warp:7", "--random-weights"),
    "variants without values": (*RUN, "--observer", "pixels", "--variants", "phase="),
    "variants of nothing": (
        *RUN,
        "--observer",
        "pixels",
        "--variants",
        "sharpness=1,2",
    ),
    "variants of 400 digits": (
        *RUN,
        "--observer",
        "pixels",
        "--variants",
        f"phase={LONG}",
    ),
    "a store in no folder": (*INTO, ".", "--store", "nowhere/runs.sqlite"),
    "a store that is a folder": (*INTO, ".", "--store", "."),
    "a store that is a device": (*INTO, ".", "--store", "/dev/null"),
    "an output that is a file": (
        "run",
        "page.toml",
        "--observer",
        "pixels",
        "--output",
        "page.toml",
    ),
    "an output of 5000 letters": (
        "run",
        "page.toml",
        "--observer",
        "pixels",
        "--output",
        "x" * 5000,
    ),
    "an option of an observer without a value": (
        *RUN,
        "--observer",
        "pixels",
        "--observer-option",
        "concurrency",
    ),
    "an option that no observer has": (
        *RUN,
        "--observer",
        "pixels",
        "--observer-option",
        "a=1",
    ),
    "a setting without a name": (*CHECK, "=3"),
    "a setting of nothing": (*CHECK, "sharpness=3"),
    "render into no format": ("render", "gabor_achromatic", "-o", "a.jpeg"),
    "render into no folder": (*RENDER[:3], "nowhere/a.png", *RENDER[4:]),
    "render into a name of 5000 letters": (
        *RENDER[:3],
        "x" * 5000 + ".png",
        *RENDER[4:],
    ),
    "render 12 bits": (*RENDER, "--bits", "12"),
    "render no stimulus": ("render", "nothing", "-o", "a.png"),
    "a display that is none": (*RENDER, "--display", "nothing"),
    "check no file": ("check", "nowhere.png"),
    "score no store": ("score", "nowhere.sqlite"),
    "score a folder": ("score", "."),
    "score by no measure": ("score", "page.toml", "--measure", "x" * 3000),
    "ask nothing": ("ask", "", "--observer", "simulated:watson-malo"),
    "ask nobody": ("ask", "Is it?", "--observer", "simulated:nobody"),
    "ask about no image": (
        "ask",
        "Is it?",
        "--observer",
        "simulated:watson-malo",
        "--image",
        "nowhere.png",
    ),
    "ask about a folder": (
        "ask",
        "Is it?",
        "--observer",
        "simulated:watson-malo",
        "--image",
        ".",
    ),
    "ask at a temperature of -1": (*QUESTION, "--temperature", "-1"),
    "ask at no temperature": (*QUESTION, "--temperature", "nan"),
    "ask for -1 tokens": (*QUESTION, "--max-tokens", "-1"),
    "ask with a seed of -1": (*QUESTION, "--seed", "-1"),
    "ask with a seed of 400 digits": (*QUESTION, "--seed", LONG),
    "ask in the words of a surrogate": ("ask", "\udcff", *QUESTION[2:]),
    "corrupt no image": ("corrupt", "nowhere.png"),
    "corrupt a text": ("corrupt", "page.toml", "--output", "out"),
    "corrupt in no way": ("corrupt", "page.toml", "--name", "nothing"),
    "corrupt at no strength": ("corrupt", "page.toml", "--strength", "nothing"),
    "replay no table": ("replay", "nowhere.csv", "--grids", "."),
    "review no set": ("review", "nowhere"),
    "review as a path": ("review", ".", "--annotator", "../../me"),
    "serve no observer": ("serve-simulated", "nobody", "--port", "0"),
    "serve at port -1": ("serve-simulated", "flat", "--port", "-1"),
    "serve at port 10^9": ("serve-simulated", "flat", "--port", str(10**9)),
    "serve at three latencies": (
        "serve-simulated",
        "flat",
        "--port",
        "0",
        "--latency",
        "1",
        "2",
        "3",
    ),
    "serve with a share of 3": (
        "serve-simulated",
        "flat",
        "--port",
        "0",
        "--faults",
        "hang=3",
    ),
    "serve with shares of text": (
        "serve-simulated",
        "flat",
        "--port",
        "0",
        "--faults",
        "hang=often",
    ),
    "serve with faults that are none": (
        "serve-simulated",
        "flat",
        "--port",
        "0",
        "--faults",
        "sneeze=0.1",
    ),
    "serve with no key": (
        "serve-simulated",
        "flat",
        "--port",
        "0",
        "--key-variable",
        "NO_SUCH_VARIABLE",
    ),
    "mvp-bench without questions": ("mvp-bench", "nowhere.json"),
    "r-bench without items": ("r-bench", "check", "nowhere.csv"),
    "mvp-build of nothing": (
        "mvp-build",
        "nowhere",
        "--chat",
        "simulated:flat",
        "--output",
        "out",
    ),
}

#: Options that a command carries out.
_FINE = dict.fromkeys(
    (
        "ask with a seed of -1",
        "ask with a seed of 400 digits",
        "ask in the words of a surrogate",
    ),
    (0, 2),
)
#: Values of ``--set`` and ``--display`` that are no numbers of any quantity.
_VALUES = {
    "text": "many",
    "list of text": '["a"]',
    "nested list": "[[1],[2,3]]",
    "table": '{"a": 1}',
    "null": "null",
    "nan": "NaN",
    "infinity": "Infinity",
    "400 digits": LONG,
    "5000 digits": "9" * 5000,
    "deep": DEEP,
    "NUL": '"\\u0000"',
    "escapes": "\x1b[2J",
    "negative": "-1",
    "minus nothing": "-0.0",
}
#: Values of an observer's options.
_OPTIONS = {
    "concurrency": ("a", "0", "-1", "1.5", "[]", "null", LONG, "true", "NaN"),
    "timeout": ("a", "0", "-1", "NaN", "[]", '{"a": 1}', "Infinity"),
    "retries": ("a", "-1", "1.5", "[]", LONG),
    "rate": ("a", "0", "-1", "NaN", "[]"),
    "detail": ("5", "[]", "sharp"),
    "model": ("5",),
}
_MINDS = {
    "guess": ("a", "2", "-1", "NaN", "[]", '{"a": 1}', "null"),
    "width": ("a", "0", "-1", "NaN", "[]"),
    "seed": ("a", "1.5", "[]", "null", "true"),
}


def _settings() -> list[Case]:
    places = {
        "--set": ("contrast", "size", "frequency", "luminance"),
        "--display": ("peak", "black", "transfer"),
    }
    return [
        Case(
            f"{option} {key} is {name}",
            ("check", "gabor_achromatic", option, f"{key}={value}"),
            codes=ANY,
        )
        for option, keys in places.items()
        for key in keys
        for name, value in _VALUES.items()
    ]


def _observer_options() -> list[Case]:
    plain = {"base_url": "http://127.0.0.1:9/v1", "retries": "0", "timeout": "1"}
    chats = [
        Case(
            f"openai: {key}={value[:30]!r}",
            (*CHAT, *(f"{k}={v}" for k, v in (plain | {key: value}).items())),
        )
        for key, values in _OPTIONS.items()
        for value in values
    ]
    minds = [
        Case(
            f"simulated: {key}={value[:30]!r}",
            (*QUESTION, "--observer-option", f"{key}={value}"),
        )
        for key, values in _MINDS.items()
        for value in values
    ]
    return chats + minds


OPTION_CASES = [
    *(
        Case(f"option: {name}", words, FILES, codes=_FINE.get(name, REFUSED))
        for name, words in _ARGUMENTS.items()
    ),
    *_settings(),
    *_observer_options(),
]
