"""`recognize-rotary`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import OpResult, SSAValue

from sardonyx.dialects.attributes import dims_of, dtype_of, rank_of
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import int64
from sardonyx.dialects.sx.binary import AddOp, MulOp
from sardonyx.dialects.sx.concat import ConcatOp, SplitOp
from sardonyx.dialects.sx.reshape import ExpandOp, SqueezeOp, UnsqueezeOp
from sardonyx.dialects.sx.rotary import RotaryEmbeddingOp
from sardonyx.dialects.sx.shape import ShapeOp
from sardonyx.dialects.sx.slice import SliceOp
from sardonyx.dialects.sx.unary import NegOp
from sardonyx.dialects.values import known_ints
from sardonyx.passes.base import PassRun, Promise, SxPass, reassociates
from sardonyx.passes.constants import constant_of, make_constant, small_array
from sardonyx.passes.driver import RewriteDriver, SxPattern, SxRewriter
from sardonyx.passes.layout_rule import remake
from sardonyx.passes.matching import defined_by, dims_equal, has_one_use, is_ranked, same_shape
from sardonyx.passes.recognize_parts import number_of, owner_of, sum_of

MAX_DEPTH = 8
"""How many ops a table is followed back through."""


@dataclass(frozen=True)
class Rotary:
    """What was found: `x * cos + (x with its halves swapped, the first negated) * sin`; the tables have four axes."""

    x: SSAValue
    cos: SSAValue
    sin: SSAValue


def match_rotary(op: AddOp) -> Rotary | None:
    """The rotary embedding that a sum is."""
    for straight, crossed in sum_of(op.results[0]):
        first, second = defined_by(straight, MulOp), defined_by(crossed, MulOp)
        if first is None or second is None or not (has_one_use(straight) and has_one_use(crossed)):
            continue
        for turned, sin in (tuple(second.operands), tuple(second.operands[::-1])):
            x = _turned(turned)
            if x is None or x not in first.operands:
                continue
            cos = first.operands[1] if first.operands[0] is x else first.operands[0]
            return Rotary(x, cos, sin)
    return None


def _turned(value: SSAValue) -> SSAValue | None:
    """`x` of `concat(-x[..., half:], x[..., :half])`, where nobody else reads what is in between."""
    joined = defined_by(value, ConcatOp)
    if joined is None or not has_one_use(value) or len(joined.operands) != 2 or not is_ranked(value):
        return None
    last = rank_of(value) - 1
    if joined.attr("axis") % rank_of(value) != last or not all(has_one_use(v) for v in joined.operands):
        return None
    negated = defined_by(joined.operands[0], NegOp)
    width = dims_of(value)[last].static_value
    if negated is None or not has_one_use(negated.operands[0]) or not width or width % 2:
        return None
    upper, lower = (_part(v, last, width) for v in (negated.operands[0], joined.operands[1]))
    if upper is None or lower is None or upper[0] is not lower[0]:
        return None
    return upper[0] if (upper[1], lower[1]) == (width // 2, 0) and same_shape(upper[0], value) else None


def _part(value: SSAValue, axis: int, width: int) -> tuple[SSAValue, int] | None:
    """`(x, start)` where a value is half of the elements of x along an axis, from `start` on."""
    half = width // 2
    cut = defined_by(value, SliceOp)
    if cut is not None:
        bounds = cut.known_bounds() if is_ranked(cut.data, value) else None
        if bounds is None or len(bounds) != 1 or dims_of(value)[axis].static_value != half:
            return None
        along, start, _, step = bounds[0]
        first = None if start is None else start.static_value
        if along is None or along % rank_of(value) != axis or step != 1 or first is None:
            return None
        return cut.data, first % width if first < 0 else first
    parts = defined_by(value, SplitOp)
    if parts is None or not isinstance(value, OpResult) or not is_ranked(parts.data, value):
        return None
    if len(parts.outputs) != 2 or parts.attr("axis") % rank_of(value) != axis:
        return None
    return (parts.data, value.index * half) if dims_of(value)[axis].static_value == half else None


# ---- tables


def _halved(value: SSAValue, made: list[SxOp], depth: int = 0) -> SSAValue | None:
    """The first half of a table along its last axis, where the second half is the same for certain; else None. What
    makes it is put into `made`."""
    constant = constant_of(value)
    if constant is not None:
        array = small_array(value, 1 << 20)
        if array is None or array.ndim == 0 or array.shape[-1] % 2:
            return None
        first, second = np.split(array, 2, axis=-1)
        if first.tobytes() != second.tobytes():
            return None
        return _emit(made, make_constant(np.ascontiguousarray(first), "table"))
    op = value.op if isinstance(value, OpResult) else None
    if not isinstance(op, SxOp) or depth > MAX_DEPTH or not is_ranked(value):
        return None
    last = rank_of(value) - 1
    if isinstance(op, ConcatOp):
        same = len(op.operands) == 2 and op.operands[0] is op.operands[1]
        return op.operands[0] if same and op.attr("axis") % rank_of(value) == last else None
    if isinstance(op, UnsqueezeOp):
        axes = known_ints(op.operands[1])
        if axes is None or any(axis % rank_of(value) == last for axis in axes):
            return None
    elif not op.ELEMENTWISE or len(op.results) != 1:
        return None
    data = op.operands[:1] if isinstance(op, UnsqueezeOp) else op.operands
    wide = [v for v in data if not _is_number(v)]
    if len(wide) != 1 or not is_ranked(wide[0]) or not dims_equal(dims_of(wide[0])[-1], dims_of(value)[last]):
        return None
    half = _halved(wide[0], made, depth + 1)
    return None if half is None else _emit(made, remake(op, [half if v is wide[0] else v for v in op.operands]))


def _is_number(value: SSAValue) -> bool:
    """Whether a value is one number, of whatever rank."""
    return number_of(value) is not None and is_ranked(value) and all(d.static_value == 1 for d in dims_of(value))


def _rows(x: SSAValue, table: SSAValue, made: list[SxOp]) -> SSAValue | str:
    """A table that x is multiplied by as [B, S, R / 2], for each item of x; or why it is none."""
    if not is_ranked(table) or not 2 <= rank_of(table) <= 4:
        return "cos or sin has another rank than 2 to 4"
    rank, items = rank_of(table), dims_of(x)[0]
    batch = [*[Dim.of(1)] * (4 - rank), *dims_of(table)]
    if batch[1].static_value != 1 or not all(dims_equal(a, b) for a, b in zip(batch[2:], dims_of(x)[2:], strict=True)):
        return "cos or sin is not the same for all heads, which are the second of 4 axes"
    is_shared = batch[0].static_value == 1 and items.static_value != 1
    if not is_shared and not dims_equal(batch[0], items):
        return "the numbers of items of x and of cos or sin are not proved to agree"
    placed = defined_by(table, UnsqueezeOp)
    is_placed = rank == 4 and placed is not None and known_ints(placed.operands[1]) in ((1,), (-3,))
    half = _halved(placed.operands[0] if placed is not None and is_placed else table, made)
    if half is None:
        return "the halves of cos or sin are not certainly the same"
    if rank != 3 and not is_placed:
        cls, axis = (SqueezeOp, 1) if rank == 4 else (UnsqueezeOp, 0)
        half = _emit(made, cls.make(half, _emit(made, make_constant(np.array([axis], int64.numpy)))))
    if is_shared:
        sizes = [_emit(made, ShapeOp.make(x, start=0, end=1)), _emit(made, ShapeOp.make(half, start=1))]
        half = _emit(made, ExpandOp.make(half, _emit(made, ConcatOp.make(sizes, axis=0))))
    return half


def _emit(made: list[SxOp], op: SxOp) -> SSAValue:
    made.append(op)
    return op.results[0]


# ---- rewriting


@dataclass
class RotaryPattern(SxPattern[AddOp]):
    """Cases 1 to 3: the sum."""

    rows: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """What was made of a table before: queries, keys and layers share it."""
    OPS: ClassVar = (AddOp,)
    NAME: ClassVar = "rotary"
    REACH: ClassVar = 6

    def rewrite(self, op: AddOp, rewriter: SxRewriter) -> None:
        """Rewrite the op, or say why not."""
        found = match_rotary(op)
        if found is None:
            return None
        x = found.x
        if rank_of(x) != 4 or not same_shape(x, op.results[0]):
            return rewriter.decline("x is broadcast, or has not 4 axes")
        if dtype_of(x) not in RotaryEmbeddingOp.DTYPES:
            return rewriter.decline(f"the operator has no {dtype_of(x)}")
        made: list[SxOp] = []
        tables: list[SSAValue] = []
        for table in (found.cos, found.sin):
            rows = self._made_before(op, x, table) or _rows(x, table, made)
            if isinstance(rows, str):
                return rewriter.decline(rows)
            tables.append(rows)
        rotary = RotaryEmbeddingOp.make(x, *tables)
        rotary.output.name_hint = op.results[0].name_hint
        rewriter.replace(op, [*made, rotary], [rotary.output])
        self.rows |= {found.cos: tables[0], found.sin: tables[1]}

    def _made_before(self, op: AddOp, x: SSAValue, table: SSAValue) -> SSAValue | None:
        """The rows of a table that stand before an op already, for as many items."""
        rows = self.rows.get(table)
        maker = None if rows is None else owner_of(rows)
        if rows is None or maker is None or maker.parent is not op.parent or not maker.is_before_in_block(op):
            return None
        fits = all(dims_equal(a, b) for a, b in zip(dims_of(rows)[:2], (dims_of(x)[0], dims_of(x)[2]), strict=True))
        return rows if fits else None


@dataclass(frozen=True)
class RecognizeRotaryPass(SxPass):
    """State rotary position embeddings as one op.

    Cases:

    1. `x * cos + concat(-x[..., half:], x[..., :half]) * sin`, as Llama has it, is `rotary_embedding(x, cos, sin)`,
       where x is [batch, heads, sequence, width] and the tables are the same for all heads. The halves may be slices
       or a split.
    2. The op wants the first half of each table, so both halves have to be the same for certain: the table is made of
       `concat(f, f)` by elementwise ops, which then work on f alone, or it is a constant.
    3. Tables of one item for a batch are expanded to it.
    4. Not: heads at another axis; float64, which the operator has not; where something in between is read elsewhere.

    Requires: nothing (`fold-constants`, `simplify` and `cse` before it help; `cse` behind it merges the tables of
    queries, keys and layers). Ensures: none of the cases is left. ONNX has the operator from opset 23 on;
    `legalize-for-opset` states it in parts before.
    Promise: reassociates(1).
    """

    name = "recognize-rotary"
    PROMISE: ClassVar[Promise] = reassociates(1)

    def run(self, module: ModuleOp, run: PassRun) -> None:
        RewriteDriver([RotaryPattern()], run).rewrite(module)
