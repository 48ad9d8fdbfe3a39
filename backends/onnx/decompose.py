"""What `legalize-for-opset` puts in the place of an op that an opset lacks; one function an op.

Each returns the values that stand for the op's results (None for one that nobody reads), or None where it cannot help.
The formulas are those of the operators' definitions in ONNX.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import SSAValue

from sardonyx.backends.onnx.rewrite import Expansion
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dims import Proof, less_equal
from sardonyx.dialects.dtypes import DType, float32, int64
from sardonyx.dialects.sx.constant import dense_array, dense_attribute
from sardonyx.dialects.values import contents, known_ints
from sardonyx.passes.fold_affine import constant_array

Values = Sequence[SSAValue | None] | None
Decomposition = Callable[[SxOp, Expansion, int], Values]
DECOMPOSITIONS: dict[str, Decomposition] = {}

INT64_MAX = 2**63 - 1
MAX_CHANNELS = 4096
"""Vectors along the channels up to this size are put into their shape here."""


def decomposes(*names: str) -> Callable[[Decomposition], Decomposition]:
    """Register the decomposition of the ops of these names."""

    def register(function: Decomposition) -> Decomposition:
        for name in names:
            DECOMPOSITIONS["sx." + name] = function
        return function

    return register


# ---- activations


@decomposes("gelu")
def _gelu(op: SxOp, b: Expansion, opset: int) -> Values:
    (x,) = _operands(op)
    dtype = dtype_of(x)
    half, one = b.constant(0.5, dtype), b.constant(1.0, dtype)
    if op.attr("approximate") == "tanh":
        factor = math.sqrt(2 / math.pi)  # of x + 0.044715 x**3, as x (1 + 0.044715 x**2): an op less
        square = b("mul", b.constant(0.044715 * factor, dtype), b("mul", x, x))
        gate = b("tanh", b("mul", x, b("add", b.constant(factor, dtype), square)))
    else:
        gate = b("erf", b("mul", x, b.constant(math.sqrt(0.5), dtype)))
    return [b("mul", b("mul", half, x), b("add", one, gate))]


@decomposes("mish")
def _mish(op: SxOp, b: Expansion, opset: int) -> Values:
    (x,) = _operands(op)
    return [b("mul", x, b("tanh", b("softplus", x)))]


@decomposes("hard_swish")
def _hard_swish(op: SxOp, b: Expansion, opset: int) -> Values:
    (x,) = _operands(op)
    return [b("mul", x, b("hard_sigmoid", x, alpha=float(np.float32(1 / 6)), beta=0.5))]


@decomposes("swish")
def _swish(op: SxOp, b: Expansion, opset: int) -> Values:
    (x,) = _operands(op)
    alpha = op.attr("alpha")
    scaled = x if alpha == 1.0 else b("mul", b.constant(alpha, dtype_of(x)), x)
    return [b("mul", x, b("sigmoid", scaled))]


@decomposes("relu")
def _relu(op: SxOp, b: Expansion, opset: int) -> Values:
    """Integers before opset 14, where no cast helps."""
    (x,) = _operands(op)
    return [b("max", [x, b.constant(0, dtype_of(x))])]


@decomposes("celu")
def _celu(op: SxOp, b: Expansion, opset: int) -> Values:
    """Doubles before opset 28: max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""
    (x,) = _operands(op)
    dtype = dtype_of(x)
    zero, one, alpha = (b.constant(v, dtype) for v in (0.0, 1.0, op.attr("alpha")))
    below = b("mul", alpha, b("sub", b("exp", b("div", x, alpha)), one))
    return [b("add", b("max", [zero, x]), b("min", [zero, below]))]


# ---- arithmetic


@decomposes("mod")
def _mod(op: SxOp, b: Expansion, opset: int) -> Values:
    """The floor remainder of floats before opset 28, from the truncated one; a zero has the divisor's sign."""
    x, y = _operands(op)
    dtype = dtype_of(x)
    if not dtype.is_float or op.attr("fmod"):
        return None
    zero = b.constant(0.0, dtype)
    rest = b("mod", x, y, fmod=True)
    crossed = b("xor", b("less", rest, zero), b("less", y, zero))
    signed_zero = b("where", b("less", y, zero), b.constant(-0.0, dtype), zero)
    moved = b("where", crossed, b("add", rest, y), rest)
    return [b("where", b("equal", rest, zero), signed_zero, moved)]


