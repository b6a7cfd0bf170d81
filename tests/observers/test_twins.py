"""A twin of each probe and observer kind, registered from outside, gives all that the built-in gives.

Whatever differs is a place in the code that asks for a name.
"""

from __future__ import annotations

import base64
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from importlib.machinery import ModuleSpec
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import psyprobe as pp
from psyprobe.analysis.score import Score, score_table
from psyprobe.analysis.scoreboards import Scoreboard
from psyprobe.errors import InputError
from psyprobe.experiment import load_experiment
from psyprobe.files.images import decode_png, encode_png
from psyprobe.observers import list_observers, load_observer
from psyprobe.observers.registry import ObserverRow, observer_kind, takes_option
from psyprobe.observers.simulated.serving import SimulatedServer
from psyprobe.plotting.scores import bar_panels
from psyprobe.probes import load_probe, probe_summary
from psyprobe.probes.results import score_layers, scoreboard

PAGES = tomllib.loads(
    files("psyprobe.observers").joinpath("kinds.toml").read_text("utf-8")
)
#: All that come with psyprobe: those of the core, but that of files, whose name is the file, and
#: those that its optional rooms register (``psyprobe.observers`` in setup.cfg).
KINDS = [
    *(prefix for prefix in PAGES if re.fullmatch(r"\w+(:\w+)?", prefix)),
    *(
        point.name
        for point in entry_points(group="psyprobe.observers")
        if point.value.startswith("psyprobe.")
    ),
]
PROBES = {
    "detection": "psyprobe.probes.detection",
    "discrimination": "psyprobe.probes.discrimination",
    "acuity": "psyprobe.probes.acuity",
    "matching": "psyprobe.probes.matching",
    "yes_no": "psyprobe.probes.words.schedule:yes_no",
    "two_interval": "psyprobe.probes.words.schedule:two_interval",
    "orientation": "psyprobe.probes.words.schedule:orientation",
    "orientation_4": "psyprobe.probes.words.schedule:orientation_4",
    "identify": "psyprobe.probes.words.schedule:identify",
}
#: Another package: it loads what the built-in loads, under names of its own.
TWIN_KINDS = """
import functools
from dataclasses import replace

from psyprobe.observers.registry import observer_kind

def __getattr__(name):
    prefix = name.replace("__", ":")
    kind = observer_kind(prefix)
    rows = kind.rows and (lambda: [replace(row, name=f"twinof{row.name}") for row in kind.rows()])
    twin = replace(kind, prefix=f"twinof{prefix}", form=f"twinof{kind.form}", rows=rows)
    return replace(twin, load=renamed(kind.load))

def renamed(load):
    @functools.wraps(load)
    def loaded(*arguments, **options):
        observer = load(*arguments, **options)
        observer.card = replace(observer.card, name=f"twinof{observer.card.name}")
        return observer

    return loaded
"""
FORMATS = ("text", "markdown", "latex", "csv", "json")
SHORT = {"levels.frequency.values": [2, 4]}
#: A twin must answer as its built-in does, not well: few answers at few levels tell.
FEW = {"asking.repeats": 2, "levels.contrast.n": 4, **SHORT}
BRIEF = {"asking.options.n_max": 20, **SHORT}
#: A short experiment of each probe: a page of the catalogue, what is changed in it, and who is asked.
PROBE_RUNS: dict[str, tuple[str, dict[str, Any], str]] = {
    "detection": ("gabor_achromatic", {"levels.contrast.n": 5}, "pixels"),
    "discrimination": (
        "contrast_discrimination",
        {"levels.contrast.values": [0, 0.01, 0.04]},
        "castlecsf",
    ),
    "acuity": ("acuity_achromatic", {}, "pixels"),
    "matching": ("contrast_matching", {}, "pixels"),
    "yes_no": (
        "hernandez2025",
        {"asking.prompts": "base", **FEW},
        "simulated:watson-malo",
    ),
    "two_interval": (
        "hernandez2025",
        {"asking.prompts": "two_image", **FEW},
        "simulated:watson-malo",
    ),
    "orientation": ("orientation_csf", BRIEF, "simulated:castlecsf"),
    "orientation_4": (
        "orientation_csf",
        {"asking.prompts": "orientation_4", **BRIEF},
        "simulated:castlecsf",
    ),
    "identify": (
        "orientation_csf",
        {
            "asking.prompts": "identify",
            "options": {
                "label": "orientation",
                "values": [0, 90, 135, 45],
                "names": ["vertical", "horizontal", "rising", "falling"],
            },
            **SHORT,
        },
        "simulated:castlecsf",
    ),
}


