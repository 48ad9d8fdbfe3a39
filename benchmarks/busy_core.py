"""Two threads while another process keeps one core busy: never slower than 1.2 times one thread.

    python3 benchmarks/busy_core.py [--workloads conv_3x3,softmax] [--seconds 1] [--cores 0,1]

Prints, for workloads of `workloads.py`, the median time of a run with one and with two threads, without and with a busy
neighbour on one of the two cores; leaves with status 1 where the two-thread median with a neighbour exceeds 1.2 times
the one-thread median with the same neighbour.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

from workloads import WORKLOADS, Workload

LIMIT = 1.2
USUAL = "matmul_256x256x256,matmul_512x512x512,conv_3x3,softmax,layer_norm,bert_1l"
ROUNDS = 5
"""Turns of one thread and of two, so that both see the same of what else the machine does."""


def prepare(workload: Workload) -> tuple[Callable[[], object], Callable[[int], None]]:
    """A run of a workload, and how to set its threads."""
    graph = workload.graph()
    graph.optimize()
    graph.finalize(**workload.options)
    feeds = workload.inputs()
    return (lambda: graph.run(feeds)), graph.compiled.use_threads


@contextlib.contextmanager
def neighbour(core: int) -> Iterator[None]:
    """Inside, a process keeps the core busy."""
    code = f"import os; os.sched_setaffinity(0, [{core}])\nwhile True: pass"
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        time.sleep(0.3)
        yield
    finally:
        process.kill()
        process.wait()


def measure(run: Callable[[], object], use_threads: Callable[[int], None], seconds: float) -> dict[int, list[float]]:
    """The times of runs in milliseconds, sorted, by the number of threads."""
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(ROUNDS):
        for threads, found in times.items():
            use_threads(threads)
            run()
            end = time.perf_counter() + seconds / ROUNDS
            while True:
                start = time.perf_counter()
                run()
                now = time.perf_counter()
                found.append((now - start) * 1e3)
                if now > end:
                    break
    return {threads: sorted(found) for threads, found in times.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default=USUAL, help="their names")
    parser.add_argument("--seconds", type=float, default=1.0, help="time per measurement")
    parser.add_argument("--cores", default="0,1", help="the two cores that runs may use; the neighbour gets the second")
    options = parser.parse_args()
    known = {workload.name: workload for workload in WORKLOADS}
    names = options.workloads.split(",")
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"no workload is named {', '.join(unknown)}; there are {', '.join(known)}")
    cores = [int(c) for c in options.cores.split(",")]
    os.sched_setaffinity(0, cores)
    worst = 0.0
    print("Median ms (95th percentile) of a run; the ratio is that of two threads to one.\n")
    print("| workload | one core is | 1 thread | 2 threads | ratio |\n|---|---|---:|---:|---:|")
    for name in names:
        run, use_threads = prepare(known[name])
        for state in ("free", "busy"):
            with neighbour(cores[1]) if state == "busy" else contextlib.nullcontext():
                times = measure(run, use_threads, options.seconds)
            medians = {threads: statistics.median(found) for threads, found in times.items()}
            shown = [f"{medians[t]:.4g} ({found[int(len(found) * 0.95)]:.4g})" for t, found in times.items()]
            ratio = medians[2] / medians[1]
            worst = max(worst, ratio if state == "busy" else 0.0)
            print(f"| {name} | {state} | {shown[0]} | {shown[1]} | {ratio:.2f} |", flush=True)
    print(f"\nworst ratio with a busy core: {worst:.2f} (limit {LIMIT})")
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
