"""`recognize-attention`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dims_of, dtype_of, rank_of
from sardonyx.dialects.base import SxOp, to_attribute
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import bool_, float32, float64
from sardonyx.dialects.sx.attention import AttentionOp
from sardonyx.dialects.sx.binary import AddOp, DivOp, MulOp
from sardonyx.dialects.sx.cast import CastOp
from sardonyx.dialects.sx.compare import EqualOp, LessEqualOp
from sardonyx.dialects.sx.fill import RangeOp
from sardonyx.dialects.sx.matmul import MatMulOp
from sardonyx.dialects.sx.reduce import ReduceMaxOp
from sardonyx.dialects.sx.reshape import ExpandOp, ReshapeOp, UnsqueezeOp
from sardonyx.dialects.sx.select import WhereOp
from sardonyx.dialects.sx.softmax import SoftmaxOp
from sardonyx.dialects.sx.transpose import TransposeOp
from sardonyx.dialects.values import known_ints
from sardonyx.passes.base import PassRun, Promise, SxPass, reassociates
from sardonyx.passes.driver import RewriteDriver, SxPattern, SxRewriter
from sardonyx.passes.finite import is_never_infinite
from sardonyx.passes.fold_affine import constant_array
from sardonyx.passes.matching import defined_by, dims_equal, has_one_use, is_filled_with, is_ranked, only_user
from sardonyx.passes.recognize_parts import Ops, escapes, merged, number_of

SWAP, HEADS = (0, 1, 3, 2), (0, 2, 1, 3)


@dataclass(frozen=True)
class Attention:
    """What was found: the operands, the scale, and the ops that it is made of, without the transpose of the keys."""

    query: SSAValue
    key: SSAValue
    value: SSAValue
    mask: SSAValue | None = None
    scale: float = 1.0
    ops: Ops = field(default_factory=Ops)
    perm: tuple[int, ...] | None = None
    """The permutation by which the keys come out of `key`; None where they are `key`."""
    is_causal: bool = False


def _perm(op: TransposeOp) -> tuple[int, ...]:
    stated = op.attr("perm")
    return tuple(stated) if stated is not None else tuple(range(rank_of(op.data)))[::-1]


def _without_number(value: SSAValue) -> tuple[SSAValue, float, Ops]:
    """`(x, c, ops)` of `x * c` or `x / c`; a factor of 1 where there is none."""
    op = defined_by(value, (MulOp, DivOp))
    if op is None or not has_one_use(value):
        return value, 1.0, {}
    a, b = op.operands
    for x, other in ((a, b), (b, a)):
        number = number_of(other)
        if number and np.isfinite(number) and is_ranked(x, value) and rank_of(x) == rank_of(value):
            if isinstance(op, MulOp):
                return x, number, {op: None}
            if other is b:
                return x, 1.0 / number, {op: None}
    return value, 1.0, {}


def _scores(value: SSAValue) -> Attention | str:
    """`query · keyᵀ`, times numbers before and after; or why it is none. `value` of what it returns is left open."""
    product, scale, ops = _without_number(value)
    op = defined_by(product, MatMulOp)
    if op is None or not has_one_use(product):
        return "the scores are no product, or read elsewhere"
    query, own, more = _without_number(op.operands[0])
    turned, other, most = _without_number(op.operands[1])
    ops = merged(ops, {op: None}, more, most)
    if rank_of(query) != 4 or rank_of(turned) != 4:
        return f"the operands have rank {rank_of(turned)}, where heads are the second of 4 axes"
    transposed = defined_by(turned, TransposeOp)
    if transposed is None:
        return "the keys are not transposed"
    key, factor, extra = _without_number(transposed.data)
    if rank_of(key) != 4:
        key, factor, extra = transposed.data, 1.0, Ops()
    perm = tuple(_perm(transposed)[i] for i in SWAP)
    scale *= own * other * factor
    ops = merged(ops, extra, {transposed: None} if has_one_use(turned) else {})
    kept = None if perm == (0, 1, 2, 3) else perm
    return Attention(query, key, key, None, scale, ops, kept)


def match_attention(product: MatMulOp, rows_see: bool) -> Attention | str | None:
    """The attention whose last product this is; why it is none, where it looks like one; None for all else."""
    if not is_ranked(*product.operands):
        return None
    given: SSAValue = product.operands[0]
    ops: Ops = {}
    guard = defined_by(given, WhereOp)
    if guard is not None and is_filled_with(guard.operands[1], 0.0):
        given, ops = guard.operands[2], {guard: None}
    softmax = defined_by(given, SoftmaxOp)
    if softmax is None:
        return None
    if softmax.attr("axis") % rank_of(softmax.input) != rank_of(softmax.input) - 1:
        return "the softmax goes along another axis than the last"
    scores, mask, hides, more = _masked(softmax.input)
    found = _scores(scores)
    if isinstance(found, str):
        return found
    if rank_of(product.operands[1]) != 4:
        return "the values have not rank 4"
    ops = merged(found.ops, more, {softmax: None}, ops, {product: None})
    whole = replace(found, value=product.operands[1], mask=mask, ops=ops)
    reason = _unfit(whole, scores)
    if reason is not None:
        return reason
    if mask is None:
        return whole if guard is None else "what is 0 is not what a mask hides"
    if guard is not None:
        asked = _asks(guard.operands[0], mask, hides)
        if asked is None:
            return "what is 0 is not what the mask hides"
        return replace(whole, mask=None if _adds_nothing(mask, hides) else mask, ops=merged(ops, asked))
    if _adds_nothing(mask, hides):
        return replace(whole, mask=None)
    if hides and _is_causal(mask, scores):
        return replace(whole, mask=None, is_causal=True)
    if rows_see or _is_chosen_after(product, mask, hides) or (not hides and is_never_infinite(mask)):
        return whole
    return "a row that sees nothing is NaN here, and 0 in the operator (rows-see=true says that there is no such row)"


def _masked(value: SSAValue) -> tuple[SSAValue, SSAValue | None, bool, Ops]:
    """The scores, the mask, whether it is a choice of -inf, and the op that applies it."""
    chosen = defined_by(value, WhereOp)
    if chosen is not None and has_one_use(value):
        seen, scores, low = chosen.operands
        if is_filled_with(low, -np.inf):
            return scores, seen, True, {chosen: None}
    added = defined_by(value, AddOp)
    if added is not None and has_one_use(value):
        a, b = added.operands
        for scores, mask in ((a, b), (b, a)):
            inner = _without_number(scores)[0]
            if defined_by(inner, MatMulOp) is not None:
                return scores, mask, False, {added: None}
    return value, None, False, {}


def _unfit(found: Attention, scores: SSAValue) -> str | None:
    """Why the operands are none of the op's; None where they are, whatever the symbols are."""
    query, value, mask = dims_of(found.query), dims_of(found.value), found.mask
    key = dims_of(found.key)
    key = key if found.perm is None else tuple(key[i] for i in found.perm)
    whole = dims_of(scores)
    pairs = [(query[0], key[0]), (query[1], key[1]), (query[3], key[3]), *zip(key[:3], value[:3], strict=True)]
    if not all(dims_equal(a, b) for a, b in pairs):
        return "the extents of queries, keys and values are not proved to agree"
    if any(dtype_of(v) != dtype_of(found.query) for v in (found.key, found.value)):
        return "the dtypes differ"
    if dtype_of(found.query) not in (float32, float64):
        return "16 bits round the scores in between"
    if mask is None:
        return None
    if not is_ranked(mask) or not 2 <= rank_of(mask) <= 4:
        return "the mask has another rank than 2 to 4"
    ends = zip(reversed(dims_of(mask)), reversed(whole), strict=False)
    if not all(m.static_value == 1 or dims_equal(m, s) for m, s in ends) or not dims_equal(
        dims_of(mask)[-1], whole[-1]
    ):
        return "the mask is not proved to broadcast to the scores"
    return None if dtype_of(mask) in (bool_, dtype_of(found.query)) else "the mask has another dtype"


