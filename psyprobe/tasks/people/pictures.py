"""A session with pictures: the items of a benchmark, asked as models are asked them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.observers.people.observer import PersonObserver
from psyprobe.observers.people.pictures import PicturePresenter
from psyprobe.probes import load_probe
from psyprobe.tasks.item_schedule import ItemSchedule
from psyprobe.tasks.people.sessions import ParticipantSession

if TYPE_CHECKING:
    import xarray

#: Benchmarks whose items people can be asked about.
PICTURE_PROBES = ("mvp_bench", "r_bench")


class PictureSession(ParticipantSession):
    """A session that runs a benchmark of pictures, on a screen that needs no calibration.

    Parameters
    ----------
    experiment : Experiment
        Its probe is mvp_bench or r_bench.
    person, store
        As for `ParticipantSession`.

    Raises
    ------
    InputError
        The items cannot be read, or the person has answered them already.
    """

    kind = "pictures"
    result_command = "psyprobe score"
    single_session = True

    def __init__(self, experiment: Experiment, person: str, store: Path) -> None:
        super().__init__(experiment, person, store)
        # Errors in the items are raised here, before anybody sits down.
        probe = load_probe(experiment.probe)
        observer = PersonObserver(person, self._session_id)
        schedule = cast(ItemSchedule, probe.plan(experiment, observer))
        self._count = schedule.distinct
        self._judge = (
            None if schedule.judge is None else schedule.judge.observer.card.name
        )

    def facts(self) -> JsonMapping:
        """Describe the session for its first page: title, person, questions left."""
        resumed = None
        if self._earlier is not None:
            resumed = {"number": min(self._answered + 1, self._count)}
        return {
            **super().facts(),
            "task": "pictures",
            "total": self._count,
            "left": self._count - self._answered,
            "judge": self._judge,
            "resumed": resumed,
        }

    def calibrate(self, values: JsonMapping) -> JsonMapping:
        """Refuse to calibrate: pictures are shown as they are."""
        raise InputError(
            "pictures are shown as they are, and no screen is calibrated for them; load the "
            "page again"
        )

    def _make_presenter(self) -> PicturePresenter:
        """Set up how pictures are shown."""
        return PicturePresenter()

    def _question_count(self) -> int:
        """Return the number of questions in the session."""
        return self._count

    def _summarize(self, result: xarray.Dataset) -> JsonObject:
        """Return what the page shows at the end: the number of questions."""
        return {"count": self._count}
