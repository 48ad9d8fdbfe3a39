"""Code for aarch64, run by an emulator: ONNX's own tests, threads, and what a failed run says."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import other_cpu
import pytest

import sardonyx as sx

CONFORMANCE = str(Path(__file__).parents[2] / "conformance")
NEEDED = other_cpu.missing()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(NEEDED is not None, reason=str(NEEDED))]

CASES = [
    ("conv", "test_basic_conv_with_padding"), ("lstm", "test_lstm_with_initial_bias"),
    ("softmax", "test_softmax_axis_1"), ("cast", "test_cast_FLOAT_to_FLOAT8E4M3FN"),
    ("cast", "test_cast_FLOAT16_to_FLOAT"), ("topk", "test_top_k_smallest"), ("nonzero", "test_nonzero_example"),
    ("qlinearmatmul", "test_qlinearmatmul_2D_uint8_float32"), ("dft", "test_dft"), ("loop", "test_loop11"),
    ("scatternd", "test_scatternd_add"), ("mod", "test_mod_mixed_sign_int8"),
]  # fmt: skip


@pytest.mark.parametrize(("module", "name"), CASES, ids=[name for _, name in CASES])
def test_onnx_cases(module: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [CONFORMANCE, *sys.path])
    onnx_cases = importlib.import_module("onnx_cases")
    case = next(c for c in onnx_cases.node_cases(module) if c.name == name)
    for inputs, expected in case.data:
        model, left = onnx_cases.formed(case, "dynamic", inputs)
        got = other_cpu.run_aarch64(sx.OnnxModel.from_proto(model).compile().module, left)
        assert onnx_cases.difference(list(expected), got, case.rtol, case.atol) is None


def layers() -> sx.ModelGraph:
    w = np.random.default_rng(0).standard_normal((96, 200)).astype(np.float32)

    def net(x: Any, at: Any) -> Any:
        return sx.gather(sx.softmax(sx.tanh(x @ w), axis=-1), at, axis=0)

    return sx.trace(net, "x: f32[n,96], at: i64[k]").graph


def test_threads_and_failures() -> None:
    graph = layers()
    x = np.random.default_rng(1).standard_normal((300, 96)).astype(np.float32)
    at = np.array([0, 299, -1])
    (alone,) = other_cpu.run_aarch64(graph.module, [x, at])
    (together,) = other_cpu.run_aarch64(graph.module, [x, at], threads=4)
    assert alone.tobytes() == together.tobytes()
    np.testing.assert_allclose(alone, np.asarray(graph.evaluate([x, at])[0]), rtol=1e-4, atol=1e-6)
    with pytest.raises(RuntimeError, match="status 7: .*index 300 is out of range"):
        other_cpu.run_aarch64(graph.module, [x, at + 1])
