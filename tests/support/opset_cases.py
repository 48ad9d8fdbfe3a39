"""Cases exported to every opset: what is exported computes what the reference does, or is refused by name.

The judge is onnxruntime, or ONNX's reference evaluator where onnxruntime has no kernel.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytest
from onnx_models import run_onnx, run_ort
from three_ways import Case, build

from sardonyx.backends.onnx.build import build as export
from sardonyx.backends.onnx.legalize import OpsetError
from sardonyx.backends.onnx.options import MAX_OPSET, MIN_OPSET, ExportOptions
from sardonyx.backends.onnx.write import whole_proto
from sardonyx.dialects.dtypes import NARROW, DType
from sardonyx.dialects.evaluate import evaluate_function
from sardonyx.dialects.module import main_function
from sardonyx.dialects.sx import BY_NAME
from sardonyx.dialects.weights import WeightStore

Array = np.ndarray[Any, Any]
OPSETS = range(MIN_OPSET, MAX_OPSET + 1)
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-6, "float64": 1e-12}


@dataclass
class Entry:
    """A case, the lowest opset that states it, and the error that its decomposition may add (a factor)."""

    case: Case
    since: int = MIN_OPSET
    loose: float = 1

    def __str__(self) -> str:
        return str(self.case)


def entry(
    name: str, *slots: Any, since: int = MIN_OPSET, loose: float = 1, results: int | None = None, **p: Any
) -> Entry:
    return Entry(Case(BY_NAME[f"sx.{name}"], slots, p, results), since, loose)


def exported(one: Entry, mode: str, opset: int) -> tuple[onnx.ModelProto, dict[str, Array], list[Array]]:
    graph = build([one.case], mode)
    options = ExportOptions(opset_version=opset, optimize=False)
    proto = whole_proto(export(graph.module, WeightStore(), options))
    feeds = {v.name: a for v, a in zip(proto.graph.input, graph.feeds, strict=True)}
    return proto, feeds, [np.asarray(a) for a in evaluate_function(main_function(graph.module), graph.feeds)]


def difference(got: Array, expected: Array, tolerance: float) -> str | None:
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return f"{got.dtype}{list(got.shape)}, expected {expected.dtype}{list(expected.shape)}"
    if expected.dtype.kind in "biu":
        return None if np.array_equal(got, expected) else f"{got.reshape(-1)[:8]}, expected {expected.reshape(-1)[:8]}"
    a, b = got.astype(np.float64), expected.astype(np.float64)
    with np.errstate(all="ignore"):
        close = np.isclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
    return None if close.all() else f"{a[~close][:4]}, expected {b[~close][:4]}"


def judged(one: Entry, mode: str, opset: int) -> str | None:
    """What is wrong with the exported case, or None."""
    proto, feeds, expected = exported(one, mode, opset)
    problems: list[str] = []
    narrow = any(DType.of(a.dtype) in NARROW for a in feeds.values())  # which onnxruntime's Python crashes on
    for engine in (run_onnx,) if narrow else (run_ort, run_onnx):
        try:
            got = engine(proto, feeds)
        except Exception as error:  # noqa: BLE001  a kernel that the engine lacks, each in its own way
            problems.append(f"{engine.__name__}: {type(error).__name__}: {str(error)[:200]}")
            continue
        for a, b in zip(got, expected, strict=True):
            problem = difference(a, b, one.loose * TOLERANCE.get(b.dtype.name, 0))
            if problem is not None:
                problems.append(f"{engine.__name__}: {problem}")
                break
        else:
            return None
    return "; ".join(problems)


def check_every_opset(one: Entry, mode: str = "constant", opsets: Iterable[int] = OPSETS) -> None:
    """Export to each of these opsets: it computes the same, or below `since` is refused, naming what could."""
    for opset in opsets:
        if opset < one.since:
            with pytest.raises(OpsetError) as caught:
                exported(one, mode, opset)
            assert caught.value.lowest == one.since and caught.value.code_name == "NOT_IMPLEMENTED"
            assert f"opset {opset}:" in str(caught.value) and f"opset {one.since} is the lowest" in str(caught.value)
        else:
            problem = judged(one, mode, opset)
            assert problem is None, f"opset {opset}: {problem}"
