"""Exchange runs with other harnesses, whose files hold the same answers.

A package adds one under the entry point ``psyprobe.harnesses``: a module, or any object, with the
two functions of `Harness`.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple, Protocol, cast

from psyprobe.errors import PsyprobeError, describe_failure, unknown_name
from psyprobe.experiment import Experiment
from psyprobe.running.protocol import RunRecord
from psyprobe.running.store import Store

GROUP = "psyprobe.harnesses"


class ExportedRun(NamedTuple):
    """The file to which a run was written, and its number of answers."""

    path: Path
    answers: int


class ImportedRun(NamedTuple):
    """The run that a store took from a file of another harness."""

    experiment: str
    observer: str
    #: Answers in the file, answers that the store took, and questions that have none yet.
    answers: int
    taken: int
    left: int


class Harness(Protocol):
    """A harness that can write and read its files."""

    def write(
        self, record: RunRecord, store: Store, folder: Path, page_folder: Path
    ) -> ExportedRun:
        """Write a finished run as a file of the harness.

        Parameters
        ----------
        record : RunRecord
            The run.
        store : Store
            The store of the run.
        folder : Path
            The folder of the new file.
        page_folder : Path
            The folder in which files that a page names are found.
        """

    def read(
        self,
        path: str,
        store: Store,
        page: Experiment | None,
        observer: str | None,
        input_size: int | None,
    ) -> ImportedRun:
        """Store the answers of a harness's file as a run like any other.

        Parameters
        ----------
        path : str
            The file.
        store : Store
            The store that takes the answers.
        page : Experiment or None
            The experiment; None where the user names none.
        observer : str or None
            A name for the observer; None where the user gives none.
        input_size : int or None
            Pixels a side for which the questions were drawn.
        """


def harness_names() -> list[str]:
    """List the evaluation harnesses that installed packages add, sorted."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def load_harness(name: str) -> Harness:
    """Load an evaluation harness by name.

    Raises
    ------
    UnknownNameError
        No installed package has a harness of this name.
    PsyprobeError
        The package that adds it cannot be used.
    """
    for point in entry_points(group=GROUP, name=name):
        try:
            return cast("Harness", point.load())
        except (Exception, SystemExit) as error:
            raise PsyprobeError(
                f"the harness {name!r} of {point.value} cannot be loaded: "
                f"{describe_failure(error)}"
            ) from error
    raise unknown_name("harness", name, harness_names())
