"""How long psyprobe takes to be there, beside `import numpy`: whole processes, interleaved.

python benchmarks/import_time.py
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

ROUNDS = 25
#: What is run, and what its arguments to Python are.
PROCESSES = {
    "bare interpreter": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import psyprobe": ["-c", "import psyprobe"],
    "psyprobe --help": ["-m", "psyprobe", "--help"],
    "psyprobe run --help": ["-m", "psyprobe", "run", "--help"],
    "psyprobe list probes": ["-m", "psyprobe", "list", "probes"],
}


def seconds(arguments: list[str]) -> float:
    """Processor time of the process, its start included."""
    before = os.times()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return (
        after.children_user
        + after.children_system
        - before.children_user
        - before.children_system
    )


if __name__ == "__main__":
    for arguments in PROCESSES.values():
        seconds(arguments)
    times = {name: [] for name in PROCESSES}
    for _ in range(ROUNDS):
        for name, arguments in PROCESSES.items():
            times[name].append(seconds(arguments))
    median = {name: statistics.median(values) for name, values in times.items()}
    for name, value in median.items():
        print(f"{name:<21} {1000 * value:6.0f} ms")
    print(
        "import psyprobe / import numpy: "
        f"{median['import psyprobe'] / median['import numpy']:.2f} (target 1.5)"
    )
    print(f"psyprobe --help: {median['psyprobe --help']:.2f} s (target 0.2)")
