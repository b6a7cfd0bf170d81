"""Lists of rows that are tables as well: what can be loaded, and why something cannot."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")


class Listing(list[T]):
    """A list of dataclasses that shows itself as a table.

    Examples
    --------
    >>> from psyprobe.stimulus.catalogue import list_stimuli
    >>> "gabor_achromatic" in list_stimuli().to_frame().index
    True
    """

    def to_frame(self) -> pd.DataFrame:
        """Convert the list to a pandas table: one row an entry, indexed by name."""
        return frame_of(self).set_index("name")

    def _repr_html_(self) -> str:
        """Show the list as an HTML table in a notebook."""
        from psyprobe.files import html

        frame = frame_of(self).astype(str)
        return html.table([list(frame.columns), *frame.to_numpy().tolist()])


def frame_of(rows: Any) -> pd.DataFrame:
    """Convert dataclasses to a pandas table: one row each, one column a field."""
    import pandas as pd

    return pd.DataFrame([asdict(row) for row in rows])
