"""Calls a function on tensors eagerly and traced, with static dims and with dynamic ones (there natively, too)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import sardonyx as sx

Result = Any


def spec_of(array: np.ndarray, name: str, dynamic: bool) -> sx.TensorSpec:
    dims = [f"{name}{axis}" if dynamic and extent != 1 else extent for axis, extent in enumerate(array.shape)]
    return sx.TensorSpec(name, array.dtype, dims)


def run_all(fn: Callable[..., Any], *arrays: np.ndarray, native: bool = True) -> dict[str, list[np.ndarray]]:
    """The results of the function, by the way in which they were computed."""
    results = {"eager": _arrays(fn(*map(sx.asarray, arrays)))}
    for mode in ("static", "dynamic"):
        specs = tuple(spec_of(a, f"x{i}", mode == "dynamic") for i, a in enumerate(arrays))
        graph = sx.trace(fn, specs).graph
        results[mode] = _arrays(graph.evaluate(list(arrays)))
        for (_, dtype, dims), got in zip(graph.outputs(), results[mode], strict=True):
            assert dtype == got.dtype
            assert dims is None or all(d in (-1, e) for d, e in zip(dims, got.shape, strict=True)), (dims, got.shape)
        if mode == "dynamic" and native:
            graph.finalize()
            results["native"] = _arrays(graph.run(list(arrays)))
    return results


def check(
    fn: Callable[..., Any],
    *arrays: np.ndarray,
    want: Any,
    rtol: float = 1e-6,
    atol: float = 0.0,
    native: bool = True,
) -> None:
    """Hold all ways against the wanted arrays, dtypes and shapes included."""
    wanted = want if isinstance(want, list | tuple) else [want]
    for mode, got in run_all(fn, *arrays, native=native).items():
        assert len(got) == len(wanted), mode
        for g, w in zip(got, wanted, strict=True):
            w = np.asarray(w)
            assert g.dtype == w.dtype, (mode, g.dtype, w.dtype)
            assert g.shape == w.shape, (mode, g.shape, w.shape)
            np.testing.assert_allclose(g, w, rtol=rtol, atol=atol, err_msg=mode)


def _arrays(result: Any) -> list[np.ndarray]:
    found = result if isinstance(result, list | tuple) else [result]
    return [np.asarray(r) for r in found]
