"""Runs, tables, figures and scores of docs/results.md and of benchmarks/README.md.

    python benchmarks/results_page.py run STORE OBSERVER ...  # the nine tests, and pixels per degree
    python benchmarks/results_page.py page STORE|REGISTRY ...

Tables are written into these pages between the comments that name them, figures into docs/images,
in 256 colours, since contour plots in true colour are three times as large, and every score with
the digests of its page and its observer into docs/results.csv. Tests that the sources lack stay as
they stand. The words of the page are written by hand.
"""

from __future__ import annotations

import csv
import io
import json
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr

mpl.use("agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image
from scipy.stats import spearmanr

import psyprobe as pp
from psyprobe.analysis import score_over_ppd
from psyprobe.analysis.measures import join_measures
from psyprobe.analysis.result_stimulus import page_of as page_of_result
from psyprobe.analysis.score import csv_text, number
from psyprobe.analysis.scoreboards import Scoreboard
from psyprobe.experiment import load_suite
from psyprobe.human.models import human_label
from psyprobe.observers import Card
from psyprobe.plotting import bar_panels, heat_map, matched_contrast, ppd_curves
from psyprobe.probes.experiments import load_results
from psyprobe.probes.results import plot, score_layers, scoreboard

DOCS = Path(__file__).parents[1] / "docs"
#: The pages that hold tables, between comments that name them.
PAGES = (DOCS / "results.md", Path(__file__).with_name("README.md"))
NINE = [experiment.name for experiment in load_suite("cai2025")]
JND = [
    "contrast_discrimination",
    "orientation_discrimination",
    "frequency_discrimination",
]
ACUITY = ["acuity_achromatic", "acuity_red_green", "acuity_yellow_violet"]
TIME = [
    "temporal_drift",
    "temporal_counterphase",
    "temporal_drift_coarse",
    "temporal_flicker",
    "temporal_flicker_wide",
]
TESTS = [*NINE, *JND, *ACUITY, "surround", *TIME]
METRICS = ("cvvdp", "castlecsf")
#: With a figure of all nine tests.
NINE_PANELS = ("packaged:mobilenetv2", "packaged:efficientnet_lite0")

#: The test that is run over pixels per degree, at which, and over frequencies that all can show.
OVER_PPD = "gabor_achromatic"
PPD = [60.0, 15.0, 21.2, 30.0, 42.4, 84.9, 120.0]
SHARED_RANGE = {
    "levels.frequency.from": 0.5,
    "levels.frequency.to": 6,
    "variants.draw": 1,
}

PerTest = Mapping[tuple[str, str], Any]


def run(store: str, observers: Sequence[str]) -> None:
    """Run the nine tests, and one over pixels per degree, with observers; resumes."""
    for name in observers:
        observer = pp.load_observer(name)
        for page in runs_of(name):
            start = time.process_time()
            pp.run(page, observer, store=store, score_only=True, progress=False)
            seconds = time.process_time() - start
            print(f"{page.name} {page.changed} {name}: {seconds:.0f} s", flush=True)


def runs_of(observer: str) -> Iterator[pp.Experiment]:
    """Iterate over the pages that an observer is run on."""
    for name in NINE:
        yield pp.load_experiment(name)
    if observer not in METRICS:
        page = pp.load_experiment(OVER_PPD)
        for ppd in PPD:
            yield page.with_settings({"stimulus.parameters.ppd": ppd, **SHARED_RANGE})


def write_page(sources: Sequence[str]) -> None:
    """Write the tables, figures and scores of finished runs."""
    results, over_ppd = results_of(sources)
    scores = {place: score_layers(result)[0] for place, result in results.items()}
    pages = {path: path.read_text(encoding="utf-8") for path in PAGES}
    for name, table in tables(results, scores, over_ppd):
        path = page_of(name, pages)
        pages[path] = put(pages[path], name, table)
    for path, page in pages.items():
        path.write_text(page, encoding="utf-8")
    measured_tests = {test for test, _ in results}
    path = DOCS / "results.csv"
    with path.open(encoding="utf-8") as file:
        other_rows = [
            row
            for row in csv.DictReader(file)
            if row["experiment"] not in measured_tests
        ]
    rows = [*records(results, scores), *other_rows]
    path.write_text(csv_text(rows) + "\n", encoding="utf-8")
    figures(results, scores, over_ppd)


def tables(
    results: PerTest, scores: PerTest, over_ppd: Sequence[xr.Dataset]
) -> Iterator[tuple[str, str]]:
    """Iterate over the tables of the tests that were run, with their names."""
    measured_tests = {test for test, _ in results}
    if measured_tests & set(NINE):
        main, details = split_board(board_of_nine(scores).table("markdown"))
        yield "nine tests", main
        yield "references of the nine tests", details
        yield "float32", floors(scores)
    if over_ppd:
        yield "pixels per degree", orders_by_ppd(over_ppd)
    columns = {
        JND[0]: ("shift", "shape", "reached", "dip", "handle"),
        JND[1]: ("shift", "shape", "reached", "slope", "anisotropy"),
        JND[2]: ("shift", "shape", "reached", "slope", "anisotropy"),
        "surround": ("reached", "elevation", "tuning", "response ratio"),
    }
    for test, names in columns.items():
        if test in measured_tests:
            yield test.replace("_", " "), own_table(scores, test, names)
    if measured_tests & set(ACUITY):
        yield "acuity", limits(scores)
    if measured_tests & set(TIME):
        yield "time", aligned_in_time(scores)
        yield "flicker", over_time(results)


def board_of_nine(scores: PerTest) -> Scoreboard:
    """Collect the scores of the nine tests, the best of the first test on top."""
    return scoreboard(
        score for (test, _), score in scores.items() if test in NINE
    ).sort(OVER_PPD)


def split_board(text: str) -> tuple[str, str]:
    """Split a scoreboard into what the page shows, and references with notes on people.

    Notes on single observers' matches are left out, since the flags `s` and `a` say them too.
    """
    scores, references, notes = text.strip().split("\n\n")
    lines = [line for line in notes.split("\n") if "matches saturated" not in line]
    details = [
        line for line in lines if line.startswith(("- references:", "- one person, "))
    ]
    main = [line for line in lines if line not in details]
    return "\n\n".join([scores, "\n".join(main)]), "\n\n".join(
        [references, "\n".join(details)]
    )


def results_of(sources: Sequence[str]) -> tuple[PerTest, list[xr.Dataset]]:
    """Load results by test and observer, in the order of the page, and those over pixels per
    degree; of several results that with the most responses."""
    results: dict[tuple[str, str], Any] = {}
    over_ppd = []
    for result in (result for source in sources for result in load_results(source)):
        place = result.attrs["experiment"], result.attrs["observer"]
        if "stimulus.parameters.ppd" in page_of_result(result).get("changed", {}):
            over_ppd.append(result)
        elif (
            place[0] in TESTS
            and place[1] != "pixels"
            and not results.get(place, result).nbytes > result.nbytes
        ):
            results[place] = result
    names = sorted(
        {observer for _, observer in results},
        key=lambda observer: (observer in METRICS, observer),
    )
    ordered = {
        (test, name): results[test, name]
        for test in TESTS
        for name in names
        if (test, name) in results
    }
    return ordered, over_ppd


def orders_by_ppd(over_ppd: Sequence[xr.Dataset]) -> str:
    """Tabulate r_s of each encoder at each ppd, and how alike its order is to that at 60."""
    curves = score_over_ppd(over_ppd).curves
    ppd = curves[0].ppd
    scores = np.array([curve.scores for curve in curves])
    rows = [
        [f"`{curve.observer}`", *map(number, curve.scores)]
        for curve in sorted(curves, key=lambda curve: -curve.at_convention)
    ]
    encoders = scores[[curve.observer != "pixels" for curve in curves]]
    convention = encoders[:, ppd.index(60.0)]
    orders = [spearmanr(convention, column).statistic for column in encoders.T]
    rows.append(["order of encoders, r_s with that at 60", *map(number, orders)])
    return markdown(["r_s at pixels per degree", *(f"{x:g}" for x in ppd)], rows)


def figures(results: PerTest, scores: PerTest, over_ppd: Sequence[xr.Dataset]) -> None:
    """Draw the figures of what was run, those of contours where level grids were run."""
    measured_tests = {test for test, _ in results}
    if over_ppd:
        curves = score_over_ppd(over_ppd)
        axes = ppd_curves(curves)
        axes.get_figure().set_size_inches(9, 4.4)
        save(axes, "results_ppd", 80)
    if measured_tests & set(NINE):
        board = board_of_nine(scores)
        save(heat_map(board), "results_scores", 90)
        bars = bar_panels(board)
        # Room for the names of all observers above the panels.
        bars.set_size_inches(14.5, 6)
        save(bars, "results_bars", 75)
    for test in measured_tests & set(JND):
        save(
            plot([result for (name, _), result in results.items() if name == test]),
            f"results_{test}",
            75,
        )
    if measured_tests & set(TIME):
        save(in_time(results), "results_time", 80)
    figures_of_grids(results)


def figures_of_grids(results: PerTest) -> None:
    """Draw contours and matches of the encoders whose level grids were run."""
    gridded = {
        place: result
        for place, result in results.items()
        if place[1].startswith("packaged:") and "response" in result
    }

    def of(test: str) -> list[Any]:
        return [result for (name, _), result in gridded.items() if name == test]

    if contours := of(OVER_PPD):
        save(plot(contours, human="both"), "results_contours", 75)
    for observer in NINE_PANELS:
        nine = [
            result
            for (test, name), result in gridded.items()
            if name == observer and test in NINE
        ]
        if len(nine) == len(NINE):
            save(plot(nine, human="both"), f"results_{observer.partition(':')[2]}", 75)
    matching = of("contrast_matching")
    if not matching:
        return
    figure = Figure(figsize=(10.5, 4 * -(-len(matching) // 2)), layout="constrained")
    grid = figure.add_gridspec(-(-len(matching) // 2), 2)
    for i, result in enumerate(matching):
        panel = figure.add_subplot(grid[divmod(i, 2)])
        matched_contrast(result, panel)
        panel.set_ylim(3e-4)
    save(figure, "results_matching", 80)


#: Titles of the panels over temporal frequency.
PANELS = {
    "temporal_drift": "A drifting Gabor, 4 cpd",
    "temporal_drift_coarse": "A drifting Gabor, 0.5 cpd",
    "temporal_flicker": "A disc that flickers, 64 px",
    "temporal_flicker_wide": "A disc that flickers, 27 x 48 px",
}


def in_time(results: PerTest) -> Figure:
    """Responses at the contrast nearest 0.1, and people's sensitivity, over those at 1 Hz."""
    figure = Figure(figsize=(10, 8), layout="constrained")
    panels = figure.subplots(2, 2, sharey=True)
    names = list(
        dict.fromkeys(observer for test, observer in results if test in PANELS)
    )
    for panel, (test, title) in zip(panels.flat, PANELS.items(), strict=True):
        gridded = {
            name: results[test, name]
            for name in names
            if (test, name) in results
            and "response" in join_measures(results[test, name])
        }
        for observer, result in gridded.items():
            near = (
                join_measures(result)["response"]
                .isel(layer=0, measure=0)
                .sel(contrast=0.1, method="nearest")
            )
            x = near["temporal_frequency"].values
            y = near.values
            panel.plot(
                x,
                y / y[0],
                marker="o",
                markersize=4,
                color=f"C{names.index(observer)}",
                label=observer,
            )
        result = next(iter(gridded.values()))
        flat = (
            join_measures(result)["pixels_response"]
            .isel(measure=0)
            .sel(contrast=0.1, method="nearest")
            .values
        )
        panel.plot(x, flat / flat[0], color="0.6", label="pixels (no encoder)")
        human = result["human_sensitivity"].values
        label = f"people ({human_label(str(result.attrs['human_model']))})"
        panel.plot(
            result["scored_temporal_frequency"].values,
            human / human[0],
            "k--",
            label=label,
        )
        panel.set(xscale="log", yscale="log", title=title)
        panel.set_xticks(x, labels=[f"{value:g}" for value in x])
        panel.set_yticks(
            ticks := [0.05, 0.1, 0.2, 0.5, 1, 2, 3],
            labels=[f"{value:g}" for value in ticks],
        )
        panel.set_ylim(0.04, 4.5)
        panel.minorticks_off()
        panel.legend(fontsize="x-small", framealpha=0.9)
    figure.supxlabel("Temporal frequency (Hz)")
    figure.supylabel("Response, or sensitivity, over that at 1 Hz")
    return figure


def save(plot: Figure | Axes, name: str, dpi: float) -> None:
    figure = plot if isinstance(plot, Figure) else plot.get_figure(root=True)
    path = DOCS / "images" / f"{name}.png"
    with io.BytesIO() as stream:
        figure.savefig(stream, dpi=dpi, format="png", metadata={"Software": None})
        with Image.open(stream) as image:
            image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(
                path, optimize=True
            )
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB", file=sys.stderr)


def page_of(name: str, pages: Mapping[Path, str]) -> Path:
    """Find the one page that has a place for a table."""
    start = f"<!-- table: {name} -->\n"
    paths = [path for path, page in pages.items() for _ in range(page.count(start))]
    if len(paths) != 1:
        raise SystemExit(
            f"{start.strip()!r} stands {len(paths)} times in the pages, not once"
        )
    return paths[0]


def put(page: str, name: str, table: str) -> str:
    """The page with another table between two comments."""
    start = f"<!-- table: {name} -->\n"
    end = "<!-- end of table -->"
    return re.sub(
        f"{re.escape(start)}.*?{re.escape(end)}",
        lambda _: f"{start}\n{table}\n\n{end}",
        page,
        flags=re.S,
    )


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    stimulus_axis = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, stimulus_axis, *rows))


def by_test(scores: PerTest, tests: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Scores by observer and test."""
    scores_by_observer: dict[str, dict[str, Any]] = {}
    for (test, observer), score in scores.items():
        if test in tests:
            scores_by_observer.setdefault(observer, {})[test] = score
    return scores_by_observer


def own_table(scores: PerTest, test: str, columns: Sequence[str]) -> str:
    """Tabulate each observer, the pixels and people in the columns of one test."""
    scores_by_observer = {
        observer: score for (name, observer), score in scores.items() if name == test
    }
    cells_by_responder = {
        f"`{observer}`": score.rows()[0].cells
        for observer, score in scores_by_observer.items()
    }
    for score in list(scores_by_observer.values())[:1]:
        first, *other_rows = score.rows()
        cells_by_responder |= {
            row.label or row.responder: row.cells
            for row in other_rows
            if row.table == first.table
        }
    rows = [
        [responder, *(cells.get(column, "") for column in columns)]
        for responder, cells in cells_by_responder.items()
    ]
    return markdown(["observer", *columns], rows)


def limits(scores: PerTest) -> str:
    """The finest stripes that are told from uniform, at the lower and the higher contrast of each
    test."""
    scores_by_observer = by_test(scores, ACUITY)
    rows = [
        [f"`{observer}`", *(limit(tests.get(test), "score") for test in ACUITY)]
        for observer, tests in scores_by_observer.items()
    ]
    complete_scores = next(
        tests for tests in scores_by_observer.values() if len(tests) == len(ACUITY)
    )
    rows.append(
        [
            "pixels (no encoder)",
            *(limit(complete_scores[test], "pixels") for test in ACUITY),
        ]
    )
    rows.append(
        [
            "people (cpd)",
            *(limit(complete_scores[test], "people", 1.0) for test in ACUITY),
        ]
    )
    return markdown(
        ["cycles a pixel", "black and white", "red and green", "yellow and violet"],
        rows,
    )


def limit(score: Any, whose: str, ppd: float | None = None) -> str:
    if score is None:
        return ""
    measure = getattr(score, whose)
    per = score.ppd if ppd is None else ppd
    return ", ".join(
        status if value is None else number(1 / (value * per), 2 if ppd is None else 1)
        for value, status in zip(
            measure.values,
            ({"above": "never falls"}.get(status, status) for status in measure.status),
            strict=True,
        )
    )


def aligned_in_time(scores: PerTest) -> str:
    """Tabulate the alignment with people on each page of clips."""
    scores_by_observer = by_test(scores, TIME)
    cells_by_responder = {
        f"`{observer}`": {test: score.rows()[0].cells for test, score in tests.items()}
        for observer, tests in scores_by_observer.items()
    }
    for tests in scores_by_observer.values():
        for test, score in tests.items():
            for row in score.rows()[1:]:
                cells_by_responder.setdefault(
                    row.label or row.responder, {}
                ).setdefault(test, row.cells)
    rows = [
        [responder, *(tests.get(test, {}).get("r_s [interval]", "") for test in TIME)]
        for responder, tests in cells_by_responder.items()
    ]
    return markdown(["r_s", *TIME], rows)


def responses_at(result: xr.Dataset, frequency: float) -> dict[str, np.ndarray]:
    """Responses at one temporal frequency, and the sensitivity of people there."""
    result = join_measures(result)
    measure = str(result.attrs.get("score_measure", "angular"))
    # The first layer of an encoder of images has the frames in a row, its second layer their mean.
    at = result.isel(layer=0).sel(temporal_frequency=frequency, method="nearest")
    of_pixels = measure if measure in result["measure"] else result["measure"].values[0]
    responses = {
        "response": at["response"].sel(measure=measure).values,
        "pixels_response": at["pixels_response"].sel(measure=of_pixels).values,
    }
    place = "scored_temporal_frequency"
    if place in result and np.isclose(result[place], frequency, rtol=1e-9).any():
        human = result["human_sensitivity"].sel({place: frequency}, method="nearest")
        responses["human_sensitivity"] = human.values
    return responses


def ratios(
    first: dict[str, np.ndarray], second: dict[str, np.ndarray]
) -> dict[str, float]:
    """The median over contrasts of one response over another."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            name: float(np.median(first[name] / second[name]))
            for name in first.keys() & second.keys()
        }


def band_pass(result: xr.Dataset) -> dict[str, float]:
    """The response at 8 Hz over that at 1 Hz."""
    return ratios(responses_at(result, 8.0), responses_at(result, 1.0))


def over_time(results: PerTest) -> str:
    """Response at 8 Hz over that at 1 Hz, and to a drifting wave over that to a reversing one."""
    bands = [test for test in TIME if test != "temporal_counterphase"]
    cells_by_responder: dict[str, list[str]] = {}
    for observer in dict.fromkeys(
        observer for test, observer in results if test in TIME
    ):
        observer_results = {
            test: results[test, observer]
            for test in TIME
            if "response" in results.get((test, observer), ())
        }
        response_ratios = [
            band_pass(observer_results[test]) if test in observer_results else {}
            for test in bands
        ]
        gratings = [
            responses_at(observer_results[test], 8.0)
            for test in TIME[:2]
            if test in observer_results
        ]
        response_ratios.append(ratios(*gratings) if len(gratings) == 2 else {})
        cells_by_responder[f"`{observer}`"] = [
            number(ratio["response"]) if ratio else "" for ratio in response_ratios
        ]
        for place, ratio in enumerate(response_ratios):
            for name, value in {
                "pixels (no encoder)": ratio.get("pixels_response"),
                "people": ratio.get("human_sensitivity"),
            }.items():
                row = cells_by_responder.setdefault(name, [""] * len(response_ratios))
                row[place] = row[place] or ("" if value is None else number(value))
    last = ("pixels (no encoder)", "people")
    ordered = [*(name for name in cells_by_responder if name not in last), *last]
    head = [
        "observer",
        *(f"8 over 1 Hz, {test}" for test in bands),
        "drift over counterphase, 8 Hz",
    ]
    return markdown(head, [[name, *cells_by_responder[name]] for name in ordered])


def floors(scores: PerTest) -> str:
    rows = [
        [f"`{observer}`", *(share(tests.get(test)) for test in NINE)]
        for observer, tests in by_test(scores, NINE).items()
        if observer not in METRICS
    ]
    return markdown(["share at the float32 floor", *NINE], rows)


def share(score: Any) -> str:
    return "" if score is None else f"{100 * score.float32_floor:.1f} %"


def records(results: PerTest, scores: PerTest) -> Iterator[dict[str, Any]]:
    """Every score with what it was measured by; of trivial responders and people once a test."""
    recorded = set()
    for place, score in scores.items():
        attributes = results[place].attrs
        digests = {
            "page_sha256": attributes["experiment_digest"],
            "observer_sha256": Card.from_dict(
                json.loads(attributes["observer_card"])
            ).digest,
        }
        for row in score.rows():
            is_observer = row.responder == "observer"
            if row.record and (
                is_observer or (place[0], row.responder) not in recorded
            ):
                recorded.add((place[0], row.responder))
                blank = {} if is_observer else {"observer": "", "layer": ""}
                yield {**row.record, **blank, "page_sha256": digests["page_sha256"]} | (
                    digests if is_observer else {}
                )


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "run":
        run(arguments[0], arguments[1:])
    else:
        write_page(arguments)
