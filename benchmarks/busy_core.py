"""Two threads while another process keeps one core busy: never slower than 1.2 times one thread.

    python3 benchmarks/busy_core.py [--seconds 3] [--cores 0,1]

Prints, for kernels of several lengths, the median time of a run with one and with two threads, without and with a busy
neighbour on one of the two cores; leaves with status 1 where the two-thread median with a neighbour exceeds 1.2 times
the one-thread median with the same neighbour.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from sardonyx import Tensor, trace

LIMIT = 1.2
SIZES = (64, 128, 256, 512, 1024)


def matmul_run(size: int) -> tuple[Callable[[], object], Callable[[int], None]]:
    """A run of a chain of three products of [size, size], and how to set its threads."""
    rng = np.random.default_rng(0)
    w = Tensor((rng.standard_normal((size, size)) / size**0.5).astype(np.float32))
    graph = trace(lambda x: ((x @ w) @ w) @ w, f"x: f32[{size},{size}]").graph
    graph.finalize()
    feed = [rng.standard_normal((size, size)).astype(np.float32)]
    return (lambda: graph.run(feed)), graph.compiled.use_threads


def median_time(run: Callable[[], object], seconds: float) -> tuple[float, float]:
    """Median and 95th percentile of a run, in milliseconds."""
    for _ in range(3):
        run()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    times.sort()
    return statistics.median(times) * 1e3, times[int(len(times) * 0.95)] * 1e3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="time per measurement")
    parser.add_argument("--cores", default="0,1", help="the two cores that runs may use; the neighbour gets the second")
    options = parser.parse_args()
    cores = [int(c) for c in options.cores.split(",")]
    os.sched_setaffinity(0, cores)
    worst = 0.0
    print(
        f"{'size':>5} {'neighbour':>9} {'1 thread':>18} {'2 threads':>18} {'ratio':>6}   (median ms, 95th percentile)"
    )
    for size in SIZES:
        run, use_threads = matmul_run(size)
        for busy in (False, True):
            neighbour = None
            if busy:
                code = f"import os; os.sched_setaffinity(0, [{cores[1]}])\nwhile True: pass"
                neighbour = subprocess.Popen([sys.executable, "-c", code])
                time.sleep(0.3)
            try:
                use_threads(1)
                alone, alone_95 = median_time(run, options.seconds)
                use_threads(2)
                both, both_95 = median_time(run, options.seconds)
            finally:
                if neighbour is not None:
                    neighbour.kill()
                    neighbour.wait()
            ratio = both / alone
            worst = max(worst, ratio if busy else 0.0)
            print(
                f"{size:>5} {'busy' if busy else '-':>9} {alone:>9.3f} {alone_95:>8.3f} {both:>9.3f} {both_95:>8.3f} "
                f"{ratio:>6.2f}"
            )
    print(f"worst ratio with a busy neighbour: {worst:.2f} (limit {LIMIT})")
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
