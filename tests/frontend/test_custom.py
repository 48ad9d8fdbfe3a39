"""Custom operators: eagerly, traced, natively (with a NumPy kernel and with a lowering), exported, pickled."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import sardonyx as sx
from sardonyx.backends.llvm.lowering.builder import Body
from sardonyx.dialects.attributes import dims_of
from sardonyx.dialects.module import main_function
from sardonyx.dialects.sx.opaque import OpaqueOp
from sardonyx.errors import ExecutionError, InferenceError, InvalidArgumentError, UnsupportedError

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def scaled_kernel(x: np.ndarray, factor: float = 2.0) -> np.ndarray:
    return x * np.float32(factor)


def lower_scaled(plan: Any, op: Any) -> None:
    (x,) = op.inputs
    kernel = plan.kernel("scaled")
    read, write = kernel.read(x), kernel.write(op.outputs[0])

    def element(b: Body, at: Any, _: Any) -> None:
        dtype = sx.float32
        b.store(
            b.arithmetic("mul", dtype, b.load(read, at), b.const(dtype, op.arguments.get("factor", 2.0))), write, at
        )

    kernel.loop(kernel.outer(plan.count(dims_of(x))), element, vector=True, parallel=True)
    kernel.launch()


@sx.custom_op("test.parts", lambda x, y: [sx.TensorSpec("", x.dtype, [x.extents[0]]), y], deterministic=False)
def parts(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    return [x.sum(1), y]


twice = sx.CustomOp("test.twice", lambda x: x, lambda x: x * np.float32(2))
scaled = sx.CustomOp("test.scaled", lambda x, factor=2.0: x, scaled_kernel, lower=lower_scaled,
                     onnx=lambda x, factor=2.0: x * factor)  # fmt: skip
foreign = sx.CustomOp("test.foreign", lambda x, axis: x, lambda x, axis: np.flip(x, axis), onnx=("test", "Flip", 3))


def test_eagerly():
    x = sx.asarray(X)
    assert twice(x).tolist() == (X * 2).tolist() and scaled(X, factor=3.0).tolist() == (X * 3).tolist()
    sums, same = parts(x, x)
    assert sums.tolist() == X.sum(1).tolist() and not np.shares_memory(same.numpy(), x.numpy())
    assert foreign(x, axis=1).tolist() == X[:, ::-1].tolist()


def model(x: Any) -> dict[str, Any]:
    y = twice(sx.relu(x - 1)) + 1
    sums, z = parts(y, y)
    return {"y": sx.exp(sums), "z": z * 2, "s": scaled(scaled(z), factor=0.5)}


def want() -> list[np.ndarray]:
    y = np.maximum(X - 1, 0) * 2 + 1
    return [np.exp(y.sum(1)), y * 2, y]


def test_numpy_kernels_split_the_native_entry():
    graph = sx.trace(model, "x: f32[n,m]").graph
    assert [n.operator for n in graph.nodes() if "test" in n.operator] == [
        "test.twice",
        "test.parts",
        *["test.scaled"] * 2,
    ]
    plain = graph.clone()
    graph.optimize()
    graph.finalize()
    assert [f.op for f in graph.fallbacks] == ["test.twice", "test.parts"]
    assert graph.fallbacks[0].reason == "the kernel of 'test.twice' is Python's"
    assert "test_custom.py" in graph.fallbacks[0].location
    for got in (plain.evaluate([X]), graph.run([X])):
        for a, b in zip(got, want(), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_lowering_is_native():
    graph = sx.trace(lambda x: scaled(sx.relu(x), factor=3.0) + 1, "x: f32[n,m]").graph
    graph.finalize()
    assert graph.fallbacks == [] and any(n.startswith("scaled") for n in graph.compiled.sizes.launches)
    assert graph.run([X])[0].tolist() == (X * 3 + 1).tolist() == graph.evaluate([X])[0].tolist()


def test_what_else_is_not_native_is_still_refused():
    graph = sx.trace(lambda x: twice(x), "x: f32[3]").graph
    with graph.edit() as module:
        block = main_function(module).body.block
        (x,), first = block.args, block.first_op
        assert first is not None
        unknown = OpaqueOp.make([x], results=1, result_types=[x.type], op_type="X", domain="y")
        block.insert_op_before(unknown, first)
        first.operands[0] = unknown.outputs[0]
    with pytest.raises(UnsupportedError, match="y.X has no native form yet"):
        graph.finalize()


def test_in_a_loop():
    graph = sx.trace(lambda x: sx.fori(0, 3, lambda i, v: twice(v), x), "x: f32[2,3]").graph
    graph.finalize()
    assert [f.op for f in graph.fallbacks] == ["sx.loop"] and "test.twice" in graph.fallbacks[0].reason
    assert graph.run([X])[0].tolist() == (X * 8).tolist()


def test_onnx(tmp_path: Path):
    graph = sx.trace(lambda x: scaled(x, factor=4.0), "x: f32[2,3]").graph
    assert sx.OnnxModel.from_graph(graph).compile().evaluate([X])[0].tolist() == (X * 4).tolist()
    graph = sx.trace(lambda x: foreign(x, axis=1), "x: f32[2,3]").graph
    graph.export_onnx(tmp_path / "flip.onnx", check=False)
    proto = onnx.load(tmp_path / "flip.onnx")
    (tmp_path / "flip.onnx").unlink()
    assert [(n.domain, n.op_type, n.attribute[0].i) for n in proto.graph.node] == [("test", "Flip", 1)]
    assert {o.domain: o.version for o in proto.opset_import}["test"] == 3
    graph = sx.trace(lambda x: twice(twice(x)), "x: f32[2,3]").graph
    with pytest.raises(
        UnsupportedError, match="node 'test.twice_0' .* has no ONNX form: it is a user-defined"
    ) as caught:
        graph.export_onnx(tmp_path / "m.onnx")
    assert caught.value.code_name == "NOT_IMPLEMENTED" and not list(tmp_path.iterdir())


def test_pickles(tmp_path: Path):
    graph = sx.trace(lambda x: twice(x), "x: f32[2,3]").graph
    assert pickle.loads(pickle.dumps(graph)).evaluate([X])[0].tolist() == (X * 2).tolist()
    (tmp_path / "g.pickle").write_bytes(pickle.dumps(graph))
    code = (
        f"import pickle, numpy as np; g = pickle.load(open({str(tmp_path / 'g.pickle')!r}, 'rb')); print(g.outputs())\n"
    )
    code += "try: g.evaluate([np.zeros((2, 3), np.float32)])\nexcept Exception as e: print(e, '|', e.hint)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "[('output_0', sardonyx.float32, (2, 3))]" in out
    assert "the operator 'test.twice' is not registered in this process | import the module" in out


def fails(x: np.ndarray) -> np.ndarray:
    raise ValueError("no")


def test_what_is_wrong():
    same = lambda x: x  # noqa: E731
    for arguments, message in (
        (("", same, same), "a str that isn't empty"),
        (("test.a", 1, same), "shape of the operator 'test.a' is a function"),
        (("test.twice", same, fails), "there is a custom operator 'test.twice' already"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            sx.CustomOp(*arguments)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidArgumentError, match=r"onnx of the operator 'test.b' is \(domain, name"):
        sx.CustomOp("test.b", same, same, onnx=("a",))  # pyright: ignore[reportArgumentType]
    for number, (shape, kernel, error, message) in enumerate((
        (same, fails, ExecutionError, "the kernel of 'test.bad0' raised ValueError: no"),
        (same, lambda x: x[:1], ExecutionError, r"gives float32\[1, 3\] as result 0, its shape rule tensor<2x3xf32>"),
        (same, lambda x: [x, x], ExecutionError, "gives 2 of 1 results"),
        (same, lambda x: x.__setitem__(0, 1), ExecutionError, "ValueError: assignment destination is read-only"),
        (lambda x: "text", same, InvalidArgumentError, "the shape rule of 'test.bad4' returns TensorSpec, not str"),
        (lambda x: sx.TensorSpec("", "f99", [1]), same, InvalidArgumentError, "f99"),
    )):  # fmt: skip
        with pytest.raises(error, match=message):
            sx.CustomOp(f"test.bad{number}", shape, kernel)(sx.asarray(X))
    with pytest.raises((InferenceError, TypeError)):
        twice(sx.asarray(X), sx.asarray(X))
