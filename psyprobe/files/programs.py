"""Run Python files of users, and read the sources of code that is not psyprobe's."""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from weakref import WeakKeyDictionary

#: Sources of imported modules as they were read first: Python imports a module once.
_SOURCES: WeakKeyDictionary[ModuleType, bytes] = WeakKeyDictionary()


def run_file(path: Path, name: str) -> ModuleType:
    """Run a Python file as a module of a given name, and return the module.

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


def read_sources(path: Path) -> bytes:
    """Read the source of a Python file and of all files of its folder that it imports.

    Parameters
    ----------
    path : Path
        The file, as `run_file` runs it.

    Raises
    ------
    OSError
        A file cannot be read.
    """
    path = path.resolve()
    source = path.read_bytes()
    return source + _imported_sources({path: source}, path.parent, "")


def package_digest(name: str) -> str | None:
    """Hash the source of an imported module and of what it imports from its own package.

    Parameters
    ----------
    name : str
        Full name of the module.

    Returns
    -------
    str or None
        SHA-256, hexadecimal; None of a program or a notebook, of what has no Python source, and of
        the packages of Python and psyprobe, whose versions are told.

    Examples
    --------
    >>> package_digest("psyprobe.files") is None
    True
    """
    package = name.partition(".")[0]
    file = getattr(sys.modules.get(name), "__file__", None) or ""
    known = {"psyprobe", "__main__", *sys.stdlib_module_names}
    if package in known or not file.endswith(".py") or not Path(file).is_file():
        return None
    path = Path(file)
    root = path.parents[name.count(".") + (path.stem == "__init__")]
    source = _read(path, name)
    sources = source + _imported_sources({path: source}, root, package)
    return hashlib.sha256(sources).hexdigest()


def _imported_sources(sources: dict[Path, bytes], root: Path, package: str) -> bytes:
    """Find the source files below a folder that others import, of one package or of any."""
    waiting = [*sources]
    own = waiting[0]
    while waiting:
        path = waiting.pop()
        for name in _imports(sources[path], path.relative_to(root).parts[:-1]):
            if package and name.partition(".")[0] != package:
                continue
            place = root.joinpath(*name.split("."))
            for file in (place.with_suffix(".py"), place / "__init__.py"):
                if file not in sources and file.is_file():
                    sources[file] = _read(file, name)
                    waiting.append(file)
    return b"".join(
        b"\n%s\n%s" % (path.relative_to(root).as_posix().encode(), sources[path])
        for path in sorted(sources)
        if path != own
    )


def _imports(source: bytes, folders: tuple[str, ...]) -> Iterator[str]:
    """Iterate over the full names of all modules and packages that a source file imports."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):  # whoever imports it is told
        return
    for node in nodes:
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = folders[: len(folders) - node.level + 1] if node.level else ()
            origin = [*parents, *filter(None, [node.module])]
            names = [".".join([*origin, alias.name]) for alias in node.names]
        for name in names:
            parts = name.split(".")
            yield from (".".join(parts[: i + 1]) for i in range(len(parts)))


def _read(path: Path, name: str) -> bytes:
    """Read a source file, or recall it as it was when its module was imported."""
    module = sys.modules.get(name)
    if module is None or getattr(module, "__file__", None) != str(path):
        return path.read_bytes()
    if module not in _SOURCES:
        _SOURCES[module] = path.read_bytes()
    return _SOURCES[module]
