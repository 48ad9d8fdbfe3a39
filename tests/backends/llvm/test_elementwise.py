"""Native elementwise ops against the reference: all ops, dtypes and special values; shapes and broadcasting; fusion."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from three_ways import MODES, Case, Graph, both_refuse, build, case, check_all, sample, specials
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.build import emit_module
from sardonyx.backends.llvm.compile import compile_module
from sardonyx.backends.llvm.lowering.graph import lower_graph
from sardonyx.backends.llvm.runtime import jit
from sardonyx.dialects.attributes import tensor_type
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dtypes import ALL, DType, float16, float32
from sardonyx.dialects.evaluate import evaluate_function
from sardonyx.dialects.kernel.ops import KernelFuncOp, LoopOp
from sardonyx.dialects.module import create_module, main_function, set_outputs
from sardonyx.dialects.sx import OPS, activation, binary, cast, compare, logical, select, unary, variadic
from sardonyx.dialects.sx.constant import ConstantOp

Array = np.ndarray[Any, Any]
NAMES = [d.name for d in ALL]
UNARY = [op for op in OPS if issubclass(op, unary.UnaryOp)]
BINARY = [op for op in OPS if issubclass(op, binary.BinaryOp) and op is not binary.PowOp]
SIZES: list[tuple[int, ...]] = [(), (0,), (1,), (7,), (8,), (9,), (33,), (1000,), (2, 0, 3), (3, 5, 7), (4, 1, 9)]
"""Around a vector's width, beyond an unrolled step, without elements, and of several dims."""


def takes(op: type[SxOp], dtype: str) -> bool:
    return DType.of(dtype) in op.DTYPES  # pyright: ignore[reportAttributeAccessIssue]


def pairs(a: Array, b: Array) -> tuple[Array, Array]:
    """Every element of one with every element of the other."""
    return np.repeat(a, b.size), np.tile(b, a.size)


def variants(op: type[SxOp]) -> list[dict[str, Any]]:
    """The properties to test an op with."""
    return {
        binary.ModOp: [{"fmod": True}, {"fmod": False}],
        binary.BitShiftOp: [{"direction": "LEFT"}, {"direction": "RIGHT"}],
        activation.GeluOp: [{}, {"approximate": "tanh"}],
        activation.LeakyReluOp: [{}, {"alpha": -0.3}],
        activation.EluOp: [{"alpha": 2.5}],
        activation.CeluOp: [{}, {"alpha": 0.7}],
        activation.HardSigmoidOp: [{"alpha": 0.3, "beta": 0.4}],
        activation.SwishOp: [{}, {"alpha": 1.5}],
        activation.ShrinkOp: [{"lambd": 1.5, "bias": 0.75}],
        unary.IsInfOp: [{}, {"detect_negative": False}, {"detect_positive": False}],
    }.get(op, [{}])


# ---- every op on every dtype; sizes are symbols, so that the same kernel serves both operands


@pytest.mark.parametrize("dtype", NAMES)
def test_every_op_of_one_operand(dtype: str) -> None:
    x, y = specials(dtype), sample(dtype, 1003, low=-20, high=20)
    cases = [case(op, v, **p) for op in UNARY if takes(op, dtype) for p in variants(op) for v in (x, y)]
    check_all(cases, ("shared",))


@pytest.mark.parametrize("dtype", NAMES)
def test_every_op_of_two_operands(dtype: str) -> None:
    a, b = pairs(specials(dtype), specials(dtype))
    cases = [case(op, a, b, **p) for op in BINARY if takes(op, dtype) for p in variants(op)]
    if takes(activation.PReluOp, dtype):
        cases.append(case(activation.PReluOp, a, b))
    check_all(cases, ("shared",))


@pytest.mark.parametrize("dtype", [d.name for d in binary.PowOp.DTYPES])
def test_powers_of_all_exponent_dtypes(dtype: str) -> None:
    cases = [case(binary.PowOp, *pairs(specials(dtype), specials(e))) for e in NAMES if e != "bool"]
    check_all(cases, ("shared",))


