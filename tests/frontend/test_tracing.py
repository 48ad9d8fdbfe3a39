"""Tracing: what a function may return, what it captures, where ops come from, and what is refused with which line."""

from __future__ import annotations

import inspect
import operator
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, NameLoc

import sardonyx as sx
from sardonyx.dialects.module import main_function
from sardonyx.errors import InvalidArgumentError, UnsupportedError
from sardonyx.frontend.extent import Extent

X = "x: f32[batch,4]"
DATA = np.arange(12, dtype=np.float32).reshape(3, 4)
HERE = Path(__file__).name


def ops_of(graph: sx.ModelGraph) -> list[str]:
    return [op.name for op in main_function(graph.module).body.block.ops][:-1]


def line_of(fn: Callable[..., Any], text: str) -> int:
    """The line of this file on which a text stands in a function."""
    lines, first = inspect.getsourcelines(fn)
    (found,) = [number for number, line in enumerate(lines, first) if text in line]
    return found


# ---- how it calls, what it returns


def test_lists_tuples_and_dicts():
    spec, other = sx.TensorSpec("x", sx.float32, [2]), sx.TensorSpec("y", sx.float32, [2])
    assert sx.trace(lambda inputs: inputs[0] - inputs[1], [spec, other]).graph.input_names() == ["x", "y"]
    assert sx.trace(lambda a, b: a - b, (spec, other)).graph.input_names() == ["x", "y"]
    graph = sx.trace(lambda *, b, a: a - b, {"a": spec, "b": other}).graph
    assert graph.evaluate({"x": np.ones(2, np.float32), "y": np.zeros(2, np.float32)})[0].tolist() == [1, 1]


class Pair(NamedTuple):
    first: sx.Tensor
    second: sx.Tensor


@pytest.mark.parametrize(
    ("fn", "names"),
    [
        (lambda x: x + 1, ["output_0"]),
        (lambda x: [x + 1], ["output_0"]),
        (lambda x: (x + 1, x + 2), ["output_0", "output_1"]),
        (lambda x: {"sum": x + 1, "rest": [x, {"deep": x * 2}]}, ["sum", "rest[0]", "rest[1].deep"]),
        (lambda x: Pair(x + 1, x), ["output_0", "output_1"]),
    ],
)
def test_results_and_their_names(fn: Callable[..., Any], names: list[str]):
    assert sx.trace(fn, X).graph.output_names() == names


def test_the_structure_of_the_result_is_kept():
    result = sx.trace(lambda x: {"a": x + 1, "b": (x, [x * 2])}, X)
    built = result.structure.build(result.graph.evaluate([DATA]))
    assert built["a"].tolist() == (DATA + 1).tolist() and built["b"][1][0].tolist() == (DATA * 2).tolist()
    assert type(built["b"]) is tuple and type(built["b"][1]) is list
    with pytest.raises(InvalidArgumentError, match="has 3 leaves, got 2"):
        result.structure.build([1, 2])
    assert type(sx.trace(lambda x: Pair(x, x), X).structure.build([1, 2])) is Pair


def test_given_output_names():
    assert sx.trace(lambda x: (x + 1, x), X, output_names=["y", "z"]).graph.output_names() == ["y", "z"]
    for names, message in [
        (["y"], "output_names has 1 names, but the function returned 2"), ("yz", "is a list of names, not 'yz'"),
        (["y", "y"], "two outputs of '.*' are called 'y'"), (["x", "y"], "has the name of the input 'x'"),
        (["y", ""], "is a list of names"),
    ]:  # fmt: skip
        with pytest.raises(InvalidArgumentError, match=message):
            sx.trace(lambda x: (x + 1, x), X, output_names=names)
    assert sx.trace(lambda x: x, X, output_names=["x"]).graph.output_names() == ["x"], "an input is itself"


