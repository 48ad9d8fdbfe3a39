"""`ONNXProgram`, files, and what else an export may be asked for."""

from __future__ import annotations

import copy
import subprocess
import sys

import numpy as np
import onnx
import pytest

torch = pytest.importorskip("torch")

from torch_three import check, close  # noqa: E402

import sardonyx as sx  # noqa: E402


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(16, 32), torch.nn.Linear(32, 4)
        self.register_buffer("scale", torch.tensor([2.0]))

    def forward(self, x):
        return self.second(torch.relu(self.first(x))) * self.scale


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    return Net().eval()


@pytest.fixture(scope="module")
def program(net):
    return sx.export(net, (torch.rand(3, 16),), dynamic_shapes=({0: "batch"},), optimize=False)


def test_it_is_called_with_tensors_or_arrays(net, program):
    x = torch.rand(5, 16)
    want = net(x).detach()
    close(want, program(x)[0])
    close(want, program.call_reference(x)[0])
    assert isinstance(program(x)[0], torch.Tensor)
    found = program(x.numpy())[0]
    assert isinstance(found, sx.Tensor)
    close(want, found)
    with pytest.raises(sx.OnnxExporterError, match="takes 1 inputs"):
        program(x, x)
    assert isinstance(program.exported_program, torch.export.ExportedProgram)
    assert isinstance(program.model, sx.OnnxModel) and isinstance(program.model_proto, onnx.ModelProto)
    assert isinstance(program.graph, sx.ModelGraph) and "ONNXProgram" in repr(program)


def test_parameters_keep_their_names_and_share_memory(net, program):
    names = {i.name for i in program.model_proto.graph.initializer}
    assert {"first.weight", "first.bias", "second.weight", "second.bias", "scale"} <= names
    stored = program.graph.store["first.weight"].array()
    assert np.shares_memory(stored, net.first.weight.detach().numpy())


def test_other_weights(net, program):
    other = copy.deepcopy(net)
    with torch.no_grad():
        for value in (*other.parameters(), other.scale):
            value += 0.5
    made = sx.export(net, (torch.rand(3, 16),))
    made.apply_weights({**other.state_dict(), "unknown": torch.zeros(1)})
    x = torch.rand(3, 16)
    close(other(x).detach(), made(x)[0])
    close(net(x).detach(), program(x)[0])
    with pytest.raises(sx.InvalidArgumentError, match="'scale' is float32"):
        made.apply_weights({"scale": torch.zeros(2)})


def test_weights_of_recurrent_layers_are_not_replaced_in_silence():
    layer = torch.nn.LSTM(2, 3)
    made = sx.export(layer, (torch.rand(4, 1, 2),))
    with pytest.raises(sx.InvalidArgumentError, match="'bias_hh_l0' cannot be replaced"):
        made.apply_weights(layer.state_dict())


def test_dims_get_other_names(net):
    made = sx.export(net, (torch.rand(3, 16),), dynamic_shapes=({0: "batch"},))
    made.rename_axes({"batch": "rows"})
    assert made.model_proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "rows"
    assert made(torch.rand(7, 16))[0].shape == (7, 4)
    with pytest.raises(sx.InvalidArgumentError, match="no dim of the graph's inputs is called 'batch'"):
        made.rename_axes({"batch": "n"})


def test_values_between(net, program):
    x = torch.rand(2, 16)
    node = next(n for n in program.model_proto.graph.node if n.op_type == "Relu")
    found = program.compute_values([node.output[0], "output_0"], (x,))
    close(torch.relu(net.first(x)).detach(), found[node.output[0]])
    close(net(x).detach(), found["output_0"])


def test_optimize_makes_fewer_nodes():
    class Wasteful(torch.nn.Module):
        def forward(self, x):
            return x.transpose(0, 1).transpose(0, 1) * 1 + torch.zeros(1)

    made = sx.export(Wasteful(), (torch.rand(2, 3),), optimize=False)
    before = len(made.model_proto.graph.node)
    made.optimize()
    assert len(made.model_proto.graph.node) < before
    assert len(sx.export(Wasteful(), (torch.rand(2, 3),)).model_proto.graph.node) == len(made.model_proto.graph.node)


