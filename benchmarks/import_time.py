"""How long `import psyprobe` takes beside `import numpy`: whole processes, interleaved, less the bare interpreter.

python benchmarks/import_time.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

ROUNDS = 25


def seconds(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    codes = {"bare interpreter": "pass", "import numpy": "import numpy", "import psyprobe": "import psyprobe"}
    for code in codes.values():
        seconds(code)
    times = {name: [] for name in codes}
    for _ in range(ROUNDS):
        for name, code in codes.items():
            times[name].append(seconds(code))
    median = {name: statistics.median(values) for name, values in times.items()}
    for name, value in median.items():
        print(f"{name:<18} {1000 * value:7.1f} ms")
    print(f"psyprobe / numpy, whole process: {median['import psyprobe'] / median['import numpy']:.2f} (target 1.5)")
