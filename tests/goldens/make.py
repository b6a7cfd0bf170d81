"""Write the goldens anew: ``python -m tests.goldens.make [CASE ...]``, where a number is meant to
change."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.goldens import held
from tests.goldens.cases import CASES, Bench


def main(wanted: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        for name in wanted or CASES:
            held.write(name, CASES[name](bench))
    held.MACHINE.write_text(
        json.dumps(held.machine(), indent=1) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