def test_powers_by_constants_that_have_a_shorter_form() -> None:
    for dtype in ("float32", "float64", "float16"):
        x = specials(dtype)
        block_inputs = [("x", tensor_type(DType.of(dtype), x.shape), None)]
        module, block = create_module("powers", block_inputs)
        results: list[SSAValue] = []
        for exponent in (-1.0, 0.5, 1.0, 2.0, 3.0, 0.0, 4.0):
            constant = ConstantOp.dense(np.array(exponent, x.dtype))
            op = binary.PowOp.make(block.args[0], constant.output)
            block.add_ops([constant, op])
            results.append(op.output)
        set_outputs(module, results, [f"y{i}" for i in range(len(results))])
        close(module, [x], 4.0)


@pytest.mark.parametrize("source", NAMES)
def test_casts(source: str) -> None:
    x = specials(source)
    cases = [case(cast.CastOp, x, to=DType.of(target)) for target in NAMES]
    cases += [case(cast.CastLikeOp, x, sample(target, 2, 3)) for target in ("float16", "int8", "bool")]
    check_all(cases, ("shared",))


def test_large_integers_round_once_to_16_bits() -> None:
    rng = np.random.default_rng(7)
    near = (rng.integers(1, 256, 4000) << rng.integers(0, 56, 4000)) + rng.integers(-2, 3, 4000)
    ties = (np.arange(129, 256) << 48) + (1 << 47) + np.arange(127) % 3 - 1
    x = np.concatenate([near, ties, -ties]).astype(np.int64)
    cases = [case(cast.CastOp, v, to=DType.of(t)) for v in (x, x.astype(np.uint64)) for t in ("bfloat16", "float16")]
    check_all([*cases, case(cast.CastOp, x, to=float32)], ("shared",))


def test_doubles_round_once_to_16_bits() -> None:
    rng = np.random.default_rng(8)
    single = rng.uniform(-65000, 65000, 4000).astype(np.float16).astype(np.float64)
    step = np.spacing(np.abs(single).astype(np.float16)).astype(np.float64)
    x = single + step / 2 * (1 + rng.choice([-1, 0, 1], single.size) * 2.0**-40)
    cases = [case(cast.CastOp, x * scale, to=DType.of(t)) for t in ("float16", "bfloat16") for scale in (1.0, 1e-9)]
    check_all(cases, ("shared",))


@pytest.mark.parametrize("dtype", [d.name for d in variadic.MaxOp.DTYPES])
def test_ops_of_any_number_of_operands(dtype: str) -> None:
    a, b = pairs(specials(dtype), specials(dtype))
    ops = [op for op in (variadic.MaxOp, variadic.MinOp, variadic.SumOp, variadic.MeanOp) if takes(op, dtype)]
    check_all([case(op, xs) for op in ops for xs in ([a], [a, b], [a, b[::-1], sample(dtype, 1)])], ("shared",))


@pytest.mark.parametrize("dtype", [d.name for d in select.ClipOp.DTYPES])
def test_clip_and_where(dtype: str) -> None:
    x = specials(dtype)
    one, three = (np.array(n, x.dtype) for n in (1, 3))
    bounds: list[tuple[Array | None, Array | None]] = [(one, three), (three, one), (one, None), (None, three)]
    if DType.of(dtype).is_float:
        bounds += [(np.array(np.nan, x.dtype), three), (one, np.array(np.nan, x.dtype))]
    cases = [case(select.ClipOp, x, low, high) for low, high in bounds]
    cases += [case(select.ClipOp, x), case(select.WhereOp, sample("bool", x.size), x, x[::-1])]
    check_all(cases, ("shared",))


# ---- shapes