def test_constants_inputs_and_the_same_value_twice():
    def fn(x: sx.Tensor) -> tuple[Any, ...]:
        y = x + 1
        return y, x, y, 3, np.ones(2), sx.zeros(2, dtype=sx.int8), x.shape[0]

    graph = sx.trace(fn, X).graph
    assert [dtype.name for _, dtype, _ in graph.outputs()] == [
        "float32", "float32", "float32", "int64", "float64", "int8", "int64",
    ]  # fmt: skip
    got = graph.evaluate([DATA])
    assert [g.tolist() for g in got[3:]] == [3, [1, 1], [0, 0], 3]
    assert got[0].tolist() == got[2].tolist() and got[1].tolist() == DATA.tolist()
    got[1].numpy()[:] = 0
    assert DATA[0, 1] == 1, "a result is no view of an input"


@pytest.mark.parametrize("wrong", [None, "text", object(), 1j])
def test_what_is_no_result(wrong: object):
    with pytest.raises(InvalidArgumentError, match="returned .* at \\[1\\]; it returns a Tensor, or a list"):
        sx.trace(lambda x: [x, wrong], X)
    with pytest.raises(InvalidArgumentError, match="returned no tensor"):
        sx.trace(lambda x: [], X)


def test_names_of_graphs():
    def my_model(x: sx.Tensor) -> sx.Tensor:
        return x

    class Model:
        def __call__(self, x: sx.Tensor) -> sx.Tensor:
            return x

    assert sx.trace(my_model, X).graph.name == "my_model"
    assert sx.trace(lambda x: x, X).graph.name == "graph"
    assert sx.trace(Model(), X).graph.name == "Model"
    assert sx.trace(my_model, X, name="other").graph.name == "other"
    with pytest.raises(InvalidArgumentError, match="fn is a function, not int"):
        sx.trace(3, X)  # pyright: ignore[reportArgumentType]


def test_errors_of_the_function_pass_through_and_end_the_trace():
    def fails(x: sx.Tensor) -> sx.Tensor:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        sx.trace(fails, X)
    assert sx.trace(lambda x: x + 1, X).graph.evaluate([DATA])[0].tolist() == (DATA + 1).tolist()


# ---- what it captures


def test_captures_are_constants_small_ones_dense_large_ones_weights():
    small, large = sx.asarray(np.arange(4.0)), np.arange(400, dtype=np.float32)

    def fn(x: sx.Tensor) -> sx.Tensor:
        return x * small + sx.asarray(large).reshape(100, 4).sum(0)

    graph = sx.trace(fn, X).graph
    assert len(graph.store) == 0, "what is computed while tracing is eager"
    graph = sx.trace(lambda x: x @ sx.asarray(large).reshape(4, 100), X).graph
    assert [w.shape for w in graph.store] == [(4, 100)] and "#sx.weight" in str(graph)


def test_equal_captures_are_one():
    weight = np.ones((4, 100), np.float32)
    graph = sx.trace(lambda x: x @ sx.asarray(weight) + x @ sx.array(weight) + x @ weight, X).graph
    assert len(graph.store) == 1 and ops_of(graph).count("sx.constant") == 1
    graph = sx.trace(lambda x: x * 2.0 + x / 2.0 + 2.0, X).graph
    assert ops_of(graph).count("sx.constant") == 1


def test_a_capture_is_a_snapshot():
    weight, small = np.ones((4, 100), np.float32), np.ones(4, np.float32)
    graph = sx.trace(lambda x: (x @ weight, x + sx.asarray(small)), X).graph
    weight[:] = small[:] = 7
    product, total = graph.evaluate([DATA])
    np.testing.assert_array_equal(product, DATA @ np.ones((4, 100), np.float32))
    np.testing.assert_array_equal(total, DATA + 1)


# ---- where ops come from


def double(x: sx.Tensor) -> sx.Tensor:
    return x * 2  # in a helper


class Block:
    def forward(self, x: sx.Tensor) -> sx.Tensor:
        return double(x) + 1  # in a method


def user_function(x: sx.Tensor) -> sx.Tensor:
    y = Block().forward(x)
    z = np.exp(y)  # through NumPy
    w = sx.var(z, 1, correction=1)  # several ops
    return operator.add(w, w)  # through Python


