"""Native ops whose extents the data decide: non_zero and compress, and what follows them in one entry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from three_ways import Array, Case, both_refuse, build, case, check_all, sample, specials
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.compile import compile_module
from sardonyx.backends.llvm.runtime.call import CompiledGraph
from sardonyx.dialects.attributes import tensor_type
from sardonyx.dialects.dtypes import DType, float32
from sardonyx.dialects.evaluate import evaluate_function
from sardonyx.dialects.module import create_module, main_function, set_outputs
from sardonyx.dialects.sx import BY_NAME
from sardonyx.dialects.sx.nonzero import CompressOp, NonZeroOp


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "bfloat16", "float32", "float64"])
def test_elements_that_are_not_zero(dtype: str) -> None:
    check_all([case(NonZeroOp, specials(dtype)), case(NonZeroOp, sample("bool", 3, 9).astype(DType.of(dtype).numpy))],
              ("mixed",))  # fmt: skip


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_places_of_awkward_shapes(mode: str) -> None:
    shapes = [(), (1,), (0,), (33,), (0, 3), (3, 0), (100, 101), (2, 3, 4), (1, 5, 1, 3), (4096,), (8193,)]
    cases = [case(NonZeroOp, sample("bool", *shape)) for shape in shapes]
    cases += [case(NonZeroOp, np.zeros((5, 7), np.bool_)), case(NonZeroOp, np.ones((2, 3000), np.bool_))]
    check_all(cases, (mode,))


COMPRESSED: list[tuple[tuple[int, ...], int, int | None]] = [
    ((5,), 5, 0), ((7, 9), 40, None), ((2, 3, 4), 2, -2), ((2, 3, 4), 0, 1), ((3, 4), 4, -1), ((3, 0), 3, 0),
    ((0, 4), 0, None), ((9000,), 8500, 0),
]  # fmt: skip


def compressed(dtype: str, shape: tuple[int, ...], length: int, axis: int | None) -> Case:
    properties = {} if axis is None else {"axis": axis}
    return case(CompressOp, sample(dtype, *shape), sample("bool", length, seed=3), **properties)


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_slices_chosen_by_a_condition(mode: str) -> None:
    check_all([compressed("float32", *one) for one in COMPRESSED], (mode,))


def test_chosen_elements_of_all_dtypes() -> None:
    dtypes = ("bool", "int8", "uint16", "int64", "float16", "bfloat16", "float64")
    check_all([compressed(dtype, *one) for dtype in dtypes for one in COMPRESSED[1:3]], ("mixed",))


def test_a_condition_longer_than_the_axis_ends_the_run() -> None:
    for message in both_refuse(CompressOp, sample("float32", 4, 2), sample("bool", 5), axis=0):
        assert "the condition has 5 elements, the axis 4" in message


def chain() -> ModuleOp:
    """The positive elements, doubled, as a softmax, and how many they are."""
    module, block = create_module("chain", [("x", tensor_type(float32, ["n"]), None)])
    (x,) = block.args

    def add(name: str, *operands: SSAValue, **properties: Any) -> SSAValue:
        op = BY_NAME[f"sx.{name}"].make(*operands, **properties)
        block.add_op(op)
        return op.results[0]

    zero = add("sub", x, x)
    chosen = add("compress", x, add("greater", x, zero), axis=0)
    doubled = add("add", chosen, chosen)
    shares = add("softmax", doubled, axis=0)
    set_outputs(module, [add("mul", shares, doubled), add("shape", chosen)], ["y", "count"])
    module.verify()
    return module


def test_what_follows_uses_the_extents_in_the_same_entry() -> None:
    module = chain()
    native = compile_module(module)
    assert isinstance(native, CompiledGraph)
    for n in (0, 1, 5, 100, 10_000, 3):
        x = sample("float32", n)
        before = native.entries
        got = native.run([x])
        assert native.entries == before + 1
        expected = evaluate_function(main_function(module), [x])
        assert got[0].shape == expected[0].shape and got[1].tolist() == expected[1].tolist()
        np.testing.assert_allclose(got[0], expected[0], rtol=1e-5)


def test_memory_for_what_the_data_decide_stays_flat() -> None:
    native = compile_module(chain())
    assert isinstance(native, CompiledGraph)
    sizes: list[int] = []
    for n in (5000, 10, 5000, 4000, 5000):
        native.run([np.abs(sample("float32", n)) + 1])
        sizes.append(native.workspace_bytes)
    assert sizes[1:] == sizes[:-1]


@pytest.mark.parametrize("threads", [2, 5])
def test_places_are_those_of_one_thread(threads: int) -> None:
    x: Array = sample("bool", 300, 301)
    graph = build([case(NonZeroOp, x), case(CompressOp, sample("float32", 300 * 301), x.reshape(-1))], "static")
    native = compile_module(graph.module)
    assert isinstance(native, CompiledGraph)
    native.use_threads(threads)
    got = native.run(graph.feeds)
    assert np.array_equal(got[0], np.stack(np.nonzero(x)))
    assert np.array_equal(got[1], graph.feeds[1][x.reshape(-1)])