@pytest.mark.parametrize("mode", MODES)
def test_shapes(mode: str) -> None:
    cases: list[Case] = []
    for shape in SIZES:
        cases.append(case(binary.AddOp, sample("float32", *shape), sample("float32", *shape, seed=1)))
        cases.append(case(unary.ExpOp, sample("float32", *shape)))
        cases.append(case(compare.LessOp, sample("int8", *shape), sample("int8", *shape, seed=1)))
        cases.append(case(logical.XorOp, sample("bool", *shape), sample("bool", *shape, seed=1)))
    check_all(cases, (mode,))


BROADCASTS = [
    [(3, 5), (5,)], [(3, 5), (3, 1)], [(5,), (3, 1)], [(), (3, 5)], [(3, 5), (1, 1)], [(2, 3, 5, 7), (3, 1, 7)],
    [(2, 1, 5, 1), (3, 1, 7)], [(1, 9), (4, 1)], [(0, 3), (1, 3)], [(0, 1), (3,)], [(1,), (33,)], [(8, 37), (37,)],
    [(4, 1, 9), (4, 3, 9)], [(2, 3, 4), (2, 3, 4)],
]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_broadcasting(mode: str) -> None:
    cases: list[Case] = []
    for a, b in BROADCASTS:
        x, y = sample("float32", *a), sample("float32", *b, seed=1)
        cases += [case(binary.SubOp, x, y), case(variadic.MaxOp, [y, x, sample("float32", 1)])]
        cases.append(case(select.WhereOp, sample("bool", *b), x, sample("float32")))
    check_all(cases, (mode,))


def test_extents_that_do_not_fit_end_the_run() -> None:
    x, y = sample("float32", 3, 5), sample("float32", 3, 4)
    for message in both_refuse(binary.AddOp, x, y):
        assert "5" in message and "4" in message
    both_refuse(variadic.MaxOp, [x, sample("float32", 5), sample("float32", 2, 1, 4)])
    both_refuse(activation.PReluOp, sample("float32", 1, 5), sample("float32", 3, 5))
    both_refuse(select.WhereOp, sample("bool", 4), x, x)


# ---- how kernels are formed


def kernels(graph: Graph) -> list[KernelFuncOp]:
    return [op for op in lower_graph(graph.module).module.body.block.ops if isinstance(op, KernelFuncOp)]


def loop_depth(op: Any) -> int:
    """How deeply loops are nested in an op's regions."""
    inside = [loop_depth(o) for region in op.regions for block in region.blocks for o in block.ops]
    return max(inside, default=0) + isinstance(op, LoopOp)


def test_equal_shapes_are_one_flat_loop() -> None:
    x = sample("float32", 8, 37)
    for mode in ("static", "shared"):
        (kernel,) = kernels(build([case(binary.AddOp, x, x)], mode))
        assert loop_depth(kernel) == 1
    (kernel,) = kernels(build([case(binary.AddOp, x, sample("float32", 37))], "shared"))
    assert loop_depth(kernel) == 2
    # Equal or not is for the run to say: there are two forms, and the one for equal extents is flat.
    (kernel,) = kernels(build([case(binary.AddOp, x, x)], "dynamic"))
    forms = [op for op in kernel.body.block.ops if op.regions]
    assert len(forms) == 1
    flat, general = (max(loop_depth(o) for o in region.block.ops) for region in forms[0].regions)
    assert (flat, general) == (1, 2)


def close(module: Any, feeds: Sequence[Array], ulps: float = 0.0) -> Any:
    """Compile a graph, compare its outputs with the reference's, and return it."""
    from three_ways import compare as differ
    from tolerances import Tolerance

    expected = evaluate_function(main_function(module), feeds)
    graph = compile_module(module)
    for got, want in zip(graph.run(feeds), expected, strict=True):
        problem = differ("chain", got, np.asarray(want), Tolerance(ulps))
        assert problem is None, problem
    return graph


