"""`recognize-norms`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from sardonyx.dialects.attributes import Shape, dims_of, dtype_of, rank_of
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dtypes import float32, int64
from sardonyx.dialects.sx.binary import AddOp, DivOp, MulOp, SubOp
from sardonyx.dialects.sx.cast import CastOp
from sardonyx.dialects.sx.layer_norm import LayerNormOp, RMSNormOp
from sardonyx.dialects.sx.norm import InstanceNormOp
from sardonyx.dialects.sx.reshape import ReshapeOp
from sardonyx.passes.base import PassRun, Promise, SxPass, reassociates
from sardonyx.passes.constants import make_constant
from sardonyx.passes.driver import RewriteDriver, SxPattern, SxRewriter
from sardonyx.passes.matching import (
    defined_by,
    dims_equal,
    has_one_use,
    is_constant,
    is_ranked,
    only_user,
    same_shape,
)
from sardonyx.passes.recognize_parts import (
    Ops,
    Product,
    cast_from,
    escapes,
    mean_of,
    merged,
    number_of,
    owner_of,
    product_of,
    root_of,
    square_of,
    sum_of,
    trailing,
)

MAX_ONES = 1 << 16
"""The size in bytes up to which a scale of ones is made where there is none."""


@dataclass(frozen=True)
class Norm:
    """What was found: `(data - mean) / sqrt(variance + epsilon) * scale + bias` over `axes`, or without the mean.

    `source` is the operand of the op to be: `data`, or what was cast to it. `ops` are all that it is made of.
    """

    data: SSAValue
    source: SSAValue
    axes: tuple[int, ...]
    epsilon: float
    is_centred: bool
    ops: Ops
    scale: SSAValue | None = None
    bias: SSAValue | None = None

    def takes(self, value: SSAValue) -> bool:
        """Whether a value has the shape of a scale or bias: that of the axes, or one element per channel."""
        return self.fits(value) or self.is_per_channel(value)

    def fits(self, value: SSAValue) -> bool:
        """Whether a value has one element for each that is normalised together, whatever the symbols are."""
        if not is_ranked(value) or not trailing(self.data, self.axes):
            return False
        return _is_shaped(value, dims_of(self.data)[self.axes[0] :])

    def is_per_channel(self, value: SSAValue) -> bool:
        """Whether a value has one element per channel, and the axes are those behind the channels."""
        rank = rank_of(self.data)
        if not (is_ranked(value) and self.is_centred and rank > 2 and self.axes == tuple(range(2, rank))):
            return False
        return _is_shaped(value, [dims_of(self.data)[1], *[1] * (rank - 2)])


def _is_shaped(value: SSAValue, wanted: Shape | list[object]) -> bool:
    """Whether a value has this shape for certain; a constant may have more axes of extent 1 before it."""
    ours = dims_of(value)
    lead = len(ours) - len(wanted)
    if lead < 0 or (lead and not (is_constant(value) and all(d.static_value == 1 for d in ours[:lead]))):
        return False
    return all(dims_equal(a, b) for a, b in zip(ours[lead:], wanted, strict=True))  # pyright: ignore[reportArgumentType]


# ---- matching


def match_norm(value: SSAValue) -> Norm | None:
    """The normalisation that a value is, as much of it as there is."""
    op = owner_of(value)
    if not isinstance(op, AddOp | MulOp | DivOp | CastOp) or not is_ranked(value):
        return None
    found = _with_bias(op) if isinstance(op, AddOp) else _scaled(value)
    return found if found is not None and same_shape(value, found.data) else None


def _with_bias(op: AddOp) -> Norm | None:
    """A normalisation and a bias, or `x * (scale / root) + (bias - mean * (scale / root))`."""
    for product, bias in sum_of(op.results[0]):
        if defined_by(product, (MulOp, DivOp, CastOp)) is None or not has_one_use(product):
            continue
        found = _scaled(product)
        if found is not None and found.is_centred and _joins(found, bias) and dtype_of(bias) == dtype_of(op.results[0]):
            return replace(found, bias=bias, ops=merged(found.ops, {op: None}))
        found = _spread_out(op, product, bias)
        if found is not None:
            return found
    return None


def _joins(norm: Norm, bias: SSAValue) -> bool:
    """Whether a value can be the bias beside the scale that is there."""
    if norm.scale is None:
        return norm.takes(bias)
    return norm.fits(bias) if norm.fits(norm.scale) else norm.is_per_channel(bias)


def _spread_out(op: AddOp, product: SSAValue, rest: SSAValue) -> Norm | None:
    """TensorFlow's form: `product` is `x * g` and `rest` is `bias - mean * g`."""
    times, minus = defined_by(product, MulOp), defined_by(rest, SubOp)
    shift = None if minus is None else defined_by(minus.operands[1], MulOp)
    if times is None or minus is None or shift is None:
        return None
    for x, factor in (tuple(times.operands), tuple(times.operands[::-1])):
        if factor not in shift.operands:
            continue
        mean = shift.operands[1] if shift.operands[0] is factor else shift.operands[0]
        average = mean_of(mean)
        gate = product_of(factor)
        root = None if average is None else _root(gate)
        if average is None or root is None or average.data is not x or root.centre != (x, mean):
            continue
        scale = [f for f in gate.above if f not in root.factors]
        ops = merged({op: None, times: None, minus: None, shift: None}, average.ops, gate.ops, root.ops)
        found = Norm(x, x, root.axes, root.epsilon, True, ops)
        found = _take_scale(found, scale)
        if found is not None and _joins(found, minus.operands[0]):
            return replace(found, bias=minus.operands[0])
    return None


