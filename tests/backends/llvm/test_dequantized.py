"""Products of dequantised operands are products of integers, and constant weights are dequantised once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from guard import EDGES, run_guarded

import sardonyx as sx
from sardonyx.backends.llvm.lowering.graph import lower_graph
from sardonyx.backends.llvm.prepare import prepare
from sardonyx.dialects.kernel.ops import KernelFuncOp
from sardonyx.dialects.module import main_function
from sardonyx.dialects.sx.constant import ConstantOp

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(11)
X = RNG.integers(0, 256, (2, 10, 9, 8)).astype(np.uint8)
ROWS = RNG.integers(-128, 128, (5, 40)).astype(np.int8)


def kernels(graph: Any) -> str:
    lowered = lower_graph(prepare(graph._module))
    return " ".join(op.sym_name.data for op in lowered.module.body.block.ops if isinstance(op, KernelFuncOp))


def graph_of(fn: Callable[..., Any], x: Array, weights: Sequence[Array], dims: tuple[Any, ...] | None = None) -> Any:
    """The graph of `fn` of `x` and constant weights."""
    specs = [sx.TensorSpec("x", sx.DType.of(x.dtype), dims or x.shape)]
    specs += [sx.TensorSpec(f"w{i}", sx.DType.of(w.dtype), w.shape) for i, w in enumerate(weights)]
    graph = sx.trace(fn, tuple(specs)).graph
    block = main_function(graph._module).body.block
    for argument, array in zip(block.args[1:], weights, strict=True):  # what is computed of captured ones is no op
        constant = ConstantOp.dense(array)
        block.insert_op_before(constant, block.first_op)  # pyright: ignore[reportArgumentType]
        argument.replace_all_uses_with(constant.output)
    return graph


def check(fn: Callable[..., Any], x: Array, weights: Sequence[Array], dims: tuple[Any, ...] | None = None) -> str:
    """Compile the graph, run, compare with the reference; returns the kernels' names."""
    graph, feeds = graph_of(fn, x, weights, dims), [x, *weights]
    want = np.asarray(graph.evaluate(feeds)[0])
    names = kernels(graph)
    graph.finalize()
    got = graph.run(feeds)[0]
    assert got.dtype == want.dtype
    if want.dtype.kind in "iu":
        assert np.abs(got.astype(int) - want.astype(int)).max() <= 1
        assert (got == want).mean() > 0.98
    else:
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=2e-6 * float(np.abs(want).max()))
    return names


@pytest.mark.parametrize("each", [False, True])
def test_a_quantised_convolution_stays_one(each: bool) -> None:
    weights = RNG.integers(-128, 128, (6, 10, 3, 3)).astype(np.int8)
    scales = RNG.uniform(0.001, 0.01, 6 if each else ()).astype(np.float32)
    bias = RNG.normal(size=6).astype(np.float32)

    def fn(x: sx.Tensor, w: sx.Tensor, scale: sx.Tensor, b: sx.Tensor) -> sx.Tensor:
        right = sx.dequantize_linear(w, scale, axis=0)
        made = sx.conv(sx.dequantize_linear(x, 0.02, np.uint8(128)), right, b, pads=[1] * 4)
        return sx.quantize_linear(sx.relu(made), 0.4, np.uint8(3))

    names = check(fn, X, [weights, np.asarray(scales), bias], X.shape if each else ("n", 10, "h", "v"))
    assert "pair_channels" in names and "dequantize" not in names


def test_quantised_matrix_products_stay_such() -> None:
    weights = RNG.integers(0, 256, (40, 17)).astype(np.uint8)
    scales, zeros = RNG.uniform(0.001, 0.01, 17).astype(np.float32), RNG.integers(0, 256, 17).astype(np.uint8)

    def product(x: sx.Tensor, w: sx.Tensor, scale: sx.Tensor, zero: sx.Tensor) -> sx.Tensor:
        return sx.relu(sx.dequantize_linear(x, 0.02, np.int8(-7)) @ sx.dequantize_linear(w, scale, zero, axis=1))

    def gemm(x: sx.Tensor, w: sx.Tensor, scale: sx.Tensor, zero: sx.Tensor) -> sx.Tensor:
        right = sx.dequantize_linear(w, scale, zero, axis=0)
        return sx.gemm(sx.dequantize_linear(x, 0.02, np.int8(-7)), right, np.ones(17, np.float32), trans_b=True)

    for fn, w in ((product, weights), (gemm, weights.T.copy())):
        names = check(fn, ROWS, [w, scales, zeros])
        assert "matmul_integer" in names and "dequantize" not in names


