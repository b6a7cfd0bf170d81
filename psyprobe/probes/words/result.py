"""The result of a run in words: one row a question, read anew from what the observer said."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe.experiment.prompts import Prompt
from psyprobe.observers.chat.answering import Answer
from psyprobe.probes.words.reading import Read, Readout, polarity, read_answer, readout_of, said
from psyprobe.running.protocol import RunRecord
from psyprobe.running.store import Store

if TYPE_CHECKING:
    import xarray

#: Name to unit and description of each variable but the level; those whose unit is "text" hold text.
VARIABLES = {
    "contrast": ("1", "Contrast that was asked for, in the stimulus' own kind; 0 in a catch trial"),
    "delivered_contrast": ("1", "Contrast of the asked pattern in the image that the observer got"),
    "coherent_gain": ("1", "Delivered over asked contrast"),
    "total_contrast": ("1", "Contrast of everything in the image that the observer got, dither included"),
    "catch": ("1", "1 where nothing was shown"),
    "shown": ("1", "0 where the image could not be delivered and nothing was asked"),
    "refused": ("text", "Why nothing was asked"),
    "repeat": ("1", "Which showing of the contrast, or with an adaptive design of the level"),
    "order": ("1", "Place of the pattern among the images"),
    "image_seed": ("1", "Seed of the noise"),
    "prompt": ("text", "Id of the prompt"),
    "prompt_text": ("text", "What was asked"),
    "polarity": ("1", "1 where yes means that the pattern is seen, -1 where it means that it is not"),
    "text": ("text", "The reply, word for word"),
    "text_asked": ("1", "1 where a whole reply was asked for, 0 where its first token was"),
    "first_tokens": ("text", "Log-probabilities of the first token, as JSON; empty where there are none"),
    "read": ("text", "yes, no, ambiguous, refusal or invalid: the reply as text"),
    "p_yes": ("1", "Probability of yes among yes and no as the first token, before polarity"),
    "logit": ("1", "Log odds (natural) of the same, before polarity"),
    "answer_mass": ("1", "Probability of yes and no together"),
    "logit_censored": ("1", "1 where one of both was too unlikely to be listed, so that the log odds are a bound"),
    "readout": ("text", "Which reading counts: text or p_yes"),
    "said": ("1", "What counts, after polarity: 1 pattern seen, 0 not, a probability in between; NaN: excluded"),
    "latency": ("s", "From sending to having the reply"),
    "tokens_in": ("1", "Tokens of the question"),
    "tokens_out": ("1", "Tokens of the reply"),
    "cost": ("USD", "Price of the question"),
    "finish": ("text", "Why the reply ended"),
    "attempts": ("1", "How often the question was sent"),
}


def words_result(record: RunRecord, store: Store) -> xarray.Dataset:
    """The result of a finished run, from a store alone.

    Returns
    -------
    xarray.Dataset
        One dimension, "trial"; `VARIABLES` says what it holds, beside a column named after the level ("frequency").

    Raises
    ------
    StoreError
        A question of the run has no answer.
    """
    import xarray

    layout, trials = record.layout, record.outcome["trials"]
    (level,) = layout["levels"]
    prompts = {prompt.id: prompt for prompt in map(Prompt.from_dict, layout["prompts"])}
    answers = store.answers_of_all([trial["key"] for trial in trials])
    replies = [_reply(answers[trial["key"]]) for trial in trials]
    reads = [
        None if reply is None else read_answer(reply, prompts[trial["prompt"]])
        for trial, reply in zip(trials, replies, strict=True)
    ]
    heard: dict[str, list[Read]] = {name: [] for name in prompts}
    for trial, read in zip(trials, reads, strict=True):
        if read is not None:
            heard[trial["prompt"]].append(read)
    readouts = {name: readout_of(found, layout["asking"]["readout"]) for name, found in heard.items()}
    rows = [
        {level["name"]: trial["value"]}
        | _row(trial, answers[trial["key"]], reply, read, prompts[trial["prompt"]], readouts[trial["prompt"]])
        for trial, reply, read in zip(trials, replies, reads, strict=True)
    ]
    variables = {level["name"]: (level["unit"], f"{level['label']}; of a catch trial one that it has no use for")}
    data = {
        name: (
            ("trial",),
            np.array([row[name] for row in rows], dtype=object if unit == "text" else np.float64),
            {"units": "1" if unit == "text" else unit, "long_name": long_name},
        )
        for name, (unit, long_name) in {**variables, **VARIABLES}.items()
    }
    card, used = record.observer_card, set(readouts.values())
    return xarray.Dataset(
        data,
        coords={"observer": ((), record.observer, {"units": "1", "long_name": "Observer"})},
        attrs={
            "experiment": record.experiment,
            "experiment_digest": record.experiment_digest,
            "experiment_toml": record.experiment_toml,
            "observer": record.observer,
            "observer_card": json.dumps(card, sort_keys=True),
            "display": json.dumps(store.content(layout["display"]), sort_keys=True),
            "software": json.dumps(record.software, sort_keys=True),
            "psyprobe_version": record.software["psyprobe"],
            "random_weights": int(card["random_weights"]),
            "probe": record.probe,
            "levels": json.dumps([level["name"]]),
            "prompts": json.dumps(layout["prompts"]),
            "delivery": json.dumps(layout["delivery"], sort_keys=True),
            "asking": json.dumps(layout["asking"], sort_keys=True),
            "readout": used.pop() if len(used) == 1 else "mixed",
            "design": layout["asking"]["design"],
            "design_estimates": json.dumps(record.outcome["estimates"], sort_keys=True),
            "size": json.dumps(layout["size"]),
            "ppd": layout["ppd"],
            **({"human": json.dumps(layout["human"])} if "human" in layout else {}),
        },
    )


def _reply(answer: Mapping[str, Any]) -> Answer | None:
    return None if answer["reply"] is None else Answer.from_dict(answer["reply"])


def _row(
    trial: Mapping[str, Any],
    answer: Mapping[str, Any],
    reply: Answer | None,
    read: Read | None,
    prompt: Prompt,
    readout: Readout,
) -> dict[str, Any]:
    given, heard = reply or Answer(""), read or Read("")
    return {
        "contrast": trial["contrast"],
        "delivered_contrast": _number(answer["delivered_contrast"]),
        "coherent_gain": _number(answer["coherent_gain"]),
        "total_contrast": _number(answer["total_contrast"]),
        "catch": trial["contrast"] == 0,
        "shown": not answer["refused"],
        "refused": answer["refused"],
        "repeat": trial["repeat"],
        "order": trial["order"],
        "image_seed": trial["image_seed"],
        "prompt": prompt.id,
        "prompt_text": prompt.full,
        "polarity": prompt.polarity,
        "text": given.text,
        "text_asked": reply is not None and trial["text_asked"],
        "first_tokens": json.dumps(given.first_tokens, ensure_ascii=False) if given.first_tokens else "",
        "read": heard.text,
        "p_yes": heard.p_yes,
        "logit": heard.logit,
        "answer_mass": heard.mass,
        "logit_censored": heard.censored,
        "readout": readout,
        "said": said(read, readout, polarity(prompt, trial["order"])),
        "latency": given.latency if reply else math.nan,
        "tokens_in": _number(given.tokens_in),
        "tokens_out": _number(given.tokens_out),
        "cost": _number(given.cost),
        "finish": given.finish if reply else "",
        "attempts": given.attempts if reply else 0,
    }


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