@dataclass(frozen=True)
class _Root:
    """`1 / sqrt(mean(square) + epsilon)` among the factors of a product; the square is of `squared`, which is
    `x - mean` where `centre` is the two."""

    factors: tuple[SSAValue, ...]
    squared: SSAValue
    centre: tuple[SSAValue, SSAValue] | None
    axes: tuple[int, ...]
    epsilon: float
    ops: Ops


def _root(product: Product) -> _Root | None:
    """The one inverse root that a product has; None where there is none, or something else below the line."""
    candidates = [(f, False) for f in product.below] + [(f, True) for f in product.above]
    for factor, inverted in candidates:
        root = root_of(factor)
        if root is None or root[1] != inverted or (not inverted and len(product.below) != 1):
            continue
        if inverted and product.below:
            continue
        for variance, small in sum_of(root[0]):
            epsilon, mean = number_of(small), mean_of(variance)
            square = None if mean is None else square_of(mean.data)
            if mean is None or square is None or epsilon is None or not 0.0 <= epsilon < float("inf"):
                continue
            total = owner_of(root[0])
            ops = merged(root[2], {} if total is None else {total: None}, mean.ops, square[1])
            centre, more = _centred(square[0], mean.axes)
            return _Root((factor,), square[0], centre, mean.axes, epsilon, merged(ops, more))
    return None


def _centred(value: SSAValue, axes: tuple[int, ...]) -> tuple[tuple[SSAValue, SSAValue] | None, Ops]:
    """`(x, mean)` where a value is x without its mean over these axes."""
    op = defined_by(value, SubOp)
    mean = None if op is None else mean_of(op.operands[1])
    if op is None or mean is None or mean.data is not op.operands[0] or mean.axes != axes:
        return None, {}
    return (op.operands[0], op.operands[1]), merged({op: None}, mean.ops)


def _scaled(value: SSAValue) -> Norm | None:
    """A normalisation with or without a scale; in 16 bits, one computed in float32 in between."""
    product = product_of(value)
    if dtype_of(value) == float32:
        return _plain(product)
    for factor in product.above:
        narrowed = cast_from(factor)
        if narrowed is None or product.below or dtype_of(narrowed.operands[0]) != float32:
            continue
        if dtype_of(factor).bits != 16 or not (factor is value or has_one_use(factor)):
            continue
        if not has_one_use(narrowed.operands[0]):
            continue
        found = _plain(product_of(narrowed.operands[0]))
        widened = None if found is None else cast_from(found.data)
        if found is None or widened is None or found.scale is not None:
            continue
        if dtype_of(widened.operands[0]) != dtype_of(value):
            continue
        found = replace(found, source=widened.operands[0], ops=merged(found.ops, {narrowed: None}, product.ops))
        return _take_scale(found, [f for f in product.above if f is not factor])
    return None