def test_every_op_knows_its_line_and_function():
    graph = sx.trace(user_function, X).graph
    found: dict[tuple[int, str | None], list[str]] = {}
    for op in list(main_function(graph.module).body.block.ops)[:-1]:
        location = op.location
        assert isinstance(location, CallSiteLoc), op.name
        callee, caller = location.callee, location.caller
        assert isinstance(callee, FileLineColLoc) and isinstance(caller, NameLoc)
        assert callee.filename.data.endswith(HERE) and callee.column.data > 0
        found.setdefault((callee.line.data, caller.desc.data), []).append(op.name)
    assert found[line_of(double, "in a helper"), "double"] == ["sx.constant", "sx.mul"]
    assert found[line_of(Block.forward, "in a method"), "Block.forward"] == ["sx.constant", "sx.add"]
    assert found[line_of(user_function, "through NumPy"), "user_function"] == ["sx.exp"]
    assert "sx.reduce_sum" in found[line_of(user_function, "several ops"), "user_function"]
    assert "sx.add" in found[line_of(user_function, "through Python"), "user_function"]
    assert len(found) == 5


def test_nodes_tell_their_location():
    graph = sx.trace(user_function, X).graph
    assert graph.node("Exp_0").location == f"tests/frontend/{HERE}:{line_of(user_function, 'through NumPy')}"
    (_, first) = inspect.getsourcelines(user_function)
    assert graph.node("x").location == f"tests/frontend/{HERE}:{first}"


def test_columns_tell_calls_of_one_line_apart():
    graph = sx.trace(lambda x: sx.exp(x) + sx.log(x), X).graph
    ops = list(main_function(graph.module).body.block.ops)[:-1]
    columns = {op.name: op.location.callee.column.data for op in ops}  # pyright: ignore[reportAttributeAccessIssue]
    assert columns["sx.exp"] == columns["sx.add"] != columns["sx.log"], "an expression is where it begins"


# ---- what is refused, with the user's line


def fails(x: sx.Tensor) -> Any:
    if (x > 0).all():  # bool of a traced tensor
        return x
    return -x