def _adds_nothing(mask: SSAValue, hides: bool) -> bool:
    """Whether a mask that is added is all 0, as that of ONNX's definition where there is none."""
    return not hides and is_filled_with(mask, 0.0)


def _is_chosen_after(product: MatMulOp, mask: SSAValue, hides: bool) -> bool:
    """Whether the only reader puts something else in rows that see nothing: `where(any(mask), product, …)`."""
    user = only_user(product.results[0])
    if not isinstance(user, WhereOp):
        return False
    condition, kept, other = user.operands
    if kept is product.results[0] and other is not kept:
        reduced = defined_by(condition, ReduceMaxOp)
        return hides and reduced is not None and reduced.data is mask and _is_last(reduced)
    return other is product.results[0] and kept is not other and _asks(condition, mask, hides) is not None


def _is_last(reduced: ReduceMaxOp) -> bool:
    """Whether it goes along the last axis, which stays."""
    return bool(reduced.attr("keepdims")) and reduced.known_axes() == (rank_of(reduced.data) - 1,)


def _asks(condition: SSAValue, mask: SSAValue, hides: bool) -> Ops | None:
    """The ops by which a condition is whether a row of the mask sees nothing, those that nothing else reads; else
    None. `hides`: the mask says what is seen, and is cast to numbers; else it is added."""
    equal = defined_by(condition, EqualOp)
    if equal is None or not is_filled_with(equal.operands[1], 0.0 if hides else -np.inf):
        return None
    reduced = defined_by(equal.operands[0], ReduceMaxOp)
    if reduced is None or not is_ranked(reduced.data) or not _is_last(reduced):
        return None
    ops: Ops = {equal: None, reduced: None}
    read = reduced.data
    if hides:
        cast = defined_by(read, CastOp)
        if cast is None:
            return None
        read, ops = cast.operands[0], merged(ops, {cast: None})
    return {op: None for op in ops if has_one_use(op.results[0])} if read is mask else None


