"""Find the runs of a registry that changed since a revision of git."""

from __future__ import annotations

import subprocess
from pathlib import Path

from psyprobe.errors import InputError
from psyprobe.running.registry_run import SCORES_FILE

#: Parts of the path of a run's file: results, observer, revision, experiment, run, name.
_PARTS = 6


def changed_runs(registry: str | Path, reference: str) -> tuple[list[Path], list[str]]:
    """List the folders of runs with changed or new files, and the files that were rewritten.

    Parameters
    ----------
    registry : str or Path
        The folder of the registry, in a repository of git.
    reference : str
        A revision, such as "origin/main"; new files need not be committed.

    Returns
    -------
    folders : list of Path
        Runs of which a file is new or another one.
    rewritten : list of str
        Files that were there and are changed or gone, but for ``scores.json``.

    Raises
    ------
    InputError
        Git is missing, or knows no such revision.
    """
    root = Path(registry)
    lines = _git(
        root, "diff", "--name-status", "--no-renames", reference, "--", "results"
    )
    changes = [line.split("\t", 1) for line in lines]
    new = _git(root, "ls-files", "--others", "--exclude-standard", "results")
    changes += [["A", name] for name in new]
    folders: dict[Path, None] = {}
    rewritten = []
    for status, name in changes:
        parts = Path(name).parts
        if status != "A" and parts[-1] != SCORES_FILE:
            rewritten.append(name)
        folder = root.joinpath(*parts[: _PARTS - 1])
        if len(parts) >= _PARTS and folder.exists():
            folders[folder] = None
    return list(folders), rewritten


def _git(root: Path, *words: str) -> list[str]:
    """Run git in the registry, and return its lines, paths relative to the registry."""
    relative = ["--relative"] if words[0] == "diff" else []
    command = ["git", "-C", str(root), "-c", "core.quotePath=off", words[0], *relative]
    if any(word.startswith("-") for word in words[3:4]):
        raise InputError(
            f"{words[3]!r:.60} is no revision; give for example origin/main"
        )
    try:
        done = subprocess.run(
            [*command, *words[1:]], capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise InputError(f"--changed-since needs git ({error})") from None
    if done.returncode:
        reason = " ".join(done.stderr.split())[:160]
        raise InputError(f"git cannot compare {root}: {reason}")
    return done.stdout.splitlines()
