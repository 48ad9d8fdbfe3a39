"""`kernel.contract` by itself, in all its forms: pairs of rows, segments of k, packed B, epilogues, masked tails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from three_ways import sample

from sardonyx.backends.llvm.build import compile_lowered
from sardonyx.backends.llvm.codegen.contract_shape import panel_width
from sardonyx.backends.llvm.codegen.text import Target, host_target
from sardonyx.backends.llvm.interface import Port
from sardonyx.backends.llvm.lowering.builder import Body, scalar_ir
from sardonyx.backends.llvm.lowering.plan import Kernel, LoweredGraph, Plan
from sardonyx.backends.llvm.runtime import jit
from sardonyx.dialects.attributes import tensor_type
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.kernel.contract import ContractOp, epilogue_block
from sardonyx.dialects.kernel.ops import OutputOp, YieldOp
from sardonyx.dialects.module import create_module, main_function

Array = np.ndarray[Any, Any]
Build = Callable[[Kernel, Sequence[Any], Any], None]


@dataclass
class Bench:
    """Kernels around contractions, compiled together: `add` one after the other, then `run`."""

    target: Target | None = None
    entries: list[tuple[list[Array], DType, tuple[int, ...], Build]] = field(default_factory=list)

    def add(self, arrays: Sequence[Array], dtype: str, shape: tuple[int, ...], build: Build) -> None:
        """`build(kernel, buffers of the arrays, buffer of the result)` writes a kernel; the result starts as zeros."""
        self.entries.append((list(arrays), DType.of(dtype), shape, build))

    def run(self) -> list[Array]:
        feeds = [a for arrays, *_ in self.entries for a in arrays]
        names = [f"x{i}" for i in range(len(feeds))]
        types = [(n, tensor_type(DType.of(a.dtype), a.shape), None) for n, a in zip(names, feeds, strict=True)]
        module, _ = create_module("contractions", types)
        plan = Plan(module, main_function(module), self.target or jit.native_target())
        inputs = plan.lower_inputs(names)
        values = list(main_function(module).body.block.args)
        ports: list[Port] = []
        for number, (arrays, dtype, shape, build) in enumerate(self.entries):
            target = plan.body.add(OutputOp(number, [plan.dim(d) for d in shape], scalar_ir(dtype)))
            kernel = plan.kernel("contraction")
            buffers = [kernel.read(values.pop(0)) for _ in arrays]
            written, zero = kernel.write_buffer(target), kernel.const(dtype, 0)

            def clear(b: Body, at: Any, _: Any, written: Any = written, zero: Any = zero) -> None:
                b.store(zero, written, at)

            kernel.loop(int(np.prod(shape)), clear)
            build(kernel, buffers, written)
            kernel.launch()
            ports.append(Port(f"y{number}", dtype, tuple(Dim.of(d) for d in shape)))
        lowered = LoweredGraph(plan.build(), inputs, ports, plan.constants, plan.failures)
        lowered.module.verify()
        return compile_lowered(lowered, self.target).run(feeds)


def narrow() -> Target:
    """The baseline of the architecture: short vectors, no FMA, no masks."""
    host = host_target()
    return host_target(features="", cpu="x86-64") if host.triple.startswith("x86_64") else host


TARGETS = [pytest.param(None, id="host"), pytest.param(narrow(), id="baseline")]


def pack(b: Array, width: int) -> Array:
    k, n = b.shape
    panels = -(-n // width)
    padded = np.zeros((k, panels * width), b.dtype)
    padded[:, :n] = b
    return np.ascontiguousarray(padded.reshape(k, panels, width).swapaxes(0, 1)).reshape(-1)


def close(got: Array, want: Array) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("target", TARGETS)
def test_pairs_of_rows_and_segments_of_k_are_a_convolution(target: Target | None) -> None:
    """Padded channels-last images, blocks of rows that begin anywhere, output inside a frame."""
    bench, wants = Bench(target), []
    for h, w, ci, co, kernel, stride, dilation, first in [
        (7, 7, 3, 5, (3, 3), 1, 1, 0), (9, 8, 4, 17, (3, 2), 2, 1, 0), (6, 11, 2, 40, (2, 3), 1, 2, 5),
        (5, 5, 8, 16, (1, 1), 1, 1, 3), (4, 4, 1, 1, (4, 4), 1, 1, 0),
    ]:  # fmt: skip
        x = sample("float32", h, w, ci)
        weights = sample("float32", *kernel, ci, co, seed=1)
        oh, ow = ((s - (f - 1) * dilation - 1) // stride + 1 for s, f in zip((h, w), kernel, strict=True))
        want = np.zeros((oh, ow, co))
        for i in range(kernel[0]):
            for j in range(kernel[1]):
                part = x[i * dilation :, j * dilation :][
                    : (oh - 1) * stride + 1 : stride, : (ow - 1) * stride + 1 : stride
                ]
                want += part.astype(np.float64) @ weights[i, j].astype(np.float64)
        flat = want.reshape(-1, co)
        flat[:first] = 0.0
        framed = np.zeros((oh + 2, ow + 2, co))
        framed[1:-1, 1:-1] = want
        width = panel_width(target or jit.native_target(), 32)
        packed = pack(weights.reshape(-1, co), width)

        def build(
            k: Kernel, reads: Sequence[Any], write: Any, ow: int = ow, oh: int = oh, w: int = w, ci: int = ci,
            co: int = co, kernel: tuple[int, int] = kernel, stride: int = stride, dilation: int = dilation,
            first: int = first, width: int = width,
        ) -> None:  # fmt: skip
            index = k.index
            segments, length = [index(kernel[0]), index(dilation * w * ci)], kernel[1] * ci
            if dilation > 1:
                segments, length = [*segments, index(kernel[1]), index(dilation * ci)], ci
            k.add(
                ContractOp(
                    (reads[0], reads[1], write),
                    [index(oh * ow - first), index(co), index(length)],
                    [index(0), index(0), index((ow + 2 + 1) * co)],
                    [index(stride * ci), index(1), index(width), index(1), index(co)],
                    packed=width,
                    rows=[index(first), index(ow), index(stride * w * ci), index((ow + 2) * co)],
                    segments=segments,
                )
            )

        bench.add([x, packed], "float32", framed.shape, build)
        wants.append(framed)
    for got, want in zip(bench.run(), wants, strict=True):
        close(got, want)


@pytest.mark.parametrize(("target", "heavy"), [(None, False), (narrow(), True)])
def test_results_whose_columns_become_rows(target: Target | None, heavy: bool) -> None:
    """Panels, packed and not, of which the last is no whole one, and rows that fill no tile; pairs of rows; k in more
    than one block."""
    from sardonyx.dialects.dtypes import float32

    bench, wants = Bench(target), []
    for m, n, k, packed in [(20, 37, 9, True), (13, 16, 600, True), (9, 21, 5, False), (30, 50, 600, False)]:
        a, b, bias = sample("float32", m, k), sample("float32", k, n, seed=1), sample("float32", n, seed=2)
        width = panel_width(target or jit.native_target(), 32) if packed else None

        def build(
            kernel: Kernel, reads: Sequence[Any], write: Any, m: int = m, n: int = n, k: int = k, width: Any = width
        ) -> None:
            region, block = epilogue_block(scalar_ir(float32))
            inner, index = Body(block, kernel), kernel.index
            value = inner.arithmetic("add", float32, block.args[0], inner.load(reads[2], block.args[2]))
            block.add_op(YieldOp([inner.math("tanh", value.type, value) if heavy else value]))
            kernel.add(
                ContractOp(
                    (reads[0], reads[1], write),
                    [index(m - 2), index(n), index(k)],
                    [index(0), index(0), index(2 * m + 2)],
                    [index(k), index(1), index(n), index(1), index(m)],
                    packed=width,
                    rows=[index(2), index(3), index(3 * k), index(0)],
                    epilogue=region,
                    turned=m,
                )
            )

        bench.add([a, pack(b, width) if width else b, bias], "float32", (n + 3, m), build)
        want = np.zeros((n + 3, m))
        total = (a.astype(np.float64) @ b + bias)[2:].T
        want[2 : n + 2, 2:] = np.tanh(total) if heavy else total
        wants.append(want)
    for got, want in zip(bench.run(), wants, strict=True):
        close(got, want)


def plain(
    m: int, n: int, k: int, width: int | None = None, accumulate: bool = False,
    body: Callable[[Body, Any, Any, Any, Sequence[Any]], Any] | None = None, total: str = "float32", gathered: int = 0,
) -> Build:  # fmt: skip
    """A plain product with an epilogue."""

    def build(kernel: Kernel, reads: Sequence[Any], write: Any) -> None:
        region = None
        if body is not None:
            region, block = epilogue_block(scalar_ir(DType.of(total)))
            inner = Body(block, kernel)
            value, row, column = block.args
            block.add_op(YieldOp([body(inner, value, row, column, reads)]))
        index = kernel.index
        kernel.add(
            ContractOp(
                (reads[0], reads[1], write),
                [index(m), index(n), index(k)],
                [index(0)] * 3,
                [index(k), index(1), index(n), index(1), index(n)],
                accumulate,
                width,
                epilogue=region,
                gathered=gathered,
            )
        )

    return build


@pytest.mark.parametrize("target", TARGETS)
def test_few_rows_read_several_panels_abreast(target: Target | None) -> None:
    """Groups of panels, what is left over of them, and a last one that is not full; with extents that are numbers, and
    with ones that only the run knows."""
    from sardonyx.dialects.dtypes import int64

    where, bench, wants = target or jit.native_target(), Bench(target), []
    for m, n, k in [(1, 150, 5), (2, 71, 8), (3, 49, 3), (4, 57, 6), (1, 71, 0)]:
        a, b, c = sample("float32", m, k), sample("float32", k, n, seed=1), sample("float32", m, n, seed=2)
        for width in (panel_width(where, 32, m), panel_width(where, 32)):
            for is_open in (False, True):

                def build(
                    kernel: Kernel,
                    reads: Sequence[Any],
                    write: Any,
                    sizes: tuple[int, int, int] = (m, n, k),
                    width: int = width,
                    is_open: bool = is_open,
                ) -> None:
                    rows, columns, depth = (
                        kernel.to_index(kernel.load(reads[2], at), int64) if is_open else kernel.index(size)
                        for at, size in enumerate(sizes)
                    )
                    region, block = epilogue_block(scalar_ir(DType.of("float32")))
                    inner = Body(block, kernel)
                    total, row, column = block.args
                    more = inner.load(reads[3], inner.plus(inner.times(row, columns), column))
                    block.add_op(YieldOp([inner.arithmetic("add", DType.of("float32"), total, more)]))
                    one, none = kernel.index(1), kernel.index(0)
                    strides = [depth, one, none, none, columns]
                    buffers = (reads[0], reads[1], write)
                    extents = [rows, columns, depth]
                    kernel.add(ContractOp(buffers, extents, [none] * 3, strides, packed=width, epilogue=region))

                bench.add([a, pack(b, width), np.array([m, n, k]), c], "float32", (m, n), build)
                wants.append(a.astype(np.float64) @ b + c)
    for got, want in zip(bench.run(), wants, strict=True):
        close(got, want)


SIZES = [(6, 16, 5), (7, 17, 4), (1, 1, 3), (1, 70, 9), (4, 33, 8), (13, 8, 1), (5, 40, 0), (12, 49, 2), (0, 5, 3)]


@pytest.mark.parametrize(("target", "heavy"), [(None, False), (None, True), (narrow(), True)])
def test_epilogues_see_their_element_and_nothing_beyond(target: Target | None, heavy: bool) -> None:
    """bias[n], scale[m], residual[m, n] and residual[n, m] (a gather), rounded to the type of C, packed and not."""
    from sardonyx.dialects.dtypes import float32

    bench, wants = Bench(target), []
    for m, n, k in SIZES:
        for packed in (False, True):
            a, b = sample("float32", m, k), sample("float32", k, n, seed=1)
            bias, scale = sample("float32", n, seed=2), sample("float32", m, seed=3)
            residual, turned = sample("float32", m, n, seed=4), sample("float32", n, m, seed=5)
            want = a.astype(np.float64) @ b + bias + scale[:, None] * residual - turned.T
            want = np.tanh(want) if heavy else want
            width = panel_width(target or jit.native_target(), 32, m) if packed else None

            def body(i: Body, total: Any, row: Any, column: Any, reads: Sequence[Any], m: int = m, n: int = n) -> Any:
                value = i.arithmetic("add", float32, total, i.load(reads[2], column))
                there = i.load(reads[4], i.plus(i.times(row, n), column))
                value = i.arithmetic("add", float32, value, i.arithmetic("mul", float32, i.load(reads[3], row), there))
                value = i.arithmetic("sub", float32, value, i.load(reads[5], i.plus(i.times(column, m), row)))
                return i.math("tanh", value.type, value) if heavy else value

            arrays = [a, pack(b, width) if width else b, bias, scale, residual, turned]
            bench.add(arrays, "float32", (m, n), plain(m, n, k, width, body=body))
            wants.append(want)
    for got, want in zip(bench.run(), wants, strict=True):
        close(got, want)


def test_sums_of_halves_are_float32_in_the_epilogue() -> None:
    from sardonyx.dialects.dtypes import bfloat16, float32

    bench, wants = Bench(), []
    for heavy in (False, True):
        for m, n, k in SIZES:
            a, b = sample("bfloat16", m, k), sample("bfloat16", k, n, seed=1)
            start = a.astype(np.float32) @ b.astype(np.float32) - 0.25

            def body(i: Body, total: Any, _row: Any, _column: Any, _reads: Any, heavy: bool = heavy) -> Any:
                value = i.arithmetic("sub", float32, total, i.const(float32, 0.25))
                return i.convert(i.math("tanh", value.type, value) if heavy else value, float32, bfloat16)

            bench.add([a, b], "bfloat16", (m, n), plain(m, n, k, body=body))
            wants.append(np.tanh(start) if heavy else start)
    for got, want in zip(bench.run(), wants, strict=True):
        np.testing.assert_allclose(got.astype(np.float32), want, rtol=0.01, atol=1e-3)


@pytest.mark.parametrize("target", TARGETS)
def test_rows_of_a_that_are_copied_first(target: Target | None) -> None:
    """Several blocks of k, the last one with a rest that fills no vector; rows that fill no tile."""
    bench, wants = Bench(target), []
    for m, n, k in [(13, 33, 1030), (6, 16, 1024), (1, 5, 513), (0, 3, 700)]:
        a, b = sample("float32", m, k), sample("float32", k, n, seed=1)
        width = panel_width(target or jit.native_target(), 32)
        bench.add([a, pack(b, width)], "float32", (m, n), plain(m, n, k, width, gathered=max(m, 1)))
        wants.append((a.astype(np.float64) @ b, np.abs(a) @ np.abs(b)))
    for got, (want, size) in zip(bench.run(), wants, strict=True):
        assert (np.abs(got - want) <= 1e-6 * size).all()
