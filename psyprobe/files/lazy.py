"""Load the public names of a package when they are first used, so that importing it is fast.

Each such package lists its names once, in its stub ``__init__.pyi``, which type checkers and
editors read too (Scientific Python's SPEC 1).
"""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_names(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make ``__getattr__``, ``__dir__`` and ``__all__`` of a package from its stub.

    Parameters
    ----------
    package, file : str
        ``__name__`` and ``__file__`` of the package. Each line of the stub reads "from MODULE
        import NAME as NAME".
    """
    stub = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    imports = re.findall(r"^from (\S+) import (?:\(\s+)?(\w+) as", stub, re.MULTILINE)
    modules = {name: module for module, name in imports}

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if modules[name] == package:
            return import_module(f"{package}.{name}")
        return getattr(import_module(modules[name]), name)

    return load, lambda: sorted(modules), list(modules)


def import_for_good(module: str) -> Any:
    """Import a module, and look for no garbage among what it makes, now or later.

    Otherwise Python looks through all of that again and again while the module is imported, and
    once more when the process ends, which takes a sixth of a short command. What is garbage already
    stays too: this is for processes that are all ours, such as a command.

    Examples
    --------
    >>> import_for_good("math").sqrt(4.0)
    2.0
    """
    if module in sys.modules or not gc.isenabled():
        return import_module(module)
    gc.disable()
    try:
        return import_module(module)
    finally:
        gc.freeze()
        gc.enable()