def test_files(net, program, tmp_path):
    path = tmp_path / "net.onnx"
    made = sx.export(net, (torch.rand(3, 16),), path)
    assert {p.name for p in tmp_path.iterdir()} == {"net.onnx", "net.onnx_data"} or len(list(tmp_path.iterdir())) == 2
    onnx.checker.check_model(str(path), full_check=True)
    inside = tmp_path / "inside.onnx"
    sx.export(net, (torch.rand(3, 16),), inside, external_data=False)
    assert not list(tmp_path.glob("inside*data")) and len(onnx.load(inside).graph.initializer) == 5
    made.save(inside, include_initializers=False)
    assert len(onnx.load(inside).graph.initializer) == 0 and len(onnx.load(inside).graph.input) == 6
    made.save(inside, keep_initializers_as_inputs=True)
    assert len(onnx.load(inside).graph.initializer) == 5 and len(onnx.load(inside).graph.input) == 6
    sx.export(net, (torch.rand(3, 16),), inside, export_params=False)
    assert {i.name for i in onnx.load(inside).graph.input} == {"x", *net.state_dict()}
    assert sx.export(net, (torch.rand(3, 16),), opset_version=18).model.opset == 18


def test_report_profile_and_dump(net, tmp_path, capsys):
    made = sx.export(
        net,
        (torch.rand(3, 16),),
        verbose=True,
        report=True,
        profile=True,
        dump_exported_program=True,
        verify=True,
        artifacts_dir=tmp_path,
    )
    assert {p.name for p in tmp_path.iterdir()} == {
        "Net_export_report.md", "Net_export_profile.md", "Net_exported_program.pt2",
    }  # fmt: skip
    report = (tmp_path / "Net_export_report.md").read_text(encoding="utf-8")
    assert report == made.report and "aten.linear.default" in report and "verify: output `output_0` agrees" in report
    assert "translate" in (tmp_path / "Net_export_profile.md").read_text(encoding="utf-8")
    assert "[sardonyx.export] Net: capture" in capsys.readouterr().out


def test_a_failed_export_is_reported_too(tmp_path):
    with pytest.raises(sx.UnsupportedError):
        sx.export(lambda x: torch.linalg.matrix_exp(x), (torch.eye(2),), report=True, artifacts_dir=tmp_path)
    (path,) = tmp_path.iterdir()
    assert "NOT_IMPLEMENTED" in path.read_text(encoding="utf-8")


def test_verify_finds_a_wrong_translation():
    class Sine(torch.nn.Module):
        def forward(self, x):
            return torch.sin(x)

    with pytest.raises(sx.OnnxExporterError, match="verify: the output 'output_0'"):
        sx.export(Sine(), (torch.ones(3),), verify=True, custom_translation_table={torch.ops.aten.sin.default: sx.cos})


def test_the_fallback_is_loud():
    pytest.importorskip("onnxscript")

    class Solve(torch.nn.Module):
        def forward(self, x):
            return torch.linalg.matrix_exp(x)

    with (
        pytest.warns(UserWarning, match="torch.onnx's own exporter makes the model instead"),
        pytest.raises(sx.UnsupportedError, match="torch's own exporter failed, too|cannot be read"),
    ):
        sx.export(Solve(), (torch.eye(2),), fallback=True)


def test_the_fallback_makes_the_model_by_torchs_exporter():
    pytest.importorskip("onnxscript")

    class Rectify(torch.nn.Module):
        def forward(self, x):
            return torch.relu(x) + 1

    def fails(x):
        raise ValueError("on purpose")

    x = torch.tensor([-1.0, 2.0])
    with pytest.warns(UserWarning, match="'fails' of aten.relu.default fails: ValueError: on purpose"):
        program = sx.export(
            Rectify(), (x,), fallback=True, custom_translation_table={torch.ops.aten.relu.default: fails}
        )
    assert torch.equal(program(x)[0], torch.tensor([1.0, 3.0]))


