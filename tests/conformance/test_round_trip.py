"""A slice of ONNX's backend tests by the reference, and imported and exported again, plain and optimised.

`run.py` runs them all. The slice differs with `SARDONYX_CONFORMANCE_ROUND` (0 where it is not set).
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import executions
import onnx_cases
import round_trip
from onnx_models import info, model, node

from sardonyx import OnnxModel

ROUND = int(os.environ.get("SARDONYX_CONFORMANCE_ROUND", "0"))


def _turn(name: str, every: int) -> bool:
    return (zlib.crc32(name.encode()) + ROUND) % every == 0


def _slice(execution: str) -> Iterator[onnx_cases.Case]:
    for module in onnx_cases.node_modules():
        if module not in onnx_cases.SLOW and _turn(f"{execution} {module}", 8):
            yield from (case for case in onnx_cases.node_cases(module) if _turn(f"{execution} {case.name}", 8))
    for entry in onnx_cases.file_names():
        if _turn(f"{execution} {entry[0]}", 25):
            yield onnx_cases.file_case(*entry)


@pytest.mark.filterwarnings("ignore")  # what onnx's own modules warn of
@pytest.mark.parametrize("execution", ["reference", *round_trip.EXECUTIONS])
def test_onnx_backend_tests(execution: str) -> None:
    denied = executions.denied(execution, "static")
    problems: list[str] = []
    count = 0
    for case in _slice(execution):
        if case.name not in denied:
            problem = executions.run_case(case, execution, "static")
            problems += [f"{case.name}: {problem}"] if problem is not None else []
            count += 1
    assert not problems, "\n".join(problems)
    assert count > 10


def _add() -> onnx_cases.Case:
    return next(case for case in onnx_cases.node_cases("add") if case.name == "test_add")


def test_an_export_that_means_something_else_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    case, right = _add(), OnnxModel.to_proto
    assert round_trip.run_case(case, False, "static") is None

    def changed(what: str):
        def to_proto(self: OnnxModel) -> onnx.ModelProto:
            proto = right(self)
            if what == "operator":
                proto.graph.node[0].op_type = "Sub"
            elif what == "name":
                proto.graph.output[0].name = proto.graph.node[0].output[0] = "other"
            else:
                proto.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
            return proto

        return to_proto

    for what, message in (("operator", "differ"), ("name", "the outputs are"), ("type", "the type of 'x'")):
        monkeypatch.setattr(OnnxModel, "to_proto", changed(what))
        assert message in (round_trip.run_case(case, False, "static") or "")


def test_an_operator_that_nobody_knows_is_noticed() -> None:
    decoder = node("ImageDecoder", "x", "y")
    proto = model(
        [decoder], [info("x", ["n"], onnx.TensorProto.UINT8)], [info("y", [None] * 3, onnx.TensorProto.UINT8)]
    )
    case = onnx_cases.Case("decoder", proto, [([onnx_cases.np.zeros(3, "u1")], [])], 1e-3, 1e-7)
    assert "operators that nobody knows: " in (round_trip.run_case(case, False, "static") or "")
