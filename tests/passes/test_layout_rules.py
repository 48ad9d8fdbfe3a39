"""Each layout rule against the reference: an op that is given a label computes the same, for every permutation.

Here labels are forced, whether they pay or not; `test_compose_transposes` tests which are chosen.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from ir_text import evaluate
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import rank_of, tensor_type
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.module import create_module, main_function, set_outputs
from sardonyx.dialects.sx import BY_NAME, OPS
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.transpose import TransposeOp
from sardonyx.passes.base import PassRun
from sardonyx.passes.layout import Layout
from sardonyx.passes.layout_apply import LayoutRewriter
from sardonyx.passes.layout_parts import Label
from sardonyx.passes.layout_rules import rule_of

Spec = Any


@dataclass
class Operand:
    """An input of the graph of that shape, or a constant of those contents."""

    shape: tuple[int, ...] | None = None
    dtype: str = "float32"
    value: Any = None

    @property
    def rank(self) -> int:
        return len(self.shape) if self.shape is not None else np.asarray(self.value).ndim


def x(*shape: int, dtype: str = "float32") -> Operand:
    return Operand(shape, dtype)


def ints(*values: int) -> Operand:
    return Operand(value=np.array(values, np.int64))


def number(value: float, dtype: str = "float32") -> Operand:
    return Operand(value=np.array(value, dtype))


def build(name: str, operands: list[Operand | None], props: dict[str, Any], dynamic: bool, results: int) -> ModuleOp:
    """A graph of the op; its data operands are inputs, with named dims if `dynamic`."""
    inputs = [o for o in operands if o is not None and o.shape is not None]
    types = []
    for number_, operand in enumerate(inputs):
        vector = operand.dtype == "int64" and operand.rank == 1  # axes and the like, whose number is always known
        dims = [f"d{d}" if dynamic and d > 1 and not vector else d for d in operand.shape or ()]
        types.append((f"x{number_}", tensor_type(DType.of(np.dtype(operand.dtype)), dims), None))
    module, block = create_module("g", types)
    arguments = iter(block.args)
    slots: list[SSAValue | None] = []
    for operand in operands:
        if operand is None:
            slots.append(None)
        elif operand.shape is not None:
            slots.append(next(arguments))
        else:
            constant = ConstantOp.dense(np.asarray(operand.value))
            block.add_op(constant)
            slots.append(constant.output)
    cls = BY_NAME[name]
    definition = cls.get_irdl_definition().operands
    if len(definition) == 1 and len(slots) > 1:  # variadic
        op = cls.make([s for s in slots if s is not None], **props)
    else:
        op = cls.make(*slots, results=results, **props)
    block.add_op(op)
    set_outputs(module, list(op.results), [f"y{i}" for i in range(len(op.results))])
    return module


def find(module: ModuleOp, name: str) -> SxOp:
    return next(op for op in module.walk() if isinstance(op, SxOp) and op.name == name)


def random_inputs(operands: list[Operand | None]) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    out = []
    for operand in operands:
        if operand is None or operand.shape is None:
            continue
        if operand.dtype == "bool":
            out.append(rng.random(operand.shape) < 0.5)
        elif operand.dtype.startswith("int"):
            out.append(rng.integers(0, 2, operand.shape).astype(operand.dtype))
        else:
            out.append(rng.normal(size=operand.shape).astype(operand.dtype))
    return out


CASES: dict[str, tuple[str, list[Operand | None], dict[str, Any]]] = {
    "relu": ("relu", [x(2, 3, 4)], {}),
    "add same rank": ("add", [x(2, 3, 4), x(2, 3, 4)], {}),
    "add vector": ("add", [x(2, 3, 4), x(4)], {}),
    "add matrix": ("add", [x(3, 4), x(2, 3, 4)], {}),
    "add scalar": ("add", [x(2, 3, 4), number(2.0)], {}),
    "add ones": ("add", [x(2, 3, 4), x(1, 3, 1)], {}),
    "add ones both": ("add", [x(2, 1, 4), x(1, 3, 1)], {}),
    "add small constant": ("add", [x(2, 3, 4), Operand(value=np.arange(12, dtype=np.float32).reshape(3, 4))], {}),
    "add empty": ("add", [x(2, 0, 4), x(4)], {}),
    "where": ("where", [x(2, 1, 4, dtype="bool"), x(3, 4), x(2, 3, 1)], {}),
    "clip": ("clip", [x(2, 3, 4), number(-0.5), None], {}),
    "prelu": ("prelu", [x(2, 3, 4), x(3, 1)], {}),
    "sum": ("sum", [x(2, 3, 4), x(4), x(3, 1)], {}),
    "cast": ("cast", [x(2, 3, 4)], {"to": DType.of(np.dtype(np.int32))}),
    "cast_like": ("cast_like", [x(2, 3, 4), x(5, dtype="int64")], {}),
    "softmax": ("softmax", [x(2, 3, 4)], {}),
    "log_softmax": ("log_softmax", [x(2, 3, 4)], {"axis": 1}),
    "hardmax": ("hardmax", [x(2, 3, 4)], {"axis": -3}),
    "lp_normalization": ("lp_normalization", [x(2, 3, 4)], {"axis": 1}),
    "cumsum": ("cumsum", [x(2, 3, 4), Operand(value=np.array(-1, np.int64))], {"reverse": True}),
    "cumsum vector": ("cumsum", [x(2, 3, 4), ints(0)], {"exclusive": True}),
    "reduce keep": ("reduce_max", [x(2, 3, 4), ints(0, -1)], {}),
    "reduce drop": ("reduce_max", [x(2, 3, 4, 5), ints(-2)], {"keepdims": False}),
    "reduce drop two": ("reduce_min", [x(2, 3, 4, 5), ints(1, 3)], {"keepdims": False}),
    "reduce all": ("reduce_max", [x(2, 3, 4)], {"keepdims": False}),
    "reduce all stated": ("reduce_max", [x(2, 3, 4), ints(2, 0, 1)], {}),
    "reduce none": ("reduce_max", [x(2, 3, 4), ints()], {"noop_with_empty_axes": True}),
    "reduce_sum": ("reduce_sum", [x(2, 3, 4, dtype="int32"), ints(1)], {"keepdims": False}),
    "arg_max": ("arg_max", [x(2, 3, 4)], {"axis": 1, "keepdims": False}),
    "arg_min": ("arg_min", [x(2, 3, 4)], {"axis": -1, "select_last_index": True}),
    "squeeze": ("squeeze", [x(2, 1, 4, 1), ints(-1)], {}),
    "squeeze two": ("squeeze", [x(2, 1, 4, 1), ints(3, 1)], {}),
    "squeeze absent": ("squeeze", [x(2, 1, 4, 1), None], {}),
    "unsqueeze": ("unsqueeze", [x(2, 3, 4), ints(1)], {}),
    "unsqueeze ends": ("unsqueeze", [x(2, 3), ints(0, -1)], {}),
    "concat": ("concat", [x(2, 3, 4), x(2, 5, 4), x(2, 0, 4)], {"axis": -2}),
    "concat last": ("concat", [x(2, 3, 1), x(2, 3, 4)], {"axis": 2}),
    "split": ("split", [x(2, 6, 4), ints(1, 2, 3)], {"axis": -2}),
    "split equal": ("split", [x(2, 3, 4), None], {"axis": 2, "num_outputs": 2}),
    "pad": ("pad", [x(2, 3, 4), ints(1, 2, 0, 0, 3, 5), None, None], {}),
    "pad value": ("pad", [x(2, 3, 4), ints(1, -1, 0, 0, 3, 5), number(7.0), None], {}),
    "pad axes": ("pad", [x(2, 3, 4), ints(2, 1), None, ints(-1)], {"mode": "edge"}),
    "pad run time": ("pad", [x(2, 3, 4), x(6, dtype="int64"), None, None], {}),
    "pad axes run time": ("pad", [x(2, 3, 4), x(2, dtype="int64"), None, ints(1)], {"mode": "reflect"}),
    "slice": ("slice", [x(2, 3, 4), ints(0, 1), ints(2, -1), ints(0, -1), ints(1, 2)], {}),
    "slice no axes": ("slice", [x(2, 3, 4), ints(1, 0), ints(9, 2), None, None], {}),
    "slice back": ("slice", [x(2, 3, 4), ints(-1), ints(-9), ints(1), ints(-1)], {}),
    "slice run time": ("slice", [x(2, 3, 4), x(1, dtype="int64"), ints(3), ints(2), None], {}),
    "expand": ("expand", [x(2, 1, 4), ints(2, 3, 4)], {}),
    "expand rank": ("expand", [x(3, 1), ints(2, 3, 4)], {}),
    "tile": ("tile", [x(2, 3, 4), ints(1, 2, 3)], {}),
    "tile run time": ("tile", [x(2, 3, 4), x(3, dtype="int64")], {}),
    "gather": ("gather", [x(2, 3, 4), Operand(value=np.array([[0, -1], [1, 1]]))], {"axis": 1}),
    "gather scalar": ("gather", [x(2, 3, 4), Operand(value=np.array(1))], {"axis": -2}),
    "gather_elements": ("gather_elements", [x(2, 3, 4), x(2, 2, 4, dtype="int64")], {"axis": 1}),
    "matmul": ("matmul", [x(2, 3, 4, 5), x(2, 3, 5, 6)], {}),
    "matmul broadcast": ("matmul", [x(2, 3, 4, 5), x(3, 5, 6)], {}),
    "matmul matrix": ("matmul", [x(2, 4, 5), x(5, 6)], {}),
    "matmul 2-d": ("matmul", [x(4, 5), x(5, 6)], {}),
    "gemm": ("gemm", [x(4, 5), x(5, 6), x(6)], {"alpha": 0.5, "beta": 2.0}),
    "gemm flags": ("gemm", [x(5, 4), x(6, 5), x(4, 1)], {"transA": True, "transB": True}),
    "gemm matrix": ("gemm", [x(4, 5), x(6, 5), x(4, 6)], {"transB": True}),
    "gemm alone": ("gemm", [x(4, 5), x(5, 6), None], {}),
    "batch_norm": ("batch_norm", [x(2, 3, 4, 5), x(3), x(3), x(3), Operand(value=np.ones(3, np.float32))], {}),
    "lrn": ("lrn", [x(2, 3, 4, 5)], {"size": 3}),
    "instance_norm": ("instance_norm", [x(2, 3, 4, 5), x(3), x(3)], {}),
    "group_norm": ("group_norm", [x(2, 4, 3, 5), x(4), x(4)], {"num_groups": 2}),
    "layer_norm": ("layer_norm", [x(2, 3, 4), x(4), x(4)], {}),
    "rms_norm": ("rms_norm", [x(2, 3, 4), x(4)], {}),
}  # fmt: skip

NEVER = {"layer_norm", "rms_norm", "batch_norm", "lrn", "instance_norm", "group_norm", "matmul", "matmul broadcast",
         "matmul matrix"}  # fmt: skip
"""Those that refuse some permutations."""


def labels_of(op: SxOp) -> set[tuple[int, ...]]:
    """All labels that the op's rule offers for any permutation of an operand or a result."""
    rule = rule_of(op)
    assert rule is not None
    found: set[tuple[int, ...]] = set()
    for function, values in ((rule.from_operand, op.operands), (rule.from_result, op.results)):
        for index, value in enumerate(values):
            for perm in itertools.permutations(range(rank_of(value))):
                if perm != tuple(range(len(perm))):
                    label = function(op, index, perm)
                    if label is not None:
                        found.add(label)
    return found


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("case", CASES)
def test_every_label_keeps_the_values(case, dynamic):
    if case == "squeeze absent" and dynamic:
        pytest.skip("unranked, so it gets no label")
    name, operands, props = CASES[case]
    results = 3 if case == "split" else 2
    inputs = random_inputs(operands)
    make: Callable[[], ModuleOp] = lambda: build(f"sx.{name}", operands, props, dynamic, results)  # noqa: E731
    want = evaluate(make(), inputs)
    labels = labels_of(find(make(), f"sx.{name}"))
    assert labels, "the rule offers nothing"
    refused = 0
    for perm in sorted(labels):
        module = make()
        op = find(module, f"sx.{name}")
        block = main_function(module).body.block
        run = PassRun(pass_name="t", verify=True)
        layout = Layout(block, set(), run)
        rule = rule_of(op)
        assert rule is not None
        plan = rule.plan(op, perm)
        if isinstance(plan, str):
            refused += 1
            continue
        layout.set_label(op, Label(perm, plan, rule, ()))
        LayoutRewriter(block, layout, run).apply()
        module.verify()
        got = evaluate(module, inputs)
        for a, b in zip(want, got, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=2e-7, atol=0)
    assert bool(refused) == (case in NEVER), f"{refused} of {len(labels)} labels were refused"


