"""Profiles: every launch is counted, with the node that it is for."""

import numpy as np

import sardonyx as sx
from sardonyx.backends.llvm.profile import profile


def test_launches_are_counted_by_node():
    def f(values):
        (x,) = values
        return sx.softmax(sx.matmul(sx.transpose(sx.exp(x), (1, 0)), x), axis=1)

    graph = sx.trace(f, [sx.TensorSpec("x", sx.float32, [64, 48])], name="f").graph
    found = profile(graph.module, [np.ones((64, 48), np.float32)], runs=3, threads=1)
    assert len(found.launches) >= 2
    assert all(launch.seconds > 0 for launch in found.launches)
    assert all("test_profile.py" in launch.node for launch in found.launches)
    text = found.table()
    assert text.splitlines()[0].endswith(f"in {len(found.launches)} launches")
    assert len(text.splitlines()) == 1 + len(found.launches)


def test_an_ordinary_run_counts_nothing():
    def f(values):
        return sx.exp(values[0])

    graph = sx.trace(f, [sx.TensorSpec("x", sx.float32, [64])], name="f").graph
    graph.finalize()
    graph.run([np.ones(64, np.float32)])
    assert graph.compiled.cycles == [0]
