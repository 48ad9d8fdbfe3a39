"""Sequences and optionals: values, types, positions out of range, and one case per constraint."""

import numpy as np
import pytest
from op_case import constant, op, round_trip, value
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Block

from sardonyx.dialects.attributes import tensor_type, type_dims, unranked_type
from sardonyx.dialects.base import refine
from sardonyx.dialects.dtypes import float32, int64
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.dialects.types import OptionalType, SequenceType, escaped, join, taken
from sardonyx.errors import ExecutionError, InferenceError

CTX = EvalContext()
A, B, C = (np.full((2, n), n, "f4") for n in (1, 2, 3))


def seq(element=None):
    return Block(arg_types=[SequenceType(element or unranked_type(float32))]).args[0]


def at(name, *slots, given, **properties):
    """The only result of an op: `slots` are values, `given` what they are in the run."""
    made = op(name).make(*slots, **properties)
    made.verify()
    if made.operands:
        round_trip(made)
    return made.evaluate(CTX, *given)[0]


def shown(name, *slots, **properties):
    return str(op(name).make(*slots, **properties).results[0].type)


def test_construct_and_length():
    x, y = value("float32", [2, 3]), value("float32", [2, "n"])
    assert shown("sequence_construct", [x, x]) == "!sx.seq<tensor<2x3xf32>>"
    assert shown("sequence_construct", [x, y]) == "!sx.seq<tensor<2x?xf32>>"
    assert shown("sequence_construct", [y, y]) == "!sx.seq<tensor<2x?xf32, #sx.dims<_, n>>>"
    assert shown("sequence_construct", [x, value("float32", [2])]) == "!sx.seq<tensor<*xf32>>"
    made = at("sequence_construct", [x, y], given=[A, B])
    assert [e is m for e, m in zip(made, (A, B))] == [True, True]
    assert at("sequence_length", seq(), given=[[A, B]]).tolist() == 2
    assert at("sequence_empty", given=[]) == [] and shown("sequence_empty", dtype=int64) == "!sx.seq<tensor<*xi64>>"


@pytest.mark.parametrize("index, order", [(None, "abc"), (0, "cab"), (1, "acb"), (-1, "acb"), (2, "abc"), (-2, "cab")])
def test_insert(index, order):
    before = [A, B]
    given = [before, C, None if index is None else np.array(index, "i4")]
    position = None if index is None else value("int32", [])
    made = at("sequence_insert", seq(), value("float32", None), position, given=given)
    assert ["abc"[int(e[0, 0]) - 1] for e in made] == list(order)
    assert len(before) == 2, "an operand was changed"


@pytest.mark.parametrize("index, left", [(None, "ab"), (0, "bc"), (-1, "ab"), (-2, "ac")])
def test_erase_and_at(index, left):
    before = [A, B, C]
    position = None if index is None else np.array([index])
    slot = None if index is None else value("int64", [1])
    made = at("sequence_erase", seq(), slot, given=[before, position])
    assert ["abc"[int(e[0, 0]) - 1] for e in made] == list(left)
    assert len(before) == 3
    if index is not None:
        assert at("sequence_at", seq(), value("int64", [1]), given=[before, position]) is before[index]


@pytest.mark.parametrize("name, index", [("sequence_at", 2), ("sequence_at", -3), ("sequence_erase", 2)])
def test_positions_out_of_range(name, index):
    with pytest.raises(ExecutionError, match=rf"\(C2\) position {index} is out of range for 2 elements"):
        at(name, seq(), value("int64", []), given=[[A, B], np.array(index)])


def test_insert_out_of_range_and_positions_of_several_elements():
    for index in (3, -3):
        with pytest.raises(ExecutionError, match=r"\(C2\)"):
            op("sequence_insert").make(seq(), value("float32", []), value("int64", [])).evaluate(
                CTX, [A, B], C, np.array(index)
            )
    with pytest.raises(ExecutionError, match=r"\(C2\) the position has 2 elements"):
        op("sequence_at").make(seq(), value("int64", None)).evaluate(CTX, [A, B], np.array([0, 1]))


def test_an_element_that_is_taken_out_has_dims_of_its_own():
    varying = seq(join(tensor_type(float32, [2, 3]), tensor_type(float32, [2, "n"]), nested=True))
    first, second = (op("sequence_at").make(varying, value("int64", [])).tensor.type for _ in range(2))
    assert type_dims(first)[0] == 2 and type_dims(first)[1] != type_dims(second)[1]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat(axis):
    if axis:
        got = at("concat_from_sequence", seq(), given=[[A, B, C]], axis=axis)
        np.testing.assert_array_equal(got, np.concatenate([A, B, C], axis))
    got = at("concat_from_sequence", seq(), given=[[A, A]], axis=axis, new_axis=True)
    np.testing.assert_array_equal(got, np.stack([A, A], axis))
    known = seq(tensor_type(float32, ["n", 4]))
    assert len(type_dims(op("concat_from_sequence").make(known, axis=0).concat_result.type)) == 2
    assert len(type_dims(op("concat_from_sequence").make(known, axis=-3, new_axis=True).concat_result.type)) == 3


def test_concat_of_nothing_and_of_shapes_that_differ():
    for given, new, constraint in (([], 0, "C1"), ([A, np.zeros((3, 1), "f4")], 0, "C3"), ([A, B], 1, "C3")):
        with pytest.raises(ExecutionError, match=rf"\({constraint}\)"):
            op("concat_from_sequence").make(seq(), axis=1, new_axis=bool(new)).evaluate(CTX, given)


