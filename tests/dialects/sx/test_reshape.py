"""Other shapes for the same elements: contents as shapes, proved quotients, sizes of 0, errors."""

import numpy as np
import pytest
from op_case import constant, extents, known, round_trip, run, shape, value
from sized import every, op, sizes

from sardonyx.dialects import dtypes
from sardonyx.dialects.attributes import tensor_type
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.evaluate import EvalContext, evaluate_function
from sardonyx.dialects.module import create_module, main_function, set_outputs
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.errors import ExecutionError, InferenceError

RESHAPE, SQUEEZE, UNSQUEEZE, FLATTEN, EXPAND = (op(n) for n in ("reshape", "squeeze", "unsqueeze", "flatten", "expand"))
ALL = [t.name for t in dtypes.ALL]


def reshaped(built, array, *rest):
    (out,) = built.evaluate(EvalContext(), array, *rest)
    return out.shape


# ---- reshape


@pytest.mark.parametrize("dtype", ALL)
def test_reshape(dtype):
    x = np.arange(24).reshape(2, 3, 4).astype(dtypes.DTYPES[dtype].numpy)
    for to, want in (
        ([4, 6], (4, 6)),
        ([-1], (24,)),
        ([0, -1], (2, 12)),
        ([2, 0, -1, 1], (2, 3, 4, 1)),
        ([0, 0, 0], (2, 3, 4)),
    ):
        assert run(RESHAPE, x, np.array(to)).tolist() == x.reshape(want).tolist()


def test_reshape_of_scalars_and_no_elements():
    assert run(RESHAPE, np.float32(3), np.zeros(0, np.int64)).shape == ()
    assert run(RESHAPE, np.ones((1, 1), np.float32), np.zeros(0, np.int64)).shape == ()
    assert run(RESHAPE, np.float32(3), np.array([1, -1])).shape == (1, 1)
    empty = np.zeros((0, 8, 2), np.float32)
    assert run(RESHAPE, empty, np.array([4, 2, -1])).shape == (4, 2, 0)
    assert run(RESHAPE, empty, np.array([0, 16])).shape == (0, 16)
    assert run(RESHAPE, empty, np.array([0, -1])).shape == (0, 16)
    assert run(RESHAPE, empty, np.array([3, 0, 5]), allowzero=True).shape == (3, 0, 5)


def test_reshape_chain_with_allowzero():
    x = np.zeros((0, 8, 2), np.float32)
    assert run(RESHAPE, run(RESHAPE, x, np.array([4, 2, -1])), np.array([0, 0, 4]), allowzero=True).shape == (0, 0, 4)


@pytest.mark.parametrize(
    ("target", "want"),
    [
        ([0, -1, 12, 64], ["b", "n", "12", "64"]),
        (["b", -1, 12 * 64], ["b", "n", "768"]),
        (["b", "n", 12, 64], ["b", "n", "12", "64"]),
        ([-1, 768], ["b*n", "768"]),
        ([-1], ["768*b*n"]),
        ([0, 0, -1], ["b", "n", "768"]),
        ([-1, "n", 768], ["b", "n", "768"]),
        (["b", "n", 2, -1], ["b", "n", "2", "384"]),
        ([-1, 512], ["?", "512"]),
        ([7, -1], ["7", "?"]),
    ],
)
def test_reshape_proves_the_open_extent(target, want):
    assert shape(RESHAPE.make(value("float32", ["b", "n", 768]), extents(target))) == want


def test_reshape_splits_a_product():
    folded = value("float32", [Dim.symbol("b") * Dim.symbol("n"), 768])
    assert shape(RESHAPE.make(folded, extents(["b", "n", -1]))) == ["b", "n", "768"]
    assert shape(RESHAPE.make(folded, extents(["b", -1, 768]))) == ["b", "n", "768"]
    assert shape(RESHAPE.make(value("float32", [Dim.parse("4*n")]), extents([-1, 4]))) == ["n", "4"]
    assert shape(RESHAPE.make(value("float32", [Dim.parse("n floordiv 2"), 6]), extents([-1, 2]))) == [
        "3*(n floordiv 2)",
        "2",
    ]


