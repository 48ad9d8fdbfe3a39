"""Measures Sardonyx beside its peers, and writes docs/benchmarks.md.

    python3 benchmarks/run.py                                  everything, one thread and two
    python3 benchmarks/run.py --workloads softmax,gelu --threads 1
    python3 benchmarks/run.py --write-docs                     put the tables into docs/benchmarks.md

Needs sardonyx and onnxruntime; openvino takes part where it is installed. All peers of a workload live in one process
and are measured in turns, round by round: machines are shared and noisy, and only ratios within one run say something.
A round is as many runs as fit into --seconds; its figure is the median run; a peer's figure is the median of its
rounds. Results are compared before anything is measured.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import importlib.metadata
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from peers import PEERS, Run, installed, onnx_bytes
from workloads import WORKLOADS, Workload

DOCUMENT = Path(__file__).parents[1] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- begin tables -->", "<!-- end tables -->"
TOLERANCE = 2e-4
"""Largest difference from onnxruntime, relative to the largest magnitude of the result; 2e-3 under `fast_conv`."""


@dataclass(frozen=True)
class Figure:
    """What one peer took for one workload: milliseconds of a run, and of making it ready."""

    workload: str
    group: str
    threads: int
    peer: str
    milliseconds: float
    prepare: float


def measure(workload: Workload, peers: Sequence[str], threads: int, rounds: int, seconds: float) -> list[Figure]:
    """All peers on one workload.

    Raises:
        SystemExit: A peer's result differs.
    """
    model, inputs = onnx_bytes(workload), workload.inputs()
    runs: dict[str, Run] = {}
    prepare: dict[str, float] = {}
    for peer in peers:
        start = time.perf_counter()
        runs[peer] = PEERS[peer](workload, model, inputs, threads)
        prepare[peer] = time.perf_counter() - start
    expected = {peer: run() for peer, run in runs.items()}
    oracle = expected.get("onnxruntime", expected[peers[0]])
    for peer, results in expected.items():
        for got, want in zip(results, oracle, strict=True):
            limit = (10 if workload.options else 1) * TOLERANCE * max(1.0, float(np.abs(want).max(initial=0)))
            if got.shape != want.shape or float(np.abs(got - want).max(initial=0)) > limit:
                raise SystemExit(f"{workload.name}: {peer} and onnxruntime do not agree")
    expected.clear()
    medians: dict[str, list[float]] = {peer: [] for peer in peers}
    order = list(peers)
    gc.disable()
    for _ in range(rounds):
        for peer in order:
            medians[peer].append(_round(runs[peer], seconds))
        order.append(order.pop(0))
    gc.enable()
    middle = {peer: statistics.median(found) * 1e3 for peer, found in medians.items()}
    return [Figure(workload.name, workload.group, threads, p, middle[p], prepare[p]) for p in peers]


def _round(run: Run, seconds: float) -> float:
    """The median run, in seconds, of as many as fit; short runs are timed in batches."""
    run()
    start = time.perf_counter()
    run()
    batch = max(1, int(2e-4 / max(time.perf_counter() - start, 1e-7)))
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        for _ in range(batch):
            run()
        times.append((time.perf_counter() - start) / batch)
    return statistics.median(times)


# ---- the tables


def machine() -> dict[str, str]:
    """What the figures depend on."""
    from sardonyx.backends.llvm.runtime.jit import native_target

    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    target = native_target()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    packages = [*installed(), "numpy", "llvmlite"]
    return {
        "processor": f"{model} ({cores} cores; code for {target.cpu}, {target.vector_bits}-bit vectors)",
        "system": f"{platform.system()} {platform.release().split('-')[0]}, Python {platform.python_version()}",
        "versions": ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages),
        "date": datetime.date.today().isoformat(),
    }


def tables(figures: Sequence[Figure]) -> str:
    """A table per number of threads: times, and how many times faster Sardonyx is than the best peer."""
    lines: list[str] = [f"- {name}: {value}" for name, value in machine().items()]
    for threads in sorted({f.threads for f in figures}):
        chosen = [f for f in figures if f.threads == threads]
        peers = [p for p in PEERS if any(f.peer == p for f in chosen)]
        lines += ["", f"### {'One thread' if threads == 1 else f'{threads} threads'}", ""]
        lines.append(f"| workload | {' | '.join(f'{p}, ms' for p in peers)} | speed to the best peer's | ready in, s |")
        lines.append(f"|---|{'---:|' * len(peers)}---:|---:|")
        for group in dict.fromkeys(f.group for f in chosen):
            lines.append(f"| **{group}** |{' |' * (len(peers) + 2)}")
            for name in dict.fromkeys(f.workload for f in chosen if f.group == group):
                row = {f.peer: f for f in chosen if f.workload == name}
                others = [f.milliseconds for p, f in row.items() if p != "sardonyx"]
                ratio = f"{min(others) / row['sardonyx'].milliseconds:.2f}" if others else ""
                times = " | ".join(f"{row[p].milliseconds:.4g}" if p in row else "" for p in peers)
                lines.append(f"| {name} | {times} | {ratio} | {row['sardonyx'].prepare:.2f} |")
    return "\n".join(lines)


def write_document(text: str, path: Path = DOCUMENT) -> None:
    """Put the tables between the marks of the document."""
    before, _, rest = path.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    made = "<!-- Made by `python3 benchmarks/run.py --write-docs`. -->"
    path.write_text(f"{before}{BEGIN}\n{made}\n\n{text}\n\n{END}{after}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default="", help="names, or beginnings of names, separated by commas")
    parser.add_argument("--peers", default=",".join(installed()), help="default: %(default)s")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3, help="of a round")
    parser.add_argument("--json", type=Path, help="add the figures to this file, and make the tables of all in it")
    parser.add_argument("--write-docs", action="store_true", help=f"write {DOCUMENT.name}")
    options = parser.parse_args(arguments)
    wanted = [w for w in options.workloads.split(",") if w]
    chosen = [w for w in WORKLOADS if not wanted or any(w.name.startswith(name) for name in wanted)]
    peers = options.peers.split(",")
    figures: list[Figure] = []
    if options.json and options.json.exists():
        figures = [Figure(**f) for f in json.loads(options.json.read_text())]
    for workload in chosen:
        for threads in map(int, options.threads.split(",")):
            found = measure(workload, peers, threads, options.rounds, options.seconds)
            print(
                f"{workload.name:>24} {threads} thread{'s' if threads > 1 else ' '}  "
                + "  ".join(f"{f.peer} {f.milliseconds:9.4f} ms" for f in found),
                file=sys.stderr,
                flush=True,
            )
            figures = [f for f in figures if (f.workload, f.threads) != (workload.name, threads)] + found
    places = {w.name: k for k, w in enumerate(WORKLOADS)}
    figures.sort(key=lambda f: places.get(f.workload, len(places)))
    if options.json:
        options.json.write_text(json.dumps([asdict(f) for f in figures]))
    text = tables(figures)
    print(text)
    if options.write_docs:
        write_document(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
