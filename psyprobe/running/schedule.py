"""What all schedules of experiments share, and what a result says of its run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import software_versions
from psyprobe.running.protocol import Answered, Content, RunRecord
from psyprobe.running.store import Store

if TYPE_CHECKING:
    from psyprobe.experiment import Experiment


class ExperimentSchedule:
    """An experiment that is put to an observer, and perhaps to others beside it."""

    remarks: Sequence[str] = ()
    question_count = 0

    def __init__(self, experiment: Experiment, observer: Any, *others: Any) -> None:
        self.experiment = experiment
        self.observer = observer
        self.observers = {
            observer.card.digest: observer for observer in (observer, *others)
        }
        #: Whether a digest belongs to the part of the run that is asked; None of a whole run.
        self.holds: Callable[[str], bool] | None = None

    def layout(self) -> JsonObject:
        """Return all that a result needs besides the answers."""
        raise NotImplementedError

    def record(self, store: Store) -> RunRecord:
        """Build the record of the run for the store.

        Its key depends on all that could change a question or its reading.
        """
        experiment = self.experiment
        card = self.observer.card
        return RunRecord(
            experiment=experiment.name,
            experiment_digest=experiment.digest,
            experiment_toml=experiment.toml,
            observer=card.name,
            observer_digest=card.digest,
            observer_card=card.to_dict(),
            probe=experiment.probe,
            layout=self.layout(),
            software=software_versions(),
        )

    def contents(self) -> Iterator[Content]:
        """Iterate over the observers' cards, by digest."""
        for observer in self.observers.values():
            yield observer.card.digest, "observer", observer.card.to_dict()

    def narrow(self, holds: Callable[[str], bool]) -> None:
        """Restrict the questions to those whose digest a function accepts."""
        self.holds = holds

    def begin(self, record: RunRecord) -> None:
        """Ignore an earlier record: nothing of it binds this schedule."""

    def watch(self, answered: Answered) -> None:
        """Accept every answer: none can make asking on useless."""

    def tell(self, answers: Mapping[str, JsonMapping]) -> None:
        """Ignore the answers to a round: no question depends on them."""

    def outcome(self) -> JsonObject:
        """Return an empty table: the result needs nothing besides the answers."""
        return {}


def run_attributes(record: RunRecord, **values: Any) -> JsonObject:
    """Build a result's attributes from the record of its run; further values become JSON.

    Of software, all versions that answered are listed.
    """
    versions: dict[str, list[str]] = {}
    for packages in (record.software, *(origin.software for origin in record.origins)):
        for name, version in packages.items():
            if version not in versions.setdefault(name, []):
                versions[name].append(version)
    software = {name: " and ".join(listed) for name, listed in versions.items()}
    served = [origin.served for origin in record.origins if origin.served]
    if served:
        values["served"] = served
    tables = {"observer_card": record.observer_card, "software": software, **values}
    return {
        "experiment": record.experiment,
        "experiment_digest": record.experiment_digest,
        "experiment_toml": record.experiment_toml,
        "probe": record.probe,
        "observer": record.observer,
        "random_weights": int(record.observer_card["random_weights"]),
        "psyprobe_version": software["psyprobe"],
        **{name: json.dumps(table, sort_keys=True) for name, table in tables.items()},
    }
