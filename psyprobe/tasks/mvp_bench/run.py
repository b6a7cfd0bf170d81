"""Ask an observer the questions of MVP-Bench: each once, in every rotation where that is wanted, resumable.

What is asked, how and with which system text is part of the question in the store; so runs that share questions share
answers, and another system text asks anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.images import file_digest, read_image

if TYPE_CHECKING:
    from psyprobe.observers.chat.answering import AnswerObserver
    from psyprobe.store import Store
    from psyprobe.tasks.judge import Judge

#: Asking differently makes another question of the same text and image.
VERSION = "mvp-bench 1"

#: System texts by name; any other text may be given as it is. The wording of "commonsense" is ours: the paper tells of
#: such an instruction, whose own words are not repeated here.
SYSTEMS: Mapping[str, str] = {
    "": "",
    "commonsense": "You look at images and know about everyday life. Use that common sense and answer in few words.",
}

CROSS = ("file", "two_images")


def ask_questions(
    questions: pd.DataFrame,
    images: str | Path,
    observer: AnswerObserver,
    *,
    system: str = "",
    cross: str = "file",
    store: str | Path | Store | None = None,
    max_tokens: int = 64,
    progress: bool | None = None,
) -> pd.DataFrame:
    """Ask what the store does not know yet.

    Parameters
    ----------
    questions : pandas.DataFrame
        A question table.
    images : str or Path
        The folder that its image paths start from.
    observer : AnswerObserver
        Who is asked.
    system : str
        A name of `SYSTEMS`, or a system text.
    cross : {"file", "two_images"}
        How both images of a pair are shown: in the one file that holds them side by side, or as two images, natural and
        then manipulated.
    store : str, Path or Store, optional
        The file that keeps answers.
    max_tokens : int
        Where an answer is cut off.
    progress : bool, optional
        Whether to show a progress bar.

    Returns
    -------
    pandas.DataFrame
        Predictions: question_id, reply, judge (empty), place; as `read_predictions` gives them.

    Raises
    ------
    InputError
        An image is missing or cannot be shown as it is, or the observer takes too few images.
    """
    from psyprobe.item_run import ItemQuestion, ask_items
    from psyprobe.observers.chat.answering import Decoding

    if cross not in CROSS:
        raise unknown_name("way to show both images", cross, CROSS)
    folder = Path(images)
    files = [
        _files(folder, task, pair, image, cross)
        for task, pair, image in questions[["task", "pair", "image"]].itertuples(index=False)
    ]
    missing = sorted({str(path) for paths in files for path in paths if not path.is_file()})
    if missing:
        raise InputError(f"{len(missing)} images are missing, the first {missing[0]}; give the folder that holds them")
    digests = {path: file_digest(path) for path in dict.fromkeys(path for paths in files for path in paths)}
    decoding = Decoding(max_tokens=max_tokens, logprobs=False)
    names = [f"{run}\n{name}" for run, name in questions[["run", "question_id"]].itertuples(index=False)]
    asked = [
        ItemQuestion(
            name=name,
            prompt=question,
            shown=tuple(digests[path] for path in paths),
            images=_loading(paths),
            system=SYSTEMS.get(system, system),
            decoding=decoding,
        )
        for name, question, paths in zip(names, questions["question"], files, strict=True)
    ]
    answers = ask_items(
        asked, observer, version=VERSION, store=store, label=f"MVP-Bench: {observer.card.name}", progress=progress
    )
    return pd.DataFrame(
        {
            "question_id": questions["question_id"].to_numpy(),
            "reply": [answers[name].text for name in names],
            "judge": "",
            "place": range(len(questions)),
        }
    )


def judge_replies(
    questions: pd.DataFrame,
    predictions: pd.DataFrame,
    judge: Judge,
    *,
    store: str | Path | Store | None = None,
    progress: bool | None = None,
) -> tuple[pd.DataFrame, int]:
    """Let a judge read the yes/no replies that the benchmark's rule leaves open.

    Parameters
    ----------
    questions, predictions : pandas.DataFrame
        A question table, and the replies to it.
    judge : Judge
        Who judges, and how.
    store : str, Path or Store, optional
        The file that keeps answers.
    progress : bool, optional
        Whether to show a progress bar.

    Returns
    -------
    predictions : pandas.DataFrame
        With the column judge filled in: "yes", "no" or "unknown" for what was judged.
    failed : int
        Replies of which the judge made no verdict; they count as unknown.
    """
    from psyprobe.tasks.judge import Case, judge_cases
    from psyprobe.tasks.mvp_bench.replies import parse_reply

    text = questions.set_index("question_id")[["question", "task"]]
    cases = []
    for name, reply in predictions[["question_id", "reply"]].itertuples(index=False):
        question, task = text.loc[name]
        if task == "yes_no" and not parse_reply(reply, task, "main"):
            cases.append(Case(name, "yes_no", question, "", reply))
    verdicts = judge_cases(cases, judge, store=store, progress=progress)
    said = {name: str(found.majority or "unknown") for name, found in verdicts.items()}
    judged = [said.get(name, "") for name in predictions["question_id"]]
    return predictions.assign(judge=judged), sum(found.failed for found in verdicts.values())


def _files(folder: Path, task: str, pair: int, image: str, cross: str) -> tuple[Path, ...]:
    if task != "cross_mcq" or cross == "file":
        return (folder / image,)
    # The pair's own files lie in the folder of single images, by the release's naming.
    suffix = Path(image).suffix
    return tuple(folder / "Single_Images" / f"{pair}_{kind}{suffix}" for kind in ("s", "e"))


def _loading(paths: tuple[Path, ...]) -> Callable[[], tuple[FloatArray, ...]]:
    return lambda: tuple(_drive(path) for path in paths)


@lru_cache(maxsize=4)
def _drive(path: Path) -> FloatArray:
    return read_image(path) / np.float64(255)
