"""Run Python files of users."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType


def run_file(path: Path, name: str) -> ModuleType:
    """Run a Python file as a module of that name.

    The file is compiled as it is now. Python's import would use cached byte code, even after the
    file changed within a second to a text of the same length.

    Raises
    ------
    OSError
        The file cannot be read.
    Exception or SystemExit
        Whatever the file raises.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "seeds.py"
    ...     _ = path.write_text("seed = 1")
    ...     run_file(path, "seeds").seed
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
