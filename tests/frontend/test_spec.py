"""TensorSpec, and signatures in Python and as text."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.dialects.dims import Dim
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.signature import stored_signature


def test_dims_and_names():
    spec = sx.TensorSpec("x", sx.float32, [-1, 37], dim_names=["batch", ""])
    assert spec.dims == (-1, 37) and spec.dim_names == ["batch", ""] and spec.rank == 2
    assert spec == sx.TensorSpec("x", "float32", ["batch", 37]) == sx.TensorSpec("x", np.float32, [Dim.of("batch"), 37])
    assert hash(spec) == hash(sx.TensorSpec("x", "f32", ["batch", 37]))
    assert str(spec) == "x: float32[batch, 37]"
    assert sx.TensorSpec("x", sx.int8, []).dims == () and sx.TensorSpec("x", sx.int8, [None, -1]).dim_names == ["", ""]


def test_expressions():
    spec = sx.TensorSpec("x", sx.float32, ["2*seq", "past + seq", 4])
    assert spec.dims == (-1, -1, 4) and spec.dim_names == ["2*seq", "past + seq", ""]
    assert spec.extents == (Dim.of("seq") * 2, Dim.of("past") + Dim.of("seq"), Dim.of(4))
    assert sx.TensorSpec("x", sx.float32, ["a b (c"]).dim_names == ["a b (c"], "any text is a name"
    assert sx.TensorSpec("x", sx.float32, [-1], dim_names=["2*seq"]).extents == (Dim.of("seq") * 2,)
    assert sx.TensorSpec("x", sx.float32, ["7"]).dims == (7,)


def test_dims_that_nobody_named_are_different():
    spec = sx.TensorSpec("x", sx.float32, [-1, "?", None])
    assert spec.extents is not None and len(set(spec.extents)) == 3
    assert str(spec) == "x: float32[?, ?, ?]" and spec.dim_names == ["", "", ""]


def test_unknown_rank():
    spec = sx.TensorSpec("x", sx.float32, None)
    assert spec.dims is None and spec.rank is None and str(spec) == "x: float32[...]"
    assert sx.TensorSpec.of_type("x", spec.ir) == spec


@pytest.mark.parametrize("spec", [
    sx.TensorSpec("x", sx.bfloat16, ["batch", "2*seq", 3, -1]), sx.TensorSpec("y", sx.bool, None),
    sx.TensorSpec("z", sx.int64, [], optional=True),
])  # fmt: skip
def test_specs_go_through_types_and_pickles(spec: sx.TensorSpec):
    assert sx.TensorSpec.of_type(spec.name, spec.ir, spec.optional) == spec
    assert pickle.loads(pickle.dumps(spec)) == spec


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("x", sx.float32, [-2]), "'x' has a dim of -2: an extent is not negative"),
        (("x", sx.float32, [2.0]), "a dim of 'x' is an int, a str or None, not float"),
        (("x", sx.float32, [True]), "not bool"),
        (("x", sx.float32, 3), "the dims of 'x' are a list, not int"),
        (("x", sx.float32, "batch"), "the dims of 'x' are a list, not str"),
        (("x", sx.float32, [1, 2], False, ["a"]), "'x' has 2 dims, but dim_names has 1 entries"),
        ((3, sx.float32, []), "the name of a TensorSpec is a str, not int"),
        (("x", "complex64", []), "is not a dtype"),
    ],
)
def test_what_is_no_spec(arguments: tuple, message: str):
    with pytest.raises(InvalidArgumentError, match=message):
        sx.TensorSpec(*arguments)


def test_signature_text():
    x, y, z, w = sx.parse_signature(' x: f32[batch,37], y: i64[] ,z.past/0 : bf16[2*seq, past + seq,?], "a b": bool[1]')
    assert (x.name, x.dtype, x.dims, x.dim_names) == ("x", sx.float32, (-1, 37), ["batch", ""])
    assert (y.name, y.dtype, y.dims) == ("y", sx.int64, ())
    assert (z.name, z.dtype, z.dim_names) == ("z.past/0", sx.bfloat16, ["2*seq", "past + seq", ""])
    assert (w.name, w.dtype, w.dims) == ("a b", sx.bool_, (1,))
    assert sx.parse_signature("") == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", r"signature, column 2: expected ':', found the end"),
        ("x: f32", r"column 7: expected '\[', found the end"),
        ("x: f33[2]", r"column 4: expected a dtype, found 'f33'"),
        ("x: f32[2", r"column 9: expected ',', found the end"),
        ("x: f32[2 y: i64[]", r"column 10: expected ',', found 'y'"),
        ("x: f32[]; y: i64[]", r"column 9: expected ',', found ';'"),
        ("3: f32[]", "expected the name of an input"),
        ("x: f32[-3]", "'x' has a dim of -3"),
        ("x: f32[2], x: i64[]", "two inputs of the signature are called 'x'"),
    ],
)
def test_malformed_signatures(text: str, message: str):
    with pytest.raises(InvalidArgumentError, match=message):
        sx.parse_signature(text)


def test_the_decorator_stores_what_the_function_is_called_with():
    @sx.signature("x: f32[n], y: f32[n]")
    def positional(x: sx.Tensor, y: sx.Tensor) -> sx.Tensor:
        return x + y

    @sx.signature([sx.TensorSpec("x", sx.float32, ["n"]), sx.TensorSpec("y", sx.float32, ["n"])])
    def listed(inputs: list[sx.Tensor]) -> sx.Tensor:
        assert type(inputs) is list
        return inputs[0] + inputs[1]

    @sx.signature(x=sx.TensorSpec("", sx.float32, ["n"]), y=sx.TensorSpec("second", sx.float32, ["n"]))
    def by_name(*, x: sx.Tensor, y: sx.Tensor) -> sx.Tensor:
        return x + y

    @sx.signature(sx.TensorSpec("x", sx.float32, ["n"]), sx.TensorSpec("y", sx.float32, ["n"]))
    def specs(x: sx.Tensor, y: sx.Tensor) -> sx.Tensor:
        return x + y

    for fn in (positional, listed, by_name, specs):
        graph = sx.trace(fn).graph
        (got,) = graph.evaluate([np.ones(3, np.float32)] * 2)
        assert got.tolist() == [2, 2, 2]
    assert sx.trace(by_name).graph.input_names() == ["x", "second"]
    assert isinstance(stored_signature(positional), str)
    assert positional(sx.ones(2), sx.ones(2)).tolist() == [2, 2], "the function itself stays what it is"


def test_wrong_signatures():
    spec = sx.TensorSpec("x", sx.float32, [])
    for wrong, message in [
        (spec, "not one TensorSpec"), (["x"], "consists of TensorSpec, not str"), (3, "not int"),
        ([spec, spec], "two inputs of the signature are called 'x'"),
        ([sx.TensorSpec("", sx.float32, [])], "input 0 of the signature has no name"),
    ]:  # fmt: skip
        with pytest.raises(InvalidArgumentError, match=message):
            sx.trace(lambda inputs: inputs, wrong)
    with pytest.raises(InvalidArgumentError, match="either positional specs or specs by keyword"):
        sx.signature(spec, y=spec)
    with pytest.raises(InvalidArgumentError, match="the signature of 'unsigned' is not known"):

        def unsigned(x: sx.Tensor) -> sx.Tensor:
            return x

        sx.trace(unsigned)
