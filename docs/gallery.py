"""The gallery: a page for each stimulus, experiment and probe of the catalogue, drawn whenever the site is built."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import psyprobe as pp
from psyprobe.experiment import Experiment, read_experiment
from psyprobe.plotting import save_figure, stimulus_strip
from psyprobe.probes import probe_names, probe_summary
from psyprobe.reporting.provenance import places_of, strongest
from psyprobe.stimulus import Clip, Specification, level_of
from psyprobe.stimulus.catalogue import StimulusSet, catalogue_folder, catalogue_names, load_stimulus

#: Values of each level that a figure of the gallery is drawn from.
_LEVELS = 7
#: Whom experiments in words are shown with, and in how many wordings.
_ANSWERS, _WORDINGS = "simulated:watson-malo", 1
#: The picture of each part.
_COVERS = {
    "stimuli": "stimuli-gabor_achromatic.png",
    "experiments": "experiments-gabor_achromatic.png",
    "probes": "experiments-contrast_discrimination.png",
}
#: Displays of stimuli that are meant for one of their own.
_DISPLAYS = {"noise_hernandez2025": "hernandez2025", "noise_hernandez2025_atd": "hernandez2025_atd"}
#: Pages of the docs that say more about a probe, and the experiment or figure that shows it.
_PROBES = {
    "detection": ("scores.md", "gabor_achromatic"),
    "discrimination": ("own_experiments.md", "orientation_discrimination"),
    "matching": ("scoreboard.md", "contrast_matching"),
    "yes_no": ("chat.md", "hernandez2025"),
    "two_interval": ("chat.md", "images/chat_psychometric.png"),
    "mvp_bench": ("mvp_bench.md", "images/mvp_bench.png"),
    "r_bench": ("r_bench.md", "images/rbench_contact_sheet.png"),
    "corruption_profile": ("corruption.md", "images/corruption_profile.png"),
}


def write(folder: Path) -> None:
    """Write all pages with their figures, and an index with pictures."""
    folder.mkdir()
    stimuli = {name: _stimulus(folder, name) for name in catalogue_names("stimuli")}
    experiments = {name: _experiment(folder, name) for name in catalogue_names("experiments")}
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
        "Every stimulus, experiment and probe that comes with psyprobe, drawn when this site was built. Each page has "
        "its figure, what was requested beside what was delivered, and the file it was made from, to copy and change.",
        _cards([(title, name, _COVERS[name], f"{len(cards)} pages") for title, name, cards in sections]),
        _toctree([name for _, name, _ in sections]),
    )


def _write(path: Path, *parts: str) -> None:
    path.write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")


def _toctree(pages: Sequence[str]) -> str:
    return "\n".join(["```{toctree}", ":hidden:", "", *pages, "```"])


def _cards(shown: Sequence[tuple[str, str, str, str]]) -> str:
    """Heading, page, picture and words of each, as cards beside each other."""
    items = []
    for heading, page, image, words in shown:
        picture = [f":img-top: {image}"] if image else []
        items += [":::{grid-item-card} " + heading, f":link: {page}", ":link-type: doc", *picture, "", words, ":::", ""]
    return "\n".join(["::::{grid} 2 2 3 3", ":gutter: 3", "", *items, "::::"])


def _section(title: str, cards: Mapping[str, tuple[str, str]]) -> str:
    """An index with a picture a page."""
    shown = [(heading, f"{title.lower()}-{name}", image, f"`{name}`") for name, (heading, image) in cards.items()]
    return "\n\n".join([f"# {title}", _cards(shown), _toctree([page for _, page, _, _ in shown]), ""])


# -- stimuli ----------------------------------------------------------------------------------------------------------


def _stimulus(folder: Path, name: str) -> tuple[str, str]:
    found = load_stimulus(name)
    display = pp.Display.preset(_DISPLAYS[name]) if name in _DISPLAYS else pp.Display(peak=400.0)
    tried = [strongest(found, at, found.levels.get("contrast", ()), display) for at in places_of(found.levels)]
    shown = [spec for spec in tried if spec is not None]
    image = f"stimuli-{name}.png"
    _strip(shown, display, folder / image, list(found.levels))
    certified = shown[len(shown) // 2]
    sources = [f"Source: {found.source}."] * bool(found.source not in ("", "psyprobe"))
    _write(
        folder / f"stimuli-{name}.md",
        f"# {found.title}",
        f"`{name}`, a stimulus of kind `{found.kind}`. {' '.join(sources)}",
        _differences(found.differences),
        f"![{found.title}]({image})",
        _certificate(certified, display),
        "## Draw it",
        _code(f'stimulus = pp.load_stimulus("{name}").spec({_arguments(found, certified)}).draw()', display),
        f"```bash\npsyprobe render {name} -o {name}.png\n```" if name not in _DISPLAYS else "",
        "## Its file",
        f"```toml\n{(catalogue_folder('stimuli') / f'{name}.toml').read_text(encoding='utf-8').rstrip()}\n```",
    )
    return found.title, image


def _strip(shown: Sequence[Specification], display: pp.Display, path: Path, levels: Sequence[str]) -> None:
    figure = Figure(layout="constrained")
    stills = [spec.picture() if isinstance(spec, Clip) else spec for spec in shown]
    images = [display.encode(spec.draw()) for spec in stills]
    stimulus_strip(images, ppd=shown[0].ppd, labels=[_label(spec, levels) for spec in shown], figure=figure)
    figure.set_size_inches(2.6 * len(shown), 3.0)
    save_figure(figure, path)


def _label(spec: Specification, levels: Sequence[str]) -> str:
    told = []
    for name in levels:
        unit = level_of(spec, name).unit
        told.append(f"{name.replace('_', ' ')} {spec.value(name):.3g}{'' if unit == '1' else f' {unit}'}")
    return "\n".join(told[:2])


def _arguments(found: StimulusSet, spec: Specification) -> str:
    return ", ".join(f"{name}={spec.value(name):.4g}" for name in found.levels)


def _code(drawn: str, display: pp.Display) -> str:
    return (
        f"```python\nimport psyprobe as pp\n\n{drawn}\nprint(stimulus.measure(pp.Display(peak={display.peak:g})))\n```"
    )


def _certificate(spec: Specification, display: pp.Display) -> str:
    """Requested against delivered, as a table."""
    rows = [["quantity", "requested", "delivered", "error", "tolerance", "passed"], ["---"] * 6]
    for row in spec.draw().measure(display):
        told = [
            "" if row.requested is None else f"{row.requested:.6g} {row.unit}",
            f"{row.delivered:.6g} {row.unit}",
            "" if row.error is None else f"{row.error:+.1e}",
            "" if row.tolerance is None else f"{row.tolerance:.2g}",
        ]
        rows.append([row.quantity, *told, "yes" if row.passed else "**no**"])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    about = (
        f"Measured from the pixels of `{spec!r}`, on a display of {display.peak:g} cd/m². "
        "Rows without a request only inform."
    )
    return f"## Requested against delivered\n\n{about}\n\n{table}"


def _differences(differences: Sequence[str], heading: str = "What differs from its source") -> str:
    return "\n".join([f"**{heading}**", "", *(f"- {each}" for each in differences)]) if differences else ""


# -- experiments ------------------------------------------------------------------------------------------------------


def _experiment(folder: Path, name: str) -> tuple[str, str]:
    text = (catalogue_folder("experiments") / f"{name}.toml").read_text(encoding="utf-8")
    page = tomllib.loads(text)
    about = (
        f"`{name}`. Source: {page.get('source', 'psyprobe')}."
        if page.get("source") != "psyprobe"
        else f"`{name}`, psyprobe's own."
    )
    ending = [
        "## Run it",
        f"```bash (needs an observer)\npsyprobe run {name} --observer NAME\n```",
        "## Its page",
        f"```toml\n{text.rstrip()}\n```",
    ]
    path = folder / f"experiments-{name}.md"
    if "experiments" in page:
        listed = [f"- [{each}](experiments-{each}.md)" for each in page["experiments"]]
        _write(
            path, f"# {page['title']}", about, "A suite: one name for several experiments.", "\n".join(listed), *ending
        )
        return str(page["title"]), ""
    experiment, who = _smaller(read_experiment(name))
    result = pp.run(experiment, who, progress=False)
    image = f"experiments-{name}.png"
    _drawn(result, folder / image)
    spec = experiment.spec(**_middle(experiment))
    _write(
        path,
        f"# {page['title']}",
        about,
        _differences(page.get("differences", ())),
        _differences(page.get("assumed", ()), "What the source does not say"),
        f"![{page['title']}]({image})",
        f"Answers of `{result.attrs['observer']}`, at fewer levels than the page has.",
        _certificate(spec, experiment.display),
        *ending,
    )
    return str(page["title"]), image


def _smaller(experiment: Experiment) -> tuple[Experiment, Any]:
    """The experiment with fewer levels, and who is asked: enough for a figure in seconds."""
    # People matched at frequencies of their own, all of which are needed.
    kept = ("frequency",) if experiment.probe == "matching" else ()
    levels = {name: values if name in kept else _thinned(values) for name, values in experiment.levels.items()}
    changes: dict[str, Any] = {"levels": levels, "score_only": False}
    if experiment.difference is not None:
        fewer = _thinned(experiment.difference.levels)
        changes["difference"] = experiment.difference.model_copy(update={"levels": fewer})
    if experiment.asking is not None:
        changes["asking"] = experiment.asking.model_copy(update={"prompts": experiment.asking.prompts[:_WORDINGS]})
    # Differences can be put to encoders too, which takes a tenth of the time.
    words = experiment.asking is not None and experiment.probe not in ("discrimination", "acuity")
    who = pp.load_observer(_ANSWERS, logit_sd=0.5) if words else "pixels"
    return experiment.model_copy(update=changes), who


def _thinned(values: Sequence[float]) -> tuple[float, ...]:
    if len(values) <= _LEVELS:
        return tuple(values)
    places = np.linspace(0, len(values) - 1, _LEVELS).round().astype(int)
    return tuple(float(values[i]) for i in places)


def _middle(experiment: Experiment) -> dict[str, float]:
    return {name: float(values[len(values) // 2]) for name, values in experiment.levels.items()}


def _drawn(result: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    drawn = pp.plot(result, levels="log")
    save_figure(getattr(drawn, "figure", drawn), path)
    plt.close("all")


# -- probes -----------------------------------------------------------------------------------------------------------


def _probe(folder: Path, name: str) -> tuple[str, str]:
    more, shown = _PROBES[name]
    image = f"../{shown}" if "/" in shown else f"experiments-{shown}.png"
    uses = list(_uses(name))
    _write(
        folder / f"probes-{name}.md",
        f"# {name}",
        f"It asks {probe_summary(name)}. More: [{more.removesuffix('.md')}](../{more}).",
        f"![What {name} shows]({image})",
        "\n".join(["Experiments that ask in this way:", "", *(f"- [{each}](experiments-{each}.md)" for each in uses)])
        if uses
        else "",
        f'```toml\nprobe = "{name}"\n```',
    )
    return name, image


def _uses(probe: str) -> Iterator[str]:
    for name in catalogue_names("experiments"):
        page = tomllib.loads((catalogue_folder("experiments") / f"{name}.toml").read_text(encoding="utf-8"))
        if page.get("probe") == probe:
            yield name