def _plain(product: Product) -> Norm | None:
    """A product in float32 that is a normalisation, scaled or not."""
    root = _root(product)
    if root is None:
        return None
    for factor in product.above:
        if factor in root.factors:
            continue
        centre, more = _centred(factor, root.axes)
        if centre is not None and centre == root.centre:
            found = Norm(centre[0], centre[0], root.axes, root.epsilon, True, merged(root.ops, more, product.ops))
        elif factor is root.squared:
            found = Norm(factor, factor, root.axes, root.epsilon, False, merged(root.ops, product.ops))
        else:
            continue
        rest = list(product.above)
        rest.remove(factor)
        return _take_scale(found, [f for f in rest if f not in root.factors])
    return None


def _take_scale(norm: Norm, rest: list[SSAValue]) -> Norm | None:
    """The normalisation with what is left of its product as the scale; None where that is none."""
    if not rest:
        return norm
    if len(rest) > 1 or not norm.takes(rest[0]) or dtype_of(rest[0]) != dtype_of(norm.source):
        return None
    return replace(norm, scale=rest[0])


# ---- rewriting


def _is_absorbed(op: Operation) -> bool:
    """Whether the only reader of an op takes it into a normalisation that has more."""
    user = only_user(op.results[0])
    if not isinstance(user, AddOp | MulOp | CastOp | DivOp):
        return False
    found = match_norm(user.results[0])
    return found is not None and op in found.ops and escapes(found.ops, user) is None


def _near_miss(op: Operation) -> str | None:
    """Why a quotient by the root of a mean of squares is no normalisation; None for all else."""
    product = product_of(op.results[0]) if isinstance(op, MulOp | DivOp) else Product()
    root = _root(product)
    if root is None:
        return "its variance is a difference, mean(x²) - mean(x)²" if _is_fast(product) else None
    dtype = dtype_of(op.results[0])
    if dtype != float32:
        return f"it is computed in {dtype} throughout"
    above = [f for f in product.above if f not in root.factors]
    whole = [f for f in above if f is root.squared or (root.centre and _centred(f, root.axes)[0] == root.centre)]
    if not whole:
        return "nothing above the line is what was squared" if above else None
    return "its scale has another shape than the axes" if len(above) == 2 else None


def _is_fast(product: Product) -> bool:
    """Whether there is a root of `mean(x²) - mean(x)² + epsilon` below the line."""
    for factor in product.below:
        root = root_of(factor)
        for variance, _ in [] if root is None else sum_of(root[0]):
            minus = defined_by(variance, SubOp)
            if minus is not None and mean_of(minus.operands[0]) is not None and square_of(minus.operands[1]):
                return True
    return False


