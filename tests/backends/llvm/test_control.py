"""Control flow in native code: three executions, zero and many iterations, failures, memory, threads, profiles."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from guard import EDGES, run_guarded
from onnx_text import compiled, parse, plain, same, three

import sardonyx as sx
from sardonyx.backends.llvm.profile import profile
from sardonyx.dialects.evaluate import evaluate_function
from sardonyx.dialects.module import main_function

X = np.arange(12, dtype=np.float32).reshape(3, 4)
V = np.arange(3, dtype=np.float32)
T, F = np.array(True), np.array(False)

BRANCHES = """g (bool c, float[n,m] x) => (float[a,b] y, float z, float[n,m] w) {
  s = Mul(x, x)
  y0, z = If(c) <
    then_branch = t () => (p, q) { p = Transpose(s) q = ReduceSum<keepdims=0>(x) },
    else_branch = e () => (p, q) { p = Identity(s) q = ReduceMax<keepdims=0>(s) }>
  y = Neg(y0)
  w = Identity(s)
}"""
NESTED = """g (int64 n, float[k] a) => (float[k] y, float[r,w,k] z) {
  t = Constant<value=bool {1}>()
  three = Constant<value=int64 {3}>()
  two = Constant<value=int64 {2}>()
  y, z = Loop(n, t, a) <body = outer (int64 i, bool ci, float[k] p) => (bool co, float[k] p2, float[w2,k] zz) {
    co = Identity(ci)
    p2, zz = Loop(three, t, p) <body = inner (int64 j, bool cj, float[k] v) => (bool cj2, float[k] v2, float[k] row) {
      cj2 = Identity(cj)
      fi = Cast<to=1>(i)
      fj = Cast<to=1>(j)
      vi = Add(v, fi)
      v2 = Add(vi, a)
      odd = Mod(j, two)
      isodd = Cast<to=9>(odd)
      row = If(isodd) <then_branch = t2 () => (o) { o = Mul(v2, fj) }, else_branch = e2 () => (o) { o = Identity(a) }>
    }>
  }>
}"""
WHILE = """g (float limit, float[k] x) => (float[j] y, float[r] rows, float[r,u] wide) {
  m = Constant<value=int64 {1000}>()
  t = Constant<value=bool {1}>()
  y, rows, wide = Loop(m, t, x) <
    body = b (int64 i, bool ci, float[q] s) => (bool co, float[q2] s2, float r, float[u2] w) {
    s2 = Concat<axis=0>(s, s)
    r = ReduceSum<keepdims=0>(s2)
    w = Add(x, r)
    co = Less(r, limit)
  }>
}"""
SCAN = """g (float[3] s0, float[2,n,3] x, float[n,5] w) => (float[3] s, float[3,n] o, float[n,5] o2) {
  s, o, o2 = Scan<num_scan_inputs=2, scan_input_axes=[1,0], scan_input_directions=[1,0], scan_output_axes=[1,0],
    scan_output_directions=[0,1],
    body = b (float[3] st, float[2,3] a, float[5] ww) => (float[3] st2, float[3] r, float[5] r2) {
      ax = Constant<value=int64[1] {0}>()
      ra = ReduceSum<keepdims=0>(a, ax)
      st2 = Add(st, ra)
      r = Mul(st2, st)
      ex = ReduceSum<keepdims=0>(st2)
      r2 = Mul(ex, ww)
  }>(s0, x, w)
}"""
SWAP = """g (int64 n, bool c, float[k] a, float[k] b) => (float[k] y, float[k] z, float[k] d, int64[r] rows) {
  y, z, d, rows = Loop(n, c, a, b, a) <
    body = bd (int64 i, bool ci, float[k] p, float[k] q, float[k] e)
      => (bool co, float[k] q2, float[k] p2, float[k] e2, int64 j) {
      co = Identity(ci)
      q2 = Identity(q)
      p2 = Identity(p)
      e2 = Identity(b)
      j = Identity(i)
  }>
}"""


def test_branches():
    three(BRANCHES, [T, X], [F, X])
    three(BRANCHES, [T, np.zeros((0, 2), np.float32)])


def test_nested_loops_with_captures_rows_and_branches():
    three(NESTED, [np.array(4), V], [np.array(1), V])
    three(NESTED, [np.array(0), V], [np.array(-5), V], exported=False)  # onnxruntime forgets the rows' extents


def test_states_that_grow_until_the_data_ends_the_loop():
    three(WHILE, [np.array(500, np.float32), V], [np.array(-1, np.float32), V])


def test_scans_along_axes_in_both_directions():
    generator = np.random.default_rng(0)
    runs = [
        [np.ones(3, np.float32), generator.random((2, n, 3), np.float32), generator.random((n, 5), np.float32)]
        for n in (4, 1)
    ]
    three(SCAN, *runs)
    three(SCAN, [runs[0][0], np.zeros((2, 0, 3), np.float32), np.zeros((0, 5), np.float32)], exported=False)


def test_states_that_change_places_and_conditions_that_never_hold():
    three(SWAP, [np.array(5), T, V, V + 7], [np.array(6), T, V, V + 7])
    three(SWAP, [np.array(0), T, V, V + 7], [np.array(5), F, V, V + 7], exported=False)


def test_states_that_branches_choose_and_inner_loops_make():
    three("""g (int64 n, float[a] x) => (float[a] y, float[a] z) {
      t = Constant<value=bool {1}>()
      three = Constant<value=int64 {3}>()
      y, z = Loop(n, t, x, x) <body = o (int64 i, bool ci, float[a] q, float[a] h)
          => (bool co, float[a] q2, float[a] h2) {
        co = Identity(ci)
        two = Constant<value=int64 {2}>()
        odd = Mod(i, two)
        isodd = Cast<to=9>(odd)
        q2 = If(isodd) <then_branch = t1 () => (w) { w = Identity(h) }, else_branch = e1 () => (w) { w = Add(q, h) }>
        h2 = Loop(three, t, q) <body = inner (int64 j, bool cj, float[a] u) => (bool cj2, float[a] u2) {
          cj2 = Identity(cj)
          u1 = Add(u, h)
          u2 = Sub(u1, x)
        }>
      }>
    }""", [np.array(5), V], [np.array(2), V])  # fmt: skip


def test_states_of_other_dtypes_and_scalars():
    three("""g (int64 n, float16[k] a, bool[k] b, int8 c) => (float16[k] y, bool[k] z, int8 d) {
      t = Constant<value=bool {1}>()
      y, z, d = Loop(n, t, a, b, c) <body = bd (int64 i, bool ci, float16[k] p, bool[k] q, int8 e)
          => (bool co, float16[k] p2, bool[k] q2, int8 e2) {
        co = Identity(ci)
        p2 = Add(p, p)
        q2 = Not(q)
        e2 = Add(e, e)
      }>
    }""", [np.array(5), V.astype(np.float16), V > 1, np.array(3, np.int8)])  # fmt: skip


def test_rows_of_different_shapes_and_states_that_do_not_fit_are_refused_by_the_nodes_name():
    rows = compiled("""g (int64 n, int64[k] x) => (float[r,u] rows) {
      t = Constant<value=bool {1}>()
      rows = Loop(n, t) <body = b (int64 i, bool ci) => (bool co, float[u2] w) {
        co = Identity(ci)
        zero = Constant<value=int64 {0}>()
        one = Constant<value=int64 {1}>()
        r = Range(zero, i, one)
        w = Cast<to=1>(r)
      }>
    }""")  # fmt: skip
    assert plain(rows.run([np.array(1), np.zeros(2, np.int64)]))[0].shape == (1, 0)
    with pytest.raises(sx.ExecutionError, match=r"node 'rows': .*rows of different shapes"):
        rows.run([np.array(2), np.zeros(2, np.int64)])
    inside = compiled("""g (int64 n, float[k] x, int64[j] at) => (float[k] y) {
      t = Constant<value=bool {1}>()
      y = Loop(n, t, x) <body = b (int64 i, bool ci, float[k] s) => (bool co, float[k] s2) {
        co = Identity(ci)
        one = Gather(at, i)
        taken = Gather(s, one)
        s2 = Add(s, taken)
      }>
    }""")  # fmt: skip
    good = [np.array(3), V, np.array([0, 1, 2])]
    same(plain(inside.run(good)), plain(inside.evaluate(good)))
    with pytest.raises(sx.ExecutionError, match="node 'taken': .*9"):
        inside.run([np.array(3), V, np.array([0, 9, 2])])
    with pytest.raises(sx.ExecutionError, match="node 'one'"):
        inside.run([np.array(4), V, np.array([0, 1, 2])])
    same(plain(inside.run(good)), plain(inside.evaluate(good)))


def test_memory_stays_flat_and_runs_side_by_side_agree():
    graph = compiled(WHILE)
    feeds = [np.array(500, np.float32), V]
    want = plain(graph.run(feeds))
    held = graph.compiled.workspace_bytes
    for _ in range(300):
        graph.run(feeds)
    assert graph.compiled.workspace_bytes == held
    wrong: list[str] = []

    def work() -> None:
        for _ in range(20):
            got = plain(graph.run(feeds))
            wrong.extend("a result differs" for a, b in zip(got, want, strict=True) if not np.array_equal(a, b))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_nothing_is_touched_past_the_ends_of_buffers():
    for text, feeds in (
        (NESTED, [np.array(3), V]),
        (WHILE, [np.array(50, np.float32), V]),
        (SCAN, [np.ones(3, np.float32), np.ones((2, 3, 3), np.float32), np.ones((3, 5), np.float32)]),
    ):
        module = sx.OnnxModel.from_proto(parse(text)).compile().module
        want = evaluate_function(main_function(module), feeds)
        for edge in EDGES:
            for a, b in zip(run_guarded(module, feeds, edge), want, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5)


def test_a_profile_counts_what_loops_launch():
    graph = compiled(NESTED)
    found = profile(graph.module, [np.array(50), V], runs=2, threads=1)
    once = profile(graph.module, [np.array(1), V], runs=2, threads=1)
    assert [launch.kernel for launch in found.launches] == [launch.kernel for launch in once.launches]
    inner = {launch.node: launch.seconds for launch in found.launches}
    assert inner["node 'v2'"] > 5 * {launch.node: launch.seconds for launch in once.launches}["node 'v2'"]
    before = graph.compiled.kernels_launched
    graph.run([np.array(2), V])
    few = graph.compiled.kernels_launched - before
    graph.run([np.array(6), V])
    assert graph.compiled.kernels_launched - before - few > few


def test_an_op_in_a_branch_that_the_reference_runs_takes_the_branch_there_and_what_it_reads():
    graph = sx.OnnxModel.from_proto(
        parse("""g (float[n] x, string[k] s) => (string[k] s2, float[n] z, float[r,n] w) {
          zero = Constant<value=float {0.0}>()
          two = Constant<value=int64 {2}>()
          y = Mul(x, x)
          total = ReduceSum<keepdims=0>(y)
          c = Greater(total, zero)
          s2 = If(c) <then_branch = t () => (o) { o = StringConcat(s, s) },
                      else_branch = e () => (o) { o = Identity(s) }>
          z = If(c) <then_branch = t2 () => (o) { o = Neg(y) }, else_branch = e2 () => (o) { o = Add(y, total) }>
          w = Loop(two, c) <body = b (int64 i, bool ci) => (bool co, float[n] r) { co = Identity(c) r = Add(y, z) }>
        }""")
    ).compile()  # fmt: skip
    graph.finalize(fallback=True)
    assert [fallback.op for fallback in graph.compiled.fallbacks] == ["sx.if"]
    for x in (V, 0 * V):
        feeds = [x, np.array(["a", "b"], object)]
        for a, b in zip(graph.run(feeds), graph.evaluate(feeds), strict=True):
            assert np.asarray(a).tolist() == np.asarray(b).tolist()
