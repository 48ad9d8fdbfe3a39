"""`sardonyx export`: one step from a source to a checked, verified and certified file; what fails leaves nothing."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from sardonyx.tools import cli
from sardonyx.tools.diagnostics import EXIT_CHECK, EXIT_FAILURE

NET = """
import numpy as np
import sardonyx as sx
weights = np.random.default_rng(0).standard_normal((37, 8), np.float32)
large = np.zeros((37, 600), np.float32)

@sx.signature("x: f32[batch,37]")
def forward(x):
    return sx.softmax(sx.matmul(x, weights), axis=-1)

@sx.signature("x: f32[batch,37]")
def frozen(x):
    return sx.reshape(sx.matmul(x, weights), (2, 8))

@sx.signature("x: f32[batch,37]")
def captures(x):
    return sx.matmul(x, large)

@sx.signature("x: f32[batch,37]")
def branches(x):
    return x if sx.sum(x) > 0 else -x

def unsigned(x):
    return sx.relu(x)

network = sx.layers.dlnetwork([
    sx.layers.feature_input_layer(2), sx.layers.fully_connected_layer(3), sx.layers.softmax_layer()
])
"""


def call(*args: str | Path) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return cli.run(["export", *map(str, args)], out, err), out.getvalue(), err.getvalue()


@pytest.fixture
def net(tmp_path: Path) -> Path:
    (tmp_path / "net.py").write_text(NET)
    return tmp_path / "net.py"


def test_a_function_becomes_a_verified_and_certified_file(net: Path, tmp_path: Path) -> None:
    target = tmp_path / "net.onnx"
    status, out, err = call(
        f"{net}:forward", "-o", target, "--opset", "17", "--dim", "batch=1,8", "--target", "tensorrt"
    )
    assert (status, err) == (0, "")
    for line in (
        "opset",
        "ONNX checker, strict shape inference",
        "8 of 8 runs agree",
        "TensorRT",
        "net.certificate.json",
    ):
        assert line in out
    assert sorted(p.name for p in tmp_path.glob("net.*")) == ["net.certificate.json", "net.onnx", "net.py"]
    certificate = json.loads((tmp_path / "net.certificate.json").read_text())
    assert certificate["made"]["opset"] == 17 and certificate["verification"]["dims"] == ["batch"]
    out = io.StringIO()
    assert cli.run(["verify", "--certificate", str(tmp_path / "net.certificate.json")], out, io.StringIO()) == 0


def test_a_frozen_size_is_a_warning_and_strictly_an_error_that_leaves_nothing(net: Path, tmp_path: Path) -> None:
    target = tmp_path / "frozen.onnx"
    status, out, _ = call(f"{net}:frozen", "-o", target, "--only", "reference", "--strict")
    assert status == EXIT_CHECK and "error: the source refuses batch=1" in out and "net.py:13" in out
    assert [p.name for p in tmp_path.iterdir()] == ["net.py"]
    assert call(f"{net}:frozen", "-o", target, "--only", "reference")[0] == 0
    assert "'seq' is no dynamic dim" in call(f"{net}:forward", "-o", target, "--dim", "seq=1", "--only", "reference")[1]


def test_lint_names_the_branches_and_loops_that_were_decided(tmp_path: Path) -> None:
    (tmp_path / "branchy.py").write_text(
        "import sardonyx as sx\n"
        "def double(y):\n"
        "    return y * 2 if y.ndim == 2 else y\n"
        "@sx.signature('x: f32[batch,4]')\n"
        "def forward(x, scale=None):\n"
        "    width = x.shape[1]\n"
        "    if width > 3:\n"
        "        x = double(x)\n"
        "    for i in range(width):\n"
        "        x = x + i\n"
        "    if scale is None:\n"
        "        x = x + 1\n"
        "    for j in range(2):\n"
        "        x = x + j\n"
        "    return x\n"
    )
    options = ("-o", tmp_path / "x.onnx", "--lint", "--no-verify")
    status, out, _ = call(f"{tmp_path}/branchy.py:forward", *options)
    told = [line.partition("branchy.py:")[2] for line in out.splitlines() if line.startswith("warning: ")]
    assert status == 0 and sorted(int(t.partition(":")[0]) for t in told) == [3, 7, 9]
    assert any("'if width > 3' was decided while tracing" in t for t in told)
    assert any("'for i in range(width)' was unrolled while tracing" in t for t in told)


def test_lint_names_the_line_of_frozen_shapes_and_captured_arrays(net: Path, tmp_path: Path) -> None:
    options = ("-o", tmp_path / "x.onnx", "--lint", "--no-verify")
    out = call(f"{net}:frozen", *options)[1]
    assert "net.py:13: a tensor with dynamic dims is reshaped to the constant shape [2, 8]" in out
    assert "net.py:17: an array of 88800 bytes was captured" in call(f"{net}:captures", *options)[1]
    assert "warning" not in call(f"{net}:forward", *options)[1]


@pytest.mark.parametrize(
    "arguments, text",
    [
        (["{}:branches"], "net.py:21"),
        (["{}:unsigned"], "give one with --signature"),
        (["{}:nobody"], "there is no name in"),
        (["{}:weights"], "neither a function, a torch module, a layer network nor a graph"),
        (["net.txt"], "is no source"),
        (["{}:forward", "--opset", "99"], "opset 99 is not one that Sardonyx writes"),
    ],
)
def test_a_source_that_cannot_be_exported_is_one_message_and_no_file(
    arguments: list[str], text: str, net: Path, tmp_path: Path
) -> None:
    status, out, err = call(*(a.replace("{}", str(net)) for a in arguments), "-o", tmp_path / "x.onnx")
    assert (status, out) == (EXIT_FAILURE, "") and text in err and "Traceback" not in err
    assert [p.name for p in tmp_path.iterdir()] == ["net.py"]


def test_a_layer_network(net: Path, tmp_path: Path) -> None:
    status, out, _ = call(f"{net}:network", "-o", tmp_path / "x.onnx", "--only", "native", "--only", "onnxruntime")
    assert status == 0 and "input: float64[batch, 2]" in out


def test_json(net: Path, tmp_path: Path) -> None:
    status, out, _ = call(f"{net}:forward", "-o", tmp_path / "x.onnx", "--json", "--only", "reference")
    data = json.loads(out)
    assert status == 0 and data["ok"] and data["made"]["inputs"] == ["x: float32[batch, 37]"]


def test_a_torch_module_with_a_named_dim(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "net.py").write_text(
        "import numpy as np, torch\n"
        "torch.manual_seed(0)\n"
        "model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))\n"
        "def example():\n"
        "    return np.ones((2, 4), np.float32)\n"
    )
    inputs = ("--inputs", f"{tmp_path}/net.py:example")
    status, out, _ = call(f"{tmp_path}/net.py:model", "-o", tmp_path / "x.onnx", *inputs)
    assert status == 0 and "axis 0 is frozen at 2; name it with --dynamic input=batch,_" in out
    status, out, _ = call(f"{tmp_path}/net.py:model", "-o", tmp_path / "x.onnx", *inputs, "--dynamic", "input=batch,_")
    assert status == 0 and "input: float32[batch, 4]" in out and "warning" not in out
