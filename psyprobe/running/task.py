"""The task that a probe puts to an observer: the answers to choose from and the stimulus axis.

A probe declares its task and every result carries it, so that fits, scores and figures read there
how often guessing is right, and need not know which probe asked.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from psyprobe.errors import InputError, unknown_name
from psyprobe.files.json_types import JsonMapping, JsonObject

if TYPE_CHECKING:
    import xarray

#: What is scored of each response: whether it says yes, whether it is correct, or its size.
Scored: TypeAlias = Literal["yes", "correct", "response"]


@dataclass(frozen=True)
class StimulusAxis:
    """The stimulus quantity that responses are a function of.

    Parameters
    ----------
    name : str
        Name of the variable in the result, such as "contrast" or "orientation_difference".
    unit : str
        Its unit; "1" for a plain number.
    label : str
        What an axis of a figure says, without the unit.
    inverse : str, optional
        What the axis of 1 / threshold says, with its unit, where that quantity has a name.

    Examples
    --------
    >>> StimulusAxis("period", "deg", "Period of the stripes").name
    'period'
    """

    name: str
    unit: str
    label: str
    inverse: str = ""

    def __post_init__(self) -> None:
        for field, text in asdict(self).items():
            if not isinstance(text, str) or not (text.strip() or field == "inverse"):
                raise InputError(
                    f"{field} of a stimulus axis is {text!r}; give some text"
                )


#: The axis of tasks in which the contrast of a stimulus grows.
CONTRAST_AXIS = StimulusAxis("contrast", "1", "Contrast")


@dataclass(frozen=True)
class Task:
    """What an observer is asked to do, as its probe declares it.

    Parameters
    ----------
    answers : tuple of str, optional
        The words to choose from, each an alternative: ("yes", "no"), or one for each place or
        direction where the pattern can be. Empty where the observer does not choose.
    scored : {"yes", "correct", "response"}, optional
        What is counted: answers that say yes, answers that are correct (a forced choice), or the
        size of a response, such as the distance between the features of two images.
    axis : StimulusAxis, optional
        What responses are a function of; None where every question stands alone.
    values : tuple of float, optional
        Value of a parameter of the stimulus for which each answer is right, such as the orientation
        of a pattern, deg; empty where none decides.
    parameter : str, optional
        Name of that parameter.

    Raises
    ------
    InputError
        There is one answer only, or one comes twice, or none says yes.

    Examples
    --------
    >>> Task(("left", "middle", "right"), "correct").chance
    0.3333333333333333
    >>> Task(("yes", "no"), "yes").chance is None
    True
    """

    answers: tuple[str, ...] = ()
    scored: Scored = "response"
    axis: StimulusAxis | None = None
    values: tuple[float, ...] = ()
    parameter: str = "orientation"

    def __post_init__(self) -> None:
        if self.scored not in get_args(Scored):
            raise unknown_name("score of a task", str(self.scored), get_args(Scored))
        if not all(
            isinstance(answer, str) and answer.strip() for answer in self.answers
        ):
            raise InputError(f"answers of a task are {self.answers!r}; give words")
        if len(self.answers) == 1 or len({*self.answers}) < len(self.answers):
            raise InputError(
                f"answers of a task are {self.answers!r}; give at least two different words, or "
                "none where the observer does not choose"
            )
        if self.scored == "yes" and len(self.answers) != 2:
            raise InputError(
                f"a task that scores yes has answers {self.answers!r}; give two, the first of "
                "which says that the pattern is seen"
            )
        if self.scored == "response" and self.answers:
            raise InputError(
                f'a task with answers {self.answers!r} scores responses; give scored = "correct" '
                'or "yes"'
            )

    @property
    def alternatives(self) -> int:
        """The number of answers to choose from; 0 where the observer does not choose."""
        return len(self.answers)

    @property
    def chance(self) -> float | None:
        """The rate at which guessing is right: 1 / the number of alternatives.

        None where no answer is right or wrong by itself: the guess rate of yes or no is estimated.
        """
        forced = self.scored == "correct" and self.answers
        return 1 / self.alternatives if forced else None

    @property
    def answered(self) -> bool:
        """Tell whether the observer gives answers; otherwise it responds with numbers."""
        return self.scored != "response"

    def to_dict(self) -> JsonObject:
        """Return the task as text, lists and tables.

        Returns
        -------
        dict
            One entry a field; without the parameter where it has no values.
        """
        task = {**asdict(self), "answers": list(self.answers)}
        values = task.pop("values")
        parameter = task.pop("parameter")
        return task | (
            {"values": list(values), "parameter": parameter} if values else {}
        )

    @classmethod
    def from_dict(cls, values: JsonMapping) -> Task:
        """Build the task that `to_dict` describes.

        Parameters
        ----------
        values : mapping
            Fields by name.

        Returns
        -------
        Task
        """
        try:
            axis = None if values["axis"] is None else StimulusAxis(**values["axis"])
            # Earlier results name them after the only parameter that there was.
            right_values = values.get("values", values.get("orientations", ()))
            return cls(
                tuple(values["answers"]),
                values["scored"],
                axis,
                tuple(right_values),
                values.get("parameter", "orientation"),
            )
        except (KeyError, TypeError) as error:
            raise InputError(f"{values!r:.200} describes no task: {error}") from None


def with_task(result: xarray.Dataset, task: Task) -> xarray.Dataset:
    """Write a task into a result's attributes, as JSON."""
    return result.assign_attrs(task=json.dumps(task.to_dict(), sort_keys=True))


def task_of(result: xarray.Dataset) -> Task:
    """Read the task from a result's attributes.

    Parameters
    ----------
    result : xarray.Dataset
        Of any run, or a curve that was fitted to one.

    Raises
    ------
    InputError
        The result does not say what was asked.
    """
    text = getattr(result, "attrs", {}).get("task")
    if text is None:
        raise InputError(
            "this is no result of a run: it does not say what was asked; pass what "
            "psyprobe.run() returned"
        )
    try:
        values = json.loads(text)
    except (TypeError, ValueError) as error:
        raise InputError(f"the task of this result is no JSON: {error}") from None
    return Task.from_dict(values)


def stimulus_axis_of(result: xarray.Dataset) -> StimulusAxis:
    """Read from a result the stimulus variable that responses are a function of.

    Parameters
    ----------
    result : xarray.Dataset
        As for `task_of`.

    Raises
    ------
    InputError
        The result does not say what was asked, or its questions have no stimulus axis.
    """
    axis = task_of(result).axis
    if axis is None:
        raise InputError(
            f"questions of probe {result.attrs.get('probe', '')!r} have no stimulus axis; pass the "
            "result of a probe that varies contrast or another parameter of a stimulus"
        )
    return axis
