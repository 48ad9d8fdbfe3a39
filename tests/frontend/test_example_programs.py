"""Whole programs as users write them, each in a process of its own: trace, run, export, read back, refuse."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

HEAD = """
import tempfile
from pathlib import Path

import sardonyx as sx
from sardonyx import ModelGraph, Transform

WIDTH = 37


def trace_model() -> ModelGraph:
    w = sx.div(sx.sub(sx.arange(0, WIDTH, dtype=sx.float32), 18), 8)
    b = sx.full((WIDTH,), 0.5, dtype=sx.float32)
    signature = [sx.TensorSpec("x", sx.float32, [-1, WIDTH], dim_names=["batch", ""])]
    return sx.trace(lambda inputs: [sx.relu(sx.add(sx.mul(inputs[0], w), b))], signature, output_names=["y"]).graph


def rows(batch: int) -> sx.Tensor:
    return sx.cumsum(sx.ones(batch, WIDTH), 0)


def row_sums(y: sx.Tensor) -> str:
    return " ".join(f"{value:g}" for value in sx.sum(y, [1]).tolist())


def slots(listed) -> str:
    return " | ".join(f"{name} {list(dims)}" for name, _, dims in listed)


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


folder = Path(tempfile.mkdtemp(dir="."))
graph = trace_model()
"""

PROGRAMS: dict[str, tuple[str, list[str]]] = {
    "run": (
        """
        print(slots(graph.inputs()), "->", slots(graph.outputs()))
        print(graph.node("x").output(0).spec().dim_names)
        graph.finalize()
        print(row_sums(graph.run([rows(2)])[0]))
        """,
        ["x [-1, 37] -> y [-1, 37]", "['batch', '']", "31.625 52.5"],
    ),
    "export and read back": (
        """
        path = folder / "elementwise.onnx"
        graph.export_onnx(path)
        back = sx.OnnxModel.open(str(path)).compile()
        print(slots(back.inputs()), "->", slots(back.outputs()), back.node("x").output(0).spec().dim_names)
        graph.finalize()
        back.finalize()
        for batch in (3, 5):
            print(row_sums(graph.run([rows(batch)])[0]), "|", row_sums(back.run([rows(batch)])[0]))
        """,
        [
            "x [-1, 37] -> y [-1, 37] ['batch', '']",
            "31.625 52.5 73.75 | 31.625 52.5 73.75",
            "31.625 52.5 73.75 95 116.375 | 31.625 52.5 73.75 95 116.375",
        ],
    ),
    "in memory": (
        """
        model = sx.OnnxModel.from_graph(graph)
        print(model.num_initializers, files_in(folder))
        back = model.compile()
        back.finalize()
        print(row_sums(back.run([rows(2)])[0]))
        """,
        ["2 []", "31.625 52.5"],
    ),
    "where the weights go": (
        """
        graph.export_onnx(folder / "beside.onnx", save_as_external_data=True)
        graph.export_onnx(folder / "inside.onnx", save_as_external_data=False)
        graph.export_onnx(folder / "default.onnx")
        print(files_in(folder), (folder / "beside_data").stat().st_size)
        back = sx.OnnxModel.open(str(folder / "beside.onnx")).compile()
        back.finalize()
        print(row_sums(back.run([rows(2)])[0]))
        """,
        ["['beside.onnx', 'beside_data', 'default.onnx', 'inside.onnx'] 296", "31.625 52.5"],
    ),
    "options": (
        """
        graph.export_onnx(folder / "a.onnx", opset_version=17, producer_name="my-exporter")
        print(sx.OnnxModel.open(str(folder / "a.onnx")).opset)
        """,
        ["17"],
    ),
    "refusals": (
        """
        path = folder / "refused.onnx"
        try:
            graph.export_onnx(path, opset_version=99)
        except sx.InvalidArgumentError as error:
            print(error.code_name)

        def export_inside(held: ModelGraph) -> None:
            try:
                held.export_onnx(path)
            except sx.InvalidArgumentError as error:
                print(error.code_name, "|", error)

        graph.optimize([Transform("export_inside", export_inside)])
        try:
            graph.export_onnx(3)
        except TypeError as error:
            print(error)
        print(files_in(folder))
        """,
        [
            "INVALID_ARGUMENT",
            "FAILED_PRECONDITION | export_onnx: optimize() is running on this graph; call export_onnx() after it "
            "returns",
            "export_onnx(): path is a str or an os.PathLike, not int",
            "[]",
        ],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, tmp_path: Path):
    body, wanted = PROGRAMS[name]
    path = tmp_path / "program.py"
    path.write_text(HEAD + textwrap.dedent(body))
    done = subprocess.run([sys.executable, "-P", str(path)], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == wanted


def test_from_import_to_a_first_value_nothing_heavy_is_loaded(tmp_path: Path):
    code = """
import sardonyx as sx, sys
graph = sx.trace(lambda x: sx.relu(x @ sx.ones(4, 2)), "x: f32[n,4]").graph
assert graph.evaluate([sx.ones(3, 4)])[0].tolist() == [[4, 4]] * 3
print(sorted({"onnx", "llvmlite", "onnxruntime", "torch"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
