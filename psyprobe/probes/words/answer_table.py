"""Read answers as words and as probabilities of yes, and build the table of a run's answers.

Answers are stored word for word and read anew whenever a result is built: one row per question.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from psyprobe.analysis.identification.replies import read_label
from psyprobe.analysis.words.reply import read_first_token, read_reply
from psyprobe.analysis.words.trial_table import arrange_trials
from psyprobe.experiment.prompts import Prompt
from psyprobe.files.json_types import JsonObject
from psyprobe.files.parsing import packaged_toml
from psyprobe.files.units import unit_attributes
from psyprobe.observers.chat.protocol import REFUSED, Answer, TotalCost
from psyprobe.running.protocol import RunRecord
from psyprobe.running.schedule import run_attributes
from psyprobe.running.store import Store
from psyprobe.running.task import CONTRAST_AXIS, StimulusAxis, Task, with_task

if TYPE_CHECKING:
    import xarray

Readout: TypeAlias = Literal["text", "p_yes"]

#: Probability that must go to yes and no together for the first token to count as the answer.
LEAST_MASS = 0.5


@dataclass(frozen=True)
class Read:
    """An answer as it was read.

    Parameters
    ----------
    text : str
        "yes", "no", "ambiguous", "refusal" or "invalid"; of labels "yes" is the one that is shown,
        and "no" any other.
    p_yes, logit, mass : float
        Probability of yes among yes and no in the first token, its log odds (natural), and the
        probability of yes and no together; NaN where the observer gives none.
    censored : bool
        Whether one of the two words was too unlikely to be listed, so that the log odds are a
        bound.
    """

    text: str
    p_yes: float = math.nan
    logit: float = math.nan
    mass: float = math.nan
    censored: bool = False
    #: The label that was named, or why none was, as `read_label` returns it.
    label: str = ""


def read_answer(answer: Answer, prompt: Prompt) -> Read:
    """Read an answer both as words and as a probability of yes.

    Parameters
    ----------
    answer : Answer
        As it came.
    prompt : Prompt
        Whose words count as yes and no.

    Returns
    -------
    Read
        Before polarity: "yes" is what was said.

    Examples
    --------
    >>> answer = Answer("Yes.", (("Yes", -0.1), ("No", -2.4)), complete=True)
    >>> read_answer(answer, Prompt("base", "Is it?")).text
    'yes'
    """
    if answer.finish == REFUSED:
        return Read("refusal", label="refusal" if prompt.labels else "")
    label = ""
    if prompt.labels:
        aliases = {words[0]: words[1:] for words in prompt.labels}
        label = read_label(answer.text, [*aliases], aliases)
        text = "no" if label in (*aliases, "outside") else label
        text = "yes" if label == prompt.yes[0] else text
    else:
        text = read_reply(
            answer.text,
            yes=prompt.yes,
            no=prompt.no,
            polarity=prompt.polarity,
            question=prompt.text,
        )
    token = None
    if answer.first_tokens:
        token = read_first_token(
            answer.first_tokens, answer.complete, prompt.yes, prompt.no
        )
    if token is None:
        return Read(text, label=label)
    return Read(text, token.p_yes, token.logit, token.mass, token.censored, label)


def is_readable(answer: Answer, prompt: Prompt) -> bool:
    """Tell whether an answer decides, or spells out a doubt or refusal."""
    reading = read_answer(answer, prompt)
    if reading.text in ("yes", "no") or reading.mass >= LEAST_MASS:
        return True
    return reading.text != "invalid" and answer.finish != "length"


def choose_readout(
    answers: Iterable[Read], setting: Literal["auto", "text", "p_yes"]
) -> Readout:
    """Choose whether text or probability counts for the answers to one prompt.

    Parameters
    ----------
    answers : iterable of Read
        Answers of one observer to one prompt.
    setting : {"auto", "text", "p_yes"}
        The experiment's setting. "auto" takes probabilities where the median answer gives at least
        half of it to yes and no; an answer without probabilities gives none.

    Returns
    -------
    {"text", "p_yes"}

    Examples
    --------
    >>> choose_readout([Read("yes", 0.9, 2.2, 0.98)], "auto"), choose_readout([Read("yes")], "auto")
    ('p_yes', 'text')
    """
    if setting != "auto":
        return setting
    masses = np.nan_to_num([answer.mass for answer in answers])
    usable = masses.size > 0 and float(np.median(masses)) >= LEAST_MASS
    return "p_yes" if usable else "text"


def response_value(answer: Read, readout: Readout, polarity: int) -> float:
    """Convert an answer that was read to the number it counts as.

    Parameters
    ----------
    answer : Read
        As it was read.
    readout : {"text", "p_yes"}
        Which reading counts.
    polarity : {1, -1}
        -1 turns it round.

    Returns
    -------
    float
        1 for yes, 0 for no, a probability in between; NaN where the answer is excluded.

    Examples
    --------
    >>> response_value(Read("no"), "text", -1), response_value(Read("refusal"), "text", 1)
    (1.0, nan)
    """
    if readout == "text":
        value = {"yes": 1.0, "no": 0.0}.get(answer.text, math.nan)
    else:
        value = answer.p_yes if answer.mass >= LEAST_MASS else math.nan
    return 1 - value if polarity < 0 else value


#: Name to unit and description of each variable but the level; those whose unit is "text" hold
#: text.
VARIABLES: Mapping[str, tuple[str, str]] = packaged_toml(
    "psyprobe.probes.words", "variables.toml"
)
#: Fields of a reply that the result repeats. Its time and number of attempts stay in the store,
#: since they differ between runs.
_REPLY_FIELDS = ("text", "tokens_in", "tokens_out", "tokens_thinking", "cost", "finish")
#: Description of the column of a label.
_LOG_PROBABILITY = (
    "Log-probability (natural) that the first token, or a reader, names {}; NaN where it is not "
    "among those listed"
)
#: Stands for the reply to a question that was not asked.
_NO_ANSWER = Answer("", finish="")


def _axis_variables(axis: StimulusAxis, currency: str) -> dict[str, tuple[str, str]]:
    """Return the descriptions of variables, with contrast renamed to the stimulus axis."""
    variables = {**VARIABLES, "cost": (currency, VARIABLES["cost"][1])}
    if axis == CONTRAST_AXIS:
        return variables
    renamed = {
        "contrast": (axis.name, (axis.unit, f"{axis.label} that was asked for")),
        "delivered_contrast": (
            f"delivered_{axis.name}",
            (axis.unit, f"{axis.label} in the images as they arrived"),
        ),
    }
    return dict(
        renamed.get(name, (name, attributes)) for name, attributes in variables.items()
    )


def _replaced_settings(substitutions: Counter[str]) -> list[JsonObject]:
    """Describe the settings that were sent in place of others, with counts of answers."""
    settings = []
    for setting, count in substitutions.items():
        name, requested, sent = json.loads(setting)
        settings.append(
            {"name": name, "requested": requested, "sent": sent, "answers": count}
        )
    return sorted(settings, key=lambda entry: str([*entry.values()][:3]))


def words_result(record: RunRecord, store: Store) -> xarray.Dataset:
    """Build the result of a finished run in words from its store.

    Returns
    -------
    xarray.Dataset
        Over prompt, level, contrast, repeat and order, as `arrange_trials` has it; `VARIABLES` says
        what it holds.

    Raises
    ------
    StoreError
        A question of the run has no answer.
    """
    import xarray

    layout = record.layout
    (level,) = layout["levels"]
    task = Task.from_dict(layout["task"])
    assert task.axis is not None
    rows, total_cost, substitutions = _read_rows(record, store)
    variables = {level["name"]: (level["unit"], level["label"])}
    variables |= _axis_variables(task.axis, total_cost.currency)
    absent = {"order"} if "shown" in rows[0] else {"shown", "answer", "options"}
    variables = {name: entry for name, entry in variables.items() if name not in absent}
    if any(row["first_tokens"] for row in rows):
        # Of labels only, as `task.answers` names them; yes and no have `p_yes`.
        variables |= {
            name: ("1", _LOG_PROBABILITY.format(label))
            for label in task.answers
            if (name := _column_of(label)) in rows[0]
        }
    if "person" in record.observer_card.get("options", {}):
        variables["session"] = ("1", "Session, from 0")
    dtypes = {"text": object, "flag": bool}
    data = {
        name: xarray.Variable(
            ("trial",),
            np.array([row[name] for row in rows], dtypes.get(unit, np.float64)),
            {
                **unit_attributes("1" if unit in dtypes else unit),
                "long_name": long_name,
            },
            fastpath=True,
        )
        for name, (unit, long_name) in variables.items()
    }
    readouts = {row["readout"] for row in rows}
    replaced_settings = {}
    if substitutions:
        replaced_settings["replaced_settings"] = _replaced_settings(substitutions)
    attributes = {
        **run_attributes(
            record,
            display=store.content(layout["display"]),
            levels=[level["name"]],
            delivery=layout["delivery"],
            asking=layout["asking"],
            design_estimates=record.outcome["estimates"],
            size=layout["size"],
            spent=total_cost.to_dict(),
            **replaced_settings,
            **(
                {"training": record.outcome["training"]}
                if "training" in record.outcome
                else {}
            ),
        ),
        **{
            name: json.dumps(layout[name])
            for name in ("prompts", "human")
            if name in layout
        },
        "readout": readouts.pop() if len(readouts) == 1 else "mixed",
        "design": layout["asking"]["design"],
        "ppd": layout["ppd"],
    }
    observer = ((), record.observer, {"units": "1", "long_name": "Observer"})
    table = with_task(xarray.Dataset(data, {"observer": observer}, attributes), task)
    return arrange_trials(table)


def _column_of(label: str) -> str:
    """Return the column of a label's log-probability; NetCDF has no names with a slash."""
    return f"logprob_{re.sub(r'[ /]', '_', label)}"


