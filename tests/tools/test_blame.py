"""`sardonyx blame`: the chain from today's op over patterns and passes to the user's line or the model's node."""

from __future__ import annotations

import io
import json
from pathlib import Path

import onnx
import onnx.helper as oh
import pytest

from sardonyx.tools import cli

SOURCE = """import sardonyx as sx

def net(x):
    a = sx.transpose(x, (1, 0))
    b = sx.relu(a)
    c = sx.transpose(b, (1, 0))
    return c * 2.0
"""


def run(*arguments: object) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return cli.run(["blame", *map(str, arguments)], out, err), out.getvalue(), err.getvalue()


@pytest.fixture
def net(tmp_path: Path) -> str:
    path = tmp_path / "net.py"
    path.write_text(SOURCE)
    return f"{path}:net"


def test_from_an_op_to_the_users_line(net):
    status, text, _ = run(net, "sx.relu", "-p", "compose-transposes", "--signature", "x: f32[n,3]")
    assert status == 0
    lines = text.splitlines()
    assert lines[0].endswith("sx.relu : tensor<?x3xf32, #sx.dims<n, _>>")
    assert lines[1] == "  made by compose-transposes:through-elementwise, from sx.relu, rewrite 1"
    assert "net.py:5" in lines[2] and lines[3] == "       b = sx.relu(a)"


def test_by_line_by_output_and_what_is_gone(net):
    signature = ("--signature", "x: f32[n,3]")
    status, text, _ = run(net, "net.py:5", *signature)
    assert status == 0 and "sx.relu" in text and "made by" not in text
    status, text, _ = run(net, "net.py:4", "-p", "compose-transposes,remove-dead-nodes", *signature)
    assert status == 0 and "net.py:4" in text
    status, text, _ = run(net, "sx.transpose", "-p", "compose-transposes", *signature)
    assert status == 0 and "'sx.transpose' is no longer there: compose-transposes:remove" in text
    status, _, err = run(net, "%99", *signature)
    assert status == 1 and "there is no '%99' in the result" in err


def test_nodes_of_a_model_and_json(tmp_path):
    nodes = [oh.make_node("Identity", ["x"], ["i"], name="front"), oh.make_node("Exp", ["i"], ["e"], name="exp"),
             oh.make_node("Neg", ["e"], ["y"], name="back")]  # fmt: skip
    graph = oh.make_graph(
        nodes, "g", [oh.make_tensor_value_info("x", 1, ["n"])], [oh.make_tensor_value_info("y", 1, ["n"])]
    )
    path = tmp_path / "m.onnx"
    onnx.save(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9), path)
    status, text, _ = run(path, "y")
    assert status == 0 and "sx.neg" in text and "  from node 'back'" in text
    status, text, _ = run(path, "exp", "-p", "simplify", "--json")
    found = json.loads(text)
    assert status == 0 and found["ops"][0]["op"] == "sx.exp" and found["ops"][0]["origins"] == ["node 'exp'"]
    status, text, _ = run(path, "front", "-p", "simplify", "--json")
    assert json.loads(text)["removed"][0]["pattern"] == "no-op"
    assert run(path, "x")[0] == 1
