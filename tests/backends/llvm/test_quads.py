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
