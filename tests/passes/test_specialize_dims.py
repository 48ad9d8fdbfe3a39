"""`specialize-dims`: values at the extents that it fixes, natively too, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.errors import InvalidArgumentError
from sardonyx.passes.pipeline import PassManager
from sardonyx.passes.specialize_dims import SpecializeDimsPass, parse_bindings


def test_values_at_the_extents():
    graph = sx.trace(lambda x: sx.reshape(sx.concat([x, sx.exp(x)], axis=0), (-1,)), "x: f32[batch, 2*k]").graph
    fixed = graph.clone()
    report = fixed.optimize([SpecializeDimsPass(dims=("batch=3", "k=2"))])
    assert report.changed and str(report.promise) == "exact"
    assert "batch" not in fixed.text() and "tensor<24xf32>" in fixed.text()
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    (want,) = graph.evaluate([x])
    fixed.finalize()
    (got,) = fixed.run([x])
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-6)
    with pytest.raises(InvalidArgumentError):
        fixed.run([np.ones((2, 4), np.float32)])
    # A second run has nothing to do but to say so.
    again = PassManager([SpecializeDimsPass(dims=("batch=3",))]).run(fixed.module)
    assert not again.changed
    assert [r.kind for r in again.passes[0].remarks] == ["warning"]


def test_bodies_of_regions():
    def loop(x):
        return sx.while_loop(lambda state: state[0] < 3, lambda s: (s[0] + 1, sx.tanh(s[1])), (sx.asarray(0), x))[1]

    graph = sx.trace(loop, "x: f32[n]").graph
    fixed = graph.clone()
    fixed.optimize([SpecializeDimsPass(dims=("n=5",))])
    assert "#sx.dims" not in fixed.text()
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(np.asarray(graph.evaluate([x])[0]), np.asarray(fixed.evaluate([x])[0]))


@pytest.mark.parametrize("dims", [("a",), ("a=-1",), ("=3",), ("a=1", "a=2"), ("a=x",)])
def test_bindings_that_are_refused(dims: tuple[str, ...]):
    with pytest.raises(InvalidArgumentError, match="specialize-dims"):
        parse_bindings(dims)


def test_names_and_extents():
    assert parse_bindings(("a=1", " b = 20 ")) == {"a": 1, "b": 20}
