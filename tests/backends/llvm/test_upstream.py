"""Kernels in upstream's dialects: the text, and, where mlir-opt is, the values that MLIR's own lowering computes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from run_opt import run_opt
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

import sardonyx as sx
from sardonyx.backends.llvm.lowering.graph import lower_graph
from sardonyx.backends.llvm.upstream import to_upstream
from sardonyx.dialects.kernel import ops as kernel
from sardonyx.errors import UnsupportedError
from sardonyx.tools.opt_print import PrintOptions, print_module

UPSTREAM = {"builtin", "func", "scf", "memref", "arith", "math", "cf"}
PIPELINE = ["convert-scf-to-cf", "arith-expand", "convert-math-to-llvm", "convert-math-to-libm",
            "finalize-memref-to-llvm", "convert-arith-to-llvm", "convert-cf-to-llvm", "convert-func-to-llvm",
            "reconcile-unrealized-casts"]  # fmt: skip


def tool(name: str) -> str:
    """A tool of MLIR's; the test is skipped where it is not installed."""
    names = (name, *(f"{name}-{version}" for version in range(25, 15, -1)))
    found = next((path for path in map(shutil.which, names) if path), None)
    if found is None:
        pytest.skip(f"no {name} here")
    return found


def pipe(text: str, *command: str) -> str:
    ran = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[:2000]
    return ran.stdout


rng = np.random.default_rng(0)
W = rng.standard_normal((7, 33)).astype(np.float32)
K = rng.standard_normal((5, 3, 3, 3)).astype(np.float32)

GRAPHS = {
    "softmax": (lambda x: sx.softmax(x * 2, axis=-1), "x: f32[5, 9]"),
    "norm": (lambda x: (x - sx.mean(x, axis=-1, keepdims=True)) / sx.max(x, axis=-1, keepdims=True), "x: f32[4, 6]"),
    "matmul": (lambda x: sx.relu(sx.matmul(x, sx.asarray(W)) + 1), "x: f32[6, 7]"),
    "two-matmuls": (lambda x, y: sx.matmul(sx.matmul(x, y), sx.transpose(y, (1, 0))), "x: f32[3, 8], y: f32[8, 4]"),
    "conv": (lambda x: sx.conv(x, sx.asarray(K), pads=1), "x: f32[1, 3, 6, 5]"),
    "moves": (lambda x: sx.transpose(sx.concat([x, sx.exp(x)], axis=0), (1, 0)), "x: f32[3, 4]"),
    "integers": (lambda x: sx.cumsum(sx.remainder(x, 3) * 2 - x // 4, axis=0), "x: i32[17]"),
}  # fmt: skip


def lowered(name: str) -> Any:
    function, signature = GRAPHS[name]
    return lower_graph(sx.trace(function, signature).graph.module)


@pytest.mark.parametrize("name", GRAPHS)
def test_only_upstreams_ops(name: str):
    module = to_upstream(lowered(name).module)
    module.verify()
    assert {op.dialect_name() for op in module.walk()} <= UPSTREAM
    assert [op for op in module.walk() if op.name == "func.func"]


def test_the_target():
    ran = run_opt("-t", "mlir-upstream", stdin="""\
func.func @main(%x: tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>> {
  %0 = sx.exp %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  func.return %0 : tensor<?x3xf32, #sx.dims<n, _>>
}
""")  # fmt: skip
    assert ran.status == 0, ran.err
    assert "memref.load" in ran.out and "math.exp" in ran.out and "kernel." not in ran.out and "sx." not in ran.out
    assert run_opt(stdin=ran.out).out == ran.out


def test_what_has_no_form_is_refused():
    module = lower_graph(sx.trace(lambda x: sx.cast(sx.cast(x, "float8e4m3fn"), "f32"), "x: f32[3]").graph.module)
    with pytest.raises(UnsupportedError, match="has no form in upstream's dialects"):
        to_upstream(module.module)


@pytest.mark.parametrize("name", GRAPHS)
def test_values_of_mlirs_own_lowering(name: str):
    """The kernels, lowered by mlir-opt, run in the plan's order; the reference has the same values."""
    function, signature = GRAPHS[name]
    graph = sx.trace(function, signature).graph
    low = lower_graph(graph.module)
    text = print_module(to_upstream(low.module), PrintOptions())
    checked = pipe(text, tool("mlir-opt"), *(f"--{one}" for one in PIPELINE))
    library = compile_text(pipe(checked, tool("mlir-translate"), "--mlir-to-llvmir"))
    inputs = [random(argument) for argument in graph.input_specs()]
    want = [np.asarray(o) for o in graph.evaluate(inputs)]
    got = run_plan(low, library, inputs, want)
    for a, b in zip(got, want, strict=True):
        if b.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)
        else:
            np.testing.assert_array_equal(a, b)


def random(spec: Any) -> Any:
    shape = tuple(spec.dims)
    if spec.dtype.is_float:
        return rng.standard_normal(shape).astype(np.float32)
    return rng.integers(-9, 9, shape).astype(np.int32)


def compile_text(text: str) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(text)
    machine = llvm.Target.from_default_triple().create_target_machine(opt=1)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


def run_plan(low: Any, library: Any, inputs: list[Any], want: list[Any]) -> list[Any]:
    """Run the launches in order. Buffers are generous: a plan's sizes are not what is tested here."""
    plan = next(op for op in low.module.walk() if isinstance(op, kernel.PlanOp))
    values: dict[SSAValue, Any] = {}
    outputs = [np.zeros_like(one).reshape(-1) for one in want]
    for op in plan.body.block.ops:
        match op:
            case kernel.InputOp():
                values[op.result] = np.ascontiguousarray(inputs[op.number.value.data]).reshape(-1)
            case kernel.OutputOp():
                values[op.results[0]] = outputs[op.number.value.data]
            case kernel.WeightOp():
                entry = low.constants[op.number.value.data]
                array = entry.array() if hasattr(entry, "array") else np.asarray(entry)
                values[op.results[0]] = np.ascontiguousarray(array).reshape(-1)
            case kernel.AllocOp():
                values[op.results[0]] = np.zeros(1 << 16, np.float32)
            case arith.ConstantOp() if isinstance(op.value, IntegerAttr):
                values[op.result] = op.value.value.data
            case arith.MuliOp() | kernel.MulSaturatingOp():
                values[op.results[0]] = values[op.operands[0]] * values[op.operands[1]]
            case arith.AddiOp():
                values[op.result] = values[op.lhs] + values[op.rhs]
            case arith.SubiOp():
                values[op.result] = values[op.lhs] - values[op.rhs]
            case kernel.LaunchOp():
                launch(library, op.callee.root_reference.data, [values[v] for v in op.args])
            case kernel.CopyOp():
                source, target = values[op.operands[0]], values[op.operands[1]]
                target[: source.size] = source
            case _:
                assert op.name in ("kernel.input_dim", "kernel.yield", "kernel.require", "arith.cmpi"), op.name
    return [a.reshape(b.shape) for a, b in zip(outputs, want, strict=True)]


def launch(library: Any, name: str, arguments: list[Any]) -> None:
    flat: list[int] = []
    for one in arguments:
        if isinstance(one, int):
            flat.append(one)
        else:  # a memref of one dimension: two pointers, offset, size, stride
            flat += [one.ctypes.data, one.ctypes.data, 0, one.size, 1]
    address = library.get_function_address(name)
    ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(flat))(address)(*flat)
