"""What this machine can do at most: multiply-adds a second in registers, bytes a second through memory. Measured."""

from __future__ import annotations

import ctypes
import threading
import time
from dataclasses import dataclass
from functools import cache

import numpy as np

from sardonyx.backends.llvm.codegen.text import F32, I64, FunctionBuilder, LType, ModuleText
from sardonyx.backends.llvm.runtime import jit

_CHAINS = 10
"""Independent sums: enough to keep two units busy for the latency of a multiply-add, few enough for 16 registers."""
_COPIED = 64 << 20
_PATIENCE = 0.3


@dataclass(frozen=True)
class Ceilings:
    """The machine's limits for a number of threads.

    Attributes:
        flops: float32 operations a second, a multiply-add counting as two.
        bytes: Bytes a second, read and written, by copying memory.
    """

    flops: float
    bytes: float


@cache
def ceilings(threads: int = 1) -> Ceilings:
    """Measure the machine, once for each number of threads; takes some tenths of a second."""
    return Ceilings(_flops() * threads, _bandwidth(threads))


@cache
def _flops() -> float:
    target = jit.native_target()
    text = ModuleText(target)
    vector = LType("float", target.lanes(32))
    b = FunctionBuilder(text, "multiply_adds", [(I64, "count")], F32)
    factor = b.splat(vector, b.const(F32, 0.999))
    b.emit("br label %again")
    b.start_block("again")
    number, following = b.fresh_name(), b.fresh_name()
    b.lines.append(f"  {number} = phi i64 [ 0, %entry ], [ {following}, %again ]")
    sums = [b.fresh_name() for _ in range(_CHAINS)]
    # The names of the loop's results are those that the instructions below get, in order.
    phis = len(b.lines)
    results = [b.fma(vector, total, factor, factor) for total in sums]
    for at, (total, result) in enumerate(zip(sums, results)):
        b.lines.insert(phis + at, f"  {total} = phi {vector} [ zeroinitializer, %entry ], [ {result}, %again ]")
    b.lines.append(f"  {following} = add i64 {number}, 1")
    done = b.op(f"icmp sge i64 {following}, %count")
    b.emit(f"br i1 {done}, label %end, label %again")
    b.start_block("end")
    whole = results[0]
    for result in results[1:]:
        whole = b.fadd(vector, whole, result)
    b.emit(f"ret float {b.op(f'extractelement {vector} {whole}, i64 0')}" if vector.lanes else f"ret float {whole}")
    b.finish()
    library = jit.Library(jit.to_object(text), ("multiply_adds",))
    call = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64)(library.addresses["multiply_adds"])
    best, count = float("inf"), 200_000
    for _ in range(7):
        start = time.perf_counter()
        call(count)
        best = min(best, time.perf_counter() - start)
    return 2.0 * _CHAINS * max(vector.lanes, 1) * count / best


def _bandwidth(threads: int) -> float:
    pairs = [(np.ones(_COPIED // 4, np.float32), np.empty(_COPIED // 4, np.float32)) for _ in range(threads)]
    best, until, turns = float("inf"), time.perf_counter() + _PATIENCE, 0
    while turns < 4 or time.perf_counter() < until:  # the first has its pages to take, and others may be at work
        turns += 1
        workers = [threading.Thread(target=np.copyto, args=(target, source)) for source, target in pairs]
        start = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        best = min(best, time.perf_counter() - start)
    return 2.0 * _COPIED * threads / best
