"""The API reference: which names are public, and a page for each, written whenever the site is
built.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

#: Modules that others build on: what they are for, and their public names (None: those of
#: ``__all__``). Of a name that several offer, the first has the page.
MODULES: dict[str, tuple[str, str | None]] = {
    "psyprobe": ("What a script needs: `import psyprobe as pp`", None),
    "psyprobe.stimulus": ("Stimuli as values, and kinds of your own", None),
    "psyprobe.stimulus.catalogue": (
        "Stimuli and levels from files",
        "StimulusSet catalogue_names read_levels",
    ),
    "psyprobe.stimulus.export": (
        "Stimuli for other programs",
        "PsychoPyImage for_psychopy",
    ),
    "psyprobe.stimulus.pattern": (
        "What kinds of stimuli are built from",
        "pixel_positions cos_sin_degrees",
    ),
    "psyprobe.stimulus.estimate": (
        "Estimators that know nothing of the drawing",
        "LinearFit rms_contrast fit_patterns fourier_power radial_frequency out_of_band_energy "
        "band_limits "
        "pixel_centres gaussian to_float64",
    ),
    "psyprobe.stimulus.sines": (
        "Sines fitted to pixels",
        "Sine SineFit PatternFit dominant_frequency",
    ),
    "psyprobe.light.display": (
        "Displays",
        "Display Gamut pixels_per_degree display_presets",
    ),
    "psyprobe.light.screen": ("A screen that was measured", "Screen read_screen"),
    "psyprobe.light.transfer": ("Transfer functions", "light_of_drive drive_of_light"),
    "psyprobe.light.colour": (
        "Cones, primaries, whites",
        "ConeObserver cone_observer white_xyz rgb_to_xyz_matrix xyz_to_lms dkl_matrix "
        "direction_vector",
    ),
    "psyprobe.human": ("What people see", None),
    "psyprobe.corruption": ("How images go wrong", None),
    "psyprobe.observers": ("Whom to ask", None),
    "psyprobe.experiment": ("Pages of experiments", None),
    "psyprobe.experiment.prompts": (
        "Wordings of a question",
        "Prompt load_prompts prompt_sets",
    ),
    "psyprobe.probes": ("How to ask", None),
    "psyprobe.probes.experiments": (
        "Running and planning",
        "run plan run_shard load_results",
    ),
    "psyprobe.probes.results": (
        "Scores and figures of any result",
        "score score_layers scoreboard plot",
    ),
    "psyprobe.probes.designs": ("Which contrast comes next", None),
    "psyprobe.probes.words.delivery": (
        "What of a contrast arrives",
        "Delivery Delivered deliver delivered_contrast refused one_bit_contrast png_bytes",
    ),
    "psyprobe.running.protocol": (
        "What a probe offers, and what a run keeps",
        "Question Batch Answered Origin RunRecord Plan Schedule Probe",
    ),
    "psyprobe.analysis": ("From responses to numbers", None),
    "psyprobe.analysis.psychometric": ("Psychometric functions", None),
    "psyprobe.analysis.words.reply": (
        "Reading replies",
        "FirstToken read_reply read_first_token",
    ),
    "psyprobe.plotting": ("Figures", None),
    "psyprobe.plotting.figure_data": (
        "Figures as data, for the report",
        "Axis Line Grid Panel Figure Table Gallery name_of plain_label",
    ),
    "psyprobe.tasks.mvp_bench": ("MVP-Bench", None),
    "psyprobe.tasks.mvp_construction": ("Building sets for MVP-Bench", None),
    "psyprobe.tasks.r_bench": ("R-Bench", None),
    "psyprobe.tasks.calibration": (
        "What of an image reaches a model",
        "Stripes Grade Calibration draw calibrate most_questions",
    ),
    "psyprobe.testing": ("Calibration tests for stimuli of your own", None),
    "psyprobe.testing.strategies": (
        "Stimuli and displays for hypothesis",
        "Patterns displays directions backgrounds fields gabors gratings noises discs uniforms "
        "sums stimuli "
        "shown_stimuli experiments",
    ),
    "psyprobe.errors": (
        "Errors",
        "PsyprobeError InputError UnknownNameError GamutError WeightsError StoreError "
        "ConditionWarning",
    ),
}


@dataclass(frozen=True)
class Name:
    """A public name."""

    module: str
    name: str
    value: Any

    @property
    def full(self) -> str:
        """With its module."""
        return f"{self.module}.{self.name}"

    @property
    def kind(self) -> str:
        """What autodoc calls it."""
        if inspect.isclass(self.value):
            return "exception" if issubclass(self.value, BaseException) else "class"
        return "function" if callable(self.value) else "data"

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        has_docstring = self.kind != "data"
        return (
            (inspect.getdoc(self.value) or "").split("\n")[0] if has_docstring else ""
        )


@cache
def public_names() -> tuple[Name, ...]:
    """Every public name once."""
    return tuple(_public_names())


def _public_names() -> Iterator[Name]:
    identities: set[tuple[str, str]] = set()
    for module, (_, listed) in MODULES.items():
        namespace = import_module(module)
        for name in namespace.__all__ if listed is None else listed.split():
            value = getattr(namespace, name)
            if isinstance(value, ModuleType) or name.startswith("__"):
                continue
            identity = (
                getattr(value, "__module__", module),
                getattr(value, "__qualname__", name),
            )
            if identity not in identities:
                identities.add(identity)
                yield Name(module, name, value)


#: Python that tests run, a file of its own among it.
_BLOCK = re.compile(r"^```python(?: \(\S+\.py\))?\n(.*?)^```", re.MULTILINE | re.DOTALL)


@cache
def _tested_code() -> dict[str, str]:
    """The Python of each page that the tests run."""
    pages = {
        path.stem: path.read_text(encoding="utf-8")
        for path in sorted(Path(__file__).parent.glob("*.md"))
    }
    return {name: "\n".join(_BLOCK.findall(text)) for name, text in pages.items()}


def pages_with(name: Name) -> list[str]:
    """Pages with tested code that uses a name."""
    return [
        page
        for page, code in _tested_code().items()
        # The plain search is ten times as fast, and most names are on few pages.
        if name.name in code and re.search(rf"\b{name.name}\b", code)
    ]


def used_by(name: Name) -> list[Name]:
    """Functions with an example, and classes, that give, take or hold something of a class."""
    if name.kind != "class":
        return []
    word = re.compile(rf"\b{name.name}\b")
    return [
        candidate
        for candidate, annotations in _annotated_names()
        if name.name in annotations
        and candidate.value is not name.value
        and word.search(annotations)
        and (candidate.kind == "class" or has_example(candidate))
    ]


@cache
def _annotated_names() -> list[tuple[Name, str]]:
    """List all public names, each with the types that it names."""
    return [(name, _annotations(name)) for name in public_names()]


def _annotations(name: Name) -> str:
    """All types that a function or the members of a class name."""
    if name.kind == "function":
        return str(name.value.__annotations__)
    if name.kind != "class":
        return ""
    members = [getattr(member, "fget", member) for member in vars(name.value).values()]
    annotations = [
        vars(name.value).get("__annotations__", {}),
        *(getattr(member, "__annotations__", {}) for member in members),
    ]
    return str(annotations)


def has_example(name: Name) -> bool:
    """Whether a docstring holds an example, or tested code of a page uses the name."""
    return ">>>" in (inspect.getdoc(name.value) or "") or bool(pages_with(name))


_PAGE = """# {name}

