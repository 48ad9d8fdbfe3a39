"""`@sardonyx.jit`: what makes it trace again, and what it returns."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.errors import InvalidArgumentError, UnsupportedError


def f32(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def test_one_trace_serves_every_size():
    @sx.jit
    def scaled(x: sx.Tensor, y: sx.Tensor) -> sx.Tensor:
        """Doc."""
        return x * 2 + y

    assert scaled.__name__ == "scaled" and scaled.__doc__ == "Doc."
    for rows, columns in [(2, 3), (5, 7), (0, 4), (8, 2)]:
        x, y = f32(rows, columns), f32(columns)
        np.testing.assert_array_equal(scaled(x, y), x * 2 + y)
    assert scaled.cache_info() == (3, 1, 1)
    (graph,) = scaled.graphs()
    assert graph.inputs() == [("x", sx.float32, (-1, -1)), ("y", sx.float32, (-1,))] and graph.is_finalized


def test_what_traces_again():
    calls: list[tuple[Any, ...]] = []

    @sx.jit
    def fn(x: sx.Tensor, factor: object = 2) -> sx.Tensor:
        calls.append((x.dtype.name, x.shape, factor))
        return x + float(factor) if isinstance(factor, int | float) else x

    fn(f32(2, 3))
    fn(f32(4, 5))
    assert len(calls) == 1
    for again in [
        lambda: fn(f32(2, 3).astype(np.float64)),  # dtype
        lambda: fn(f32(3)),  # rank
        lambda: fn(f32(1, 3)),  # a dim that is 1
        lambda: fn(f32(3, 1)),
        lambda: fn(f32(2, 3), 3),  # a Python argument
        lambda: fn(f32(2, 3), 2.0),  # of another type
        lambda: fn(f32(2, 3), True),
        lambda: fn(f32(2, 3), 0.0),
        lambda: fn(f32(2, 3), -0.0),
        lambda: fn(f32(2, 3), "text"),
        lambda: fn(f32(2, 3), factor=2),  # given by keyword
    ]:
        before = len(calls)
        again()
        assert len(calls) == before + 1, calls[-1]
        again()
        assert len(calls) == before + 1, calls[-1]
    assert calls[3][1][0] == 1, "a dim that is 1 is static"
    assert fn.cache_info().traces == len(calls) == fn.cache_info().size == 12
    fn.cache_clear()
    assert fn.cache_info() == (0, 0, 0)


def test_a_dim_that_is_1_broadcasts():
    add = sx.jit(lambda x, y: x + y)
    for a, b in [((3, 1), (1, 4)), ((3, 4), (3, 4)), ((1,), (5,)), ((2, 4), (1, 4))]:
        x, y = f32(*a), f32(*b)
        np.testing.assert_array_equal(add(x, y), x + y)
    with pytest.raises(sx.SardonyxError):
        add(f32(3, 4), f32(2, 4))


def test_containers_go_in_and_out():
    @sx.jit
    def fn(batch: dict[str, sx.Tensor], *rest: sx.Tensor, scale: float) -> dict[str, Any]:
        total = batch["x"] * scale
        for r in rest:
            total = total + r
        return {"total": total, "pair": (batch["y"], [total.sum()]), "none": None, "name": "text"}

    out = fn({"x": f32(3), "y": f32(2)}, f32(3), f32(3), scale=2.0)
    assert set(out) == {"total", "pair", "none", "name"} and out["none"] is None and out["name"] == "text"
    np.testing.assert_array_equal(out["total"], f32(3) * 4)
    assert type(out["pair"]) is tuple and type(out["pair"][1]) is list and out["pair"][1][0].item() == 12
    assert [n for n, *_ in fn.graphs()[0].inputs()] == ["batch.x", "batch.y", "arg1", "arg2"]


def test_all_kinds_of_tensors():
    double = sx.jit(lambda x: x * 2)
    wanted = (f32(3) * 2).tolist()
    assert double(f32(3)).tolist() == double(sx.asarray(f32(3))).tolist() == wanted
    assert double(np.float32(3)).item() == 6.0 and double(np.float16(1)).dtype == sx.float16
    assert double.cache_info().traces == 3
    assert isinstance(double(f32(3)), sx.Tensor)


def test_scalars_only():
    assert sx.jit(lambda n: sx.ones(n) * 2)(3).tolist() == [2, 2, 2]


def test_inside_of_a_trace_it_is_part_of_it():
    inner = sx.jit(lambda x: sx.exp(x))
    graph = sx.trace(lambda x: inner(x) + 1, "x: f32[n]").graph
    assert "sx.exp" in str(graph) and inner.cache_info() == (0, 0, 0)
    outer = sx.jit(lambda x: inner(x) * 2)
    np.testing.assert_allclose(outer(f32(3)), np.exp(f32(3)) * 2, rtol=1e-6)
    assert inner.cache_info() == (0, 0, 0) and outer.cache_info().traces == 1


def test_methods():
    class Model:
        def __init__(self, scale: float) -> None:
            self.scale = scale

        @sx.jit
        def forward(self, x: sx.Tensor) -> sx.Tensor:
            return x * self.scale

    one, two = Model(2.0), Model(3.0)
    assert one.forward(f32(2)).tolist() == [0, 2] and two.forward(f32(2)).tolist() == [0, 3]
    assert Model.forward.cache_info().traces == 2


def test_options():
    seen: list[str] = []

    @sx.jit(optimize=False)
    def fn(x: sx.Tensor) -> sx.Tensor:
        seen.append("traced")
        sx.exp(x)
        return x + 1

    fn(f32(2))
    assert "sx.exp" in str(fn.graphs()[0]) and seen == ["traced"]
    optimized = sx.jit(lambda x: (sx.exp(x), x + 1)[1])
    optimized(f32(2))
    assert "sx.exp" not in str(optimized.graphs()[0])


def test_refusals():
    def stays_python(x: sx.Tensor) -> sx.Tensor:
        return x if x.sum() > 0 else -x

    with pytest.raises(InvalidArgumentError, match=r"test_jit\.py:\d+: a traced tensor has no truth value"):
        sx.jit(stays_python)(f32(2))

    class Unhashable:
        __hash__ = None  # pyright: ignore[reportAssignmentType]

    with pytest.raises(InvalidArgumentError, match=r"test_jit\.py:\d+: the argument options of the jitted function "
                       "'takes' is neither a tensor nor hashable, but Unhashable"):  # fmt: skip

        def takes(x: sx.Tensor, options: Any) -> sx.Tensor:
            return x

        sx.jit(takes)(f32(2), Unhashable())
    with pytest.raises(InvalidArgumentError, match="returned no tensor"):
        sx.jit(lambda x: None)(f32(2))
    with pytest.raises(UnsupportedError, match="boolean mask"):
        sx.jit(lambda x: x[x > 0])(f32(2))


def test_threads():
    traced: list[int] = []

    @sx.jit
    def fn(x: sx.Tensor) -> sx.Tensor:
        traced.append(1)
        return x * x + 1

    failures: list[int] = []

    def work(size: int) -> None:
        for _ in range(20):
            if not np.array_equal(fn(f32(size)), f32(size) ** 2 + 1):
                failures.append(size)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(2, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and len(traced) == 1