def test_weights_that_are_dequantised_alone_become_constants() -> None:
    filters = RNG.integers(-8, 8, (6, 10, 3, 3)).astype(sx.int4.numpy)
    data = RNG.normal(size=(1, 10, 6, 6)).astype(np.float32)
    assert "dequantize" not in check(lambda x, w: sx.conv(x, sx.dequantize_linear(w, 0.5)), data, [filters])
    rows = RNG.normal(size=(30, 24)).astype(np.float32)  # many
    matrix = RNG.integers(-8, 8, (24, 9)).astype(sx.int4.numpy)
    scales = RNG.uniform(0.1, 1, (3, 9)).astype(np.float32)

    def fn(x: sx.Tensor, w: sx.Tensor, scale: sx.Tensor) -> sx.Tensor:
        return x @ sx.dequantize_linear(w, scale, axis=0, block_size=8)

    assert "dequantize" not in check(fn, rows, [matrix, scales])


def test_what_is_also_read_elsewhere_is_dequantised_for_that() -> None:
    weights = RNG.integers(-128, 128, (40, 40)).astype(np.int8)

    def fn(x: sx.Tensor, w: sx.Tensor) -> sx.Tensor:
        real = sx.dequantize_linear(x, 0.02, np.int8(3))
        return real + real @ sx.dequantize_linear(w, 0.01)

    assert "matmul_integer" in check(fn, ROWS, [weights])


@pytest.mark.parametrize("dtype", [sx.int4, sx.uint4, sx.uint8], ids=str)
def test_few_rows_read_the_weights_as_they_are(dtype: sx.DType) -> None:
    """Blocks of k, in the order of columns and of rows, and one scale for a column; with zero points or not."""
    top = 1 << dtype.bits
    low = -top // 2 if dtype.kind == "i" else 0
    matrix = RNG.integers(low, low + top, (32, 19)).astype(dtype.numpy)
    blocks, lines = RNG.uniform(0.1, 1, (4, 19)).astype(np.float32), RNG.uniform(0.1, 1, 19).astype(np.float32)
    points = RNG.integers(low, low + top, (4, 19)).astype(dtype.numpy)

    def in_blocks(x: sx.Tensor, w: sx.Tensor, scale: sx.Tensor, zero: sx.Tensor) -> sx.Tensor:
        return sx.relu(x @ sx.dequantize_linear(w, scale, zero, axis=0, block_size=8) + np.ones(19, np.float32))

    def turned(x: sx.Tensor, w: sx.Tensor, scale: sx.Tensor, zero: sx.Tensor) -> sx.Tensor:
        scale = sx.reshape(scale, (19, 4))  # as a model has it whose scales are one long vector
        return x @ sx.transpose(sx.dequantize_linear(w, scale, zero, axis=1, block_size=8), (1, 0))

    def gemm(x: sx.Tensor, w: sx.Tensor, scale: sx.Tensor) -> sx.Tensor:
        return sx.gemm(x, sx.dequantize_linear(w, scale, axis=0), np.ones(19, np.float32), trans_b=True)

    for fn, rows, weights, dims in (
        (in_blocks, 1, [matrix, blocks, points], None),
        (turned, 6, [matrix.T.copy(), blocks.T.reshape(-1), points.T.copy()], ("n", 32)),
        (gemm, 3, [matrix.T.copy(), lines], None),
    ):
        x = RNG.normal(size=(rows, 32)).astype(np.float32)
        names = check(fn, x, weights, dims)
        assert "matmul_weights" in names and "dequantize" not in names and "transpose" not in names


@pytest.mark.parametrize("edge", EDGES)
def test_nothing_past_the_weights_is_read(edge: str) -> None:
    matrix = RNG.integers(0, 16, (24, 19)).astype(sx.uint4.numpy)
    scales, x = RNG.uniform(0.1, 1, (3, 19)).astype(np.float32), RNG.normal(size=(5, 24)).astype(np.float32)

    def fn(x: sx.Tensor, w: sx.Tensor, scale: sx.Tensor) -> sx.Tensor:
        return x @ sx.dequantize_linear(w, scale, axis=0, block_size=8)

    feeds = [x, matrix, scales]
    graph = graph_of(fn, x, feeds[1:])
    (got,) = run_guarded(graph._module, feeds, edge)
    np.testing.assert_allclose(got, graph.evaluate(feeds)[0], rtol=1e-5, atol=1e-4)


def test_weights_whose_blocks_are_no_steps_are_dequantised_once() -> None:
    matrix = RNG.integers(-8, 8, (6, 9)).astype(sx.int4.numpy)
    scales = RNG.uniform(0.1, 1, (2, 9)).astype(np.float32)
    x = RNG.normal(size=(2, 6)).astype(np.float32)

    def fn(x: sx.Tensor, w: sx.Tensor, scale: sx.Tensor) -> sx.Tensor:
        return x @ sx.dequantize_linear(w, scale, axis=0, block_size=3)

    names = check(fn, x, [matrix, scales])
    assert "dequantize" not in names and "weights" not in names
