"""`legalize-for-opset`: locations, refusals, idempotence; test_opsets.py holds its results against other engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from three_ways import Case, build, sample

from sardonyx.backends.onnx.decompose import DECOMPOSITIONS
from sardonyx.backends.onnx.forms import form_of
from sardonyx.backends.onnx.legalize import LegalizeForOpsetPass, OpsetError
from sardonyx.backends.onnx.names import node_location, value_names
from sardonyx.dialects import locations
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.evaluate import evaluate_function
from sardonyx.dialects.module import main_function
from sardonyx.dialects.sx import BY_NAME, OPS
from sardonyx.dialects.sx.constant import ConstantOp, dense_attribute
from sardonyx.errors import InvalidArgumentError
from sardonyx.passes import registry
from sardonyx.passes.base import PassRun


def graph(name: str, *slots: Any, how: str = "constant", **properties: Any):
    return build([Case(BY_NAME[f"sx.{name}"], slots, properties)], how)


def ops(module: Any) -> list[SxOp]:
    return [op for op in main_function(module).body.block.ops if isinstance(op, SxOp)]


def test_it_is_registered():
    made = registry.create("legalize-for-opset", version=17)
    assert made == LegalizeForOpsetPass(17) and made.name == "legalize-for-opset"


def test_new_ops_bear_the_location_and_the_last_one_computes_the_value():
    made = graph("gelu", sample("float32", 3))
    (op,) = ops(made.module)
    op.location = node_location("act", ["act:0"])
    run = PassRun()
    LegalizeForOpsetPass(13).execute(made.module, run)
    new = ops(made.module)
    assert len(new) > 3 and run.changed and run.statistics["rewrites:gelu"] == 1
    for op in new:
        assert next(locations.names(op.location)) == "act"
        assert "pass:legalize-for-opset:gelu" in str(op.location)
    assert value_names(new[-1].location, 1) == ["act:0"]


def test_what_is_done_is_done():
    made = graph("layer_norm", sample("float32", 2, 4), sample("float32", 4))
    LegalizeForOpsetPass(13).execute(made.module)
    before = str(made.module)
    run = PassRun()
    LegalizeForOpsetPass(13).execute(made.module, run)
    assert str(made.module) == before and not run.changed


@pytest.mark.parametrize("version", [12, 29, 0, 99])
def test_opsets_that_are_not_there(version):
    made = graph("relu", sample("float32", 3))
    with pytest.raises(InvalidArgumentError, match=str(version)):
        LegalizeForOpsetPass(version).execute(made.module)


def test_a_refusal_names_node_op_opset_and_the_lowest_that_could():
    made = graph("pad", sample("float32", 3), np.array([1, 1]), mode="wrap")
    op = ops(made.module)[-1]
    op.location = node_location("edge", ["y"])
    with pytest.raises(OpsetError) as caught:
        LegalizeForOpsetPass(17).execute(made.module)
    error = caught.value
    assert str(error) == (
        "node 'edge': Pad cannot be stated in opset 17: Pad has no mode 'wrap' in it; opset 19 is the lowest that can"
    )
    assert (error.code_name, error.op, error.lowest) == ("NOT_IMPLEMENTED", "sx.pad", 19)
    assert error.hint == "export with opset_version=19"


def test_values_stay_the_same():
    """The reference of what the pass makes against that of what it was given."""
    image = sample("float32", 1, 4, 4, 4)
    cases = [
        Case(BY_NAME["sx.mod"], (sample("float64", 9), sample("float64", 9, seed=1))),
        Case(BY_NAME["sx.trilu"], (sample("int32", 3, 4), np.array(-1))),
        Case(BY_NAME["sx.space_to_depth"], (image,), {"blocksize": 2, "mode": "CRD"}),
        Case(BY_NAME["sx.bitwise_not"], (sample("uint32", 5),)),
        Case(BY_NAME["sx.split"], (sample("int16", 7),), {"num_outputs": 3}, 3),
        Case(BY_NAME["sx.range"], (np.array(0, "f2"), np.array(300, "f2"), np.array(0.7, "f2"))),
    ]
    made = build(cases, "constant")
    expected = evaluate_function(main_function(made.module), made.feeds)
    LegalizeForOpsetPass(13).execute(made.module)
    made.module.verify()
    got = evaluate_function(main_function(made.module), made.feeds)
    for a, b in zip(got, expected, strict=True):
        assert a.dtype == b.dtype and a.tobytes() == b.tobytes()


def test_constant_of_shape_in_bfloat16():
    from sardonyx.dialects.dtypes import bfloat16

    value = dense_attribute(np.array([1.5], bfloat16.numpy))
    made = graph("constant_of_shape", np.array([2, 2]), how="dynamic", value=value)
    LegalizeForOpsetPass(17).execute(made.module)
    names = [op.name for op in ops(made.module)]
    assert names == ["sx.constant_of_shape", "sx.cast"]
    (got,) = evaluate_function(main_function(made.module), [np.array([2, 2])])
    assert got.dtype == bfloat16.numpy and (got.astype("f4") == 1.5).all()


def test_the_widest_integers_have_nowhere_to_go():
    made = graph("bit_shift", np.array([-5]), np.array([1]), direction="RIGHT", how="static")
    with pytest.raises(OpsetError, match="opset 28 is the lowest"):
        LegalizeForOpsetPass(21).execute(made.module)


def test_every_op_with_a_form_has_an_operator_in_onnx():
    from sardonyx.backends.onnx.nodes import schema_of

    for cls in OPS:
        if cls is not ConstantOp and cls.ONNX is not None and not cls.ONNX.domain:
            schema = schema_of("", cls.ONNX.name, 28)
            assert schema is not None, cls.name
            wanted = {cls.ONNX.attribute(p) for p in cls.get_irdl_definition().properties}
            assert wanted - {"operandSegmentSizes", None} <= set(schema.attributes), cls.name
    assert set(DECOMPOSITIONS) <= set(BY_NAME)


def test_a_form_leaves_defaults_and_unread_outputs_out():
    made = graph("max_pool", sample("float32", 1, 1, 4), kernel_shape=(2,), strides=(1,))
    op = ops(made.module)[0]
    node = form_of(op, 21)
    assert len(node.outputs) == 2 and sorted(node.attributes) == ["kernel_shape", "strides"]
    assert form_of(BY_NAME["sx.leaky_relu"].make(op.results[0], alpha=0.01), 21).attributes == {}
