"""The table of the R-Bench paper, with its printed values beside those of a model's answers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import pandas as pd

from psyprobe.analysis.score import check_format
from psyprobe.corruption import STRENGTHS
from psyprobe.errors import unknown_name
from psyprobe.files.tables import lay_out
from psyprobe.files.terminal import printable
from psyprobe.tasks.r_bench.items import TASKS
from psyprobe.tasks.r_bench.metrics import MEASURES
from psyprobe.tasks.tables import all_metrics

_CELLS = [f"{task}-{strength}" for task in TASKS for strength in STRENGTHS]


@cache
def published() -> pd.DataFrame:
    """Table 3 of the paper: robustness of 20 models by task and strength.

    Columns model, measure, name ("MCQ-low" to "CAP-high", "overall"), value (text, as printed), note.
    """
    with files("psyprobe.tasks.r_bench").joinpath("data", "rbench_published.csv").open(encoding="utf-8") as file:
        table = pd.read_csv(file, comment="#", dtype=str, keep_default_na=False)
    table = table[table["table"] == "3"]
    name = (table["task"] + "-" + table["strength"]).where(table["breakdown"] != "overall", "overall")
    return table.assign(name=name, value=table["score"])[["model", "measure", "name", "value", "note"]]


def beside_published(metrics: pd.DataFrame, model: str) -> pd.DataFrame:
    """A model's robustness beside the printed one.

    Parameters
    ----------
    metrics : pandas.DataFrame
        As `rbench_metrics` gives them.
    model : str
        A model of the paper.

    Returns
    -------
    pandas.DataFrame
        Columns measure, name, paper (text), value, agrees (to all four printed digits) and note.

    Raises
    ------
    UnknownNameError
        The paper has no such model.
    """
    printed = published()
    if model not in set(printed["model"]):
        raise unknown_name("model of the R-Bench paper", model, sorted(set(printed["model"])))
    ours = metrics[metrics["breakdown"].isin(["cell", "overall"])][["measure", "name", "value"]]
    both = printed[printed["model"] == model].rename(columns={"value": "paper"}).merge(ours, on=["measure", "name"])
    # The half is rounded up, as people do; the small term keeps a binary fraction from falling under it.
    rounded = [f"{int(value * 10_000 + 0.5 + 1e-9) / 10_000:.4f}" for value in both["value"]]
    agrees = [one == f"{float(other):.4f}" for one, other in zip(rounded, both["paper"], strict=True)]
    return both.assign(agrees=agrees)[["measure", "name", "paper", "value", "agrees", "note"]]


def rbench_table(metrics: Mapping[str, pd.DataFrame], format: str = "text") -> str:
    """Robustness in the form of the paper's Table 3, printed values under those of a model of the paper.

    Parameters
    ----------
    metrics : mapping of str to pandas.DataFrame
        By model, as `rbench_metrics` gives them.
    format : {"text", "markdown", "latex", "csv", "json"}
        "csv" and "json" hold every breakdown with all digits and intervals.

    Returns
    -------
    str
        A star marks a printed value that differs.

    Raises
    ------
    UnknownNameError
        There is no such format.
    """
    check_format(format)
    if format in ("csv", "json"):
        return all_metrics(metrics, format)
    texts = []
    for measure in MEASURES:
        rows, notes = [["", *_CELLS, "overall [interval]"]], []
        for model, values in metrics.items():
            found = values[(values["measure"] == measure) & values["breakdown"].isin(["cell", "overall"])]
            by_name = found.set_index("name")
            if not len(by_name):
                continue
            overall = by_name.loc["overall"]
            cells = [f"{by_name.loc[name, 'value']:.4f}" if name in by_name.index else "-" for name in _CELLS]
            interval = f"{overall['value']:.4f} [{overall['low']:.3f}, {overall['high']:.3f}]"
            rows.append([printable(model), *cells, interval])
            if overall["odd_keys"]:
                notes.append(f"{model}: {overall['odd_keys']} item has a key that is none of its options.")
            if overall.get("simulated"):
                notes.append(f"{model}: {overall['simulated']} items are simulated where R-Bench photographed them.")
            if model in set(published()["model"]):
                beside = beside_published(values, model)
                printed = beside[beside["measure"] == measure].set_index("name")
                marked = dict.fromkeys([*_CELLS, "overall"], "-")
                marked |= {name: row["paper"] + "*" * (not row["agrees"]) for name, row in printed.iterrows()}
                if "-" in marked.values():
                    # The paper's overall value is of all cells, and beside fewer it says nothing.
                    marked["overall"] = "-"
                rows.append(["  as printed", *marked.values()])
                notes += [f"{model}: {note}." for note in dict.fromkeys(printed["note"]) if "order" in note]
        if len(rows) > 1:
            texts.append(f"{measure.capitalize()} robustness\n{lay_out(format, rows, notes)}")
    return "\n\n".join(texts)