def _label_logs(reply: Answer, prompt: Prompt) -> dict[str, float]:
    """Read the log-probability of each label off the first token, by column."""
    logs = {}
    for words in prompt.labels:
        token = None
        if reply.first_tokens:
            token = read_first_token(reply.first_tokens, reply.complete, words, ())
        log = -math.inf if token else math.nan
        logs[_column_of(words[0])] = (
            math.log(token.mass) if token and token.mass else log
        )
    return logs


class TrialReply(NamedTuple):
    """One question of a run, with its answer as it was read."""

    #: As the schedule logged the trial, and the stored answer with its time: milliseconds since
    #: 1970, UTC.
    trial: JsonObject
    answer: JsonObject
    milliseconds: int
    #: The prompt, and the same in the order of this question.
    prompt: Prompt
    variant: Prompt
    polarity: int
    reply: Answer
    reading: Read


def iterate_replies(record: RunRecord, store: Store) -> Iterator[TrialReply]:
    """Iterate over the questions of a run in the order of asking, and read their answers."""
    layout = record.layout
    trials = record.outcome["trials"]
    alternatives = Task.from_dict(layout["task"]).alternatives
    prompts = {prompt.id: prompt for prompt in map(Prompt.from_dict, layout["prompts"])}
    answers = store.iterate_timed([trial["key"] for trial in trials])
    for trial, (answer, milliseconds) in zip(trials, answers, strict=True):
        prompt = prompts[trial["prompt"]]
        variant, polarity = prompt.interpret(trial["order"], alternatives)
        answered = answer["reply"] is not None
        reply = Answer.from_dict(answer["reply"]) if answered else _NO_ANSWER
        reading = read_answer(reply, variant) if answered else Read("")
        yield TrialReply(
            trial, answer, milliseconds, prompt, variant, polarity, reply, reading
        )