@pytest.fixture(autouse=True)
def twins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package with all twins."""
    site = tmp_path / "site"
    dist_info = site / "twins-1.0.dist-info"
    dist_info.mkdir(parents=True)
    (site / "twin_kinds.py").write_text(TWIN_KINDS, encoding="utf-8")
    (dist_info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: twins\nVersion: 1.0\n"
    )
    lines = [
        f'{name} = ProbeKind("{place}", "{probe_summary(name)}")'
        for name, place in PROBES.items()
    ]
    text = "\n".join(["from psyprobe.probes import ProbeKind", *lines, ""])
    (site / "twin_probes.py").write_text(text, encoding="utf-8")
    probes = "".join(f"twinof{name} = twin_probes:{name}\n" for name in PROBES)
    kinds = "".join(
        f"twinof{prefix} = twin_kinds:{prefix.replace(':', '__')}\n" for prefix in KINDS
    )
    points = f"[psyprobe.probes]\n{probes}[psyprobe.observers]\n{kinds}"
    (dist_info / "entry_points.txt").write_text(points, encoding="utf-8")
    monkeypatch.syspath_prepend(site)


def plain(text: str) -> str:
    """Take the names of twins, and with them widths, breaks, digests and times, out of a text.

    What follows a point are the digits of a number.
    """
    text = re.sub(r"\s+|-{3,}", " ", text)
    text = re.sub(r"(?<![\w.])[0-9a-f]{8,64}\b", "#", text.replace("twinof", ""))
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.+]+", "TIME", text)


def attributes(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: plain(str(value)) for name, value in values.items()}


def check_alike(result: xr.Dataset, twin: xr.Dataset, folder: Path) -> None:
    """Compare results, scores, tables, scoreboards, figures' data and reports."""
    assert attributes(twin.attrs) == attributes(result.attrs)
    xr.testing.assert_equal(
        twin.assign_coords(observer=plain(str(twin["observer"].item()))), result
    )
    for name, variable in result.variables.items():
        assert attributes(twin[name].attrs) == attributes(variable.attrs)
    scores, twin_scores = score_layers(result), score_layers(twin)
    assert twin_scores
    for score, other in zip(scores, twin_scores, strict=True):
        assert plain(json.dumps(other.to_dict())) == plain(json.dumps(score.to_dict()))
        assert plain(other.to_frame().to_csv()) == plain(score.to_frame().to_csv())
    for format in FORMATS:
        assert plain(score_table(twin_scores, format)) == plain(
            score_table(scores, format)
        )
    assert _scoreboard(twin_scores) == _scoreboard(scores)
    assert _parts(twin) == _parts(result)
    pages = [
        pp.report([single_result], folder / name)
        for name, single_result in (("a", result), ("b", twin))
    ]
    page, twin_page = (plain(path.read_text(encoding="utf-8")) for path in pages)
    assert twin_page == page


def _scoreboard(scores: list[Score]) -> list[str]:
    """The scoreboard in every format, or why there is none, and its figure."""
    try:
        board = scoreboard(scores)
        return [*(plain(board.table(format)) for format in FORMATS), _bars(board)]
    except InputError as error:
        return [str(error)]


def _bars(board: Scoreboard) -> str:
    """The bars and lines of the figure of a scoreboard, with their names."""
    try:
        figure = bar_panels(board, Figure(layout="constrained"))
    except InputError as error:
        return str(error)
    names = [
        text.get_text() for legend in figure.legends for text in legend.get_texts()
    ]
    values = [
        [
            *(bar.get_height() for bar in ax.patches),
            *(line.get_ydata() for line in ax.lines),
        ]
        for ax in figure.axes
    ]
    return plain(repr([names, values]))


def _parts(result: xr.Dataset) -> list[str]:
    """The figures and tables that a report shows, as their data."""
    report = getattr(load_probe(str(result.attrs["probe"])), "report", None)
    return (
        []
        if report is None
        else [plain(repr(asdict(part))) for part in report([result])]
    )


@pytest.mark.parametrize("probe", PROBE_RUNS)
def test_a_probe(probe: str, tmp_path: Path) -> None:
    name, changes, observer = PROBE_RUNS[probe]
    experiment = load_experiment(name).with_settings({"probe": probe, **changes})
    result = pp.run(experiment, observer, progress=False)
    twin = pp.run(
        experiment.with_settings({"probe": f"twinof{probe}"}), observer, progress=False
    )
    check_alike(result, twin, tmp_path)