def test_reshape_by_unknown_contents():
    x = value("float32", ["b", 6])
    assert shape(RESHAPE.make(x, value("int64", [3]))) == ["?", "?", "?"]
    assert shape(RESHAPE.make(x, value("int64", [1]))) == ["6*b"]
    assert shape(RESHAPE.make(x, value("int64", ["k"]))) is None
    partly = op("concat").make([constant([3]), value("int64", [1])], axis=0).output
    assert shape(RESHAPE.make(x, partly)) == ["3", "2*b"]
    assert shape(RESHAPE.make(value("float32", None), constant([2, -1, 0]))) == ["2", "?", "?"]


def test_reshape_keeps_contents():
    assert known(RESHAPE.make(extents(["a", "b"]), constant([2, 1]))) == ["a", "b"]
    assert known(RESHAPE.make(extents(["n"]), constant([], "int64"))) == ["n"]


def test_a_computed_extent_of_0_stands_for_itself():
    x = value("float32", [Dim.symbol("b") * Dim.symbol("n"), 6])
    built = RESHAPE.make(x, extents(["b", "n", 6]))
    for at in every(b=(0, 1, 3), n=(0, 1, 2)):
        b, n = at["b"], at["n"]
        assert reshaped(built, np.zeros((b * n, 6)), np.array([b, n, 6])) == sizes(built, at) == (b, n, 6)
    built = RESHAPE.make(value("float32", ["b", "n", 6]), extents(["b", -1]))
    for at in every(b=(0, 1, 3), n=(0, 1, 2)):
        b, n = at["b"], at["n"]
        assert reshaped(built, np.zeros((b, n, 6)), np.array([b, -1])) == sizes(built, at) == (b, n * 6)


@pytest.mark.parametrize(
    ("dims", "target", "properties", "constraint"),
    [
        ([4], constant([4], "int32"), {}, "C1"),
        ([4], constant([[4]]), {}, "C1"),
        ([4], constant([-2]), {}, "C2"),
        ([4], constant([-1, -1]), {}, "C2"),
        ([4], constant([4, 0]), {}, "C3"),
        ([4], constant([0, -1]), {"allowzero": True}, "C4"),
        ([4], constant([3]), {}, "C5"),
        ([4], constant([3, -1]), {}, "C5"),
        ([0], constant([1, 0, -1]), {}, "C3"),
        ([2, "n"], extents([3, Dim.parse("n + 1")]), {}, "C5"),
        ([Dim.parse("2*n + 1")], constant([2, -1]), {}, "C5"),
    ],
)
def test_reshape_constraints(dims, target, properties, constraint):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        RESHAPE.make(value("float32", dims), target, **properties)


@pytest.mark.parametrize("target", [[3], [-1, 3], [-2], [-1, -1], [2, 3, 0]])
def test_reshape_refuses_a_run(target):
    built = RESHAPE.make(value("float32", ["n"]), value("int64", [len(target)]))
    with pytest.raises(ExecutionError, match="cannot be reshaped"):
        built.evaluate(EvalContext(), np.zeros(4, np.float32), np.array(target))


def test_text():
    x = value("float32", ["n", 2])
    assert "allowzero = true" in round_trip(RESHAPE.make(x, value("int64", [3]), allowzero=True))
    assert round_trip(SQUEEZE.make(value("float32", [1, 2]))).endswith("-> tensor<2xf32>")
    assert "sx.unsqueeze" in round_trip(UNSQUEEZE.make(x, value("int64", [1])))
    assert "axis = 0" in round_trip(FLATTEN.make(x, axis=0))
    assert "sx.expand" in round_trip(EXPAND.make(x, value("int64", [3])))


# ---- squeeze and unsqueeze


@pytest.mark.parametrize("dtype", ALL)
def test_squeeze_and_unsqueeze(dtype):
    x = np.arange(6).reshape(1, 3, 1, 2).astype(dtypes.DTYPES[dtype].numpy)
    assert run(SQUEEZE, x, np.array([0, -2])).tolist() == x.reshape(3, 2).tolist()
    assert run(SQUEEZE, x, np.array([2])).tolist() == x.reshape(1, 3, 2).tolist()
    assert run(SQUEEZE, x).tolist() == x.reshape(3, 2).tolist()
    assert run(UNSQUEEZE, x, np.array([-1, 0])).shape == (1, 1, 3, 1, 2, 1)
    assert run(UNSQUEEZE, x, np.zeros(0, np.int64)).tolist() == x.tolist()


