"""Where a graph's time goes: the cycles of every kernel launch, counted by native code."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from sardonyx.backends.llvm.codegen.text import I64, FunctionBuilder, ModuleText
from sardonyx.backends.llvm.compile import compile_native
from sardonyx.backends.llvm.interface import EntryOptions
from sardonyx.backends.llvm.runtime import jit
from sardonyx.errors import UnsupportedError


@dataclass(frozen=True)
class LaunchTime:
    """One launch: its kernel, the node that it is for, and its seconds per run."""

    kernel: str
    node: str
    seconds: float


@dataclass(frozen=True)
class Profile:
    """The seconds of a run and of each of its launches, in the order of the run: medians."""

    seconds: float
    launches: tuple[LaunchTime, ...]

    def table(self, most: int = 30) -> str:
        """The launches that take longest, as text."""
        whole = sum(launch.seconds for launch in self.launches) or 1.0
        lines = [f"{self.seconds * 1e3:10.3f} ms a run, {whole * 1e3:.3f} ms in {len(self.launches)} launches"]
        for launch in sorted(self.launches, key=lambda each: -each.seconds)[:most]:
            share = 100 * launch.seconds / whole
            lines.append(f"{launch.seconds * 1e6:10.1f} us {share:5.1f} %  {launch.kernel:24} {launch.node}")
        return "\n".join(lines)


def profile(module: ModuleOp, arrays: Sequence[Any], runs: int = 10, threads: int | None = None) -> Profile:
    """Compile a graph with counters, run it, and say where the time went.

    Raises:
        UnsupportedError: An op has no native form.
    """
    try:
        graph = compile_native(module, options=EntryOptions(timed=True))
    except UnsupportedError as error:
        error.hint = "a profile is of native code alone: take what comes before it as the output (OnnxModel.extract)"
        raise
    if threads is not None:
        graph.use_threads(threads)
    graph.run(arrays)
    before = graph.cycles
    taken: list[float] = []
    counts: list[list[int]] = []
    for _ in range(runs):
        start = time.perf_counter()
        graph.run(arrays)
        taken.append(time.perf_counter() - start)
        after = graph.cycles
        counts.append([now - then for now, then in zip(after, before, strict=True)])
        before = after
    # The cycle counter's rate is the machine's secret; launches are nearly all of a run's time.
    rate = _cycles_per_second()
    launches = [
        LaunchTime(kernel, node, median(cycles) / rate)
        for kernel, node, cycles in zip(graph.sizes.launches, graph.sizes.nodes, zip(*counts), strict=True)
    ]
    return Profile(median(taken), tuple(launches))


@cache
def _cycles_per_second() -> float:
    """How fast the counter counts, measured once against the clock."""
    text = ModuleText(jit.native_target())
    b = FunctionBuilder(text, "cycles", [], I64)
    text.declare("llvm.readcyclecounter", I64, [])
    b.emit(f"ret i64 {b.op('call i64 @llvm.readcyclecounter()')}")
    b.finish()
    library = jit.Library(jit.to_object(text), ("cycles",))
    read = ctypes.CFUNCTYPE(ctypes.c_int64)(library.addresses["cycles"])
    start, clock = read(), time.perf_counter()
    time.sleep(0.02)
    return (read() - start) / (time.perf_counter() - clock)
