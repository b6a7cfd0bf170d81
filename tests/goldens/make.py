"""Write the goldens anew: ``python -m tests.goldens.make [CASE ...]``, where a number is meant to
change."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.goldens import golden_files
from tests.goldens.cases import CASES, Bench


def main(selection: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        for name in selection or CASES:
            golden_files.write(name, CASES[name](bench))
    golden_files.MACHINE.write_text(
        json.dumps(golden_files.machine(), indent=1) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
