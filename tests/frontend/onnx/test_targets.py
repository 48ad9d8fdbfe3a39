"""Operators of a model against what a target supports, and how gaps are closed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import sardonyx as sx
from sardonyx.errors import InvalidArgumentError, UnsupportedError
from sardonyx.frontend.onnx.targets import close_gaps, find_gaps, targets
from sardonyx.frontend.verify.verify import verify


def model(
    nodes: list[onnx.NodeProto],
    opset: int = 21,
    dtype: int = TensorProto.FLOAT,
    weights: tuple[TensorProto, ...] = (),
    **domains: int,
) -> sx.OnnxModel:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", dtype, ["n", 4])],
        [helper.make_tensor_value_info("y", dtype, ["n", 4])],
        weights,
    )
    opsets = [
        helper.make_opsetid("", opset),
        *(helper.make_opsetid(d.replace("_", "."), v) for d, v in domains.items()),
    ]
    return sx.OnnxModel.from_proto(helper.make_model(graph, opset_imports=opsets, ir_version=10))


def test_the_targets_are_listed_and_an_unknown_one_is_refused() -> None:
    assert {"tensorrt", "openvino", "coreml", "onnx-mlir", "onnxruntime", "onnxruntime:cuda"} <= set(targets())
    relu = model([helper.make_node("Relu", ["x"], ["y"], "relu")])
    with pytest.raises(InvalidArgumentError, match="there is no target 'tensorflow'"):
        find_gaps(relu, "tensorflow")
    with pytest.raises(InvalidArgumentError, match="names no opset"):
        find_gaps(relu, "tensorrt@x")
    with pytest.raises(InvalidArgumentError, match="is not installed here"):
        find_gaps(relu, "onnxruntime:tensorrt")


@pytest.mark.parametrize("target", ["tensorrt", "openvino", "coreml", "onnx-mlir", "onnxruntime"])
def test_a_plain_net_has_no_gap(target: str) -> None:
    assert find_gaps(model([helper.make_node("Relu", ["x"], ["y"], "relu")]), target).ok


def test_a_gap_names_its_node_and_what_closes_it(tmp_path: Path) -> None:
    mish = model([helper.make_node("Mish", ["x"], ["m"], "mish"), helper.make_node("Tanh", ["m"], ["y"], "tanh")])
    (gap,) = [g for g in find_gaps(mish, "coreml").gaps if g.kind == "unsupported"]
    assert (gap.node, gap.operator, gap.fix) == ("mish", "Mish", "decompose")
    fixed, done = close_gaps(mish, "coreml")
    assert find_gaps(fixed, "coreml").ok and done == ["decomposed: Mish"]
    mish.save(tmp_path / "mish.onnx")
    fixed.save(tmp_path / "fixed.onnx")
    assert verify(tmp_path / "mish.onnx", tmp_path / "fixed.onnx").ok


def test_an_opset_that_is_too_new_is_lowered() -> None:
    gelu = model([helper.make_node("Gelu", ["x"], ["y"], "gelu")])
    (gap,) = find_gaps(gelu, "tensorrt@17").gaps
    assert (gap.node, gap.reason, gap.fix) == ("", "opset 21 is above the target's 17", "opset 17")
    fixed, done = close_gaps(gelu, "tensorrt@17")
    assert fixed.opset == 17 and "Erf" in fixed.inspect().operators and done == ["opset 21 became 17"]
    assert find_gaps(fixed, "tensorrt@17").ok
    x = np.linspace(-2, 2, 8, dtype=np.float32).reshape(2, 4)
    (a,), (b,) = gelu.compile().evaluate([x]), fixed.compile().evaluate([x])
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)


def test_a_leftover_of_torch_and_an_unknown_domain_are_gaps() -> None:
    left = model(
        [
            helper.make_node("aten::roll", ["x"], ["r"], "roll", domain="aten"),
            helper.make_node("Special", ["r"], ["y"], "mine", domain="my.domain"),
        ],
        aten=1,
        my_domain=1,
    )
    gaps = {g.node: g for g in find_gaps(left, "openvino").gaps}
    assert "left behind" in gaps["roll"].reason and "my.domain" in gaps["mine"].reason
    assert gaps["roll"].fix == gaps["mine"].fix == ""


def test_a_restriction_is_shown_and_is_no_gap() -> None:
    report = find_gaps(
        model(
            [helper.make_node("CumSum", ["x", "a"], ["y"], "sum")][:0]
            + [helper.make_node("LayerNormalization", ["x", "x"], ["y"], "norm", axis=0)],
            17,
        ),
        "tensorrt",
    )
    assert report.ok and [g.kind for g in report.gaps] == ["restricted"]


def test_a_dtype_that_the_target_lacks() -> None:
    report = find_gaps(model([helper.make_node("Identity", ["x"], ["y"], "id")], dtype=TensorProto.UINT16), "tensorrt")
    assert {g.reason for g in report.gaps} == {"TensorRT 10.15 has no uint16"}


def test_onnxruntime_is_asked_for_each_node() -> None:
    pytest.importorskip("onnxruntime")
    both = model(
        [
            helper.make_node("Cast", ["x"], ["b"], "to_bf16", to=TensorProto.BFLOAT16),
            helper.make_node("Mish", ["b"], ["m"], "mish_bf16"),
            helper.make_node("Cast", ["m"], ["y"], "back", to=TensorProto.FLOAT),
        ],
        22,
    )
    report = find_gaps(both, "onnxruntime")
    assert [g.node for g in report.gaps] == ["mish_bf16"] and "onnxruntime" in report.target


@pytest.mark.parametrize(
    ("target", "dtype", "becomes", "rounds"),
    [("coreml", "DOUBLE", "float32", True), ("coreml", "BFLOAT16", "float32", False)],
)
def test_a_dtype_that_a_target_lacks_is_cast(
    target: str, dtype: str, becomes: str, rounds: bool, tmp_path: Path
) -> None:
    old = {"DOUBLE": "float64", "BFLOAT16": "bfloat16"}[dtype]
    kind = getattr(TensorProto, dtype)
    weight = helper.make_tensor("w", kind, [4, 4], np.linspace(-1, 1, 16).tolist())
    before = model(
        [
            helper.make_node("MatMul", ["x", "w"], ["m"], "product"),
            helper.make_node("Cast", ["m"], ["c"], "narrow", to=TensorProto.FLOAT),
            helper.make_node("Cast", ["c"], ["d"], "back", to=kind),
            helper.make_node("Add", ["m", "d"], ["y"], "sum"),
        ],
        dtype=kind,
        weights=(weight,),
    )
    gaps = [g for g in find_gaps(before, target).gaps if g.kind == "unsupported"]
    assert {g.node for g in gaps} == {"x", "w", "product", "back", "sum"}
    assert {g.fix for g in gaps} == {f"cast {old} to {becomes}"}
    fixed, done = close_gaps(before, target)
    assert find_gaps(fixed, target).ok
    text = f"{old} became {becomes} in 3 nodes, the input 'x', 1 constant"
    assert done == [text + ("; values may be rounded" if rounds else "")]
    before.save(tmp_path / "before.onnx")
    fixed.save(tmp_path / "fixed.onnx")
    found = verify(tmp_path / "before.onnx", tmp_path / "fixed.onnx")
    assert found.ok and found.limits.precision == (becomes if rounds else old)


def test_what_an_op_gives_in_the_old_dtype_is_cast_behind_it() -> None:
    from sardonyx.backends.onnx.cast_dtypes import change_dtypes, used_dtypes

    graph = helper.make_graph(
        [
            helper.make_node("ArgMax", ["x"], ["i"], "best", axis=-1, keepdims=0),
            helper.make_node("Add", ["i", "offset"], ["j"], "shift"),
            helper.make_node("Gather", ["table", "j"], ["y"], "embed"),
        ],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4]),
            helper.make_tensor_value_info("offset", TensorProto.INT64, ["n"]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])],
        [helper.make_tensor("table", TensorProto.FLOAT, [6, 2], list(range(12)))],
    )
    opsets = [helper.make_opsetid("", 21)]
    found = sx.OnnxModel.from_proto(helper.make_model(graph, opset_imports=opsets, ir_version=10)).compile()
    feeds = {"x": np.eye(4, dtype=np.float32)[[2, 0, 3]], "offset": np.array([1, 0, 2])}
    (wanted,) = found.evaluate(feeds)
    with found.edit() as module:
        (changes,) = change_dtypes(module, found.store, {"int64": "int32"})
        assert used_dtypes(module) == {"float32", "int64", "int32"}  # what ArgMax gives stays, and is cast behind it
    assert changes.nodes == ["best", "shift"] and changes.inputs == ["offset"]
    (got,) = found.evaluate({**feeds, "offset": feeds["offset"].astype(np.int32)})
    np.testing.assert_array_equal(np.asarray(got), np.asarray(wanted))


def test_a_node_that_a_provider_lacks_in_a_dtype_computes_between_casts() -> None:
    made = model([helper.make_node("Relu", ["x"], ["a"], "first"), helper.make_node("Sigmoid", ["a"], ["y"], "act")],
                 dtype=TensorProto.BFLOAT16)  # fmt: skip
    gaps = find_gaps(made, "onnxruntime").gaps
    assert {g.node: g.fix for g in gaps} == dict.fromkeys(("first", "act"), "cast bfloat16 to float32")
    fixed, done = close_gaps(made, "onnxruntime")
    assert find_gaps(fixed, "onnxruntime").ok and done == ["between casts from bfloat16 to float32: first, act"]


def test_a_constant_that_does_not_fit_is_refused() -> None:
    large = helper.make_tensor("w", TensorProto.DOUBLE, [], [1e300])
    made = model([helper.make_node("Mul", ["x", "w"], ["y"], "scale")], dtype=TensorProto.DOUBLE, weights=(large,))
    with pytest.raises(UnsupportedError, match="float64 does not fit into float32"):
        close_gaps(made, "coreml")