def _is_causal(mask: SSAValue, scores: SSAValue) -> bool:
    """Whether row i of a mask of rank 2 sees just the columns up to i."""
    if rank_of(mask) != 2:
        return False
    known = constant_array(mask)
    if known is not None:
        return bool((known == np.tril(np.ones(known.shape))).all()) and known.shape[0] > 0
    less = defined_by(mask, LessEqualOp)
    if less is None:
        return False
    shape = dims_of(scores)
    return _counts(less.operands[0], 0, shape[3]) and _counts(less.operands[1], 1, shape[2])


def _counts(value: SSAValue, axis: int, extent: Dim) -> bool:
    """Whether a value is 0, 1, … up to an extent, with an axis of extent 1 put in."""
    placed = defined_by(value, UnsqueezeOp)
    counted = None if placed is None else defined_by(placed.operands[0], RangeOp)
    if placed is None or counted is None or known_ints(placed.operands[1]) not in ((axis,), (axis - 2,)):
        return False
    first, _, step = counted.operands
    (length,) = dims_of(counted.results[0])
    return number_of(first) == 0.0 and number_of(step) == 1.0 and dims_equal(length, extent)


# ---- rewriting


@dataclass
class AttentionPattern(SxPattern[MatMulOp]):
    """Cases 1 to 5."""

    rows_see: bool
    OPS: ClassVar = (MatMulOp,)
    NAME: ClassVar = "attention"
    REACH: ClassVar = 8

    def rewrite(self, op: MatMulOp, rewriter: SxRewriter) -> None:
        found = match_attention(op, self.rows_see)
        if found is None:
            return
        if isinstance(found, str):
            return rewriter.decline(found)
        read = escapes(found.ops, op)
        if read is not None:
            return rewriter.decline(f"what {read.name} computes is read elsewhere, too")
        made: list[SxOp] = []
        key, value = found.key, found.value
        if found.perm is not None:
            made.append(TransposeOp.make(key, perm=found.perm))
            key = made[-1].results[0]
        else:
            key, value = self._ungrouped(key, value)
        attention = AttentionOp.make(found.query, key, value, found.mask, scale=found.scale)
        if found.is_causal:
            attention.properties["is_causal"] = to_attribute(True)
        attention.output.name_hint = op.results[0].name_hint
        rewriter.replace(op, [*made, attention], [attention.output])

    @staticmethod
    def _ungrouped(key: SSAValue, value: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Keys and values before their heads were repeated, where both were alike."""
        keys, values = _repeated(key), _repeated(value)
        if keys is not None and values is not None and keys[1] == values[1]:
            return keys[0], values[0]
        return key, value


def _repeated(value: SSAValue) -> tuple[SSAValue, int] | None:
    """`(x, n)` where each head of x stands n times: `reshape(expand(unsqueeze(x, 2), n))`."""
    reshape = defined_by(value, ReshapeOp)
    expand = None if reshape is None else defined_by(reshape.data, ExpandOp)
    unsqueeze = None if expand is None else defined_by(expand.operands[0], UnsqueezeOp)
    if expand is None or unsqueeze is None or known_ints(unsqueeze.operands[1]) != (2,):
        return None
    x = unsqueeze.operands[0]
    if not is_ranked(x, value, expand.results[0]) or rank_of(x) != 4 or rank_of(value) != 4:
        return None
    own, wide, whole = dims_of(x), dims_of(expand.results[0]), dims_of(value)
    heads, count = own[1].static_value, wide[2].static_value if len(wide) == 5 else None
    if not heads or not count or whole[1].static_value != heads * count:
        return None
    kept = [(own[0], wide[0]), (own[1], wide[1]), (own[2], wide[3]), (own[3], wide[4]),
            (own[0], whole[0]), (own[2], whole[2]), (own[3], whole[3])]  # fmt: skip
    return (x, count) if all(dims_equal(a, b) for a, b in kept) else None


@dataclass
class FlatPattern(SxPattern[ReshapeOp]):
    """Case 6: heads that are split and joined around it."""

    OPS: ClassVar = (ReshapeOp,)
    NAME: ClassVar = "flat-attention"
    REACH: ClassVar = 4

    def rewrite(self, op: ReshapeOp, rewriter: SxRewriter) -> None:
        swapped = defined_by(op.data, TransposeOp)
        attention = None if swapped is None else defined_by(swapped.data, AttentionOp)
        if swapped is None or attention is None or attention.attr("q_num_heads") is not None:
            return
        if _perm(swapped) != HEADS or not (has_one_use(op.data) and has_one_use(swapped.data)):
            return rewriter.decline("the heads are not joined again, or read elsewhere")
        parts = [_split(v) for v in (attention.query, attention.key, attention.value)]
        if any(part is None for part in parts):
            return rewriter.decline("the heads of queries, keys or values were not split from one axis")
        query, key, value = [part for part in parts if part is not None]
        heads, groups = (part[1] for part in (query, key))
        width = dims_of(attention.value)[3]
        wanted = [*dims_of(query[0])[:2], width * heads]
        if not is_ranked(op.output) or len(dims_of(op.output)) != 3:
            return rewriter.decline("the heads are joined to another shape")
        if not all(dims_equal(a, b) for a, b in zip(dims_of(op.output), wanted, strict=True)):
            return rewriter.decline("the joined heads are not proved to have the shape of the result")
        made = AttentionOp.make(query[0], key[0], value[0], attention.mask, q_num_heads=heads, kv_num_heads=groups)
        for name in ("scale", "is_causal"):
            if name in attention.properties:
                made.properties[name] = attention.properties[name]
        made.output.name_hint = op.results[0].name_hint
        rewriter.replace(op, made, [made.output])


def _split(value: SSAValue) -> tuple[SSAValue, int] | None:
    """`(x, heads)` where [B, S, heads * D] became [B, heads, S, D]."""
    swapped = defined_by(value, TransposeOp)
    reshape = None if swapped is None else defined_by(swapped.data, ReshapeOp)
    if swapped is None or reshape is None or _perm(swapped) != HEADS or not is_ranked(reshape.data):
        return None
    whole, parts = dims_of(reshape.data), dims_of(swapped.data)
    heads = parts[2].static_value
    if len(whole) != 3 or not heads or not has_one_use(value) or not has_one_use(swapped.data):
        return None
    fits = dims_equal(whole[0], parts[0]) and dims_equal(whole[1], parts[1]) and dims_equal(whole[2], parts[3] * heads)
    return (reshape.data, heads) if fits else None


@dataclass(frozen=True)
class RecognizeAttentionPass(SxPass):
    """State scaled dot-product attention as one op.

    Cases:

    1. `softmax(q · kᵀ) · v` of four axes, the heads second, is `attention(q, k, v)`: the scores, q or k (before or
       after it is transposed) times or by numbers, whose product is the scale.
    2. A mask that is added to the scores is the op's, where it certainly holds no -inf (bounds of what it is made of
       say so), or rows that see nothing are set to 0 before the last product, or to something else after it. One of
       zeros is none.
    3. So is one by which -inf is chosen, with such a guard.
    4. Where that mask is `column <= row`, it is `is_causal`.
    5. Heads of keys and values that were repeated for groups of queries are not: the op does that.
    6. Heads that are split from the last axis before (reshape and transpose) and joined again after: the op takes and
       gives three axes, and the numbers of heads.
    7. Not: 16 bits, which round the scores in between; extents or masks that are not proved to fit; where something in
       between is read elsewhere; a mask under which a row may see nothing, which gives NaN in parts, and 0 in the op
       (`rows-see` says that there is no such row).

    Options: `rows-see` (false), whether each row of each mask sees something.
    Requires: nothing (`fold-constants`, `simplify` and `cse` before it help). Ensures: none of the cases is left. ONNX
    has the operator from opset 24 on; `legalize-for-opset` states it in parts before.
    Promise: reassociates(8); with `rows-see`, where that is so.
    """

    name = "recognize-attention"
    PROMISE: ClassVar[Promise] = reassociates(8)

    rows_see: bool = field(default=False, metadata={"help": "each row of each mask sees something"})

    def run(self, module: ModuleOp, run: PassRun) -> None:
        RewriteDriver([AttentionPattern(self.rows_see), FlatPattern()], run).rewrite(module)
