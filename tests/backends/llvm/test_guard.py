"""No kernel touches what is not its own: every family runs between forbidden pages, at awkward sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from guard import EDGES, GuardError, run_guarded
from op_case import op
from three_ways import Case, Graph, build, case, compare, sample
from xdsl.ir import BlockArgument

from sardonyx.backends.llvm.codegen import emit
from sardonyx.backends.llvm.codegen.text import I64
from sardonyx.backends.llvm.codegen.widen import Value, add_index
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.evaluate import evaluate_function
from sardonyx.dialects.kernel.ops import LoadOp, StoreOp
from sardonyx.dialects.module import main_function
from sardonyx.dialects.sx.constant import ConstantOp

SIZES = (0, 1, 7, 9, 16, 33)
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
            yield case(op("reduce_mean"), sample("float32", 5, n), np.array([-1]))


def products() -> Iterator[Case]:
    for m, k, n in ((1, 1, 1), (1, 7, 33), (3, 0, 5), (0, 4, 3), (5, 17, 1), (7, 100, 10), (13, 3, 17), (33, 65, 77)):
        yield case(op("matmul"), sample("float32", m, k), sample("float32", k, n))
        yield case(op("matmul"), sample("float32", 2, m, k), sample("float32", 2, k, n))
        yield case(
            op("gemm"), sample("float32", k, m), sample("float32", n, k), sample("float32", n), transA=1, transB=1
        )
    for m, k, n in ((3, 5, 9), (7, 16, 17), (1, 33, 8)):
        yield case(op("matmul"), sample("float64", m, k), sample("float64", k, n))
        yield case(op("matmul"), sample("float16", m, k), sample("float16", k, n))
        yield case(op("matmul"), sample("int32", m, k), sample("int32", k, n))


def convolutions() -> Iterator[Case]:
    for c, o, h, w in ((1, 1, 3, 3), (3, 5, 7, 9), (8, 16, 5, 5), (17, 33, 4, 13)):
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


FAMILIES: dict[str, Callable[[], Iterator[Case]]] = {
    f.__name__: f for f in (elementwise, conversions, rows, reductions, products, convolutions, windows, movements)
}


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


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("mode", ["mixed", "static"])
def test_nothing_is_touched_past_the_ends_of_buffers(family: str, mode: str) -> None:
    graph = build(list(FAMILIES[family]()), mode)
    if mode == "static":
        hold_weights(graph)
    expected = evaluate_function(main_function(graph.module), graph.feeds)
    for edge in EDGES:
        got = run_guarded(graph.module, graph.feeds, edge, threads=3 if mode == "mixed" else 1)
        for (one, number), a, b in zip(graph.outputs, got, expected, strict=True):
            problem = compare(one.op.name, a, np.asarray(b))
            assert problem is None, f"{one} result {number}: {problem}"


@pytest.mark.parametrize(("edge", "shift", "words"), [("end", 1, "1 bytes past the end"), ("start", -1, "4 bytes in")])
def test_the_guard_names_kernel_buffer_and_distance(
    monkeypatch: pytest.MonkeyPatch, edge: str, shift: int, words: str
) -> None:
    load = emit.EMITTERS[LoadOp]

    def misplaced(e: emit.KernelEmitter, one: LoadOp) -> None:
        kept = e.values[one.offset]
        e.values[one.offset] = add_index(e.builder, kept, Value(str(shift), I64))
        load(e, one)
        e.values[one.offset] = kept

    monkeypatch.setitem(emit.EMITTERS, LoadOp, misplaced)
    graph = build([case(op("neg"), sample("float32", 17))], "static")
    with pytest.raises(GuardError, match=f"neg_0.*{words}.*input 0"):
        run_guarded(graph.module, graph.feeds, edge)


def test_the_guard_sees_what_is_written_beside_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    store = emit.EMITTERS[StoreOp]

    def misplaced(e: emit.KernelEmitter, one: StoreOp) -> None:
        kept = e.values[one.offset]
        e.values[one.offset] = add_index(e.builder, kept, Value("1", I64))
        store(e, one)
        e.values[one.offset] = kept

    monkeypatch.setitem(emit.EMITTERS, StoreOp, misplaced)
    graph = build([case(op("neg"), sample("float32", 17))], "static")
    with pytest.raises(GuardError, match="4 bytes were written behind output 0 \\(68 bytes\\), the nearest 1 away"):
        run_guarded(graph.module, graph.feeds, "start")
