"""The result of a run that asks in words: one row a question, read anew from what the observer said."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe.answer_store import AnswerStore, LoggedTrial
from psyprobe.errors import StoreError
from psyprobe.observers.chat.answering import Answer, Decoding
from psyprobe.probes.answer_reading import Read, Readout, polarity, read_answer, readout_of, said
from psyprobe.probes.prompts import Prompt
from psyprobe.store import RunRecord, Store, digest

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


def question_result(store: Store, record: RunRecord) -> xarray.Dataset:
    """Build a result from a store alone.

    Parameters
    ----------
    store : Store
        Opened.
    record : RunRecord
        Of a finished run.

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

    (level,) = record.layout["levels"]
    prompts = {prompt.id: prompt for prompt in map(Prompt.from_dict, record.layout["prompts"])}
    wanted = record.layout["asking"]["readout"]
    logged = list(AnswerStore(store).trials(record.key))
    absent = sum(answer is None and not shown["refused"] for _, shown, answer, _ in logged)
    if absent:
        raise StoreError(
            f"{absent} of {len(logged)} questions of {record.experiment} with {record.observer} have no answer yet; "
            "run the experiment again to ask them"
        )
    reads = [
        None if answer is None else read_answer(answer, prompts[trial.about["prompt"]])
        for trial, _, answer, _ in logged
    ]
    readouts = {
        name: readout_of(
            [
                each
                for each, (trial, *_) in zip(reads, logged, strict=True)
                if each is not None and trial.about["prompt"] == name
            ],
            wanted,
        )
        for name in prompts
    }
    rows = [
        {level["name"]: trial.about[level["name"]]}
        | _row(trial, shown, answer, decoding, read, prompts[trial.about["prompt"]], readouts[trial.about["prompt"]])
        for (trial, shown, answer, decoding), read in zip(logged, reads, strict=True)
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
            "display": json.dumps(store.content(record.display_digest), sort_keys=True),
            "software": json.dumps(record.software, sort_keys=True),
            "psyprobe_version": record.software["psyprobe"],
            "random_weights": int(card["random_weights"]),
            "probe": record.layout["probe"],
            "levels": json.dumps([level["name"]]),
            "prompts": json.dumps(record.layout["prompts"]),
            "delivery": json.dumps(record.layout["delivery"], sort_keys=True),
            "asking": json.dumps(record.layout["asking"], sort_keys=True),
            "readout": used.pop() if len(used) == 1 else "mixed",
            "design": record.layout["asking"]["design"],
            "design_estimates": json.dumps(store.content(estimates_name(record)), sort_keys=True),
            "size": json.dumps(record.layout["size"]),
            "ppd": record.layout["ppd"],
        },
    )


def estimates_name(record: RunRecord) -> str:
    """The digest under which a store keeps what a run's designs have found.

    Parameters
    ----------
    record : RunRecord
        Of the run.

    Returns
    -------
    str
    """
    return digest(["estimates", record.key])


def _row(
    trial: LoggedTrial,
    shown: Mapping[str, Any],
    answer: Answer | None,
    decoding: Decoding | None,
    read: Read | None,
    prompt: Prompt,
    readout: Readout,
) -> dict[str, Any]:
    about, reply, heard = trial.about, answer or Answer(""), read or Read("")
    delivered, contrast = shown["delivered_contrast"], about["contrast"]
    turned = polarity(prompt, about["order"])
    return {
        "contrast": contrast,
        "delivered_contrast": _number(delivered),
        "coherent_gain": _number(shown["coherent_gain"]),
        "total_contrast": _number(shown["total_contrast"]),
        "catch": contrast == 0,
        "shown": not shown["refused"],
        "refused": shown["refused"],
        "repeat": about["repeat"],
        "order": about["order"],
        "image_seed": shown["image_seed"],
        "prompt": prompt.id,
        "prompt_text": prompt.full,
        "polarity": prompt.polarity,
        "text": reply.text,
        "text_asked": decoding is not None and decoding.max_tokens > 1,
        "first_tokens": json.dumps(reply.first_tokens, ensure_ascii=False) if reply.first_tokens else "",
        "read": heard.text,
        "p_yes": heard.p_yes,
        "logit": heard.logit,
        "answer_mass": heard.mass,
        "logit_censored": heard.censored,
        "readout": readout,
        "said": said(read, readout, turned),
        "latency": reply.latency if answer else math.nan,
        "tokens_in": _number(reply.tokens_in),
        "tokens_out": _number(reply.tokens_out),
        "cost": _number(reply.cost),
        "finish": reply.finish if answer else "",
        "attempts": reply.attempts if answer else 0,
    }


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