```{{eval-rst}}
.. currentmodule:: {module}

.. auto{kind}:: {heading}
{options}```
{more}"""


def write(folder: Path) -> None:
    """Write the reference: an index, a page a module, and a page a name."""
    folder.mkdir()
    by_module: dict[str, list[Name]] = {module: [] for module in MODULES}
    for name in public_names():
        by_module[name.module].append(name)
        options = _class_options(name.value) if name.kind == "class" else ""
        # Nobody calls a protocol.
        heading = (
            f"{name.name}()"
            if getattr(name.value, "_is_protocol", False)
            else name.name
        )
        text = _PAGE.format(
            name=name.name,
            heading=heading,
            module=name.module,
            kind=name.kind,
            options=options,
            more=_see_also(name),
        )
        (folder / f"{name.full}.md").write_text(text, encoding="utf-8")
    names_by_module = {module: names for module, names in by_module.items() if names}
    for module, names in names_by_module.items():
        (folder / f"{module}.md").write_text(
            _module_page(module, names), encoding="utf-8"
        )
    rows = "\n".join(
        f"| [`{module}`]({module}.md) | {MODULES[module][0]} |"
        for module in names_by_module
    )
    text = f"""# API reference

Every public name has a page: parameters with shapes and units, errors, an example that the tests run, and a link to its
source. Start with [`psyprobe`](psyprobe.md): a script rarely needs more.

| module | for |
|---|---|
{rows}

{_toctree(names_by_module)}
"""
    (folder / "index.md").write_text(text, encoding="utf-8")


def _class_options(value: Any) -> str:
    """All members but the fields that the docstring tells of as parameters."""
    fields = (
        [field.name for field in dataclasses.fields(value)]
        if dataclasses.is_dataclass(value)
        else []
    )
    entries = re.findall(r"^([\w, ]+) : ", inspect.getdoc(value) or "", re.MULTILINE)
    described = {part for line in entries for part in line.split(", ")}
    apart = (
        f"   :exclude-members: {', '.join(sorted(described & set(fields)))}\n"
        if described & set(fields)
        else ""
    )
    return f"   :members:\n   :undoc-members:\n{apart}"


def _see_also(name: Name) -> str:
    """Link the pages that use a name and the names that take it."""
    pages = [f"[{page.replace('_', ' ')}](../{page}.md)" for page in pages_with(name)]
    makers = [f"[`{user.name}`]({user.full}.md)" for user in used_by(name)]
    sentences = [f"Shown in: {', '.join(pages)}."] * bool(pages) + [
        f"Used by: {', '.join(makers)}."
    ] * bool(makers)
    return "".join(f"\n{line}\n" for line in sentences)


def _module_page(module: str, names: list[Name]) -> str:
    rows = "\n".join(
        f"| [`{name.name}`]({name.full}.md) | {name.summary.replace('|', '&#124;')} |"
        for name in names
    )
    return f"""# {module}

{MODULES[module][0]}.

| name | |
|---|---|
{rows}

{_toctree(name.full for name in names)}
"""


def _toctree(pages: Iterable[str]) -> str:
    return "\n".join(["```{toctree}", ":hidden:", "", *pages, "```"])