@decomposes("bitwise_not")
def _bitwise_not(op: SxOp, b: Expansion, opset: int) -> Values:
    """-1 - x, or the largest value - x: all bits are set in both."""
    (x,) = _operands(op)
    dtype = dtype_of(x)
    ones = -1 if dtype.kind == "i" else 2**dtype.bits - 1
    return [b("sub", b.constant(ones, dtype), x)]


@decomposes("cast_like")
def _cast_like(op: SxOp, b: Expansion, opset: int) -> Values:
    x, target = _operands(op)
    return [b("cast", x, to=dtype_of(target), saturate=op.attr("saturate"), round_mode=op.attr("round_mode"))]


@decomposes("range")
def _range(op: SxOp, b: Expansion, opset: int) -> Values:
    """16-bit floats before opset 27: the terms are computed in float32 and rounded once, as stash_type 1 says."""
    dtype = dtype_of(op.results[0])
    if not dtype.is_float or dtype.bits != 16:
        return None
    wide = _wide(dtype)
    return [b.cast(b("range", *(b.cast(v, wide) for v in _operands(op))), dtype)]


@decomposes("constant_of_shape")
def _constant_of_shape(op: SxOp, b: Expansion, opset: int) -> Values:
    """bfloat16 before opset 20."""
    dtype = dtype_of(op.results[0])
    if not dtype.is_float or dtype.bits != 16:
        return None
    value = op.attr("value")
    if not isinstance(value, DenseIntOrFPElementsAttr):
        return None
    wide = dense_attribute(dense_array(value).astype(np.float32))
    return [b.cast(b("constant_of_shape", *_operands(op), value=wide), dtype)]


# ---- shapes


@decomposes("shape")
def _shape(op: SxOp, b: Expansion, opset: int) -> Values:
    """`start` and `end` before opset 15; Slice clamps both as Shape does."""
    (x,) = _operands(op)
    start, end = op.attr("start"), op.attr("end")
    bounds = [b.constant([v], int64) for v in (start or 0, INT64_MAX if end is None else end)]
    return [b("slice", b("shape", x), *bounds, b.constant([0], int64))]


@decomposes("reshape")
def _reshape(op: SxOp, b: Expansion, opset: int) -> Values:
    """`allowzero` before opset 14: without a zero in the shape it says nothing; with one the result is empty."""
    x, shape = _operands(op)
    known = contents(shape)
    if known is None:
        return None
    if all(d is not None and (d == -1 or less_equal(1, d) is Proof.PROVED) for d in known):
        return [b("reshape", x, shape)]
    if any(d == 0 for d in known):
        return [b.cast(b("constant_of_shape", shape), dtype_of(x))]
    return None


