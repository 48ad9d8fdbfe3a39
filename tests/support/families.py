"""Cases of every family of kernels at awkward sizes, for tests of what all kernels must keep to."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from op_case import op
from three_ways import Case, Graph, case, sample
from xdsl.ir import BlockArgument

from sardonyx.dialects.dtypes import DTYPES, DType
from sardonyx.dialects.module import main_function
from sardonyx.dialects.sx.constant import ConstantOp

SIZES = (0, 1, 7, 16, 33)
"""Around the widths of vectors and of the blocks that kernels unroll to."""


def elementwise() -> Iterator[Case]:
    for n in SIZES:
        yield case(op("exp"), sample("float32", n))
        yield case(op("add"), sample("float32", 3, n), sample("float32", n))
        yield case(op("mul"), sample("float64", n, 1), sample("float64", 1, 5))
        yield case(op("sigmoid"), sample("float16", n))
        yield case(op("add"), sample("int8", n), sample("int8", 1))
        yield case(op("greater"), sample("int64", n), sample("int64", n))
        yield case(op("where"), sample("bool", 3, n), sample("float32", 1, n), sample("float32", 3, 1))
        yield case(op("max"), [sample("int32", n), sample("int32", n)])


def conversions() -> Iterator[Case]:
    for n in SIZES:
        for source, to in (("float32", "int8"), ("int8", "float64"), ("bool", "float16"), ("bfloat16", "float32")):
            yield case(op("cast"), sample(source, n), to=DType.of(to))


def rows() -> Iterator[Case]:
    for n in SIZES:
        yield case(op("softmax"), sample("float32", 3, n), axis=-1)
        yield case(op("softmax"), sample("float32", n, 3), axis=0)
        yield case(op("layer_norm"), sample("float32", 3, n), sample("float32", n), None, axis=-1)
        if n:
            yield case(op("arg_max"), sample("float32", 3, n), axis=1)
            yield case(op("cumsum"), sample("float32", n, 3), np.array(0))


def reductions() -> Iterator[Case]:
    for n in SIZES:
        for dtype in ("float32", "float16"):
            yield case(op("reduce_sum"), sample(dtype, 3, n), np.array([1]))
            yield case(op("reduce_sum"), sample(dtype, n, 3), np.array([0]))
            yield case(op("reduce_sum"), sample(dtype, 2, n, 3), np.array([0, 2]))
        if n:
            yield case(op("reduce_max"), sample("float32", n, 5), np.array([0]))
            yield case(op("reduce_max"), sample("uint8", 5, n), np.array([1]))
            yield case(op("reduce_min"), sample("uint32", 5, n), np.array([1]))
            yield case(op("reduce_mean"), sample("float32", 5, n), np.array([-1]))


def products() -> Iterator[Case]:
    for m, k, n in ((1, 7, 33), (3, 0, 5), (0, 4, 3), (5, 17, 1), (7, 100, 10), (33, 65, 77)):
        yield case(op("matmul"), sample("float32", m, k), sample("float32", k, n))
        yield case(op("matmul"), sample("float32", 2, m, k), sample("float32", 2, k, n))
        yield case(
            op("gemm"), sample("float32", k, m), sample("float32", n, k), sample("float32", n), transA=1, transB=1
        )
    for m, k, n in ((3, 5, 9), (7, 16, 17)):
        yield case(op("matmul"), sample("float64", m, k), sample("float64", k, n))
        yield case(op("matmul"), sample("float16", m, k), sample("float16", k, n))
        yield case(op("matmul"), sample("int32", m, k), sample("int32", k, n))


def convolutions() -> Iterator[Case]:
    for c, o, h, w in ((3, 5, 7, 9), (17, 33, 4, 13)):
        x = sample("float32", 2, c, h, w)
        yield case(op("conv"), x, sample("float32", o, c, 3, 3), sample("float32", o), pads=(1, 1, 1, 1))
        yield case(op("conv"), x, sample("float32", o, c, 1, 1), None)
        yield case(op("conv"), x, sample("float32", o, c, 3, 3), None, strides=(2, 2), pads=(1, 1, 1, 1))
        yield case(op("conv"), x, sample("float32", c, 1, 3, 3), None, group=c, pads=(1, 1, 1, 1))
    yield case(op("conv"), sample("float32", 1, 3, 17), sample("float32", 4, 3, 3), None, dilations=(2,))


def windows() -> Iterator[Case]:
    for w in (3, 7, 8, 9, 17):
        x = sample("float32", 2, 3, 5, w)
        yield case(op("max_pool"), x, kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1), results=1)
        yield case(op("average_pool"), x, kernel_shape=(2, 2))
        yield case(op("global_average_pool"), x)


def movements() -> Iterator[Case]:
    for n in SIZES:
        x = sample("float32", 3, n)
        yield case(op("transpose"), x, perm=(1, 0))
        yield case(op("transpose"), sample("int8", n, 2, 9), perm=(2, 0, 1))
        yield case(op("concat"), [x, sample("float32", 3, 5), x], axis=1)
        yield case(op("pad"), x, np.array([1, 2, 0, 3]))
        yield case(op("tile"), x, np.array([2, 3]))
        if n:
            yield case(op("gather"), x, np.array([0, n - 1, -n]), axis=1)
            yield case(op("slice"), x, np.array([0, n - 1]), np.array([3, -n - 1]), np.array([0, 1]), np.array([2, -1]))


def resampling() -> Iterator[Case]:
    for w in (1, 7, 17):
        x, grid = sample("float32", 2, 3, 5, w), sample("float32", 2, 3, w, 2, low=-1.5, high=1.5)
        yield case(op("resize"), x, None, np.array([1, 1, 2, 2], np.float32), None)
        yield case(op("resize"), x, None, None, np.array([9, 2 * w + 1]), axes=(2, 3), mode="linear", antialias=True)
        yield case(op("grid_sample"), x, grid, padding_mode="reflection")
        yield case(op("grid_sample"), sample("int8", 1, 2, w), sample("float64", 1, 9, 1), mode="cubic")


def regions() -> Iterator[Case]:
    rois = np.array([[0, 0, 6, 4], [-3, 1, 20, 3.5]], np.float32)
    for w in (7, 17):
        x = sample("float32", 2, 3, 5, w)
        yield case(op("roi_align"), x, rois, np.array([0, 1]), output_height=2, output_width=9)
        yield case(op("max_roi_pool"), x, np.concatenate([[[0], [1]], rois], 1).astype(np.float32), pooled_shape=(2, 3))
        yield case(op("lp_pool"), x, kernel_shape=(2, 3), pads=(1, 0, 1, 2), strides=(1, 2))
        offset = sample("float32", 2, 12, 4, w - 2)
        yield case(op("deform_conv"), x, sample("float32", 4, 3, 2, 3), offset, None, None)
    yield case(op("col2im"), sample("float32", 2, 12, 16), np.array([5, 6]), np.array([2, 3]))


def signals() -> Iterator[Case]:
    for n in (7, 16, 33):
        yield case(op("dft"), sample("float64", 2, n, 3, 2), None, np.array(1))
        yield case(op("multinomial"), sample("float32", 2, n), seed=1.0, sample_size=3)
        yield case(op("random_normal"), shape=(n,), seed=2.0)
    yield case(op("dft"), sample("float32", 3, 5, 1), np.array(67), None, onesided=True)
    yield case(op("stft"), sample("float32", 2, 50, 1), np.array(7), sample("float32", 16), None)


def scatters() -> Iterator[Case]:
    for n in SIZES:
        x = sample("float32", 3, n)
        rows = np.array([2, 0, -3, 2])
        updates = sample("float32", 4, n)
        yield case(op("scatter_nd"), x, rows[:, None], updates, reduction="add")
        yield case(op("scatter_elements"), x, np.tile(rows[:, None], (1, n)), updates, axis=0)
        yield case(op("scatter_elements"), sample("float16", n, 3), np.tile(rows, (n, 1)), sample("float16", n, 4),
                   axis=1, reduction="add")  # fmt: skip
        yield case(op("tensor_scatter"), sample("int8", 2, 5, n), sample("int8", 2, 3, n), np.array([2, 0]), axis=1)
        yield case(op("one_hot"), sample("int64", n), np.array(7), sample("int16", 2))
        yield case(op("reverse_sequence"), sample("float32", n, 2, 3), np.array([n, n // 2]))


def sorts() -> Iterator[Case]:
    for n in (0, 1, 7, 33, 100):
        for dtype in ("float32", "int64"):
            yield case(op("top_k"), sample(dtype, 3, n), np.array([n]))
            yield case(op("top_k"), sample(dtype, n, 3), np.array([n // 8]), axis=0, largest=0)
        yield case(op("unique"), sample("float32", n).round(), sorted=n % 2)
        yield case(op("unique"), sample("int64", 2, n, 3), axis=1)


def chosen() -> Iterator[Case]:
    for n in SIZES:
        yield case(op("non_zero"), sample("bool", 3, n))
        yield case(op("non_zero"), sample("float16", n))
        yield case(op("compress"), sample("float32", n, 5), sample("bool", n), axis=0)
        yield case(op("compress"), sample("int8", n), sample("bool", n // 2))
        boxes = sample("float32", 1, n, 4)
        yield case(op("non_max_suppression"), boxes, sample("float32", 1, 2, n), np.array([n // 2 + 1]), None, None)


def sums_of_products() -> Iterator[Case]:
    for m, k, n in ((1, 7, 33), (3, 0, 5), (0, 4, 3), (33, 65, 17)):
        x, y = sample("float32", 2, m, k), sample("float32", k, 2, n)
        yield case(op("einsum"), [x, y], equation="bmk,kbn->nbm")
        yield case(op("einsum"), [x, y], equation="bmk,kbn->m")
        yield case(op("einsum"), [sample("int32", m, k, m)], equation="iji->ij")


def quantised() -> Iterator[Case]:
    """Narrow dtypes, quantisation, and products of bytes."""
    int4, float8 = DTYPES["int4"], DTYPES["float8e4m3fn"]
    for n in SIZES[1::2]:
        x, scale = sample("float32", 3, n), sample("float32", 3, low=0.1, high=1)
        yield case(op("quantize_linear"), x, scale, np.zeros(3, int4.numpy), axis=0)
        yield case(op("dequantize_linear"), x.astype(np.int8), scale, axis=0)
        yield case(op("cast"), x, to=float8.ir)
        yield case(op("cast"), x.astype(np.int8).astype(int4.numpy), to=DTYPES["float32"].ir)
    yield case(op("dequantize_linear"), sample("int8", 2, 7), sample("float32", 2, 3, low=0.1, high=1), block_size=3)
    yield case(op("dequantize_linear"), sample("int8", 2, 8), sample("float32", 2, 2, low=0.1, high=1), block_size=4)
    yield case(op("dynamic_quantize_linear"), sample("float32", 33))
    yield case(op("bit_cast"), sample("uint8", 17), to=DTYPES["bool"].ir)
    data, weights = sample("uint8", 1, 9, 5, 7, high=200), sample("int8", 5, 9, 3, 3)
    yield case(op("conv_integer"), data, weights, np.array(7, np.uint8), pads=[1, 1, 1, 1])
    yield case(op("conv_integer"), data, sample("int8", 9, 1, 3, 2), np.array(7, np.uint8), group=9)
    scale, zero = np.array(0.5, np.float32), np.array(3, np.uint8)
    left, right = sample("uint8", 5, 7, high=200), sample("uint8", 7, 18, high=200)
    yield case(op("qlinear_matmul"), left, scale, zero, right, scale, zero, np.array(9, np.float32), zero)


FAMILIES: dict[str, Callable[[], Iterator[Case]]] = {
    f.__name__: f
    for f in (
        elementwise, conversions, rows, reductions, products, convolutions, windows, movements, resampling, regions,
        signals, scatters, sorts, chosen, sums_of_products,
        quantised,
    )
}  # fmt: skip


def hold_weights(graph: Graph) -> None:
    """Make constants of the floating-point operands after the first, as weights are."""
    function = main_function(graph.module)
    block = function.body.block
    for one in list(block.ops):
        for place, operand in enumerate(one.operands):
            if not place or not isinstance(operand, BlockArgument):
                continue
            array = graph.feeds[operand.index]
            if DType.of(array.dtype).is_float:
                constant = ConstantOp.dense(array)
                block.insert_op_before(constant, one)
                one.operands[place] = constant.output
