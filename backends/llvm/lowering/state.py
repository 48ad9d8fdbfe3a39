"""Caches: new rows go into the buffer, and what it holds then is read there, in steps of the whole buffer's extents."""

from __future__ import annotations

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.plan import Plan, lowers
from sardonyx.backends.llvm.lowering.region import axis, copy_region, row_major
from sardonyx.backends.llvm.lowering.strided import Strided, give
from sardonyx.dialects.attributes import dims_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.sx.state import CacheAppendOp, CacheOp, CacheReadOp, full_message
from sardonyx.errors import UnsupportedError


@lowers(CacheReadOp)
def _read(plan: Plan, op: CacheReadOp) -> None:
    memory = _memory(op)
    give(plan, op.output, Strided(plan.buffer(memory), tuple(row_major(dims_of(memory)))))


@lowers(CacheAppendOp)
def _append(plan: Plan, op: CacheAppendOp) -> None:
    memory = _memory(op)
    dims, there = dims_of(op.new), dims_of(memory)
    at = op.attr("axis") % len(dims)
    rows, capacity = Dim.symbol(op.attr("rows")), op.attr("capacity")
    body = plan.body
    length, more = plan.dim(rows), plan.dim(dims[at])
    fits = body.compare("sle", body.plus(length, more), capacity)
    body.require(fits, plan.failure(full_message(op.buffer_name)), length, more, body.index(capacity))
    for place, (own, full) in enumerate(zip(dims, there, strict=True)):
        if place != at:
            plan.require_equal(
                own, full, f"the cache '{op.buffer_name}' takes rows of {{1}} along axis {place}, not {{0}}"
            )
    strides = row_major(there)
    buffer = plan.buffer(memory)
    axes = [axis(d, s, t) for d, s, t in zip(dims, row_major(dims), strides, strict=True)]
    copy_region(plan, "append", axes, plan.buffer(op.new), buffer, 0, rows * strides[at])
    give(plan, op.output, Strided(buffer, tuple(strides)))


def _memory(op: CacheOp) -> SSAValue:
    """The buffer of a cache's op.

    Raises:
        UnsupportedError: It names the cache alone (see `passes/bind_caches.py`).
    """
    if op.memory[0] is None:
        raise UnsupportedError(f"the cache '{op.buffer_name}' has no memory")
    return op.memory[0]