@decomposes("split")
def _split(op: SxOp, b: Expansion, opset: int) -> Values:
    """Parts that may be unequal before opset 18: their sizes, where the extent is known."""
    x = op.slots[0]
    extent = None if x is None else dims_of(x)[op.attr("axis")].static_value
    if x is None or extent is None:
        return None
    count = len(op.results)
    size = -(-extent // count)
    sizes = b.constant([*[size] * (count - 1), extent - size * (count - 1)], int64)
    return b.ops("split", x, sizes, axis=op.attr("axis"), results=count).results


@decomposes("pad")
def _pad(op: SxOp, b: Expansion, opset: int) -> Values:
    """`axes` before opset 18: pads of all axes."""
    x, pads, value, axes = (*op.slots, None, None)[:4]
    known, at = known_ints(pads), known_ints(axes)
    if x is None or known is None or at is None or op.attr("mode") == "wrap":
        return None
    total = len(dims_of(x))
    full = [0] * (2 * total)
    for index, axis in enumerate(at):
        full[axis % total] = known[index]
        full[total + axis % total] = known[len(at) + index]
    return [b("pad", x, b.constant(full, int64), value, mode=op.attr("mode"))]


@decomposes("trilu")
def _trilu(op: SxOp, b: Expansion, opset: int) -> Values:
    """Before opset 14: a comparison of row and column numbers chooses between the operand and zero."""
    x, k = (*op.slots, None)[:2]
    if x is None:
        return None
    one, zero = b.constant(1, int64), b.constant(0, int64)
    shape = b("shape", x)
    rows, columns = (
        b("range", zero, b("gather", shape, b.constant(at, int64), axis=0), one) for at in (-2, -1)
    )  # fmt: skip
    diagonal = b("unsqueeze", rows, b.constant([1], int64))
    if k is not None:
        diagonal = b("add", diagonal, k)
    keep = b("less_equal" if not op.attr("upper") else "greater_equal", columns, diagonal)
    return [b("where", keep, x, b.constant(0, dtype_of(x)))]


@decomposes("space_to_depth")
def _space_to_depth(op: SxOp, b: Expansion, opset: int) -> Values:
    """`mode` before opset 28: blocks cut out by a Reshape, moved by a Transpose."""
    (x,) = _operands(op)
    sizes = [d.static_value for d in dims_of(x)[1:]]
    block = op.attr("blocksize")
    channels, height, width = (*sizes, None, None, None)[:3]
    if channels is None or height is None or width is None or op.attr("mode") != "CRD":
        return None
    cut = b("reshape", x, b.constant([0, channels, height // block, block, width // block, block], int64))
    moved = b("transpose", cut, perm=(0, 1, 3, 5, 2, 4))
    return [b("reshape", moved, b.constant([0, channels * block**2, height // block, width // block], int64))]


REDUCES_TO_ITSELF = ("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod")


@decomposes(*REDUCES_TO_ITSELF)
def _reduce(op: SxOp, b: Expansion, opset: int) -> Values:
    """`noop_with_empty_axes` before opset 18: without axes the operand itself."""
    data, axes = (*op.slots, None)[:2]
    if data is None or not op.attr("noop_with_empty_axes"):
        return None
    at = () if axes is None else known_ints(axes)
    if at is None:
        return None
    if not at:
        return [b("identity", data)]
    return [b(op.name.removeprefix("sx."), data, axes, keepdims=op.attr("keepdims"))]


# ---- normalisation


def _normalized(
    b: Expansion, x: SSAValue, axes: Sequence[int], epsilon: float, inverted: bool = False
) -> tuple[SSAValue, SSAValue, SSAValue | None]:
    """(x - mean) / sqrt(var + epsilon) over the axes, the mean, and, if that is wanted, the inverse deviation."""
    at = b.constant(axes, int64)
    mean = b("reduce_mean", x, at)
    centred = b("sub", x, mean)
    variance = b("reduce_mean", b("mul", centred, centred), at)
    deviation = b("sqrt", b("add", variance, b.constant(epsilon, dtype_of(x))))
    if not inverted:
        return b("div", centred, deviation), mean, None
    inverse = b("reciprocal", deviation)
    return b("mul", centred, inverse), mean, inverse


@decomposes("layer_norm")
def _layer_norm(op: SxOp, b: Expansion, opset: int) -> Values:
    x, scale, bias = (*op.slots, None, None)[:3]
    if x is None:
        return None
    dtype, stash = dtype_of(x), _stash(op, dtype_of(x))
    total = len(dims_of(x))
    axes = range(op.attr("axis") % total, total)
    is_read = bool(list(op.results[2].uses))
    y, mean, inverse = _normalized(b, b.cast(x, stash), axes, op.attr("epsilon"), inverted=is_read)
    y = b.cast(y, dtype)
    if scale is not None:
        y = b("mul", y, scale)
    if bias is not None:
        y = b("add", y, bias)
    others = [v if r.uses else None for v, r in zip((mean, inverse), op.results[1:], strict=False)]
    return [y, *others]


@decomposes("rms_norm")
def _rms_norm(op: SxOp, b: Expansion, opset: int) -> Values:
    x, scale = (*op.slots, None)[:2]
    if x is None:
        return None
    dtype, stash = dtype_of(x if scale is None else scale), _stash(op, dtype_of(x))
    total = len(dims_of(x))
    wide = b.cast(x, stash)
    at = b.constant(range(op.attr("axis") % total, total), int64)
    square = b("reduce_mean", b("mul", wide, wide), at)
    root = b("sqrt", b("add", square, b.constant(op.attr("epsilon"), stash)))
    y = b.cast(b("div", wide, root), dtype)
    return [y if scale is None else b("mul", y, scale)]


@decomposes("group_norm")
def _group_norm(op: SxOp, b: Expansion, opset: int) -> Values:
    x, scale, bias = _operands(op)
    dtype, stash = dtype_of(x), _stash(op, dtype_of(x))
    groups = op.attr("num_groups")
    sizes = [d.static_value for d in dims_of(x)]
    shape = b("shape", x) if None in sizes else b.constant(sizes, int64)
    grouped = b("reshape", b.cast(x, stash), b.constant([0, groups, -1], int64))
    if stash == float32:
        ones, zeros = (b.constant([number] * groups, stash) for number in (1.0, 0.0))
        y = b("instance_norm", grouped, ones, zeros, epsilon=op.attr("epsilon"))
    else:  # runtimes have no such kernel in double precision
        y, _, _ = _normalized(b, grouped, [2], op.attr("epsilon"))
    y = b.cast(b("reshape", y, shape), dtype)
    scale, bias = (_per_channel(b, vector, len(sizes)) for vector in (scale, bias))
    return [b("add", b("mul", y, scale), bias)]


def _per_channel(b: Expansion, vector: SSAValue, rank: int) -> SSAValue:
    """A vector along axis 1: a constant again where it is one, and not large."""
    size = dims_of(vector)[0].static_value
    array = constant_array(vector) if size is not None and size <= MAX_CHANNELS else None
    shape = [-1, *[1] * (rank - 2)]
    if array is not None:
        return b.constant(array.reshape(shape), dtype_of(vector))
    return b("reshape", vector, b.constant(shape, int64))


@decomposes("batch_norm")
def _batch_norm(op: SxOp, b: Expansion, opset: int) -> Values:
    """Training mode before opset 14: statistics of the batch, and the running ones moved towards them.

    At inference the running statistics are those given; ONNX has no outputs for them.
    """
    x, scale, bias, mean, var = _operands(op)
    if not op.attr("training_mode"):
        if not any(r.uses for r in op.results[1:]):
            return None
        y = b("batch_norm", x, scale, bias, mean, var, epsilon=op.attr("epsilon"), momentum=op.attr("momentum"))
        return [y, mean, var]
    total = len(dims_of(x))
    axes = [0, *range(2, total)]
    at = b.constant(axes, int64)
    per_channel = b.constant([-1, *[1] * (total - 2)], int64)
    y, batch_mean, _ = _normalized(b, x, axes, op.attr("epsilon"))
    y = b("add", b("mul", y, b("reshape", scale, per_channel)), b("reshape", bias, per_channel))
    centred = b("sub", x, batch_mean)
    batch_var = b("reduce_mean", b("mul", centred, centred), at)
    momentum = op.attr("momentum")
    moved: list[SSAValue | None] = []
    for result, old, new in zip(op.results[1:], (mean, var), (batch_mean, batch_var), strict=True):
        if not result.uses:
            moved.append(None)
            continue
        dtype = dtype_of(old)
        kept = b("mul", old, b.constant(momentum, dtype))
        flat = b.cast(b("reshape", new, b.constant([-1], int64)), dtype)
        moved.append(b("add", kept, b("mul", flat, b.constant(1 - momentum, dtype))))
    return [y, *moved]


# ---- layouts


@decomposes("conv", "max_pool", "average_pool")
def _channels_second(op: SxOp, b: Expansion, opset: int) -> Values:
    """ONNX has channels second only; the data and the results are transposed."""
    layout = op.attr("layout")
    if layout == "NCHW":
        return None
    x, *others = op.slots
    if x is None:
        return None
    rank = len(dims_of(x))
    if layout.startswith("NHWC"):
        x = b("transpose", x, perm=(0, rank - 1, *range(1, rank - 1)))
    made = b.ops(op.name.removeprefix("sx."), x, *others, **{**op.python_properties(), "layout": None})
    if not layout.endswith("NHWC"):
        return list(made.results)
    last = (0, *range(2, rank), 1)
    return [b("transpose", new, perm=last) if old.uses else None for old, new in zip(op.results, made.results)]


def _stash(op: SxOp, dtype: DType) -> DType:
    """The dtype of a normalisation's first stage: float32 (or as `stash_type` says), never less than the operand's."""
    stated = op.attr("stash_type")
    wide = DType.of("float32") if stated in (None, 1) else dtype
    return dtype if dtype.bits > wide.bits else wide


def _wide(dtype: DType) -> DType:
    return DType.of("float32") if dtype.bits == 16 else dtype


def _operands(op: SxOp) -> list[SSAValue]:
    return [s for s in op.slots if s is not None]