def test_an_exported_program_and_a_function():
    exported = torch.export.export(Net(), (torch.rand(3, 16),), dynamic_shapes=({0: torch.export.Dim("n")},))
    made = sx.export(exported)
    assert made.exported_program is exported and made(torch.rand(5, 16))[0].shape == (5, 4)
    check(lambda x, y: torch.matmul(x, y).softmax(-1), (torch.rand(2, 3), torch.rand(3, 4)))


def test_the_export_is_noticed_by_the_model():
    class Asks(torch.nn.Module):
        def forward(self, x):
            return x + 1 if sx.is_in_onnx_export() else x

    assert not sx.is_in_onnx_export()
    assert sx.export(Asks(), (torch.zeros(1),))(torch.zeros(1))[0].item() == 1


def test_locations_reach_the_model(net):
    nodes = sx.export(net, (torch.rand(3, 16),)).model_proto.graph.node
    gemm = next(n for n in nodes if n.op_type == "Gemm")
    assert gemm.name == "first.linear"
    where = {p.key: p.value for p in gemm.metadata_props}
    assert "test_program.py:" in where["sardonyx.location"]


def test_the_same_model_has_the_same_bytes(net):
    first, second = (sx.export(net, (torch.rand(3, 16),)).model_proto for _ in range(2))
    assert first.SerializeToString(deterministic=True) == second.SerializeToString(deterministic=True)


WITHOUT = """
import importlib.abc, sys

class Refuses(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("onnxscript", "onnx_ir") or name.startswith("torch.onnx"):
            raise ImportError(f"{name} is not to be imported")

import torch
for name in [n for n in sys.modules if n.startswith(("torch.onnx", "onnxscript", "onnx_ir"))]:
    del sys.modules[name]
sys.meta_path.insert(0, Refuses())
import sardonyx as sx

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, x):
        return self.layer(x)

net = Net().eval()
x = torch.rand(2, 3, 8)
made = sx.export(net, (x,), dynamic_shapes=({0: "batch", 1: "seq"},), verify=True)
assert torch.allclose(made(x)[0], net(x), atol=1e-5)
assert not [n for n in sys.modules if n.startswith(("torch.onnx", "onnxscript", "onnx_ir"))]
print("exported")
"""


def test_without_torch_onnx_and_onnxscript():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", WITHOUT], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "exported", done.stderr[-2000:]


def test_functions_over_onnxscripts_operators_translate():
    """As the document's `custom_translation_table` takes them: decorated, or plain and called while exporting."""
    onnxscript = pytest.importorskip("onnxscript")
    op = onnxscript.opset18

    class Asinh(torch.nn.Module):
        def forward(self, x):
            return torch.asinh(x)

    def plain(x):
        return op.Log(op.Add(x, op.Sqrt(op.Add(op.Mul(x, x), 1))))

    def parts(x):
        first, second = op.Split(x, num_outputs=2, axis=0)
        return op.Asinh(op.Concat(first, second, axis=0))

    x = torch.tensor([[0.5, -2.0], [1.0, 0.0]])
    for function in (plain, parts):
        program = sx.export(Asinh(), (x,), custom_translation_table={torch.ops.aten.asinh.default: function})
        torch.testing.assert_close(program(x)[0], torch.asinh(x))
    with pytest.raises(sx.OnnxExporterError, match="'<lambda>' of aten.asinh.default fails: TypeError"):
        sx.export(Asinh(), (x,), custom_translation_table={torch.ops.aten.asinh.default: lambda x: op.Asinh(x, to=1)})


def test_errors_of_a_capture_name_line_and_module():
    class Inner(torch.nn.Module):
        def forward(self, x):
            return x @ torch.ones(5, 5)

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4), Inner()])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    with pytest.raises(sx.OnnxExporterError, match=r"test_program.py:\d+ \(module 'layers.1'\): the model fails"):
        sx.export(Outer(), (torch.ones(2, 4),))


def test_a_warning_points_at_the_call():
    with pytest.warns(DeprecationWarning, match="dynamo=False") as found:
        sx.export(torch.nn.ReLU(), (torch.ones(2),), dynamo=False)
    assert found[0].filename == __file__
