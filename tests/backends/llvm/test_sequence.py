"""Sequences and optionals in native code: three executions, empty ones, loops, positions out of range."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx_text import compiled, plain, same, three

import sardonyx as sx

X = np.arange(24, dtype=np.float32).reshape(2, 4, 3)


def test_split_at_length_and_joined_again():
    three("""g (float[a,b,c] x, int64 p, int64[k] sizes, int64 size) =>
      (seq(float[d,e,h]) s, float[d,e,h] t, int64 n, float[x1,x2,x3] all, float[y1,y2,y3,y4] stacked,
       float[z1,z2,z3] joined, seq(float[u1,u2,u3]) third, seq(float[d,h]) flat) {
      s = SplitToSequence<axis=1>(x)
      t = SequenceAt(s, p)
      n = SequenceLength(s)
      all = ConcatFromSequence<axis=1>(s)
      stacked = ConcatFromSequence<axis=-1,new_axis=1>(s)
      parts = SplitToSequence<axis=1>(x, sizes)
      joined = ConcatFromSequence<axis=1>(parts)
      third = SplitToSequence<axis=-1>(x, size)
      flat = SplitToSequence<axis=0,keepdims=0>(x)
    }""",
        [X, np.array(-2), np.array([1, 0, 3]), np.array(2)], [X, np.array(3), np.array([4]), np.array(7)],
    )  # fmt: skip


def test_inserted_erased_constructed_and_empty():
    three("""g (seq(float[d,e]) s, int64 p, float[d,e] t) =>
      (seq(float[d,e]) q, seq(float[d,e]) r, seq(float[d,e]) u, int64 none, seq(float[d,e]) last) {
      q = SequenceInsert(s, t, p)
      r = SequenceErase(q, p)
      u = SequenceConstruct(t, t)
      e = SequenceEmpty()
      none = SequenceLength(e)
      o = SequenceInsert(e, t)
      l = SequenceErase(s)
      first = SequenceInsert(l, t)
      last = Identity(first)
    }""", [[X[0], X[1]], np.array(1), X[0] * 2], [[X[0]], np.array(-1), X[0] * 2])  # fmt: skip


def test_lists_that_loops_and_branches_make():
    three("""g (seq(float[d,e]) s, int64 n, bool c, float[d,e] t)
      => (seq(float[d,e]) r, seq(float[d,e]) b, float[f,e] all) {
      yes = Constant<value=bool {1}>()
      r = Loop(n, yes, s) <body = b (int64 i, bool ci, seq(float[d,e]) q) => (bool co, seq(float[d,e]) q2) {
        co = Identity(ci)
        fi = Cast<to=1>(i)
        v = Mul(t, fi)
        q2 = SequenceInsert(q, v)
      }>
      b = If(c) <then_branch = y () => (o) { o = SequenceErase(r) }, else_branch = z () => (o) { o = Identity(s) }>
      all = ConcatFromSequence<axis=0>(b)
    }""", *([[X[0], X[1]], np.array(n), np.array(c), X[0]] for n, c in ((6, True), (1, False), (0, True))))  # fmt: skip


def test_lists_in_nested_loops_that_grow_and_shrink():
    three("""g (int64 n, float[a,b] x, seq(float[c,d]) s) => (seq(float[c,d]) r, int64 m, float[k] sums) {
      t = Constant<value=bool {1}>()
      two = Constant<value=int64 {2}>()
      zero = Constant<value=int64 {0}>()
      r, sums = Loop(n, t, s) <body = o (int64 i, bool ci, seq(float[c,d]) q)
          => (bool co, seq(float[c,d]) q2, float row) {
        co = Identity(ci)
        q1 = Loop(two, t, q) <body = inner (int64 j, bool cj, seq(float[c,d]) u) => (bool cj2, seq(float[c,d]) u2) {
          cj2 = Identity(cj)
          p = Add(i, j)
          odd = Mod(p, two)
          isodd = Cast<to=9>(odd)
          u2 = If(isodd) <
            then_branch = t1 () => (w) { fp = Cast<to=1>(p) v = Mul(x, fp) w = SequenceInsert(u, v, zero) },
            else_branch = e1 () => (w) { w = SequenceErase(u) }>
        }>
        q2 = SequenceInsert(q1, x)
        first = SequenceAt(q2, zero)
        row = ReduceSum<keepdims=0>(first)
      }>
      m = SequenceLength(r)
    }""", [np.array(5), X[0], [X[0] + 1, X[1]]])  # fmt: skip


@pytest.mark.parametrize("given", (X, None))
def test_optionals_of_tensors(given: np.ndarray | None):
    three("""g (optional(float[a,b,c]) o) => (bool has, optional(float[a,b,c]) same, float[u,v,w] y) {
      has = OptionalHasElement(o)
      same = Identity(o)
      y = If(has) <then_branch = t () => (z) { z = OptionalGetElement(o) },
                   else_branch = e () => (z) { z = Constant<value=float[1,1,1] {3.0}>() }>
    }""", [given], exported=False)  # fmt: skip


@pytest.mark.parametrize("given", ([X[0], X[1]], [], None))
def test_optionals_of_sequences(given: list[np.ndarray] | None):
    three("""g (optional(seq(float[b,c])) o, seq(float[b,c]) s) => (bool has, optional(seq(float[b,c])) same, int64 n) {
      has = OptionalHasElement(o)
      same = Identity(o)
      q = If(has) <then_branch = t () => (z) { z = OptionalGetElement(o) },
                   else_branch = e () => (z) { z = Identity(s) }>
      n = SequenceLength(q)
    }""", [given, [X[1]]], exported=False)  # fmt: skip


@pytest.mark.parametrize(
    ("op", "feeds", "message"),
    [
        ("q = SequenceAt(s, p)", ([X[0]], 1), "position 1 is out of range for 1 elements"),
        ("q = SequenceAt(s, p)", ([X[0]], -2), "position -2 is out of range for 1 elements"),
        ("q = SequenceAt(s, p)", ([], 0), "position 0 is out of range for 0 elements"),
        ("e = SequenceErase(s, p) q = ConcatFromSequence<axis=0>(e)", ([X[0]], 1), "node 'e'.*position 1"),
        ("e = SequenceInsert(s, t, p) q = ConcatFromSequence<axis=0>(e)", ([X[0]], 2), "node 'e'.*position 2"),
        ("q = ConcatFromSequence<axis=0>(s)", ([], 0), "the sequence has no elements"),
        ("q = ConcatFromSequence<axis=0>(s)", ([X[0], X[0][:, :2]], 0), "with 3 and 2 elements"),
    ],
)
def test_what_the_data_does_not_allow_is_an_error_that_names_the_node(op: str, feeds: tuple, message: str):
    graph = compiled(f"g (seq(float[d,e]) s, int64 p, float[d,e] t) => (float[f,h] q) {{ {op} }}")
    given = [feeds[0], np.array(feeds[1]), X[0]]
    for run in (graph.run, graph.evaluate):
        with pytest.raises(
            sx.ExecutionError, match=message.replace("with 3 and 2 elements", "cannot be joined")
        ) as found:
            run(given)
        assert found.value.location is not None
    good = [[X[0], X[1]], np.array(0), X[0]]
    same(plain(graph.run(good)), plain(graph.evaluate(good)))


def test_memory_of_lists_stays_flat():
    graph = compiled("""g (int64 n, float[d] t) => (seq(float[d]) r) {
      yes = Constant<value=bool {1}>()
      e = SequenceConstruct(t)
      r = Loop(n, yes, e) <body = b (int64 i, bool ci, seq(float[d]) q) => (bool co, seq(float[d]) q2) {
        co = Identity(ci)
        v = Add(t, t)
        q2 = SequenceInsert(q, v)
      }>
    }""")  # fmt: skip
    feeds = [np.array(400), np.ones(700, np.float32)]
    for _ in range(2):
        graph.run(feeds)
    held = graph.compiled.workspace_bytes
    assert held > 400 * 700 * 4
    for _ in range(20):
        assert len(graph.run(feeds)[0]) == 401
    assert graph.compiled.workspace_bytes == held


def test_lists_that_begin_empty_have_the_rank_of_what_a_loop_puts_into_them():
    three("""g (int64 n, float[a,b] x) => (float[u,b] y, int64 m, seq(float[c,d]) l) {
      yes = Constant<value=bool {1}>()
      e = SequenceEmpty()
      l = Loop(n, yes, e) <body = b (int64 i, bool ci, seq(float) q) => (bool co, seq(float) q2) {
        co = Identity(ci)
        fi = Cast<to=1>(i)
        v = Mul(x, fi)
        q2 = SequenceInsert(q, v)
      }>
      m = SequenceLength(l)
      y = ConcatFromSequence<axis=0>(l)
    }""", [np.array(3), X[0]], exported=False)  # fmt: skip


def test_the_rank_of_a_list_is_that_of_the_runs_tensors():
    info = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    given = onnx.helper.make_tensor_sequence_value_info("s", onnx.TensorProto.FLOAT, None)
    node = onnx.helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0)
    model = onnx.helper.make_model(
        onnx.helper.make_graph([node], "g", [given], [info]), opset_imports=[onnx.helper.make_opsetid("", 21)]
    )
    graph = sx.OnnxModel.from_proto(model).compile()
    graph.finalize()
    for feeds in ([X[0], X[1]], [X[0, 0], X[1, 1, :2]], [X, X]):
        same(plain(graph.run([feeds])), plain(graph.evaluate([feeds])))
    with pytest.raises(sx.UnsupportedError, match="rank"):
        graph.run([[X[0], X]])