REFUSALS: dict[str, tuple[Callable[[sx.Tensor], Any], str]] = {
    "if": (lambda x: 1 if x.sum() > 0 else 0, "no truth value .* use sardonyx.where"),
    "and": (lambda x: (x > 0) and x, "no truth value .* & |"),
    "int": (lambda x: int(x.sum()), r"int\(\) of a traced tensor.*astype\(sardonyx.int64\)"),
    "float": (lambda x: float(x.sum()), r"float\(\) of a traced tensor"),
    "complex": (lambda x: complex(x.sum()), r"complex\(\)"),
    "index": (lambda x: [1, 2][operator.index(sx.sum(x, dtype=sx.int64))], "used as an index"),
    "range": (lambda x: range(sx.sum(x, dtype=sx.int64)), "used as an index or a count"),
    "iter": (lambda x: list(x), "iteration over a traced tensor.*sardonyx.unstack"),
    "unpack": (lambda x: operator.call(lambda a, b: a, *x), "iteration"),
    "in": (lambda x: 3 in x, "`in` of a traced tensor.*sardonyx.any"),
    "len": (lambda x: len(x), r"len\(\).*'batch' is dynamic.*x.shape\[0\]"),
    "item": (lambda x: x.sum().item(), r"item\(\)"),
    "tolist": (lambda x: x.tolist(), r"tolist\(\)"),
    "numpy": (lambda x: x.numpy(), r"numpy\(\)"),
    "asarray": (lambda x: np.asarray(x), "a NumPy array is asked of a traced tensor"),
    "dlpack": (lambda x: np.from_dlpack(x), "DLPack"),
    "pickle": (lambda x: x.__reduce__(), "pickle the graph"),
    "dim": (lambda x: range(x.shape[0]), "the dynamic dim 'batch' is no number while tracing"),
    "dim float": (lambda x: float(x.shape[0]), "dynamic dim 'batch'"),
    "dim if": (lambda x: x if x.shape[0] == 1 else -x, "whether batch == 1 is known only when the graph runs"),
    "dim less": (lambda x: x if x.shape[0] < 5 else -x, "whether batch < 5 is known only"),
    "dim bool": (lambda x: x if x.shape[0] else -x, "whether batch == 0"),
    "unstack": (lambda x: sx.unstack(x), "unstack.*'batch' is dynamic"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_name_the_line_and_the_remedy(name: str):
    fn, message = REFUSALS[name]
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        sx.trace(fn, X)
    _, first = inspect.getsourcelines(fn)
    assert str(caught.value).startswith(f"tests/frontend/{HERE}:{first}: "), str(caught.value)
    assert caught.value.code_name == "INVALID_ARGUMENT"
    assert "\n" not in str(caught.value)


def test_the_line_is_the_innermost_of_the_users():
    with pytest.raises(InvalidArgumentError) as caught:
        sx.trace(lambda x: fails(x), X)
    assert caught.value.location == f"tests/frontend/{HERE}:{line_of(fails, 'bool of a traced tensor')}"


def test_broken_constraints_name_the_line():
    def broken(x: sx.Tensor) -> sx.Tensor:
        y = x + 1
        return sx.matmul(y, np.ones((5, 2), np.float32))  # inner extents

    with pytest.raises(sx.InferenceError, match="inner extents differ") as caught:
        sx.trace(broken, X)
    assert caught.value.location == f"tests/frontend/{HERE}:{line_of(broken, '# inner extents')}"
    assert caught.value.op == "sx.matmul"
    with pytest.raises(sx.InferenceError, match=f"{HERE}:\\d+: .*inner extents differ"):
        broken(sx.ones(2, 4))


def test_masks():
    with pytest.raises(UnsupportedError, match=f"{HERE}:\\d+: a boolean mask as an index.*sardonyx.where"):
        sx.trace(lambda x: x[x > 0], X)


def test_static_dims_are_numbers():
    def fn(x: sx.Tensor) -> sx.Tensor:
        assert x.shape[1] == 4 and len(x.T) == 4 and range(x.shape[1]) and x.ndim == 2
        assert isinstance(x.shape[0], Extent) and str(x.shape) == "(batch, 4)" and str(x.size) == "4*batch"
        assert x.shape[0] == x.shape[0] and x.shape[0] != x.shape[0] + 1 and x.shape[0] * 2 >= x.shape[0]
        assert f"{x.shape[0] + 1}" == "batch + 1" and x.shape[0] >= 0 and not x.shape[0] < 0
        assert (2 * x.shape[0]) // 2 == x.shape[0] and (x.shape[0] * 4) % 4 == 0
        assert hash(x.shape[0]) == hash((x + 1).shape[0]) and x.shape == (x + 1).shape
        return x

    sx.trace(fn, X)


def test_dims_compute():
    def fn(x: sx.Tensor) -> tuple[sx.Tensor, ...]:
        n = x.shape[0]
        return (
            x / n,
            x * (n + 1),
            sx.full((n * 2 - 1,), n),
            sx.arange(n // 2),
            n / 2,
            7 - n + x.size,
            x.sum() * (0.5 * n),
        )

    graph = sx.trace(fn, X).graph
    got = graph.evaluate([DATA])
    wanted = [DATA / 3, DATA * 4, np.full(5, 3), np.arange(1), np.float32(1.5), np.int64(16), DATA.sum() * 1.5]
    for g, w in zip(got, wanted, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-6)
    assert [s.dim_names for s in graph.output_specs()[:4]] == [
        ["batch", ""],
        ["batch", ""],
        ["2*batch - 1"],
        ["batch floordiv 2"],
    ]


# ---- outside of its trace


def test_a_leaked_tensor_is_refused():
    leaked: list[sx.Tensor] = []
    sx.trace(lambda x: leaked.append(x) or x, X, name="first")
    with pytest.raises(
        InvalidArgumentError, match=f"{HERE}:\\d+: a tensor of the trace 'first' is used after"
    ) as caught:
        _ = leaked[0] + 1
    assert "return it from the traced function" in str(caught.value)
    with pytest.raises(InvalidArgumentError, match="of the trace 'first' is used after that trace has ended"):
        sx.trace(lambda x: x + leaked[0], X)
    graph = sx.trace(lambda x: x, X).graph
    with pytest.raises(InvalidArgumentError, match="the input 'x' is a traced tensor"):
        graph.evaluate(leaked)
    assert "traced tensor float32[batch, 4] of 'first'" in repr(leaked[0])


def test_a_trace_inside_of_a_trace():
    def outer(x: sx.Tensor) -> sx.Tensor:
        inner = sx.trace(lambda y: y * 2, "y: f32[4]", name="inner").graph
        assert ops_of(inner) == ["sx.constant", "sx.mul"]
        return x + 1

    assert ops_of(sx.trace(outer, X).graph) == ["sx.constant", "sx.add"]

    def captures(x: sx.Tensor) -> sx.Tensor:
        sx.trace(lambda y: y * x, "y: f32[4]", name="inner")
        return x

    with pytest.raises(InvalidArgumentError, match="of the trace 'captures' is used in the trace 'inner' inside of it"):
        sx.trace(captures, X)


def test_another_thread():
    def fn(x: sx.Tensor) -> sx.Tensor:
        errors: list[BaseException] = []

        def work() -> None:
            try:
                _ = x + 1
            except InvalidArgumentError as error:
                errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert "another thread" in str(errors[0])
        return x

    sx.trace(fn, X)


def test_expressions_in_inputs_are_solved():
    graph = sx.trace(lambda x: (x.reshape(x.shape[0] // 2, 2), sx.arange(x.shape[0] // 2)), "x: f32[2*seq]").graph
    assert [s.dim_names for s in graph.output_specs()] == [["seq", ""], ["seq"]]
    a, b = graph.evaluate([np.arange(6, dtype=np.float32)])
    assert a.shape == (3, 2) and b.tolist() == [0, 1, 2]


def test_nested_containers_are_inputs_and_outputs():
    spec = sx.TensorSpec("", sx.float32, ["n"])

    def fn(x: sx.Tensor, *, cache: list[tuple[sx.Tensor, sx.Tensor]], options: dict[str, sx.Tensor]) -> dict[str, Any]:
        assert isinstance(cache, list) and isinstance(cache[0], tuple) and set(options) == {"bias"}
        return {"y": x + options["bias"], "cache": [(k + x, v * x) for k, v in cache]}

    signature = {"x": spec, "cache": [(spec, spec), (spec, spec.renamed("last"))], "options": {"bias": spec}}
    result = sx.trace(fn, signature)
    names = ["x", "cache[0][0]", "cache[0][1]", "cache[1][0]", "last", "options.bias"]
    assert result.graph.input_names() == names
    outputs = ["y", "cache[0][0]_out", "cache[0][1]_out", "cache[1][0]_out", "cache[1][1]"]
    assert result.graph.output_names() == outputs, "paths that inputs have are told apart"
    arrays = {name: np.full(2, k, np.float32) for k, name in enumerate(names)}
    made = result.structure.build(result.graph.evaluate(arrays))
    assert made["y"].tolist() == [5, 5] and made["cache"][1][1].tolist() == [0, 0]
    positional = sx.trace(
        lambda a, b: a + b[0] + b[1]["c"], (spec.renamed("a"), [spec.renamed("b"), {"c": spec}])
    ).graph
    assert positional.input_names() == ["a", "b", "[1][1].c"]
    with pytest.raises(InvalidArgumentError, match=r"a signature consists of TensorSpec, not int \(at cache\[1\]\)"):
        sx.trace(fn, {"cache": [spec, 3]})