@pytest.mark.parametrize("case", CASES)
def test_from_result_gives_the_wanted_result(case):
    name, operands, props = CASES[case]
    op = find(build(f"sx.{name}", operands, props, False, 3 if case == "split" else 2), f"sx.{name}")
    rule = rule_of(op)
    assert rule is not None
    for index, result in enumerate(op.results):
        for perm in itertools.permutations(range(rank_of(result))):
            label = rule.from_result(op, index, perm)
            plan = None if label is None else rule.plan(op, label)
            if plan is not None and not isinstance(plan, str):
                assert plan.results[index] == perm


def absorbing(name: str, operands: list[Operand | None], perms: list[tuple[int, ...] | None], **props: Any) -> None:
    """The op with transposed operands takes the transposes up."""
    module = build(f"sx.{name}", operands, props, False, 1)
    op = find(module, f"sx.{name}")
    for i, perm in enumerate(perms):
        if perm is not None:
            transpose = TransposeOp.make(op.operands[i], perm=perm)
            main_function(module).body.block.insert_op_before(transpose, op)
            op.operands[i] = transpose.output
    for result, ty in zip(op.results, op.infer(), strict=True):
        result._type = ty
    set_outputs(module, list(op.results), [f"y{i}" for i in range(len(op.results))])
    inputs = random_inputs(operands)
    want = evaluate(module, inputs)
    run = PassRun(pass_name="t", verify=True)
    block = main_function(module).body.block
    LayoutRewriter(block, Layout(block, set(), run), run).apply()
    module.verify()
    assert not [o for o in module.walk() if isinstance(o, TransposeOp)]
    for a, b in zip(want, evaluate(module, inputs), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("which", [(True, False), (False, True), (True, True)])
def test_gemm_takes_up_transposes(trans_a, trans_b, which):
    a = x(5, 4) if trans_a ^ which[0] else x(4, 5)
    b = x(6, 5) if trans_b ^ which[1] else x(5, 6)
    gemm_with_transposes([a, b, x(6)], [(1, 0) if flip else None for flip in which], trans_a, trans_b)


def gemm_with_transposes(
    operands: list[Operand | None], perms: list[tuple[int, ...] | None], trans_a: bool, trans_b: bool
) -> None:
    types = [
        (f"x{i}", tensor_type(DType.of(np.dtype(o.dtype)), o.shape or ()), None) for i, o in enumerate(operands) if o
    ]
    module, block = create_module("g", types)
    values: list[SSAValue] = list(block.args)
    for i, perm in enumerate(perms):
        if perm is not None:
            transpose = TransposeOp.make(values[i], perm=perm)
            block.add_op(transpose)
            values[i] = transpose.output
    op = BY_NAME["sx.gemm"].make(*values, transA=trans_a, transB=trans_b)
    block.add_op(op)
    set_outputs(module, [op.results[0]], ["y"])
    inputs = random_inputs(operands)
    want = evaluate(module, inputs)
    run = PassRun(pass_name="t", verify=True)
    LayoutRewriter(block, Layout(block, set(), run), run).apply()
    module.verify()
    assert not [o for o in module.walk() if isinstance(o, TransposeOp)]
    np.testing.assert_array_equal(want[0], evaluate(module, inputs)[0])


@pytest.mark.parametrize("props", [{}, {"start": 1}, {"start": -2, "end": 3}, {"end": 0}])
def test_shape_reads_from_before_the_transpose(props):
    absorbing("shape", [x(2, 3, 4)], [(2, 0, 1)], **props)


def test_size_reads_from_before_the_transpose():
    absorbing("size", [x(2, 3, 4)], [(2, 0, 1)])


def test_every_elementwise_op_has_the_elementwise_rule():
    assert [op.name for op in OPS if op.ELEMENTWISE and op.name != "sx.constant"]
    for cls in OPS:
        if cls.ELEMENTWISE:
            assert len(cls.get_irdl_definition().results) == 1, cls.name
