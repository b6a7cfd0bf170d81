"""What the probes of benchmarks share: asking, scoring and drawing items, comparing people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from psyprobe.analysis.words.people import mean_of_people
from psyprobe.analysis.words.score import refuse_features
from psyprobe.experiment import Experiment
from psyprobe.files.json_types import JsonMapping
from psyprobe.observers.chat.protocol import AnswerObserver
from psyprobe.running.protocol import RunRecord
from psyprobe.running.task import Task
from psyprobe.tasks.agreement import (
    PeopleAgreement,
    PeopleMean,
    agreements,
    people_by_experiment,
)
from psyprobe.tasks.item_schedule import ItemSchedule
from psyprobe.tasks.items import Judge, answer_items
from psyprobe.tasks.tables import MetricValues, ReadScore, by_observer

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure


class ItemProbe:
    """A probe that asks about items in words; each benchmark fills in what is its own."""

    ABILITIES = ("answer",)
    SECTIONS = ("items", "judge")
    answer = staticmethod(answer_items)
    #: Title of its tables, and coverage of intervals if nobody names another.
    table: str
    confidence: float
    #: Plans a run; a judge replaces that of the page.
    plan: Callable[..., ItemSchedule]
    #: Scores a result with intervals of a coverage.
    score_replies: Callable[[xarray.Dataset, float], ReadScore]
    #: Draws metrics by observer.
    draw: Callable[[Mapping[str, pd.DataFrame], Axes | None], Axes]
    #: Selects the metrics of the scoreboard.
    ranked: Callable[[pd.DataFrame], MetricValues]
    #: Collects the answers that were chosen among several, by the name of their question.
    choices: Callable[[xarray.Dataset], Mapping[str, str]]

    def plan_again(
        self,
        experiment: Experiment,
        record: RunRecord,
        stand_in: Callable[[JsonMapping], AnswerObserver],
    ) -> ItemSchedule:
        """Plan a recorded run again, with stand-ins for its observer and its judge."""
        # The page's own judge must not be loaded: it may be a stranger's.
        page = experiment.model_copy(update={"judge": None})
        judge = record.layout["judge"]
        if judge is not None:
            settings = (judge["repeats"], judge["temperature"], judge["max_tokens"])
            judge = Judge(stand_in(judge["observer"]), *settings)
        return self.plan(page, stand_in(record.observer_card), judge)

    def task(self, record: RunRecord) -> Task:
        """Return the task of a benchmark: every item has a correct answer."""
        return Task(scored="correct")

    def score(
        self,
        result: xarray.Dataset,
        *,
        measure: str | None = None,
        layer: str | None = None,
        confidence: float | None = None,
    ) -> tuple[ReadScore]:
        """Score the observer, trivial responders, and other readers of the observer's replies.

        Raises
        ------
        InputError
            Nothing can be scored, or a measure or layer is named, which answers in words do not
            have.
        """
        refuse_features(measure=measure, layer=layer)
        return (self.score_replies(result, confidence or self.confidence),)

    def plot(
        self,
        results: Sequence[xarray.Dataset],
        ax: Axes | None = None,
        *,
        figure: SubFigure | None = None,
        measure: str | None = None,
        layer: str | None = None,
        **_: Any,
    ) -> Axes:
        """Draw the metrics of each observer, with intervals."""
        metrics = {
            name: self.score(result, measure=measure, layer=layer)[0].metrics
            for name, result in by_observer(results).items()
        }
        return self.draw(metrics, ax if figure is None else figure.add_subplot())

    def score_together(
        self, results: Sequence[xarray.Dataset]
    ) -> list[PeopleMean | PeopleAgreement]:
        """Score the mean of people, and how far their choices agree."""
        means = []
        for members in people_by_experiment(results):
            scores = {
                person: self.score(result)[0] for person, result in members.items()
            }
            first_score = next(iter(scores.values()))
            mean = mean_of_people(
                {person: score.metrics for person, score in scores.items()}
            )
            observer = f"mean of {len(scores) - 2} of {len(scores)} people"
            means.append(
                PeopleMean(
                    {**first_score.attributes, "observer": observer},
                    first_score.confidence,
                    self.table,
                    self.ranked(mean),
                    mean.attrs["left_out"],
                )
            )
        people_agreements = []
        for members in people_by_experiment(results, 2):
            choices = {
                person: self.choices(result) for person, result in members.items()
            }
            experiment = str(next(iter(members.values())).attrs["experiment"])
            people_agreements.append(
                PeopleAgreement(experiment, tuple(members), tuple(agreements(choices)))
            )
        return [*means, *people_agreements]