def test_squeeze_and_unsqueeze_of_scalars():
    assert run(SQUEEZE, np.float32(1)).shape == ()
    assert run(SQUEEZE, np.ones(1, np.float32)).shape == ()
    assert run(UNSQUEEZE, np.float32(1), np.array([-1])).shape == (1,)
    assert run(SQUEEZE, np.zeros((1, 0), np.float32), np.array([0])).shape == (0,)


def test_squeeze_of_symbols():
    x = value("float32", ["b", 1, "n"])
    assert shape(SQUEEZE.make(x, constant([1]))) == ["b", "n"]
    assert shape(SQUEEZE.make(x, constant([-1]))) == ["b", "1"]
    assert shape(SQUEEZE.make(x)) is None
    assert shape(SQUEEZE.make(value("float32", [Dim.parse("n + 2"), 1]))) == ["n + 2"]
    assert shape(SQUEEZE.make(x, value("int64", [2]))) == ["?"]
    assert shape(SQUEEZE.make(x, value("int64", ["k"]))) is None
    assert known(SQUEEZE.make(extents(["n"]), constant([0]))) == ["n"]


def test_unsqueeze_of_symbols():
    x = value("float32", ["b", "n"])
    assert shape(UNSQUEEZE.make(x, constant([0, -1]))) == ["1", "b", "n", "1"]
    assert shape(UNSQUEEZE.make(x, constant([-1, 1]))) == ["b", "1", "n", "1"]
    assert shape(UNSQUEEZE.make(x, value("int64", [1]))) == ["?", "?", "?"]
    assert shape(UNSQUEEZE.make(x, value("int64", ["k"]))) is None
    assert known(UNSQUEEZE.make(extents(["b", "n"]), constant([0]))) == ["b", "n"]


@pytest.mark.parametrize(
    ("cls", "dims", "axes", "constraint"),
    [
        (SQUEEZE, [1], constant([0], "int32"), "C1"),
        (SQUEEZE, [1], constant(0), "C1"),
        (SQUEEZE, [1], constant([1]), "C2"),
        (SQUEEZE, [1, 1], constant([0, -2]), "C2"),
        (SQUEEZE, [1], value("int64", [2]), "C2"),
        (SQUEEZE, [2], constant([0]), "C3"),
        (SQUEEZE, [Dim.parse("n + 2")], constant([0]), "C3"),
        (UNSQUEEZE, [2], constant([0], "int32"), "C1"),
        (UNSQUEEZE, [2], constant([2]), "C2"),
        (UNSQUEEZE, [2], constant([0, -3]), "C2"),
    ],
)
def test_squeeze_constraints(cls, dims, axes, constraint):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        cls.make(value("float32", dims), axes)


def test_squeeze_refuses_a_run():
    built = SQUEEZE.make(value("float32", ["n", "m"]), value("int64", ["k"]))
    for axes in ([0], [2], [1, 1]):
        with pytest.raises(ExecutionError):
            built.evaluate(EvalContext(), np.zeros((2, 1)), np.array(axes))


# ---- flatten


@pytest.mark.parametrize(("axis", "want"), [(-1, (6, 4)), (0, (1, 24)), (3, (24, 1)), (-3, (1, 24)), (1, (2, 12))])
def test_flatten(axis, want):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    assert run(FLATTEN, x, axis=axis).tolist() == x.reshape(want).tolist()


def test_flatten_edges():
    assert run(FLATTEN, np.float32(3), axis=0).tolist() == [[3]]
    assert run(FLATTEN, np.zeros((0, 3), np.float32)).shape == (0, 3)
    assert shape(FLATTEN.make(value("float32", ["b", "c", "h"]))) == ["b", "c*h"]
    assert shape(FLATTEN.make(value("float32", None))) == ["?", "?"]
    for axis in (3, -3):
        with pytest.raises(InferenceError, match=r"\(C2\)"):
            FLATTEN.make(value("float32", [2, 3]), axis=axis)