#: Name and options of an observer. Nothing can be fetched here: networks have random weights.
Subject = tuple[str, dict[str, Any]]
CPU = {"device": "cpu"}
RANDOM = {"random_weights": True, **CPU}
#: An observer of each kind; those that need files or a server are fixtures called KIND_subject.
SUBJECTS: dict[str, Subject] = {
    "pixels": ("pixels", {}),
    "reader": ("reader:rapidocr", {}),
    "reader:tesseract": ("reader:tesseract", {}),
    "classifier": ("classifier:efficientnet_lite0", {}),
    "castlecsf": ("castlecsf", {}),
    "cvvdp": ("cvvdp", CPU),
    "packaged": ("packaged:efficientnet_lite0", RANDOM),
    "timm": ("timm:mobilenetv3_small_050", RANDOM),
    "torchvision": ("torchvision:mobilenet_v3_small", RANDOM),
    "simulated": ("simulated:watson-malo", {}),
    "simulated:letters": ("simulated:letters", {}),
    "decided": ("decided:pixels", {"pairs": 16}),
    "zoo": ("zoo:no_encoder", {}),
}


@pytest.fixture
def open_clip_subject(tiny_clips: None) -> Subject:
    return "open_clip:tiny-ViT", RANDOM


@pytest.fixture
def onnx_subject(onnx_file: Path) -> Subject:
    return f"onnx:{onnx_file}", {}


@pytest.fixture
def torch_subject(python_file: Path) -> Subject:
    return f"torch:{python_file}:build", {"input_size": 224, **CPU}


@pytest.fixture
def diffusers_subject(tmp_path: Path) -> Subject:
    diffusers = pytest.importorskip(
        "diffusers", reason="the zoo extra is not installed"
    )
    autoencoder = diffusers.AutoencoderKL(block_out_channels=(8,), norm_num_groups=4)
    autoencoder.save_pretrained(tmp_path / "vae")
    return f"diffusers:{tmp_path}", {"input_size": 64, **CPU}


@pytest.fixture
def vit_mae_subject(tmp_path: Path) -> Subject:
    transformers = pytest.importorskip(
        "transformers", reason="the zoo extra is not installed"
    )
    config = transformers.ViTMAEConfig(
        image_size=64,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
    )
    transformers.ViTMAEModel(config).save_pretrained(tmp_path / "mae")
    return f"vit_mae:{tmp_path / 'mae'}", CPU


@pytest.fixture
def sam2_subject(tmp_path: Path) -> Subject:
    transformers = pytest.importorskip(
        "transformers", reason="the zoo extra is not installed"
    )
    widths = [8, 16, 32, 64]
    backbone = transformers.Sam2HieraDetConfig(
        image_size=[128, 128],
        hidden_size=8,
        blocks_per_stage=[1, 1, 2, 1],
        embed_dim_per_stage=widths,
        num_attention_heads_per_stage=[1, 1, 1, 1],
        global_attention_blocks=[3],
    )
    vision = transformers.Sam2VisionConfig(
        backbone_config=backbone,
        backbone_channel_list=widths[::-1],
        backbone_feature_sizes=[[32, 32], [16, 16], [8, 8]],
    )
    config = transformers.Sam2Config(vision_config=vision)
    transformers.Sam2Model(config).save_pretrained(tmp_path / "sam2")
    return f"sam2:{tmp_path / 'sam2'}", CPU


@pytest.fixture
def transformers_vision_subject(chat_folders: Callable[[str], Path]) -> Subject:
    return f"transformers_vision:{chat_folders('llava')}", CPU


@pytest.fixture
def transformers_subject(chat_folders: Callable[[str], Path]) -> Subject:
    return f"transformers:{chat_folders('llava')}", CPU


@pytest.fixture
def openai_subject() -> Iterator[Subject]:
    with SimulatedServer(load_observer("simulated:watson-malo")) as server:
        yield f"openai:{server.model}", {"base_url": server.base_url}


def reply_to(png: bytes) -> str:
    """Answer by the contrast of an image, in the place of a chat model."""
    return "yes" if np.ptp(decode_png(png)) > 20 else "no"


@pytest.fixture
def inspect_subject() -> Subject:
    """A model of inspect-ai that needs no provider."""
    inspect_model = pytest.importorskip(
        "inspect_ai.model", reason="the inspect extra is not installed"
    )

    def reply(messages: list[Any], *_: Any) -> Any:
        url = messages[-1].content[0].image
        text = reply_to(base64.b64decode(url.partition(",")[2]))
        output = inspect_model.ModelOutput.from_content("mockllm/model", text)
        # Else it counts tokens by a table that it fetches.
        output.usage = inspect_model.ModelUsage(input_tokens=7, output_tokens=1)
        return output

    return "inspect:mockllm/model", {"custom_outputs": reply, "logprobs": False}


