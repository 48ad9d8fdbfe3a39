"""Constants survive their text, those that are not finite included."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.parser import Parser

from sardonyx.dialects.module import create_module, set_outputs
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.passes.context import make_context


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    "values",
    [[np.nan, np.inf, -np.inf, -0.0, 1.5], [-np.inf], [[np.nan, 2.0], [3.0, 4.0]], [-np.inf, -np.inf], 0.1, np.inf],
)
def test_a_constant_is_read_back_with_its_bits(dtype: str, values: object) -> None:
    array = np.array(values, dtype)
    module, block = create_module("g", [])
    constant = ConstantOp.dense(array)
    block.add_op(constant)
    set_outputs(module, [constant.output], ["y"])
    back = Parser(make_context(), str(module)).parse_module()
    found = next(op for op in back.walk() if isinstance(op, ConstantOp)).array()
    assert found.dtype == array.dtype and found.shape == array.shape
    assert np.array_equal(found, array, equal_nan=True)
    assert np.array_equal(np.signbit(found[found == 0]), np.signbit(array[array == 0]))
