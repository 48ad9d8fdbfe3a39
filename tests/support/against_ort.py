"""An op's reference held against onnxruntime's kernel of the same operator."""

from __future__ import annotations

from typing import Any

import numpy as np
from op_case import run_all
from ort_oracle import OPSET, run_node

from sardonyx.dialects.base import SxOp

Array = np.ndarray[Any, Any]


def agree(
    cls: type[SxOp], *inputs: Any, opset: int = OPSET, rtol: float = 1e-5, atol: float = 1e-6, **attributes: Any
) -> list[Array]:
    """Run the op (see `op_case.run_all`) and onnxruntime on these inputs; they agree in dtypes, shapes and values.

    The attributes are ONNX's; where the op's default is a bool, its property is one. Returns our results.
    """
    assert cls.ONNX is not None
    flags = {k: bool(v) if isinstance(cls.DEFAULTS.get(k), bool) else v for k, v in attributes.items()}
    ours = run_all(cls, *inputs, **flags)
    theirs = run_node(cls.ONNX.name, inputs, len(ours), opset, cls.ONNX.domain, **attributes)
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape, f"{a.dtype}{a.shape}, onnxruntime {b.dtype}{b.shape}"
        if a.dtype.kind in "biuO":
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=rtol, atol=atol)
    return ours
