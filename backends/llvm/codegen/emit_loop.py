"""Emits loops: plain ones, and `vector` ones, whose bodies are widened over the lanes of the target.

A vector loop runs groups of several vectors first, where its body is short (each with accumulators of its own), then
single vectors, and what is left as one vector under a mask: no element past the end is read or written. Where the
target has no masked loads and stores for the types of the body, what is left goes through narrower vectors and single
elements. A loop of few turns whose bounds are numbers is written out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation

from sardonyx.backends.llvm.codegen.emit import KernelEmitter, emits
from sardonyx.backends.llvm.codegen.text import I64, FunctionBuilder, LType, Target
from sardonyx.backends.llvm.codegen.widen import (
    Value,
    combine,
    fold,
    identity,
    lane_mask,
    memory_type,
    reduce_lanes,
    scalar_type,
    value_type,
)
from sardonyx.dialects.kernel.ops import LoadOp, LoopOp, MathOp, StoreOp

CHUNK_GRAIN = 64
"""Chunks of a vector loop begin at multiples of so many elements: whole vectors, and few shared cache lines."""
STRAIGHT_TURNS, STRAIGHT_WEIGHT = 8, 96
"""A loop of at most so many turns, and of so many ops in all its turns, is written out."""
MATH_WEIGHT = 20
PAIRED_MATH = ("exp", "exp_nonpositive", "exp2", "expm1", "sigmoid", "tanh", "erf", "gelu", "log", "log1p", "softplus")
"""Functions that are long chains of float32 operations: pairs of vectors side by side keep the units busy."""
ACCUMULATORS = 8
"""Vectors of partial results that a loop carries at most: half of the registers."""
CHEAP_MATH = ("abs", "copysign", "fma", "sign", "sqrt", "smin", "smax", "umin", "umax")


@dataclass(frozen=True)
class Widening:
    """How a vector loop is cut: vectors of `lanes`, groups of `unroll` of them, and a masked rest (or a scalar one)."""

    lanes: int
    unroll: int
    masked: bool


@emits(LoopOp)
def _loop(e: KernelEmitter, op: LoopOp) -> None:
    lower, upper = e.scalar(op.lower), e.scalar(op.upper)
    if op.parallel is not None and e.split_outermost and not op.initial:
        lower, upper = _chunk(e, lower, upper, CHUNK_GRAIN if op.vector is not None else op.step.value.data)
    outer_split, e.split_outermost = e.split_outermost, False
    if op.vector is not None and not e.lanes:
        results = _vector_loop_either_way(e, op, lower, upper)
    else:
        results = _plain_loop(e, op, lower, upper, [e.text(v) for v in op.initial])
    e.split_outermost = outer_split
    for result, text in zip(op.results, results, strict=True):
        e.define(result, text)


def _chunk(e: KernelEmitter, lower: str, upper: str, grain: int) -> tuple[str, str]:
    """The chunk's part of the range, which begins at a multiple of `grain`: the step of a loop, so that no two chunks
    share an iteration. Iterations are independent, so the number of chunks changes no result."""
    b = e.builder
    extent = b.binary("sub", I64, upper, lower)
    whole = b.icmp("eq", I64, "%chunks", "1")

    def edge(chunk: str) -> str:
        return b.binary("add", I64, lower, b.binary("udiv", I64, b.binary("mul", I64, extent, chunk), "%chunks"))

    def part() -> list[str]:
        if grain <= 1:  # parts that differ by one iteration at most
            return [edge("%chunk"), edge(b.binary("add", I64, "%chunk", "1"))]
        per = b.binary("udiv", I64, b.binary("add", I64, extent, b.binary("sub", I64, "%chunks", "1")), "%chunks")
        per = b.binary("add", I64, per, str(grain - 1))
        if grain & (grain - 1):
            per = b.binary("mul", I64, b.binary("udiv", I64, per, str(grain)), str(grain))
        else:
            per = b.binary("and", I64, per, str(-grain))
        start = b.binary("add", I64, lower, b.binary("mul", I64, per, "%chunk"))
        end = b.binary("add", I64, start, per)
        start = b.intrinsic("llvm.smin", I64, [(I64, start), (I64, upper)])
        end = b.intrinsic("llvm.smin", I64, [(I64, end), (I64, upper)])
        return [start, end]

    bounds = b.when(whole, lambda: [lower, upper], part, [I64, I64])
    return bounds[0], bounds[1]


def _static_extent(lower: str, upper: str) -> int | None:
    """The number of steps of 1 between two bounds, where both are numbers."""
    if lower.startswith("%") or upper.startswith("%"):
        return None
    return max(0, int(upper) - int(lower))


def _turns(
    b: FunctionBuilder,
    bounds: tuple[str, str],
    step: int,
    body: Callable[[str, list[str]], list[str]],
    carried: Sequence[tuple[LType, str]],
    straight: int = 1,
) -> list[str]:
    """A loop; its bodies one after the other where it is known to have at most `straight` turns."""
    extent = _static_extent(*bounds)
    turns = None if extent is None else -(-extent // step)
    if turns is not None and turns <= straight:
        values = [text for _, text in carried]
        for turn in range(turns):
            values = body(str(int(bounds[0]) + turn * step), values)
        return values
    return b.loop(bounds[0], bounds[1], str(step), body, carried)


def _plain_loop(e: KernelEmitter, op: LoopOp, lower: str, upper: str, initial: Sequence[str]) -> list[str]:
    """One iteration at a time; inside a vector loop the carried values are vectors."""
    block = op.body.block
    types = [e.type_of(v) for v in op.initial]

    def body(index: str, carried: list[str]) -> list[str]:
        e.values[block.args[0]] = Value(index, I64)
        for argument, text in zip(block.args[1:], carried, strict=True):
            e.define(argument, text)
        return [e.text(v) for v in e.emit_block(block)]

    return _turns(e.builder, (lower, upper), op.step.value.data, body, list(zip(types, initial, strict=True)))


def _vector_loop_either_way(e: KernelEmitter, op: LoopOp, lower: str, upper: str) -> list[str]:
    """A vector loop; two of them where only the run knows whether what it stores goes past the caches. A long body that
    need not be large stays in them: it takes longer than memory, and LLVM's time."""
    stores = [one for one in op.walk() if isinstance(one, StoreOp)]
    conditions = [one.past for one in stores if one.past is not None and one.past in e.values]  # made before the loop
    past = e.scalar(conditions[0]) if conditions and e.past is None else ""
    if not past.startswith("%"):
        return _vector_loop(e, op, lower, upper)

    def form(known: str) -> list[str]:
        e.past = known
        results = _vector_loop(e, op, lower, upper)
        e.past = None
        return results

    if op.initial or (weight(op.body.block) >= MATH_WEIGHT and past not in e.large):
        return form("false")
    e.builder.when(past, lambda: form("true"), lambda: form("false"))
    return []


