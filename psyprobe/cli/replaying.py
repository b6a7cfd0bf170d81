"""``psyprobe replay``: responses that others stored, as results."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from psyprobe.errors import PsyprobeError
from psyprobe.files.output import write_whole
from psyprobe.files.terminal import say, say_json

if TYPE_CHECKING:
    import xarray


def replay_command(arguments: argparse.Namespace) -> int:
    """Write a result file for each stored model and test.

    Parameters
    ----------
    arguments : Namespace
        ``table``, ``grids``, ``model``, ``test``, ``output``, ``json``.

    Returns
    -------
    int
        Exit code 0.

    Raises
    ------
    PsyprobeError
        The responses cannot be read, or the files not written.
    """
    from psyprobe.analysis import replay

    results = replay(arguments.table, arguments.grids, models=arguments.model, tests=arguments.test)
    folder = Path(arguments.output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PsyprobeError(f"folder {folder} cannot be made: {error.strerror}; give another --output") from error
    files = [_write(result, folder) for result in results]
    if arguments.json:
        say_json({"files": [str(path) for path in files]})
    else:
        say("\n".join(map(str, files)))
    return 0


def _write(result: xarray.Dataset, folder: Path) -> Path:
    # Names of models come out of files; they must not lead out of the folder.
    name = re.sub(r"[^A-Za-z0-9._]+", "-", f"{result.attrs['experiment']}-{result.attrs['observer']}").strip("-.")
    path = folder / f"{name[:200]}.nc"
    write_whole(path, lambda partial: result.to_netcdf(partial, engine="scipy"))
    return path
