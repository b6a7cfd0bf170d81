"""Name the types of what JSON holds; importing them waits for no library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

#: What JSON can hold, by name; readers know what stands under each.
JsonObject: TypeAlias = dict[str, Any]
#: The same where it is only read.
JsonMapping: TypeAlias = Mapping[str, Any]