@pytest.mark.parametrize(
    "split, keepdims, sizes",
    [(None, True, [1, 1, 1, 1, 1]), (2, True, [2, 2, 1]), (5, True, [5]), ([1, 4, 0], True, [1, 4, 0]), (7, True, [5])],
)
@pytest.mark.parametrize("axis", [0, -1])
def test_split(split, keepdims, sizes, axis):
    x = np.arange(10, dtype="f4").reshape((5, 2) if axis == 0 else (2, 5))
    given = None if split is None else np.array(split, "i8")
    slot = None if split is None else constant(given)
    made = op("split_to_sequence").make(value("float32", x.shape), slot, axis=axis, keepdims=keepdims)
    parts = made.evaluate(CTX, x, given)[0]
    assert [p.shape[axis] for p in parts] == sizes
    np.testing.assert_array_equal(np.concatenate(parts, axis), x)
    dims = made.output_sequence.type.element.get_shape()
    assert dims[axis] == (sizes[0] if len(set(sizes)) == 1 and split != 7 else DYNAMIC_INDEX)


def test_split_without_keepdims_and_of_no_elements():
    parts = at("split_to_sequence", value("float32", [3, 2]), given=[np.ones((3, 2), "f4"), None], keepdims=False)
    assert [p.shape for p in parts] == [(2,)] * 3
    assert at("split_to_sequence", value("float32", [0, 2]), given=[np.ones((0, 2), "f4"), None]) == []
    for split, given in ((constant([1, 1]), [1, 1]), (constant([-1, 4]), [-1, 4]), (constant(0), 0)):
        with pytest.raises(InferenceError, match=r"\(C2\)"):
            op("split_to_sequence").make(value("float32", [3]), split)
        with pytest.raises(ExecutionError, match=r"\(C2\)"):
            op("split_to_sequence").make(value("float32", None), value("int64", None)).evaluate(
                CTX, np.ones(3, "f4"), np.array(given)
            )


def test_optionals():
    x = value("float32", ["n"])
    kind = OptionalType(tensor_type(float32, ["n"]))
    assert shown("optional", x) == str(kind) and at("optional", x, given=[A]) is A
    none = op("optional").make(type=SequenceType(unranked_type(int64)))
    assert str(none.output.type) == "!sx.opt<!sx.seq<tensor<*xi64>>>" and none.evaluate(CTX, None) == [None]
    held = Block(arg_types=[kind]).args[0]
    assert shown("optional_get_element", held).startswith("tensor<?xf32")
    assert at("optional_get_element", held, given=[A]) is A
    with pytest.raises(ExecutionError, match=r"\(C2\)"):
        at("optional_get_element", held, given=[None])
    for slot, given, want in ((held, A, True), (held, None, False), (None, None, False), (x, A, True)):
        assert at("optional_has_element", slot, given=[given]).tolist() is want
    assert shown("identity", held) == str(kind)


def test_constraints():
    x, k = value("float32", [2]), value("int64", [2])
    for name, slots, properties, constraint in (
        ("sequence_construct", [[]], {}, "C1"), ("sequence_construct", [[x, k]], {}, "C1"),
        ("sequence_insert", [seq(), k], {}, "C1"), ("sequence_insert", [x, x], {}, "C1"),
        ("sequence_insert", [seq(), x, k], {}, "C2"), ("sequence_at", [seq(), x], {}, "C2"),
        ("sequence_at", [x, value("int64", [])], {}, "C1"), ("sequence_erase", [x], {}, "C1"),
        ("sequence_length", [x], {}, "C1"), ("concat_from_sequence", [x], {"axis": 0}, "C1"),
        ("concat_from_sequence", [seq(tensor_type(float32, [2]))], {"axis": 1}, "C2"),
        ("concat_from_sequence", [seq(tensor_type(float32, []))], {"axis": 0}, "C2"),
        ("split_to_sequence", [value("float32", [])], {}, "C1"), ("split_to_sequence", [x, x], {}, "C2"),
        ("split_to_sequence", [x], {"axis": 1}, "C1"), ("optional", [], {}, "C1"),
        ("optional", [x], {"type": tensor_type(int64, [2])}, "C1"), ("optional_get_element", [seq()], {}, None),
    ):  # fmt: skip
        if constraint is None:
            assert op(name).make(*slots, **properties)
            continue
        with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
            op(name).make(*slots, **properties)


# ---- types


def test_joined_and_refined_types():
    fixed, named = tensor_type(float32, [2, 3]), tensor_type(float32, [2, "n"])
    assert join(fixed, fixed) == fixed and join(fixed, unranked_type(float32)) == unranked_type(float32)
    assert type_dims(join(fixed, named))[0] == 2 and not type_dims(join(fixed, named))[1].is_static
    assert join(OptionalType(fixed), fixed) == OptionalType(fixed)
    free = tensor_type(float32, [2, "?7"])
    assert join(free, fixed, frozenset({"?7"})) == free
    for other in (tensor_type(int64, [2, 3]), SequenceType(fixed)):
        with pytest.raises(InferenceError):
            join(fixed, other)
    loose = SequenceType(taken(TensorType(float32.ir, [2, DYNAMIC_INDEX])))
    assert refine(loose, SequenceType(fixed)) == SequenceType(fixed)
    assert refine(SequenceType(unranked_type(float32)), SequenceType(fixed)) == SequenceType(fixed)
    with pytest.raises(InferenceError):
        refine(SequenceType(fixed), SequenceType(tensor_type(float32, [2, 4])))
    assert escaped(named, frozenset({"n"})) == named and escaped(named, frozenset()) != named
