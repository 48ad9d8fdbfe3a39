"""A slice of ONNX's backend tests, by native code with nothing in Python computing. `run.py` runs them all.

The slice differs from form to form, and with `SARDONYX_CONFORMANCE_ROUND` (0 where it is not set).
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import executions
import onnx_cases
from no_python import PythonComputed, no_python
from onnx_models import INT64, info, model, node

import sardonyx as sx
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.dialects.sx import BY_NAME

ROUND = int(os.environ.get("SARDONYX_CONFORMANCE_ROUND", "0"))
PARTS = 3


def _turn(form: str, name: str, every: int) -> bool:
    return (zlib.crc32(f"{form} {name}".encode()) + ROUND) % every == 0


def _slice(form: str, part: int) -> Iterator[onnx_cases.Case]:
    """Some tests of some modules (a module makes all of its tests when it is imported), and some of the files."""
    modules = [m for m in onnx_cases.node_modules() if m not in onnx_cases.SLOW and _turn(form, m, 8)]
    for module in modules[part::PARTS]:
        yield from (case for case in onnx_cases.node_cases(module) if _turn(form, case.name, 16))
    files = [entry for entry in onnx_cases.file_names() if _turn(form, entry[0], 120)]
    for entry in files[part::PARTS]:
        yield onnx_cases.file_case(*entry)


@pytest.mark.filterwarnings("ignore")  # what onnx's own modules warn of
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("form", onnx_cases.FORMS)
def test_onnx_backend_tests(form: str, part: int) -> None:
    denied = executions.denied("native", form)
    problems: list[str] = []
    for case in _slice(form, part):
        if case.name not in denied:
            problem = executions.run_case(case, "native", form)
            problems += [f"{case.name}: {problem}"] if problem is not None else []
    assert not problems, "\n".join(problems)


def test_strings_run_by_the_reference_beside_native_code() -> None:
    cases = {case.name: case for module in ("equal", "string_concat") for case in onnx_cases.node_cases(module)}
    for name in ("test_equal_string_broadcast", "test_string_concat_utf8"):
        assert executions.run_case(cases[name], "with-strings", "static") is None
        with pytest.raises(sx.UnsupportedError, match="string"):
            executions.run_case(cases[name], "native", "static")


def test_a_wrong_output_is_noticed() -> None:
    case = next(case for case in onnx_cases.node_cases("add") if case.name == "test_add")
    (inputs, (expected,)), = case.data  # fmt: skip
    for wrong in (expected + np.float32(0.01), expected[..., :1], expected.astype(np.float64)):
        changed = onnx_cases.Case(case.name, case.model, [(inputs, [wrong])], case.rtol, case.atol)
        for form in onnx_cases.FORMS:
            assert executions.run_case(changed, "native", form) is not None


def test_computing_in_python_raises() -> None:
    x, op = np.ones(3, np.float32), BY_NAME["sx.add"]
    before = (np.add, np.linalg.norm, op.evaluate)
    with no_python():
        for compute in (lambda: np.add(x, x), lambda: np.linalg.norm(x), lambda: np.sum(x)):
            with pytest.raises(PythonComputed):
                compute()
        with pytest.raises(PythonComputed, match="evaluate was called"):
            op.evaluate(op.__new__(op), EvalContext(), x, x)
    assert (np.add, np.linalg.norm, op.evaluate) == before


def test_a_graph_without_inputs_whose_result_the_data_decide() -> None:
    proto = model([node("NonZero", "x", "y")], [], [info("y", [1, None], INT64)], {"x": np.array([0.0, 3.0, 0.0, 4.0])})
    graph = sx.OnnxModel.from_proto(proto).compile()
    graph.finalize()
    (found,) = graph.run([])
    assert np.asarray(found).tolist() == [[1, 3]]
    with pytest.raises(sx.InvalidArgumentError, match="takes 0 inputs"):
        graph.run([np.ones(2)])
