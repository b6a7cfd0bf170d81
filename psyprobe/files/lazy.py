"""Load the public names of a package when they are first used, so that importing it is fast.

Each such package lists its names once, in its stub ``__init__.pyi``, which type checkers and
editors read too (Scientific Python's SPEC 1).
"""

from __future__ import annotations

import re
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
