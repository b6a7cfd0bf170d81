"""What a table says about the scores of questioning runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psyprobe.analysis.words.chat_score import ChatScore, CsfPoint
from psyprobe.analysis.words.csf_scores import STATISTICS, Statistic
from psyprobe.files.tables import lay_out
from psyprobe.files.terminal import printable

HEADINGS = ("r", "RMSE", "r log", "RMSE log", "shape", "gain", "prompts", "frequencies")

KEY = (
    "r, RMSE: Pearson correlation and root mean square error of sensitivities, with intervals ({confidence} %), of the "
    "arithmetic mean over prompts; (mean ± SD) of single prompts. r log, RMSE log: the same of log10 sensitivities and "
    "the geometric mean (0.3 is a factor of two). shape: RMSE log that remains after the best gain; gain: that gain, "
    "log10. prompts: those with a usable threshold at every scored frequency; frequencies: those scored, of all asked. "
    "CSF: geometric mean over prompts; usable: prompts in it."
)

_READOUTS = {"text": "text answers", "p_yes": "P(yes)"}


def title(one: ChatScore) -> str:
    """What stands above the observers.

    Parameters
    ----------
    one : ChatScore
        Any of a group.

    Returns
    -------
    str
        Experiment, what of the answers counted, and the human curve.
    """
    return printable(f"{one.experiment} ({_READOUTS.get(one.readout, one.readout)}, against {one.human})")


def tables(layout: str, group: Sequence[ChatScore]) -> list[str]:
    """The scores of a group, and under them the curve of each observer.

    Parameters
    ----------
    layout : {"text", "markdown", "latex"}
        How.
    group : sequence of ChatScore
        With one title.

    Returns
    -------
    list of str
        Tables.
    """
    rows = [[title(group[0]), *HEADINGS]]
    notes: list[str] = []
    for one in group:
        found = one.scores[one.human]
        statistics = [getattr(found, name) for name in STATISTICS]
        gain = "-" if found.gain is None else f"{found.gain:+.2f}"
        numbers = [f"{found.n_valid}/{found.n_prompts}", f"{found.n_frequencies}/{found.n_asked}"]
        rows.append(
            [_name(one), *(_interval(s, name) for s, name in zip(statistics, STATISTICS, strict=True)), gain, *numbers]
        )
        if found.n_prompts > 1:
            rows.append(
                ["  single prompts", *(_spread(s, n) for s, n in zip(statistics, STATISTICS, strict=True)), *[""] * 3]
            )
        notes += [f"{_name(one)}: {note}." for note in _notes(one)]
    seen: list[Any] = []
    for one in group:
        if (one.flat, one.blind) not in seen:
            seen.append((one.flat, one.blind))
            for label, values in (("flat curve", one.flat), ("blind observer", one.blind)):
                rows.append([label, *(_number(values[name], _digits(name)) for name in STATISTICS), *[""] * 3])
    return [lay_out(layout, rows, notes), *(_curve(layout, one) for one in group)]


def flat(one: ChatScore) -> list[dict[str, Any]]:
    """One record for each human curve, every statistic that is a single value.

    Parameters
    ----------
    one : ChatScore
        What to write down.

    Returns
    -------
    list of dict
        All with the same keys.
    """
    rows = []
    for human, found in one.scores.items():
        row: dict[str, Any] = {
            "experiment": one.experiment,
            "observer": one.observer,
            "readout": one.readout,
            "random_weights": int(one.random_weights),
            "responder": "observer",
            "human": human,
            "confidence": found.confidence,
            "interval_over": found.interval_over,
        }
        for name in STATISTICS:
            statistic: Statistic = getattr(found, name)
            row |= {name if part == "value" else f"{name}_{part}": value for part, value in vars(statistic).items()}
        row |= {
            "gain_log10": found.gain,
            "n_valid": found.n_valid,
            "n_prompts": found.n_prompts,
            "n_frequencies": found.n_frequencies,
            "n_asked": found.n_asked,
            "guess": one.guess,
            "lapse": one.lapse,
            "excluded": one.excluded,
            "agreement": one.agreement and one.agreement.agreement,
            "kappa": one.agreement and one.agreement.kappa,
        }
        rows.append(row)
    return rows


def _name(one: ChatScore) -> str:
    return printable(one.observer) + (" (random weights)" if one.random_weights else "")


def _notes(one: ChatScore) -> list[str]:
    notes = []
    if one.guess is not None and one.lapse is not None:
        notes.append(f"yes without a pattern {one.guess:.2f}, no to any {one.lapse:.2f} (medians over prompts)")
    if one.excluded:
        notes.append(f"{100 * one.excluded:.2g} % of the replies say neither yes nor no and are left out")
    if one.agreement is not None:
        kappa = "" if one.agreement.kappa is None else f", kappa {one.agreement.kappa:.2f}"
        remark = "" if one.agreement.enough or one.readout == "text" else "; below 0.95, so read the text instead"
        notes.append(
            f"first token and text agree in {one.agreement.agreement:.3f} of {one.agreement.n} answers{kappa}{remark}"
        )
    return notes


def _curve(layout: str, one: ChatScore) -> str:
    rows = [[f"{_name(one)}: CSF (cpd)", "sensitivity", "people", "usable", "remarks"]]
    for point in one.curve:
        numbers = f"{point.usable}/{point.prompts}"
        rows.append([f"{point.frequency:g}", _sensitivity(point), _plain(point.human), numbers, _remarks(point)])
    return lay_out(layout, rows)


def _remarks(point: CsfPoint) -> str:
    said = [f"{n} {status}" for status, n in point.statuses.items() if status != "ok"]
    said += [f"{point.low_validity} low validity"] if point.low_validity else []
    said += [f"{point.not_shown} questions could not be shown"] if point.not_shown else []
    return ", ".join(said)


def _sensitivity(point: CsfPoint) -> str:
    if point.sensitivity is None:
        return "-"
    return f"{_plain(point.sensitivity)} [{_plain(point.low)}, {_plain(point.high)}]"


def _plain(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def _interval(statistic: Statistic, name: str) -> str:
    digits = _digits(name)
    ends = "" if statistic.low is None else f" [{_number(statistic.low, digits)}, {_number(statistic.high, digits)}]"
    return _number(statistic.value, digits) + ends


def _spread(statistic: Statistic, name: str) -> str:
    digits = _digits(name)
    spread = "" if statistic.prompt_sd is None else f" ± {_number(statistic.prompt_sd, digits)}"
    return _number(statistic.prompt_mean, digits) + spread


def _digits(name: str) -> int:
    return {"rmse_linear": 1, "rmse_log10": 2, "shape_rmse_log10": 2}.get(name, 3)


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