def choose_readouts(
    record: RunRecord, readings: Iterable[tuple[str, Read]]
) -> dict[str, Readout]:
    """Choose for each prompt which reading of its answers counts, by (prompt, reading)."""
    readings_by_prompt: defaultdict[str, list[Read]] = defaultdict(list)
    for prompt, reading in readings:
        if reading.text:
            readings_by_prompt[prompt].append(reading)
    setting = record.layout["asking"]["readout"]
    names = [prompt["id"] for prompt in record.layout["prompts"]]
    return {name: choose_readout(readings_by_prompt[name], setting) for name in names}


def _read_rows(
    record: RunRecord, store: Store
) -> tuple[list[JsonObject], TotalCost, Counter[str]]:
    """Read every answer of a run as table rows, with its cost and replaced settings."""
    (level,) = record.layout["levels"]
    axis = Task.from_dict(record.layout["task"]).axis
    assert axis is not None
    rows: list[JsonObject] = []
    readings: list[Read] = []
    polarities: list[int] = []
    substitutions: Counter[str] = Counter()
    total_cost = TotalCost()
    for entry in iterate_replies(record, store):
        trial, answer, _, prompt, variant, polarity, reply, reading = entry
        answered = answer["reply"] is not None
        readings.append(reading)
        polarities.append(polarity)
        substitutions.update(
            json.dumps([name, *pair]) for name, pair in reply.instead.items()
        )
        total_cost.add(answer["reply"])
        row = {
            axis.name: trial["contrast"],
            f"delivered_{axis.name}": answer["delivered_contrast"],
            **{name: trial[name] for name in ("repeat", "order", "image_seed")},
            **{
                name: answer[name]
                for name in ("coherent_gain", "total_contrast", "refused")
            },
            **{name: getattr(reply, name) for name in _REPLY_FIELDS},
            "text": reply.text or reply.refusal,
            level["name"]: trial["value"],
            "catch": trial["contrast"] == 0,
            "was_shown": not answer["refused"],
            "prompt": prompt.id,
            "prompt_text": prompt.full,
            "polarity": prompt.polarity,
            "reply_requested": answered and trial["text_asked"],
            "first_tokens": "",
            "reading": reading.text,
            "p_yes": reading.p_yes,
            "logit": reading.logit,
            "answer_mass": reading.mass,
            "logit_censored": reading.censored,
            "session": 0.0,
        }
        if prompt.labels:
            row["shown"] = variant.yes[0]
            row["answer"] = reading.label
            row["options"] = json.dumps(trial["options"], ensure_ascii=False)
            row |= _label_logs(reply, prompt)
        if reply.first_tokens:
            row["first_tokens"] = json.dumps(reply.first_tokens, ensure_ascii=False)
        rows.append(row)
    prompts = [row["prompt"] for row in rows]
    readouts = choose_readouts(record, zip(prompts, readings, strict=True))
    for row, reading, polarity in zip(rows, readings, polarities, strict=True):
        row["readout"] = readout = readouts[row["prompt"]]
        row["response"] = response_value(reading, readout, polarity)
    return rows, total_cost, substitutions
