"""Products of bytes four at a time: right where the instruction is made of others, and that instruction where there is
one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from assembly import innermost_loops

import sardonyx as sx
from sardonyx.backends.llvm.build import emit_module
from sardonyx.backends.llvm.codegen.targets import resolve_target
from sardonyx.backends.llvm.compile import compile_module
from sardonyx.backends.llvm.lowering import matmul_quads
from sardonyx.backends.llvm.lowering.graph import lower_graph
from sardonyx.backends.llvm.runtime.jit import to_assembly
from sardonyx.dialects.dtypes import DType

Array = np.ndarray[Any, Any]


def extreme(dtype: str, *shape: int, seed: int = 0) -> Array:
    """Numbers of the whole range, the ends among them."""
    limits = np.iinfo(dtype)
    found = np.random.default_rng([seed, *shape]).integers(limits.min, limits.max + 1, shape).astype(dtype)
    found.reshape(-1)[: found.size // 3] = limits.min
    found.reshape(-1)[found.size // 2 :: 3] = limits.max
    return found


def graph_of(a: Array, b: Array, a_zero: Array | None, b_zero: Array | None, dims: tuple[Any, ...]) -> Any:
    """A times the constant B, with A's zero point as an input too, and a scale behind it."""
    specs = [sx.TensorSpec("a", DType.of(a.dtype), dims)]
    if a_zero is not None:
        specs.append(sx.TensorSpec("z", DType.of(a.dtype), a_zero.shape))

    def fn(x: sx.Tensor, zero: sx.Tensor | None = None) -> Any:
        sums = sx.matmul_integer(x, sx.asarray(b), zero, None if b_zero is None else sx.asarray(b_zero))
        return sums, sx.cast(sums, sx.float32) * 0.5

    return sx.trace(fn, tuple(specs)).graph


@pytest.mark.parametrize(("a", "b"), [("uint8", "int8"), ("int8", "uint8")])
def test_sums_and_corrections(a: str, b: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matmul_quads, "dot_lanes", lambda target: 8)
    cases = [
        ((5, 12), (12, 18), (), ()),
        ((7, 9), (9, 33), (7,), (33,)),
        ((2, 3, 6), (6, 5), (2, 3, 1), (1, 5)),
        ((11,), (11, 17), (1,), ()),
        ((4, 3), (3,), None, None),
    ][: 5 if a == "uint8" else 2]
    for left, right, a_lines, b_lines in cases:
        x, w = extreme(a, *left), extreme(b, *right, seed=1)
        zeros = [None if s is None else extreme(d, *s, seed=2) for d, s in ((a, a_lines), (b, b_lines))]
        feeds = [x] if zeros[0] is None else [x, zeros[0]]
        graph = graph_of(x, w, zeros[0], zeros[1], left if len(left) != 2 else ("n", left[1]))
        compiled = compile_module(graph._module)
        for got, want in zip(compiled.run(feeds), graph.evaluate(feeds), strict=True):
            np.testing.assert_array_equal(got, np.asarray(want))


@pytest.mark.parametrize(
    ("name", "features", "register"), [("x86-64-v4", "+avx512vnni", "zmm"), ("x86-64-v3", "+avxvnni", "ymm")]
)
def test_the_instruction_is_used(name: str, features: str, register: str) -> None:
    x, w = extreme("uint8", 64, 256), extreme("int8", 256, 96, seed=1)
    target = resolve_target(name, features)
    graph = graph_of(x, w, np.zeros((), np.uint8), None, x.shape)
    text = to_assembly(emit_module(lower_graph(graph._module, target), target)[0])
    loops = innermost_loops(text)
    largest = max(loops, key=lambda loop: sum("vpdpbusd" in line for line in loop.lines))
    dots = [line for line in largest.lines if "vpdpbusd" in line]
    assert len(dots) >= (24 if register == "zmm" else 12) and all(register in line for line in dots), largest.lines
    assert not largest.spills and not largest.stack_accesses and len(largest.lines) <= 2 * len(dots)


def test_pairs_are_added_in_one_instruction_too() -> None:
    target = resolve_target("x86-64-v3", "+avxvnni")

    def fn(a: sx.Tensor, b: sx.Tensor) -> Any:
        return sx.matmul_integer(a, b)

    specs = (sx.TensorSpec("a", sx.uint8, (64, 256)), sx.TensorSpec("b", sx.int8, (256, 96)))
    text = str(emit_module(lower_graph(sx.trace(fn, specs).graph._module, target), target)[0])
    assert "vpdpwssd.256" in text and "pmadd.wd" not in text


def small(dtype: str, *shape: int, large: int = 0) -> Array:
    """Weights of 7 bits, but for some neighbours at the ends of 8 bits."""
    found = np.random.default_rng([large, *shape]).integers(-64, 65, shape)
    for number in range(large):
        found[2 * number % shape[0] : 2 * number % shape[0] + 2, number % shape[1]] = -128 if number % 2 else 127
    return (found + (128 if dtype == "uint8" else 0)).astype(dtype)


def test_rows_that_are_bounded_add_up_to_the_same() -> None:
    for matrix in (small("int8", 8, 5, large=3), extreme("int8", 12, 7), np.zeros((0, 3), np.int8)):
        kept, again = matmul_quads.bounded(matrix)
        total = kept[: len(matrix)].astype(np.int64)
        np.add.at(total, again, kept[len(matrix) :].astype(np.int64))
        np.testing.assert_array_equal(total, matrix)
        pairs = kept.reshape(-1, 2, matrix.shape[1]).astype(np.int64)
        assert not pairs.size or 255 * np.maximum(pairs, 0).sum(1).max() < 1 << 15
        assert not pairs.size or 255 * np.minimum(pairs, 0).sum(1).min() >= -(1 << 15)


@pytest.mark.parametrize(("a", "b"), [("uint8", "int8"), ("int8", "uint8")])
def test_bounded_products_are_exact(a: str, b: str) -> None:
    for left, right, large, lines in [
        ((7, 64), (64, 18), 0, ()),
        ((13, 131), (131, 33), 1, (33,)),
        ((2, 3, 67), (67, 5), 1, (1, 5)),
        ((5, 12), (12, 6), 6, ()),
    ]:
        x, w = extreme(a, *left), small(b, *right, large=large)
        zeros = extreme(a, seed=2), extreme(b, *lines, seed=3)
        graph = graph_of(x, w, *zeros, ("n", left[1]) if len(left) == 2 else left)
        compiled = compile_module(graph._module)
        for got, want in zip(compiled.run([x, zeros[0]]), graph.evaluate([x, zeros[0]]), strict=True):
            np.testing.assert_array_equal(got, np.asarray(want))


@pytest.mark.parametrize(("name", "register"), [("x86-64-v2", "xmm"), ("x86-64-v3", "ymm"), ("x86-64-v4", "zmm")])
def test_bounded_products_take_two_instructions(name: str, register: str) -> None:
    x, target = extreme("uint8", 64, 256), resolve_target(name)
    for large, expected in ((2, True), (128, False)):
        graph = graph_of(x, small("int8", 256, 96, large=large), np.zeros((), np.uint8), None, x.shape)
        text = to_assembly(emit_module(lower_graph(graph._module, target), target)[0])
        largest = max(innermost_loops(text), key=lambda loop: sum("pmaddwd" in line for line in loop.lines))
        dots = [line for line in largest.lines if "pmaddubsw" in line]
        assert bool(dots) == expected
        if expected:
            assert len(dots) >= 8 and all(register in line for line in dots), largest.lines
            assert not largest.spills and not largest.stack_accesses, largest.lines
