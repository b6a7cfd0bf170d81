"""How far long work is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def progress_bar(total: int, progress: bool | None, unit: str = "image") -> Iterator[Any]:
    """A progress bar on a terminal and in a notebook; elsewhere one that shows nothing.

    Parameters
    ----------
    total : int
        Of what is counted.
    progress : bool or None
        Whether to show it; None for where it can be seen.
    unit : str
        What is counted.
    """
    # A notebook has no terminal but shows a bar; where none is shown, nothing of a notebook's is loaded for it.
    shown = sys.stderr.isatty() or "ipykernel" in sys.modules if progress is None else progress
    if shown:
        from tqdm.auto import tqdm
    else:
        from tqdm import tqdm
    with tqdm(total=total, unit=unit, disable=not shown) as bar:
        yield bar
