"""Python that depends on data: the error names the line, and the hint has the rewrite, which is then traced."""

from __future__ import annotations

import pytest

import sardonyx as sx
from sardonyx.errors import SardonyxError
from sardonyx.frontend.rewrites import rewrite

LINES = [
    ("if x.sum() > 0:", "sardonyx.cond(x.sum() > 0, lambda: ..., lambda: ...)"),
    ("elif y < z:", "sardonyx.where(y < z, a, b)"),
    ("while err > 1e-3:", "err = sardonyx.while_loop(lambda err: err > 0.001, lambda err: ..., err)"),
    ("while abs(x - sx.exp(y)) > 1:", "x = sardonyx.while_loop(lambda x: abs(x - sx.exp(y)) > 1, lambda x"),
    ("while x.max() > 1:", "x = sardonyx.while_loop(lambda x: x.max() > 1, lambda x: ..., x) with what changes as x"),
    ("return a if m else b + 1", "sardonyx.where(m, a, b + 1)"),
    ("if x.shape[0] == 1:", "sardonyx.cond(sardonyx.shape(x)[0] == 1, lambda"),
    ("assert x.all(), 'text'", "leave it out, or return x.all()"),
    ("for i in range(x.shape[0]):", "v = sardonyx.fori_loop(0, x.shape[0], lambda i, v: ..., v)"),
    ("for i in range(2, n):", "sardonyx.fori_loop(2, n, lambda i, v: ..., v)"),
    ("for row in x:", "sardonyx.scan(lambda v, row: (..., ...), v, x)"),
    ("total = [f(r) for r in x]", "sardonyx.scan(lambda v, r: (v, ...), 0, x)[1]"),
    ("y = x > 0 and z", "(x > 0) & (z)"),
    ("y = not done", "~(done)"),
    ("k = x.max().item()", "use x.max() itself"),
    ("k = int(x.max())", "(x.max()).astype(sardonyx.int64)"),
    ("y = x[x > 0]", "sardonyx.where(x > 0, x, 0)"),
    ("y = x[x > 0]", "sardonyx.compress(sardonyx.reshape(x > 0, (-1,)), x)"),
    ("y = x[keep > 0]", "sardonyx.compress(keep > 0, x, axis=0)"),
]


@pytest.mark.parametrize(("line", "wanted"), LINES)
def test_the_rewrite_of_a_line(line: str, wanted: str):
    assert wanted in str(rewrite(f"    {line}\n"))


def test_lines_that_tell_nothing():
    for line in ("", "x = (", "y = f(x)", ")", "# a comment"):
        assert rewrite(line) is None


def test_in_a_trace():
    def fails(x: sx.Tensor) -> sx.Tensor:
        total = x * 0
        for i in range(x.shape[0]):
            total = total + x[i]
        return total

    def works(x: sx.Tensor) -> sx.Tensor:
        return sx.fori_loop(0, x.shape[0], lambda i, v: v + x[i], x[0] * 0)

    with pytest.raises(SardonyxError, match="test_rewrites.py:.*the dynamic dim 'n' is no number") as caught:
        sx.trace(fails, "x: f32[n,3]")
    assert "sardonyx.fori_loop(0, x.shape[0], lambda i, v: ..., v)" in str(caught.value.hint)
    assert sx.trace(works, "x: f32[n,3]").graph.evaluate([sx.ones(4, 3)])[0].tolist() == [4, 4, 4]
    with pytest.raises(SardonyxError, match="a boolean mask as an index") as caught:
        sx.trace(lambda x: x[x > 0].sum(), "x: f32[n]")
    assert "sardonyx.compress(sardonyx.reshape(x > 0, (-1,)), x)" in str(caught.value.hint)

    def taken(x: sx.Tensor) -> tuple[sx.Tensor, sx.Tensor]:
        return sx.compress(sx.reshape(x > 0, (-1,)), x).sum(), sx.where(x > 0, x, 0).sum()

    for signature, given in (("x: f32[n]", [1.0, -1.0, 2.0]), ("x: f32[n,2]", [[1.0, -1.0], [-3.0, 2.0]])):
        found = sx.trace(taken, signature).graph.evaluate([sx.asarray(given, dtype=sx.float32)])
        assert [t.item() for t in found] == [3, 3]