class KitModel:
    """Stand in for a model of VLMEvalKit, which is in no package index."""

    def generate(self, message: list[dict[str, str]]) -> str:
        image, _ = message
        return reply_to(Path(image["value"]).read_bytes())


@pytest.fixture
def vlmevalkit_subject(monkeypatch: pytest.MonkeyPatch) -> Subject:
    for name in ("vlmeval", "vlmeval.config"):
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        module.supported_VLM = {"kit": KitModel}  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, module)
    return "vlmevalkit:kit", {}


def pictures_to_name(folder: Path) -> dict[str, Any]:
    """Write two pictures, and set a page on which their categories are named."""
    rng = np.random.default_rng(1)
    for number in range(2):
        picture = rng.integers(0, 256, (224, 224, 3), dtype=np.uint8)
        (folder / f"{number}.png").write_bytes(encode_png(picture))
    parameters = {"file": str(folder), "contrast": 0.2, "radius": 4.0, "luminance": 100}
    parameters |= {"ppd": 32, "size": 224}
    return {
        "probe": "identify",
        "stimulus": {"kind": "image", "parameters": parameters},
        "options": {"label": "picture", "values": [0, 1], "names": ["cat", "truck"]},
        "levels": {"contrast": {"values": [0.02, 0.3]}},
        "asking": {"prompts": "identify", "readout": "text", "repeats": 2},
    }


# inspect-ai's retries call tenacity in a way that tenacity would rather not be called.
@pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated")
@pytest.mark.parametrize("subject_name", [*KINDS, "reader:tesseract"])
def test_an_observer(
    subject_name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    prefix = subject_name.partition(":")[0]
    subject = SUBJECTS.get(subject_name) or request.getfixturevalue(f"{prefix}_subject")
    name, options = subject
    kind = observer_kind(prefix)
    for package in kind.requires:
        pytest.importorskip(package, reason=kind.install, exc_type=ImportError)
    page = "hernandez2025" if kind.ability == "answer" else "gabor_achromatic"
    asking = {"asking.prompts": "base", "asking.repeats": 2}
    settings = {"levels.contrast.n": 3, **SHORT}
    settings |= asking if kind.ability == "answer" else {}
    if prefix in ("reader", "classifier"):
        (row,) = list_observers(name)
        if row.obstacle:
            pytest.skip(row.obstacle)
    if prefix == "reader" or subject_name == "simulated:letters":
        page = "letter_acuity"
        settings = {
            "stimulus.parameters.size": [48, 96],
            "stimulus.parameters.allow_alias": True,
            "levels.logmar": {"from": -0.6, "to": 0.3, "n": 10, "scale": "linear"},
            "asking.options.n_max": 12,
        }
    if prefix == "decided":
        # Training takes as long as there are pixels.
        parameters = {"frequency": 4, "contrast": 0.1, "luminance": 100}
        parameters |= {"radius": 0.4, "ppd": 32, "size": 64}
        settings["stimulus"] = {"kind": "gabor", "parameters": parameters}
    if prefix == "classifier":
        page, settings = "photograph_contrast", pictures_to_name(tmp_path)
    experiment = load_experiment(page).with_settings(settings)
    results = [
        pp.run(experiment, load_observer(full_name, **options), progress=False)
        for full_name in (name, f"twinof{name}")
    ]
    check_alike(*results, tmp_path)


def kind_of(row: ObserverRow) -> str:
    return observer_kind(row.name.partition("?")[0]).prefix


@pytest.mark.parametrize("prefix", KINDS)
def test_a_kind_is_listed_and_takes_options_as_its_twin_does(prefix: str) -> None:
    rows, twin_rows = (
        list_observers(f"{name}*") for name in (prefix, f"twinof{prefix}")
    )
    own_rows = [row for row in rows if kind_of(row) == prefix]
    theirs = [row for row in twin_rows if kind_of(row) == f"twinof{prefix}"]
    assert [
        replace(row, name=plain(row.name)) for row in theirs
    ] == own_rows and own_rows
    for option in ("layers", "input", "device", "dtype", "weights", "seed", "base_url"):
        assert takes_option(f"twinof{prefix}:x", option) == takes_option(
            f"{prefix}:x", option
        )