@dataclass
class NormPattern(SxPattern[SxOp]):
    """Cases 1 to 5: the last op of a normalisation."""

    OPS: ClassVar = (AddOp, MulOp, DivOp, CastOp)
    NAME: ClassVar = "norm"
    REACH: ClassVar = 10

    def rewrite(self, op: SxOp, rewriter: SxRewriter) -> None:
        found = match_norm(op.results[0])
        if found is None:
            reason = _near_miss(op)
            return None if reason is None else rewriter.decline(reason)
        if _is_absorbed(op):
            return
        read = escapes(found.ops, op)
        if read is not None:
            return rewriter.decline(f"what {read.name} computes is read elsewhere, too")
        per_channel = found.is_centred and self._is_per_channel(found)
        if not per_channel and not trailing(found.data, found.axes):
            return rewriter.decline(f"it normalises the axes {list(found.axes)}, which are not the last ones")
        made: list[SxOp] = []
        scale, bias = found.scale, found.bias
        shape: list[int | None] = [d.static_value for d in dims_of(found.data)]
        shape = [shape[1]] if per_channel else shape[found.axes[0] :]
        needed = scale is None or per_channel
        known = [size for size in shape if size is not None]
        if needed and len(known) < len(shape):
            return rewriter.decline("the size of its scale is not known")
        if needed and 4 * int(np.prod(known)) > MAX_ONES:
            return rewriter.decline(f"it has no scale, and one of ones would be larger than {MAX_ONES} bytes")
        dtype = dtype_of(found.source).numpy
        operands: list[SSAValue | None] = []
        for value, filler in ((scale, 1), (bias, 0)):
            if value is not None:
                operands.append(self._shaped(value, len(shape), known, made))
            elif filler or per_channel:
                made.append(make_constant(np.full(known, filler, dtype), "ones" if filler else "zeros"))
                operands.append(made[-1].results[0])
            else:
                operands.append(None)
        norm: SxOp
        if per_channel:
            norm = InstanceNormOp.make(found.source, *operands, epsilon=found.epsilon)
        elif found.is_centred:
            axis = found.axes[0] - rank_of(found.data)
            norm = LayerNormOp.make(found.source, *operands, axis=axis, epsilon=found.epsilon)
        else:
            axis = found.axes[0] - rank_of(found.data)
            norm = RMSNormOp.make(found.source, operands[0], axis=axis, epsilon=found.epsilon)
        made.append(norm)
        norm.results[0].name_hint = op.results[0].name_hint
        rewriter.replace(op, made, [norm.results[0]])

    @staticmethod
    def _is_per_channel(found: Norm) -> bool:
        """Whether it is an instance norm: by the shapes of scale and bias, else by having several spatial axes."""
        given = [v for v in (found.scale, found.bias) if v is not None]
        rank = rank_of(found.data)
        if given:
            return not found.fits(given[0])
        return rank > 3 and found.axes == tuple(range(2, rank))

    @staticmethod
    def _shaped(value: SSAValue, rank: int, known: list[int], made: list[SxOp]) -> SSAValue:
        """A scale or bias without the axes of extent 1 that it has around its own."""
        if rank_of(value) == rank:
            return value
        shape = make_constant(np.array(known, int64.numpy))
        reshape = ReshapeOp.make(value, shape.output)
        made += [shape, reshape]
        return reshape.results[0]


@dataclass(frozen=True)
class RecognizeNormsPass(SxPass):
    """State layer, RMS, instance and group normalisations as one op.

    Cases:

    1. `(x - mean(x)) / sqrt(mean((x - mean(x))²) + epsilon)` over the last axes is `layer_norm(x)`; the square may be
       `y * y` or `y ** 2`, the root a `sqrt` or a power, the quotient a product with a reciprocal, a mean a sum by the
       number of its terms. What it is multiplied by, before or after the quotient, is the scale, and what is added the
       bias, where these have exactly the shape of the axes.
    2. `x * g + (bias - mean(x) * g)` with `g = scale / sqrt(…)` is the same.
    3. `x / sqrt(mean(x²) + epsilon)` is `rms_norm(x)`, likewise.
    4. Over all axes behind the channels, and with scale and bias per channel or none, it is `instance_norm(x)`.
    5. Computed in float32 between casts from and to 16 bits, it is the op in 16 bits.
    6. Without a scale there is one of ones, where its size is known and small.
    7. Where the channels were grouped by a reshape before, and the shape comes back behind: `group_norm(x)`. So is an
       instance or layer norm between these reshapes whose scale is 1 and bias 0; scale and bias are those that follow,
       per channel.
    8. Not: other axes; where something in between is read elsewhere; where x is broadcast; in 16 bits throughout, whose
       squares overflow early, and in float64, where ONNX's operators compute in float32; `mean(x²) - mean(x)²`, which
       cancels.

    Requires: nothing (`fold-constants`, `simplify` and `cse` before it help). Ensures: none of the cases is left.
    Opsets below 17, for groups below 21, and for RMS below 23, have no such operator; `legalize-for-opset` states it by
    others again.
    Promise: reassociates(8), where no square overflows.
    """

    name = "recognize-norms"
    PROMISE: ClassVar[Promise] = reassociates(8)

    def run(self, module: ModuleOp, run: PassRun) -> None:
        from sardonyx.passes.recognize_groups import GroupNormPattern  # it asks what is a normalisation here

        RewriteDriver([GroupNormPattern()], run).rewrite(module)  # before what it holds becomes a layer norm
        RewriteDriver([NormPattern()], run).rewrite(module)