# ---- expand


@pytest.mark.parametrize("dtype", ALL)
def test_expand(dtype):
    x = np.arange(3).reshape(3, 1).astype(dtypes.DTYPES[dtype].numpy)
    assert run(EXPAND, x, np.array([2, 1, 4])).tolist() == np.broadcast_to(x, (2, 3, 4)).tolist()
    assert run(EXPAND, x, np.array([1])).tolist() == x.tolist()
    assert run(EXPAND, x, np.array([3, 0])).shape == (3, 0)
    assert run(EXPAND, x[0, 0], np.zeros(0, np.int64)).shape == ()


def test_expand_of_symbols():
    assert shape(EXPAND.make(value("float32", [1, "n", 1]), extents(["b", 1, "m", 7]))) == [
        "b",
        "1",
        "broadcast(m, n)",
        "7",
    ]
    assert shape(EXPAND.make(value("float32", ["n"]), extents(["b", "n"]))) == ["b", "n"]
    assert shape(EXPAND.make(value("float32", ["n", 1]), extents([4]))) == ["n", "4"]
    assert shape(EXPAND.make(value("float32", [1, 5, "n"]), value("int64", [3]))) == ["?", "5", "?"]
    assert shape(EXPAND.make(value("float32", [5, "n"]), value("int64", [1]))) == ["5", "?"]
    assert shape(EXPAND.make(value("float32", ["n"]), value("int64", ["k"]))) is None
    assert known(EXPAND.make(extents(["n"]), constant([3]))) == ["n", "n", "n"]


def test_expand_constraints():
    for dims, target, constraint in (
        ([2], constant([2], "int32"), "C1"),
        ([2], constant([3]), "C2"),
        ([2], constant([-1]), "C2"),
        (["n"], constant([-1]), "C2"),
        ([1, 1], constant([2**33, 2**33]), "C3"),
        ([1, "n"], extents([2**62, 4, Dim.parse("n")]), None),
    ):
        if constraint is None:
            EXPAND.make(value("float32", dims), target)
            continue
        with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
            EXPAND.make(value("float32", dims), target)


def test_expand_refuses_a_run():
    built = EXPAND.make(value("float32", ["n"]), value("int64", ["k"]))
    for target in ([3], [-1], [2**33, 2**33, 2], [2**40, 2]):
        with pytest.raises(ExecutionError):
            built.evaluate(EvalContext(), np.zeros(2, np.float32), np.array(target))


# ---- what exporters write for x.reshape(x.shape[0], x.shape[1] * 37)


@pytest.mark.parametrize("flat", ["computed", "open"])
def test_a_shape_that_the_graph_computes(flat):
    module, block = create_module("g", [("x", tensor_type(dtypes.float32, ["batch", "seq", 37]), None)])
    x = block.args[0]

    def add(name, *slots, **properties):
        made = op(name).make(*slots, **properties)
        block.add_op(made)
        return made.results[0]

    def number(array):
        made = ConstantOp.dense(np.array(array, np.int64))
        block.add_op(made)
        return made.output

    extent = add("shape", x)
    batch = add("unsqueeze", add("gather", extent, number(0)), number([0]))
    seq = add("slice", extent, number([1]), number([2]))
    rest = add("mul", seq, number([37])) if flat == "computed" else number([-1])
    folded = add("reshape", x, add("concat", [batch, rest], axis=0))
    back = add("reshape", folded, add("concat", [batch, seq, number([37])], axis=0))
    assert shape(folded.owner) == ["batch", "37*seq"] and shape(back.owner) == ["batch", "seq", "37"]
    set_outputs(module, [folded, back], ["y", "z"])
    module.verify()
    for b, n in ((0, 0), (0, 3), (1, 0), (1, 1), (7, 8), (3, 100)):
        data = np.arange(b * n * 37, dtype=np.float32).reshape(b, n, 37)
        y, z = evaluate_function(main_function(module), [data])
        assert y.shape == (b, n * 37) and z.shape == data.shape and (z == data).all()
