"""`cond`, `while_loop`, `fori_loop`, `scan`: eagerly, by the reference, natively, and in onnxruntime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import sardonyx as sx
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.containers import flatten

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def check(fn: Callable[..., Any], tmp_path: Path, sets: list[np.ndarray], signature: str = "x: f32[n,m]") -> None:
    graph = sx.trace(fn, signature).graph
    graph.export_onnx(tmp_path / "m.onnx")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), options, providers=["CPUExecutionProvider"])
    plain = graph.clone()
    graph.optimize()
    graph.finalize()
    for x in sets:
        want = [leaf for _, leaf in flatten(fn(sx.asarray(x)))[0]]
        for got in (plain.evaluate([x]), graph.run([x]), session.run(None, {"x": x})):
            for a, b in zip(got, want, strict=True):
                np.testing.assert_allclose(np.asarray(a), b, rtol=1e-5, atol=1e-6)
                assert not isinstance(b, sx.Tensor) or np.asarray(a).dtype == b.dtype.numpy


def chosen(x: Any) -> Any:
    y = x * 2  # captured

    def nested(a: Any) -> Any:
        return {"p": a[:1] - y[:1], "q": sx.cond(a.sum() < -5, lambda: a.sum() * 2, lambda: a.sum())}

    return sx.cond(x.sum() > 3, lambda a: {"p": a + y, "q": 0}, nested, x)


def loops(x: Any) -> Any:
    count, doubled = sx.while_loop(lambda v: v[1].sum() < 100, lambda v: (v[0] + 1, v[1] * 2), (0, x + 1))
    grown = sx.while_loop(lambda t: sx.shape(t)[0] < 7, lambda t: sx.concat([t, t], axis=0), x)
    total = sx.fori_loop(
        0, x.shape[0], lambda i, acc: {"t": acc["t"] + x[i], "n": acc["n"] + i}, {"t": x[0] * 0, "n": 0}
    )
    return count, doubled, grown, total


def scans(x: Any) -> Any:
    sums, rows = sx.scan(lambda c, r: (c + r["x"], [c * r["y"], r["x"].sum()]), x[0] * 0, {"x": x, "y": x + 1})
    back = sx.scan(lambda c, r: (c + r, c), x[0] * 0, x, reverse=True)
    powers = sx.scan(lambda c, _: (c * 2, c.sum()), x, None, length=4, reverse=True)
    nothing = sx.scan(lambda c, r: (sx.maximum(c, r), None), x[0], x)[0]
    return sums, rows, back, powers, nothing


def writes(x: Any) -> Any:
    acc, y = x[0] * 0, x * 1

    def body(i: Any, v: Any) -> Any:
        acc.add_(x[i])
        y[0] = v
        return v + sx.cond(v > 5, lambda: acc.add_(1).sum(), lambda: 0.0)

    last = sx.fori(0, 2, body, x.sum())
    kept = sx.scan(lambda c, r: (c, acc.mul_(r)), last, x)[1]
    return last, acc, y, kept


def test_cond(tmp_path: Path):
    check(chosen, tmp_path, [X, X - 10, X - 2])


def test_loops(tmp_path: Path):
    check(loops, tmp_path, [X, X[:1], np.ones((5, 2), np.float32)])


def test_scans(tmp_path: Path):
    check(scans, tmp_path, [X, X[:1]])


def test_writes_inside(tmp_path: Path):
    check(writes, tmp_path, [X, X - 4], "x: f32[2,3]")


def test_a_state_written_in_a_branch_and_a_loop():
    count = sx.zeros(2)

    def step(x: sx.Tensor) -> sx.Tensor:
        sx.cond(x.sum() > 0, lambda: count.add_(1), lambda: count)
        return sx.fori_loop(0, 3, lambda i, v: v + count.add_(10), x)

    graph = sx.trace(step, "x: f32[2]").graph
    assert graph.output_names() == ["output_0", "state_out_0"] and count.tolist() == [0, 0]
    graph.finalize()
    for number, (sign, run) in enumerate(((1, graph.run), (-1, graph.evaluate), (1, graph.run))):
        x = np.full(2, sign, np.float32)
        before = count.numpy() + (sign > 0)
        got, state = run([x])
        np.testing.assert_array_equal(got, x + 3 * before + 60)
        assert state.tolist() == count.tolist() == (before + 30).tolist(), number


def test_without_a_trace_they_are_pythons():
    assert sx.cond(True, lambda: 1, lambda: 1 / 0) == 1
    assert sx.while_loop(lambda v: v < 10, lambda v: v * 2, 1).tolist() == 16
    assert sx.fori(2, 5, lambda i, v: v + i, 0).tolist() == 9
    assert sx.scan(lambda c, x: (c + x, x), 0, sx.arange(4))[0].tolist() == 6
    graph = sx.trace(lambda x: sx.cond(np.bool_(False), lambda: 1 / 0, lambda: x), "x: f32[3]").graph
    assert len(graph.nodes()) == 1, "a condition that is known is Python's"


BAD: list[tuple[Callable[[sx.Tensor], Any], str]] = [
    (lambda x: sx.cond(x, lambda: x, lambda: x), r"the condition is one bool, not float32\[2, 3\]"),
    (lambda x: sx.cond(x.sum() > 0, lambda: x, lambda: (x, x)), "true_fn returns one tensor, false_fn a tuple of 2"),
    (lambda x: sx.cond(x.sum() > 0, lambda: x, lambda: x.astype(sx.int64)), "true_fn returns float32, false_fn int64"),
    (lambda x: sx.cond(x.sum() > 0, lambda: "a", lambda: x), "returns tensors, not str"),
    (lambda x: sx.while_loop(lambda v: v, lambda v: v, x), "the condition is one bool"),
    (lambda x: sx.while_loop(lambda v: v.sum() < 1, lambda v: (v, v), x), "what is carried has 1 tensors"),
    (lambda x: sx.fori(0, 3, lambda i, v: v > 0, x), "what is carried is float32 at first, but bool after a turn"),
    (lambda x: sx.fori(0, 3, lambda i, v: v.sum(), x), "another rank after a turn"),
    (lambda x: sx.fori(0, x, lambda i, v: v, x), "a count is one integer, not float32"),
    (lambda x: sx.scan(lambda c, r: c, 0.0, x), r"f returns \(carry, y\), not Tensor"),
    (lambda x: sx.scan(lambda c, r: (c, r), 0.0), "without xs it takes a length"),
    (lambda x: sx.scan(lambda c, r: (c, r), 0.0, x.sum()), "has at least one axis"),
]


@pytest.mark.parametrize(("fn", "message"), BAD)
def test_what_does_not_go_together(fn: Callable[[sx.Tensor], Any], message: str):
    with pytest.raises(InvalidArgumentError, match=f"test_control.py:.*{message}") as caught:
        sx.trace(fn, "x: f32[2,3]")
    assert "\n" not in str(caught.value)


def test_a_tensor_that_leaves_its_region():
    kept: list[sx.Tensor] = []

    def fn(x: sx.Tensor) -> Any:
        sx.cond(x.sum() > 0, lambda: kept.append(x + 1) or x, lambda: x)
        return kept[0] * 2

    with pytest.raises(InvalidArgumentError, match="cond, while_loop, fori_loop or scan computed is used outside"):
        sx.trace(fn, "x: f32[3]")
