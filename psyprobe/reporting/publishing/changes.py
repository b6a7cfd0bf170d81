"""Find the runs of a registry that changed since a revision of git."""

from __future__ import annotations

import subprocess
from pathlib import Path

from psyprobe.errors import InputError
from psyprobe.running.registry_run import SCORES_FILE, run_folders


def changed_runs(registry: str | Path, reference: str) -> tuple[list[Path], list[str]]:
    """List the folders of runs with changed or new files, and the files that were rewritten.

    Parameters
    ----------
    registry : str or Path
        The folder of the registry, in a repository of git.
    reference : str
        A revision, such as "origin/main"; new files need not be committed. What became of it since
        the two parted is no change.

    Returns
    -------
    folders : list of Path
        Runs of which a file is new or another one.
    rewritten : list of str
        Files that were there and are changed or gone, but for ``scores.json``.

    Raises
    ------
    InputError
        Git is missing, or knows no such revision or nothing that led to both.
    """
    root = Path(registry)
    if reference.startswith("-"):
        raise InputError(
            f"{reference!r:.60} is no revision; give for example origin/main"
        )
    words = ["diff", "--relative", "--no-renames", "--merge-base", "-z", "--name-only"]
    new = _git(root, "ls-files", "-z", "--others", "--exclude-standard", "results")
    new += _git(root, *words, "--diff-filter=A", reference, "--", "results")
    present = _git(root, *words, "--diff-filter=a", reference, "--", "results")
    changed = {root / name for name in (*new, *present)}
    changed |= {parent for path in changed for parent in path.parents}
    folders = [folder for folder in run_folders(root) if folder in changed]
    return folders, [name for name in present if Path(name).name != SCORES_FILE]


def _git(root: Path, *words: str) -> list[str]:
    """Run git in the registry, and return the names that it lists, relative to the registry."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *words],
            capture_output=True,
            check=False,
            encoding="utf-8",
            errors="surrogateescape",
        )
    except OSError as error:
        raise InputError(f"--changed-since needs git ({error})") from None
    if done.returncode:
        reason = " ".join(done.stderr.split())[:160]
        raise InputError(f"git cannot compare {root}: {reason}")
    return done.stdout.split("\0")[:-1]
