"""`attach_kv_cache`: a step with its cache inside against the same step with the cache as inputs and outputs."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.dialects.dtypes import DType
from sardonyx.errors import FailedPreconditionError, InvalidArgumentError, UnsupportedError

HEADS, SIZE = 3, 8
WIDTH = HEADS * SIZE


def step(dtype: str = "f32", rows: str = "n", batch: str = "b", layout: str = "heads first", past: str = "past") -> Any:
    rng = np.random.default_rng(0)
    weights = [sx.asarray(rng.normal(size=(WIDTH, WIDTH)) / 5, dtype=DType.of(dtype)) for _ in range(3)]
    axis = 2 if layout == "heads first" else 1

    def attend(x: sx.Tensor, pk: sx.Tensor, pv: sx.Tensor) -> dict[str, sx.Tensor]:
        q, k, v = (sx.reshape(x @ w, (x.shape[0], x.shape[1], HEADS, SIZE)) for w in weights)
        if axis == 2:
            k, v = (t.transpose(0, 2, 1, 3) for t in (k, v))
        k, v = sx.concat([pk, k], axis=axis), sx.concat([pv, v], axis=axis)
        present = {"k": k, "v": v}
        if axis == 1:
            k, v = (t.transpose(0, 2, 1, 3) for t in (k, v))
        p = sx.softmax((q.transpose(0, 2, 1, 3) @ k.transpose(0, 1, 3, 2)) * 0.3, axis=-1)
        return {"y": (p @ v).transpose(0, 2, 1, 3).reshape(x.shape), **present}

    held = f"{batch},{HEADS},{past},{SIZE}" if axis == 2 else f"{batch},{past},{HEADS},{SIZE}"
    return sx.trace(attend, f"x: {dtype}[{batch},{rows},{WIDTH}], pk: {dtype}[{held}], pv: {dtype}[{held}]").graph


def inputs(rows: int, dtype: str = "f32", batch: int = 2) -> np.ndarray:
    return np.random.default_rng(rows).normal(size=(batch, rows, WIDTH)).astype(DType.of(dtype).numpy)


@pytest.mark.parametrize(
    ("dtype", "rows", "layout", "past"),
    [
        ("f32", "n", "heads first", "past"), ("f32", "n", "rows first", "?"), ("f16", "1", "heads first", "past"),
    ],
)  # fmt: skip
def test_the_same_as_with_inputs_and_outputs(dtype: str, rows: str, layout: str, past: str):
    graph = step(dtype, rows, layout=layout, past=past)
    plain, reference = graph.clone(), graph.clone()
    theirs = reference.attach_kv_cache(20)
    cache = graph.attach_kv_cache(20)
    assert graph.input_names() == ["x"] and graph.output_names() == ["y"] and graph.kv_cache is cache
    graph.finalize()
    assert not [n for n in graph.compiled.sizes.launches if n.startswith("gather")], "nobody copies the cache"
    axis = 2 if layout == "heads first" else 1
    shape = (2, HEADS, 0, SIZE) if axis == 2 else (2, 0, HEADS, SIZE)
    held: list[Any] = [np.zeros(shape, DType.of(dtype).numpy)] * 2
    tolerance = {"f16": 4e-3, "f32": 1e-5, "f64": 1e-12}[dtype]
    position = 0
    for n in (9, 1, 1, 4, 1, 2) if rows == "n" else (int(rows),) * 4:
        x = inputs(n, dtype)
        y, *held = [np.asarray(t) for t in plain.evaluate([x, *held])]
        position += n
        for got in (graph.run([x]), reference.evaluate({"x": x})):
            assert len(got) == 1
            np.testing.assert_allclose(got[0], y, atol=tolerance, rtol=tolerance)
        assert cache.position == theirs.position == position
        for mine in (cache.arrays(), theirs.arrays()):
            np.testing.assert_allclose(mine["pk"], held[0], atol=tolerance)
            np.testing.assert_allclose(mine["pv"], held[1], atol=tolerance)


def test_positions_capacity_and_batches():
    graph = step()
    cache = graph.attach_kv_cache(6)
    assert repr(cache) == "<KVCache of 2 buffers, 0 of 6 rows>" and cache.capacity == 6 and cache.arrays() == {}
    graph.optimize()
    graph.finalize()
    first = [graph.run([inputs(n)])[0].numpy().copy() for n in (4, 1)]
    for run in (graph.run, graph.evaluate):
        with pytest.raises(FailedPreconditionError, match="full: it holds 5 rows, 2 more exceed its capacity of 6"):
            run([inputs(2)])
        with pytest.raises(InvalidArgumentError, match=r"rows of the shape \[2, 3, 5, 8\], but .* of \[1, 3, 5, 8\]"):
            run([inputs(1, batch=1)])
        with pytest.raises(InvalidArgumentError, match="expected 24"):
            run([np.zeros((2, 1, 3), np.float32)])
    assert cache.position == 5, "a run that is refused appends nothing"
    cache.rewind(4)
    np.testing.assert_array_equal(graph.run([inputs(1)])[0], first[1])
    with pytest.raises(InvalidArgumentError, match="holds 5 rows, not 6"):
        cache.rewind(6)
    for other in (graph.clone(), pickle.loads(pickle.dumps(graph))):
        other.evaluate([inputs(1)])
        assert other.kv_cache.position == 6 and cache.position == 5
    cache.reset()
    assert graph.run([inputs(6, batch=1)])[0].shape == (1, 6, WIDTH), "an empty cache takes any batch"
    cache.reset()
    np.testing.assert_array_equal(graph.run([inputs(4)])[0], first[0])


def test_a_cache_for_two_graphs():
    prompt, decode, plain = step(rows="n", batch="1"), step(rows="1", batch="1"), step(batch="1")
    cache = prompt.attach_kv_cache(16)
    assert decode.attach_kv_cache(cache=cache) is cache
    for graph in (prompt, decode):
        graph.finalize()
    held: list[Any] = [np.zeros((1, HEADS, 0, SIZE), np.float32)] * 2
    for n, graph in ((5, prompt), (1, decode), (1, decode), (3, prompt), (1, decode)):
        y, *held = [np.asarray(t) for t in plain.evaluate([inputs(n, batch=1), *held])]
        np.testing.assert_allclose(graph.run([inputs(n, batch=1)])[0], y, atol=1e-5)
    for wrong, message in ((step("f64", batch="1"), "is of float32"), (step(layout="rows first"), "does not fit")):
        with pytest.raises(InvalidArgumentError, match=message):
            wrong.attach_kv_cache(cache=cache)


def test_the_past_is_read_too():
    """A step that uses what the cache held before, not only what it holds then."""

    def fn(x: sx.Tensor, past: sx.Tensor) -> dict[str, sx.Tensor]:
        return {"y": x + sx.sum(past, 0) + past.shape[0], "present": sx.concat([past, x], axis=0)}

    graph = sx.trace(fn, "x: f32[1,4], past: f32[rows,4]").graph
    graph.attach_kv_cache(4)
    graph.finalize()
    total, x = np.zeros(4, np.float32), np.arange(4, dtype=np.float32)[None]
    for turn in range(4):
        assert graph.run([x])[0].tolist() == [(x[0] + total + turn).tolist()]
        total += x[0]


def test_a_model_that_was_exported_and_heads_that_share_keys(tmp_path: Path):
    attention = sx.nn.MultiheadAttention(16, 4, 2, causal=True)

    def fn(x: sx.Tensor, pk: sx.Tensor, pv: sx.Tensor) -> dict[str, sx.Tensor]:
        y, (k, v) = attention(x, past=(pk, pv))
        return {"y": y, "k": sx.identity(k), "v": v}

    sx.trace(fn, "x: f32[1,n,16], pk: f32[1,2,past,4], pv: f32[1,2,past,4]").graph.export_onnx(tmp_path / "m.onnx")
    graph = sx.OnnxModel.open(str(tmp_path / "m.onnx")).compile()
    graph.attach_kv_cache(8)
    graph.finalize()
    assert graph.input_names() == ["x"] and not [n for n in graph.compiled.sizes.launches if n.startswith("gather")]
    x = sx.asarray(np.random.default_rng(0).normal(size=(1, 6, 16)).astype(np.float32))
    whole = attention(x)
    for begin, end in ((0, 4), (4, 5), (5, 6)):
        np.testing.assert_allclose(graph.run([x[:, begin:end]])[0], whole[:, begin:end], rtol=1e-5, atol=1e-6)


def test_what_is_no_cache():
    graph = sx.trace(lambda x, past: {"y": x + 1, "present": past * 2}, "x: f32[n], past: f32[rows]").graph
    with pytest.raises(InvalidArgumentError, match="no output of the graph is an input with rows appended") as caught:
        graph.attach_kv_cache()
    assert "concat([past, new], axis)" in str(caught.value.hint)
    for pairs, message in (
        ({"past": "present"}, "'present' is not the input 'past' with rows appended"),
        ({"pasta": "present"}, "has no input 'pasta'"),
        ({"past": "z"}, "has no output 'z'"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            graph.attach_kv_cache(pairs=pairs)
    with pytest.raises(InvalidArgumentError, match="a capacity is a number of rows from 1 on, not 0"):
        graph.attach_kv_cache(0)
    good = step()
    good.attach_kv_cache(8, pairs={"pk": "k"})
    assert good.input_names() == ["x", "pv"] and good.output_names() == ["y", "v"]
    with pytest.raises(FailedPreconditionError, match="the graph has a cache already"):
        good.attach_kv_cache()


def test_onnx_has_no_cache(tmp_path: Path):
    graph = step()
    graph.attach_kv_cache(8)
    with pytest.raises(
        UnsupportedError, match="'pk'.*in place, which ONNX cannot state.*before attach_kv_cache"
    ) as caught:
        graph.export_onnx(tmp_path / "step.onnx")
    assert caught.value.code_name == "NOT_IMPLEMENTED_FOR_PARAM" and not list(tmp_path.iterdir())
    graph.export_onnx(tmp_path / "step.onnx", explicit_state=True)
    back = sx.OnnxModel.open(str(tmp_path / "step.onnx")).compile()
    assert back.input_names() == ["x", "pk", "pv"] and back.output_names() == ["y", "pk_out", "pv_out"]
