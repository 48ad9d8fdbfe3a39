"""Native cumsum against the reference."""

from __future__ import annotations

import numpy as np
import pytest
from three_ways import both_refuse, build, case, check_all, sample, specials

from sardonyx.backends.llvm.compile import compile_module
from sardonyx.dialects.evaluate import evaluate_function
from sardonyx.dialects.module import main_function
from sardonyx.dialects.sx.cumsum import CumSumOp

KINDS = [(exclusive, reverse) for exclusive in (False, True) for reverse in (False, True)]


@pytest.mark.parametrize("dtype", [d.name for d in CumSumOp.DTYPES])
def test_known_axes(dtype: str) -> None:
    arrays = [sample(dtype, 3, 5, 9), specials(dtype)]
    if dtype == "float32":
        arrays += [sample(dtype, 8, 37), sample(dtype, 1), sample(dtype, 0, 5)]
    cases = [
        case(CumSumOp, x, np.array(axis), exclusive=e, reverse=r)
        for x in arrays
        for axis in range(-x.ndim, 0)
        for e, r in KINDS
    ]
    check_all(cases, ("mixed",))


@pytest.mark.parametrize("mode", ["static", "dynamic", "constant"])
def test_dims_and_axis_operands(mode: str) -> None:
    x = sample("float32", 3, 5, 9)
    cases = [case(CumSumOp, x, np.array(a, np.int32), exclusive=e, reverse=r) for a in (0, 1, -1) for e, r in KINDS]
    check_all([*cases, case(CumSumOp, x, np.array([1]))], (mode,))


def test_one_kernel_serves_every_axis() -> None:
    x = sample("int64", 3, 5, 9)
    graph = build([case(CumSumOp, x, np.array(0))], "static")
    native = compile_module(graph.module)
    for axis in range(-3, 3):
        feeds = [x, np.array(axis)]
        (expected,) = evaluate_function(main_function(graph.module), feeds)
        assert np.array_equal(native.run(feeds)[0], expected)


def test_bad_axes_end_the_run() -> None:
    x = sample("float32", 3, 5, 9)
    for axis in (3, -4):
        for message in both_refuse(CumSumOp, x, np.array(axis)):
            assert str(axis) in message
    both_refuse(CumSumOp, x, np.array([0, 1]))
