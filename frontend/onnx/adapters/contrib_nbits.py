"""Products with weights of a few bits, packed into bytes, of com.microsoft."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dtypes import DTYPES, int64, uint8
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.onnx.contrib import contrib
from sardonyx.frontend.onnx.node import NodeContext, rank_of


@contrib("MatMulNBits")
def _matmul_nbits(n: NodeContext) -> Sequence[SSAValue]:
    """A product with weights of a few bits in blocks along K, each with a scale and a zero point.

    Packed bytes that are constants become a constant [N, K] of such integers, dequantised in blocks; computed ones are
    unpacked when it runs. `accuracy_level` allows less exact ways, none of which is taken.
    """
    a, packed, scales, zeros, groups, bias = (n.input(i) for i in range(6))
    if a is None or packed is None or scales is None:
        raise InvalidArgumentError("its A, B or scales are missing")
    k, count, bits, block = n.attr("K"), n.attr("N"), n.attr("bits", 4), n.attr("block_size")
    n.ignores("accuracy_level")
    if n.attr("weight_prepacked", 0) or bits not in (2, 4, 8):
        raise n.unsupported("weights that are packed for a device, and other widths are not supported")
    if not k or not count or not block or k < 1 or count < 1 or block < 16 or block & (block - 1):
        raise InvalidArgumentError(f"its K is {k}, its N {count}, its block_size {block}")
    blocks = -(-k // block)
    if 0 in (d.static_value for d in dims_of(packed)):
        raise n.unsupported("weights that are left out are not supported")
    sizes = (count, blocks, block, k)
    weights = None if groups is not None else _constant(n, packed, scales, zeros, bits, sizes)
    if weights is None:
        weights = _computed(n, packed, scales, zeros, groups, bits, sizes)
    out = n("matmul", a, n("transpose", weights, perm=(1, 0)))
    return [out if bias is None else n("add", out, bias)]


def _constant(
    n: NodeContext,
    packed: SSAValue,
    scales: SSAValue,
    zeros: SSAValue | None,
    bits: int,
    sizes: tuple[int, int, int, int],
) -> SSAValue | None:
    """The real weights, [N, K], of constants; None where they are none, or the zero points are floats."""
    count, blocks, block, k = sizes
    dtype = DTYPES[f"uint{bits}"]
    if not isinstance(packed.owner, ConstantOp):
        return None
    whole = _unpacked(packed.owner, bits, (count, blocks * block), "B")[:, :k]
    if zeros is None:
        zero = np.full((count, blocks), 1 << (bits - 1), np.uint8)
    elif isinstance(zeros.owner, ConstantOp) and dtype_of(zeros) == uint8:
        zero = _unpacked(zeros.owner, bits, (count, _per_row(blocks, bits)), "zero_points")[:, :blocks]
    else:
        return None
    return n(
        "dequantize_linear", n.constant(np.ascontiguousarray(whole), dtype),
        n("reshape", scales, n.constant([count, blocks])), n.constant(np.ascontiguousarray(zero), dtype),
        axis=1, block_size=block,
    )  # fmt: skip


def _computed(
    n: NodeContext,
    packed: SSAValue,
    scales: SSAValue,
    zeros: SSAValue | None,
    groups: SSAValue | None,
    bits: int,
    sizes: tuple[int, int, int, int],
) -> SSAValue:
    """The real weights, [N, K], by ops: (integer - zero point) * scale, of its block or of the group that it names."""
    count, blocks, block, k = sizes
    dtype = dtype_of(scales)
    whole = n("cast", _bits(n, packed, bits, n.constant([count, blocks * block])), to=dtype)
    parameters = [n("reshape", scales, n.constant([count, blocks]))]
    if zeros is None:
        parameters.append(n.constant(1 << (bits - 1), dtype))
    elif dtype_of(zeros) == uint8:
        wide = _bits(n, zeros, bits, n.constant([count, _per_row(blocks, bits)]))
        short = n("slice", wide, n.constant([0]), n.constant([blocks]), n.constant([1]))
        parameters.append(n("cast", short, to=dtype))
    else:
        parameters.append(n("reshape", zeros, n.constant([count, blocks])))
    if groups is None:
        whole = n("reshape", whole, n.constant([count, blocks, block]))
        scale, zero = (n("unsqueeze", p, n.constant([2])) if rank_of(p) == 2 else p for p in parameters)
        whole = n("reshape", n("mul", n("sub", whole, zero), scale), n.constant([count, blocks * block]))
        return n("slice", whole, n.constant([0]), n.constant([k]), n.constant([1]))
    named = n("slice", n("cast", groups, to=int64), n.constant([0]), n.constant([k]))
    whole = n("slice", whole, n.constant([0]), n.constant([k]), n.constant([1]))
    scale, zero = (n("gather", p, named, axis=1) if rank_of(p) == 2 else p for p in parameters)
    return n("mul", n("sub", whole, zero), scale)


def _per_row(blocks: int, bits: int) -> int:
    """How many zero points a row has: those of whole bytes."""
    return -(-blocks * bits // 8) * 8 // bits


def _bits(n: NodeContext, packed: SSAValue, bits: int, shape: SSAValue) -> SSAValue:
    """Integers of a few bits out of bytes, the low ones first, as uint8 of that shape."""
    if bits == 8:
        return n("reshape", packed, shape)
    parts = [n("div", packed, n.constant(1 << at, uint8)) if at else packed for at in range(0, 8, bits)]
    low = n.constant(1 << bits, uint8)
    stacked = n("concat", [n("unsqueeze", n("mod", part, low), n.constant([-1])) for part in parts], axis=-1)
    return n("reshape", stacked, shape)


def _unpacked(op: ConstantOp, bits: int, shape: tuple[int, int], what: str) -> Any:
    """The same of a constant, now."""
    raw = np.asarray(op.array()).reshape(-1).view(np.uint8)
    if raw.size * 8 != shape[0] * shape[1] * bits:
        raise InvalidArgumentError(f"its {what} has {raw.size} bytes, {shape[0] * shape[1] * bits // 8} are needed")
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return ((raw[:, None] >> shifts) & ((1 << bits) - 1)).reshape(shape)
