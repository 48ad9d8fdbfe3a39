"""Native products of 8-bit integers against the reference: exact, with all forms of zero points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from three_ways import both_refuse, case, check_all, sample

from sardonyx.backends.llvm.compile import compile_module
from sardonyx.dialects.attributes import tensor_type
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.evaluate import evaluate_function
from sardonyx.dialects.module import create_module, main_function, set_outputs
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.quantize_integer import MatMulIntegerOp

TYPES = [("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8"), ("int8", "uint8")]


def extreme(dtype: str, *shape: int, seed: int = 0) -> Any:
    """Numbers of the whole range, the ends among them."""
    limits = np.iinfo(dtype)
    found = np.random.default_rng([seed, *shape]).integers(limits.min, limits.max + 1, shape).astype(dtype)
    found.reshape(-1)[: found.size // 3] = limits.min
    found.reshape(-1)[found.size // 2 :: 3] = limits.max
    return found


@pytest.mark.parametrize(("a", "b"), TYPES)
def test_sums_are_exact(a: str, b: str) -> None:
    cases = [
        case(MatMulIntegerOp, extreme(a, m, k), extreme(b, k, n, seed=1), None, None)
        for m, k, n in [(7, 5, 19), (1, 9, 33), (13, 64, 16), (3, 1, 1), (2, 0, 3), (0, 3, 4), (30, 601, 20)]
    ]
    check_all(cases, ("static", "dynamic"))


def test_zero_points_of_all_forms() -> None:
    def of(x: Any, y: Any, zero_x: Any, zero_y: Any) -> Any:
        return case(MatMulIntegerOp, x, y, zero_x, zero_y)

    a, b = extreme("uint8", 5, 7), extreme("int8", 7, 18, seed=1)
    batch, many = extreme("uint8", 2, 3, 5, 7), extreme("int8", 3, 7, 18, seed=1)
    one, minus = np.array(255, np.uint8), np.array(-128, np.int8)
    rows, columns = sample("uint8", 5), sample("int8", 18)
    cases = [
        of(a, b, one, minus), of(a, b, one.reshape(1), None), of(a, b, rows, columns), of(a, b, None, columns),
        of(a, b, rows.reshape(5, 1), columns.reshape(1, 18)), of(batch, many, one, minus),
        of(batch, many, sample("uint8", 2, 3, 5, 1), sample("int8", 3, 1, 18)), of(batch, b, rows, columns),
        of(batch, many, sample("uint8", 1, 3, 1, 1), sample("int8", 3, 1, 1)), of(a[0], b, one, None),
        of(a, b[:, 0], None, minus), of(a[0], b[:, 0], one, minus), of(batch, many[:1], None, minus),
    ]  # fmt: skip
    check_all(cases, ("static", "dynamic"))


def test_a_constant_weight_and_the_scale_behind_it() -> None:
    """The sums are scaled in the epilogue, as `DynamicQuantizeLinear` needs it."""
    from op_case import op

    x, w, zero = extreme("uint8", 9, 33), extreme("int8", 33, 21, seed=1), sample("int8", 21)
    types = [("x", tensor_type(DType.of("uint8"), ["n", 33]), None)]
    module, block = create_module("quantized", types)

    def add(made: Any) -> Any:
        block.add_op(made)
        return made.results[0]

    def constant(array: Any) -> Any:
        return add(ConstantOp.dense(np.asarray(array)))

    total = add(MatMulIntegerOp.make(block.args[0], constant(w), constant(np.uint8(7)), constant(zero)))
    scaled = add(op("mul").make(add(op("cast").make(total, to=DType.of("float32"))), constant(np.float32(0.125))))
    set_outputs(module, [scaled], ["y"])
    module.verify()
    graph = compile_module(module)
    for rows in (9, 1, 0):
        feeds = [np.ascontiguousarray(x[:rows])]
        want = np.asarray(evaluate_function(main_function(module), feeds)[0])
        np.testing.assert_array_equal(graph.run(feeds)[0], want)


def test_sizes_that_disagree_are_refused() -> None:
    both_refuse(MatMulIntegerOp, extreme("uint8", 2, 3), extreme("int8", 4, 5), None, None)
    both_refuse(MatMulIntegerOp, extreme("uint8", 2, 3), extreme("int8", 3, 5), sample("uint8", 4), None)
