"""Memory stays flat: many runs of graphs of every kind take no more memory than few.

`python tests/backends/llvm/test_flat_memory.py 100000` makes so many runs of each and prints what the process holds.
"""

from __future__ import annotations

import gc
import mmap
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2] / "support"))

import numpy as np
import pytest
from nets import graph as net_graph
from onnx_text import compiled

import sardonyx as sx
from sardonyx.backends.llvm.compile import compile_native
from sardonyx.errors import SardonyxError

RUNS = 3000
Run = Callable[[int], Any]
X = np.arange(12, dtype=np.float32).reshape(3, 4)


def small() -> Run:
    graph = compiled("g (float[3,4] x) => (float[3,4] y) { e = Exp(x) y = Add(e, x) }")
    return lambda _: graph.run([X])


def dynamic() -> Run:
    """Sizes that change from run to run, results in NumPy's memory and in blocks of ours."""
    graph = compiled(
        "g (float[n,m] x) => (float[m,n] y, float[n,m] z) { e = Exp(x) y = Transpose<perm=[1,0]>(e) z = Mul(e, x) }"
    )
    feeds = [[np.ones((n, 40), np.float32)] for n in (1, 7, 300, 2000, 0, 33)]
    return lambda k: graph.run(feeds[k % len(feeds)] if k % 50 else feeds[3])


def decided_by_data() -> Run:
    graph = compiled(
        """g (float[n] x) => (int64[r,c] places, float[u] y, float[c] z) {
      places = NonZero(x)
      y = Unique<sorted=1>(x)
      three = Constant<value=float {3.0}>()
      large = Greater(x, three)
      z = Compress<axis=0>(x, large)
    }"""
    )
    feeds = [[np.arange(n, dtype=np.float32) % 7] for n in (0, 1, 30, 500)]
    return lambda k: graph.run(feeds[k % len(feeds)])


def control_flow() -> Run:
    """A loop whose state doubles, with rows that are collected; a branch."""
    graph = compiled(
        """g (float limit, float[k] x) => (float[j] y, float[r] rows, float[r,u] wide, float[v] b) {
      m = Constant<value=int64 {1000}>()
      t = Constant<value=bool {1}>()
      y, rows, wide = Loop(m, t, x) <
        body = b (int64 i, bool ci, float[q] s) => (bool co, float[q2] s2, float r, float[u2] w) {
        s2 = Concat<axis=0>(s, s)
        r = ReduceSum<keepdims=0>(s2)
        w = Add(x, r)
        co = Less(r, limit)
      }>
      many = Less(limit, limit)
      b = If(many) <then_branch = h () => (o) { o = Identity(y) }, else_branch = e () => (p) { p = Concat<axis=0>(y,x)}>
    }"""
    )
    feeds = [[np.array(limit, np.float32), np.ones(3, np.float32)] for limit in (0, 20, 3000)]
    return lambda k: graph.run(feeds[k % len(feeds)])


def sequences() -> Run:
    """Lists in and out, lengthened by a loop."""
    graph = compiled(
        """g (seq(float[d,e]) s, int64 n, float[d,e] t) => (seq(float[d,e]) r, float[f,e] all) {
      yes = Constant<value=bool {1}>()
      r = Loop(n, yes, s) <body = b (int64 i, bool ci, seq(float[d,e]) q) => (bool co, seq(float[d,e]) q2) {
        co = Identity(ci)
        fi = Cast<to=1>(i)
        v = Mul(t, fi)
        q2 = SequenceInsert(q, v)
      }>
      all = ConcatFromSequence<axis=0>(r)
    }"""
    )
    feeds = [[[X, X], np.array(n), X] for n in (0, 1, 9)]
    return lambda k: graph.run(feeds[k % len(feeds)])


def two_threads() -> Run:
    graph = compiled("g (float[n] x) => (float[n] y) { e = Exp(x) s = Sin(e) y = Tanh(s) }")
    graph.compiled.use_threads(2)
    feeds = [[np.ones(n, np.float32)] for n in (9000, 20000)]
    return lambda k: graph.run(feeds[k % len(feeds)])


def failures_and_odd_inputs() -> Run:
    """Runs that fail in native code, inputs that have to be copied, results that go into given arrays."""
    graph = compiled("g (float[n,m] x, int64[k] i) => (float[k,m] y) { y = Gather<axis=0>(x, i) }")
    good, bad = np.array([0, 2]), np.array([0, 9])
    out = np.empty((2, 4), np.float32)

    def run(k: int) -> Any:
        if k % 4 == 0:
            try:
                return graph.run([X, bad])
            except SardonyxError:
                return None
        if k % 4 == 1:
            return graph.run([X[:, ::-1], good])
        return graph.run([X, good], out=[out]) if k % 4 == 2 else graph.run({"x": sx.Tensor(X), "i": good})

    return run


def convolutions() -> Run:
    """A net of a few million multiplications."""
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal(s).astype(np.float32) for s in ((32, 3, 3, 3), (32, 32, 3, 3), (10, 32))]
    x = rng.standard_normal((1, 3, 24, 24)).astype(np.float32)

    def net(make: Any, x: Any, a: Any, b: Any, c: Any) -> Any:
        y = make.relu(make.conv(x, a, None, pads=(1, 1, 1, 1)))
        y = make.relu(make.conv(y, b, None, pads=(1, 1, 1, 1), strides=(2, 2)))
        return make.softmax(make.gemm(make.flatten(make.global_average_pool(y), axis=1), c, None, transB=1), axis=-1)

    native = compile_native(net_graph(net, [x, *weights], dynamic=True))
    return lambda _: native.run([x, *weights])


KINDS: dict[str, Callable[[], Run]] = {
    f.__name__: f
    for f in (
        small,
        dynamic,
        decided_by_data,
        control_flow,
        sequences,
        two_threads,
        failures_and_odd_inputs,
        convolutions,
    )
}


def held() -> int:
    """How many bytes of memory the process holds."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def growth(run: Run, runs: int) -> tuple[int, int]:
    """What the process holds after a tenth of the runs, and after all of them."""
    for k in range(runs // 10):
        run(k)
    before = held()
    for k in range(runs):
        run(k)
    return before, held()


@pytest.mark.slow
def test_memory_is_flat() -> None:
    """In a process of its own: in one that has run other tests the heap has room, in which growth is not seen."""
    ran = subprocess.run([sys.executable, __file__, str(RUNS)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert all(name in ran.stdout for name in KINDS)


def test_growth_is_noticed() -> None:
    kept: list[mmap.mmap] = []

    def leak(k: int) -> None:
        kept.append(mmap.mmap(-1, mmap.PAGESIZE))  # pages of its own: the heap may have room that counts already
        kept[-1][0] = 1

    before, after = growth(leak, RUNS)
    assert after - before >= 1 << 19


def main(runs: int) -> int:
    """Print a line for each kind of graph; the number of those whose runs leave memory behind."""
    bad = 0
    for name, make in KINDS.items():
        before, after = growth(make(), runs // 10 if name == "convolutions" else runs)
        bad += after - before >= max(1 << 19, 10 * runs)
        print(f"{name:24} {before / 2**20:7.1f} MiB → {after / 2**20:7.1f} MiB", flush=True)
    return bad


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
