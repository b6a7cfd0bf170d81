"""Python files of the user's own."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType


def run_file(path: Path, name: str) -> ModuleType:
    """Run a Python file as a module of that name.

    What the file says now is compiled. Python's import would use the byte code kept beside it, also
    after the file was changed within a second to a text of the same length.

    Raises
    ------
    OSError
        The file cannot be read.
    Exception or SystemExit
        What the file raises.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "own.py"
    ...     _ = path.write_text("seed = 1")
    ...     run_file(path, "own").seed
    1
    """
    module = ModuleType(name)
    module.__file__ = str(path)
    # Dataclasses look their module up by its name.
    sys.modules[name] = module
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), vars(module))
    except BaseException:
        del sys.modules[name]
        raise
    return module