def _vector_loop(e: KernelEmitter, op: LoopOp, lower: str, upper: str) -> list[str]:
    """Groups, vectors, the rest; reductions keep partial results per lane and per vector of a group."""
    b, block, kinds = e.builder, op.body.block, op.kinds
    initial = [e.scalar(v) for v in op.initial]
    scalars = [scalar_type(v.type) for v in op.initial]
    extent = _static_extent(lower, upper)
    cost = weight(block)
    form = widening(b.target, op, extent, cost)
    if form is None:
        return _plain_loop(e, op, lower, upper, initial)
    lanes, unroll, count = form.lanes, form.unroll, len(kinds)
    straight = max(1, min(STRAIGHT_TURNS, STRAIGHT_WEIGHT // cost))
    wide = [ty.with_lanes(lanes) for ty in scalars]

    def once(index: str, carried: list[str]) -> list[str]:
        return _widened_body(e, block, lanes, index, carried)

    def group(index: str, carried: list[str]) -> list[str]:
        out: list[str] = []
        for part in range(unroll):
            at = index if part == 0 else fold(b, "add", index, str(part * lanes))
            out += once(at, carried[part * count : (part + 1) * count])
        return out

    neutral = [f"splat ({ty} {identity(kind, ty)})" for kind, ty in zip(kinds, scalars, strict=True)]
    sums, at = neutral, lower
    if unroll > 1:
        end = _whole_groups(b, at, upper, lanes * unroll)
        parts = _turns(b, (at, end), lanes * unroll, group, list(zip(wide, neutral, strict=True)) * unroll, straight)
        sums = parts[:count]
        for part in range(1, unroll):
            others = parts[part * count : (part + 1) * count]
            sums = [combine(b, *four) for four in zip(kinds, wide, sums, others, strict=True)]
        at = end
    end = _whole_groups(b, at, upper, lanes)
    sums = _turns(b, (at, end), lanes, once, list(zip(wide, sums, strict=True)), straight)
    if form.masked:
        sums = _masked_rest(e, block, lanes, (end, upper), list(zip(wide, sums, strict=True)))
    totals = [
        combine(b, kind, ty, start, reduce_lanes(b, kind, vector_type, total))
        for kind, ty, start, vector_type, total in zip(kinds, scalars, initial, wide, sums, strict=True)
    ]
    if form.masked:
        return totals
    narrower = b.target.lanes()
    if not count and lanes > narrower:
        at, end = end, _whole_groups(b, end, upper, narrower)
        _turns(b, (at, end), narrower, lambda index, _: _widened_body(e, block, narrower, index, []), [])
    return _plain_loop(e, op, end, upper, totals)


def _widened_body(e: KernelEmitter, block: Block, lanes: int, index: str, carried: Sequence[str]) -> list[str]:
    """The body for `lanes` iterations from the index on."""
    e.lanes = lanes
    e.values[block.args[0]] = Value(index, I64, "1")
    for argument, text in zip(block.args[1:], carried, strict=True):
        e.define(argument, text)
    results = [e.text(v) for v in e.emit_block(block)]
    e.lanes = 0
    return results


def _masked_rest(
    e: KernelEmitter, block: Block, lanes: int, bounds: tuple[str, str], carried: list[tuple[LType, str]]
) -> list[str]:
    """The last iterations, fewer than `lanes`, in the first lanes of a vector; the others keep what they carried."""
    b = e.builder
    known = _static_extent(*bounds)
    before = [text for _, text in carried]
    if known == 0:
        return before

    def rest() -> list[str]:
        active = str(known) if known is not None else b.binary("sub", I64, bounds[1], bounds[0])
        mask = lane_mask(b, lanes, active)
        e.active, e.mask = active, mask
        after = _widened_body(e, block, lanes, bounds[0], before)
        e.active, e.mask = None, None
        return [b.select(ty, mask, new, old) for (ty, old), new in zip(carried, after, strict=True)]

    if known is not None:
        return rest()
    return b.when(b.icmp("slt", I64, *bounds), rest, lambda: before, [ty for ty, _ in carried])


def _whole_groups(b: FunctionBuilder, lower: str, upper: str, group: int) -> str:
    """The end of the whole groups that fit between the bounds."""
    known = _static_extent(lower, upper)
    if known is not None:
        return str(int(lower) + known // group * group)
    extent = b.binary("sub", I64, upper, lower)
    positive = b.intrinsic("llvm.smax", I64, [(I64, extent), (I64, "0")])
    return b.binary("add", I64, lower, b.binary("and", I64, positive, str(-group)))


# ---- how a loop is cut


def widening(target: Target, op: LoopOp, extent: int | None, cost: int) -> Widening | None:
    """How the loop is widened; None where one element at a time is as good."""
    ops = list(op.walk())
    lanes, masked = _lanes(target, ops), _has_masks(target, ops)
    if extent is not None and extent < lanes:
        exact = 1 << (extent.bit_length() - 1) if extent else 0
        if extent <= 1 or (not masked and exact < extent and exact < 4):
            return None
        if exact == extent or not masked:
            lanes = exact
    paired = _paired(ops)
    if paired > 1 and op.kinds:  # two elements are side by side already
        return Widening(lanes, 1, masked)
    if paired:
        if extent is None or extent >= 2 * lanes:
            lanes *= 2
        long = extent is None or extent >= 2 * lanes
        return Widening(lanes, 2 if long and not op.kinds else 1, masked)  # with a sum besides, registers would spill
    limits = ((12, 4), (48, 2)) if op.kinds else ((8, 4), (30, 2))
    unroll = next((times for most, times in limits if cost <= most), 1)
    while unroll > 1 and ((extent is not None and extent < lanes * unroll) or len(op.kinds) * unroll > ACCUMULATORS):
        unroll //= 2
    return Widening(lanes, unroll, masked)


def _paired(ops: Sequence[Operation]) -> int:
    """How many functions that are worth two vectors side by side the body has; 0 where it has others, too."""
    costly = [op for op in ops if isinstance(op, MathOp) and op.fn.data not in CHEAP_MATH]
    is_long = [op.fn.data in PAIRED_MATH and value_type(op.result.type) == LType("float") for op in costly]
    return len(costly) if all(is_long) else 0


def weight(block: Block) -> int:
    """About how many instructions the body is, index arithmetic aside."""
    total = 1
    for op in block.ops:
        if op.regions:
            return 1 << 20
        if isinstance(op, MathOp):
            total += 1 if op.fn.data in CHEAP_MATH else MATH_WEIGHT
        elif not isinstance(op, arith.ConstantOp) and not any(isinstance(r.type, IndexType) for r in op.results):
            total += 1
    return total


def _elements(ops: Sequence[Operation]) -> list[LType]:
    """The types in memory of all that is loaded or stored."""
    out: list[LType] = []
    for op in ops:
        if isinstance(op, LoadOp):
            out.append(memory_type(value_type(op.result.type)))
        elif isinstance(op, StoreOp):
            out.append(memory_type(value_type(op.value.type)))
    return out


def _has_masks(target: Target, ops: Sequence[Operation]) -> bool:
    """Whether masked loads and stores of the body's types are instructions."""
    if target.vector_bits < 256:
        return False
    if target.vector_bits >= 512 and "+avx512bw" in target.features:
        return True
    return all(ty.bits >= 32 for ty in _elements(ops))


def _lanes(target: Target, ops: Sequence[Operation]) -> int:
    """As many lanes as 32-bit elements fill a register; more where all that the body computes is narrower."""
    usual = target.lanes()
    widest = max((ty.bits for ty in _elements(ops)), default=32)
    for op in ops:
        if isinstance(op, MathOp | arith.IndexCastOp):
            return usual
        for result in op.results:
            if not isinstance(result.type, IndexType) and not isinstance(op, LoopOp):
                widest = max(widest, value_type(result.type).bits)
    return max(usual, target.lanes(widest))
