"""`sardonyx.export` of graphs and of functions on Sardonyx tensors: no torch is needed."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import onnx
import pytest

import sardonyx as sx


def model(x, y):
    return {"sum": x + y, "product": sx.matmul(x, y)}


SPECS = (sx.TensorSpec("x", "float32", ["n", 3]), sx.TensorSpec("y", "float32", [3, 3]))
X, Y = np.ones((3, 3), np.float32), np.full((3, 3), 2, np.float32)


def same(program: sx.ONNXProgram) -> None:
    for found in (program(X, Y), program.call_reference(X, Y)):
        assert isinstance(found[0], sx.Tensor)
        np.testing.assert_allclose(found[0].numpy(), X + Y)
        np.testing.assert_allclose(found[1].numpy(), X @ Y)


def test_a_function_with_specs_arrays_or_tensors(tmp_path):
    program = sx.export(model, (SPECS[0].renamed("a"), SPECS[1]), tmp_path / "model.onnx")
    assert program.graph.input_names() == ["a", "y"] and program.graph.output_names() == ["sum", "product"]
    onnx.checker.check_model(str(tmp_path / "model.onnx"), full_check=True)
    same(program)
    same(sx.export(model, (X, sx.Tensor(Y))))
    same(sx.export(model, (X,), kwargs={"y": Y}))
    named = sx.export(model, (X, Y), input_names=["p", "q"], output_names=["s", "t"])
    assert named.graph.input_names() == ["p", "q"] and named.graph.output_names() == ["s", "t"]


def test_a_traced_graph():
    result = sx.trace(model, SPECS)
    same(sx.export(result))
    same(sx.export(result.graph, optimize=False))
    assert sx.export(result).exported_program is None
    with pytest.raises(sx.OnnxExporterError, match="dynamic_shapes has no meaning"):
        sx.export(result, dynamic_shapes={"x": {0: "batch"}})


def test_what_is_refused():
    with pytest.raises(sx.InvalidArgumentError, match="stated in its inputs"):
        sx.export(model, (X, Y), dynamic_shapes={"x": {0: "n"}})
    with pytest.raises(sx.OnnxExporterError, match="not an array, Tensor or TensorSpec"):
        sx.export(model, (X, "y"))
    with pytest.raises(
        sx.OnnxExporterError, match="takes a torch.nn.Module, an ExportedProgram, a graph or a function"
    ):
        sx.export("model")
    with pytest.raises(sx.OnnxExporterError, match="opset 12 is too old"):
        sx.export(model, (X, Y), opset_version=12)


def test_errors_are_of_both_classes_and_pickle():
    import pickle

    with pytest.raises(sx.OnnxExporterError) as found:
        sx.export(lambda x: x @ sx.ones(5), (X,))
    error = found.value
    assert isinstance(error, sx.InferenceError) and error.code_name == "INVALID_ARGUMENT"
    assert "test_export.py" in str(error)
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error) and type(copy) is type(error)


def test_renamed_dims_and_values_between():
    program = sx.export(model, SPECS)
    program.rename_axes({"n": "rows"})
    assert program.graph.input_specs()[0].dim_names == ["rows", ""]
    assert list(program.compute_values(["sum", "x"], (X, Y))) == ["sum", "x"]


def test_torch_is_not_imported():
    code = (
        "import sys, numpy, sardonyx as s; s.export(lambda x: x + 1, (numpy.ones(2),)); s.is_in_onnx_export(); "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
