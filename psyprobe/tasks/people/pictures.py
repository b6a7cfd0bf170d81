"""A visit for pictures: the items of a benchmark, one question after the other, as models are asked
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.observers.people.observer import PersonObserver
from psyprobe.observers.people.pictures import Pictures
from psyprobe.probes import load_probe
from psyprobe.tasks.item_schedule import ItemSchedule
from psyprobe.tasks.people.sessions import PersonVisit, nobody

if TYPE_CHECKING:
    import xarray

#: Benchmarks whose items people can be asked about.
PICTURE_PROBES = ("mvp_bench", "r_bench")


class PictureVisit(PersonVisit):
    """Pictures as they are, on a screen that needs no calibration, and a run of a benchmark.

    Parameters
    ----------
    experiment : Experiment
        Of the probe mvp_bench or r_bench.
    person, store
        As for `PersonVisit`.

    Raises
    ------
    InputError
        The items cannot be read, or the person has answered them already.
    """

    kind = "pictures"
    afterwards = "psyprobe score"
    once = True

    def __init__(self, experiment: Experiment, person: str, store: Path) -> None:
        super().__init__(experiment, person, store)
        # What is wrong with the items is said before anybody sits down.
        schedule = cast(
            ItemSchedule, load_probe(experiment.probe).plan(experiment, self._observer(nobody))
        )
        self._count = schedule.distinct
        self._judge = None if schedule.judge is None else schedule.judge.observer.card.name

    def facts(self) -> Mapping[str, Any]:
        """As in `Visit`."""
        left = self._count - self._answered
        resumed = (
            None if self._earlier is None else {"number": min(self._answered + 1, self._count)}
        )
        told = {
            "task": "pictures",
            "total": self._count,
            "left": left,
            "judge": self._judge,
            "resumed": resumed,
        }
        return {**super().facts(), **told}

    def calibrate(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """As in `Visit`: there is nothing to calibrate."""
        raise InputError(
            "pictures are shown as they are, and no screen is calibrated for them; load the "
            "page again"
        )

    def _observer(self, put: Any) -> PersonObserver:
        return PersonObserver(self.person, self._session_id, None, put)

    def _showing(self) -> Pictures:
        return Pictures()

    def _total(self) -> int:
        return self._count

    def _told(self, result: xarray.Dataset) -> dict[str, Any]:
        return {"count": self._count}