def test_a_chain_is_one_kernel_and_rounds_after_each_op() -> None:
    module, block = create_module("chain", [("x", tensor_type(float16, ["n", 5]), None)])
    w = ConstantOp.dense(sample("float16", 5))
    ops: list[Any] = [w]
    value: SSAValue = block.args[0]
    for step in range(8):
        made = (binary.MulOp if step % 2 else binary.AddOp).make(value, w.output)
        ops.append(made)
        value = made.output
    block.add_ops(ops)
    set_outputs(module, [value], ["y"])
    x = sample("float16", 33, 5)
    graph = close(module, [x])
    assert graph.kernels_launched == 1


def test_a_value_that_others_use_is_computed_once() -> None:
    module, block = create_module("shared", [("x", tensor_type(float32, ["n"]), None)])
    e = unary.ExpOp.make(block.args[0])
    a = binary.AddOp.make(e.output, e.output)
    b = binary.MulOp.make(e.output, a.output)
    block.add_ops([e, a, b])
    set_outputs(module, [b.output, a.output], ["b", "a"])
    graph = close(module, [sample("float32", 100)], 4.0)
    assert graph.kernels_launched == 3


def test_what_is_the_same_for_all_points_stands_before_the_loop() -> None:
    x = sample("float32", 100)
    low, high = np.array(-1, np.float32), np.array(1, np.float32)
    (kernel,) = kernels(build([case(select.ClipOp, x, low, high)], "shared"))
    loop = next(op for op in kernel.body.block.ops if isinstance(op, LoopOp))
    assert sum(op.name == "kernel.load" for op in loop.body.block.ops) == 1
    assert sum(op.name == "kernel.load" for op in kernel.body.block.ops) == 2


# ---- machine code


def test_kernels_call_nothing() -> None:
    """No function of libm, no helper of the compiler's runtime: neither per element nor at all."""
    cases: list[Case] = []
    for dtype in ("float32", "float64", "int64", "uint64"):
        x = specials(dtype)
        cases += [case(op, x, **variants(op)[0]) for op in UNARY if takes(op, dtype)]
        cases += [case(op, x, x, **p) for op in BINARY if takes(op, dtype) for p in variants(op)]
        cases += [case(cast.CastOp, x, to=DType.of(t)) for t in NAMES if DType.of(t).bits != 32]
        if takes(binary.PowOp, dtype):
            cases += [case(binary.PowOp, x, x)]
    lowered = lower_graph(build(cases, "shared").module)
    text, _ = emit_module(lowered)
    names = {op.sym_name.data for op in lowered.module.body.block.ops if isinstance(op, KernelFuncOp)}
    found: dict[str, list[str]] = {}
    function = ""
    for line in jit.to_assembly(text).splitlines():
        label = re.match(r"\"?([A-Za-z_][\w.]*)\"?:", line)
        if label:
            function = label.group(1)
        elif re.match(r"\s+(call|bl|blr|jmp\s+[A-Za-z_]\w*@PLT)", line) and function in names:
            found.setdefault(function, []).append(line.strip())
    assert len(names) > 100 and not found


def test_intrinsics_are_those_that_are_instructions() -> None:
    x = specials("float32")
    cases = [case(op, x, **variants(op)[0]) for op in UNARY if takes(op, "float32")]
    text, _ = emit_module(lower_graph(build(cases, "shared").module))
    called = set(re.findall(r"call [^@]*@(llvm\.[a-z]+)", str(text)))
    transcendental = {f"llvm.{f}" for f in ("exp", "log", "sin", "cos", "tan", "pow", "tanh", "frem", "fmod")}
    assert not called & transcendental


def test_a_value_whose_readers_are_all_in_one_group_joins_it() -> None:
    module, block = create_module("diamond", [("x", tensor_type(float32, ["n"]), None)])
    e = unary.ExpOp.make(block.args[0])
    a = binary.AddOp.make(e.output, e.output)
    b = binary.MulOp.make(e.output, a.output)
    block.add_ops([e, a, b])
    set_outputs(module, [b.output], ["b"])
    graph = close(module, [sample("float32", 100)], 4.0)
    assert graph.kernels_launched == 1
