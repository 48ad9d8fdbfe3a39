"""Small ONNX graphs of the kinds of kernels that cases of single ops do not reach, for tests of what all must keep to.

Each is a text and what it is run on; all outputs are tensors. Random ops are seeded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import parser

import sardonyx as sx

OPSETS = '<ir_version: 10, opset_import: ["": 27, "ai.onnx.ml": 3]>'
R = np.random.default_rng(3)


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return R.standard_normal(shape).astype(np.float32)


def ints(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


GRAPHS: dict[str, tuple[str, list[Any]]] = {
    "filled": ("""g (int64[2] s, int64 a, int64 b, float[n,m] x, float[p,8,h,w] z) =>
      (float[c,d] y, int64[k] r, int64[2] t, int64 u, float[n,m] v, float[n,m] e, float[q1,q2,q3,q4] f,
       float[s1,s2,s3,s4] g2, float[e1,e2,e3] h2) {
      y = ConstantOfShape<value = float[1] {2.5}>(s)
      one = Constant<value = int64 {1}>()
      r = Range(a, b, one)
      t = Shape(x)
      u = Size(x)
      v = Trilu<upper=0>(x)
      e = EyeLike<k=1>(x)
      f = DepthToSpace<blocksize=2>(z)
      g2 = SpaceToDepth<blocksize=3>(f)
      big = Constant<value = int64[3] {2,1,1}>()
      h2 = Expand(x, big)
    }""", [ints(3, 7), np.array(2), np.array(35), floats(5, 9), floats(1, 8, 3, 9)]),
    "moved": ("""g (float[n,m] x, int64[k,m] i, int64[j,2] p, float[a,b,c] t) =>
      (float[k,m] y, float[j] z, float[f1,f2] fl, float[r1] re, float[o1,o2,o3] l, float[o1,o2,o3] r,
       float[1,n,m] sq, float[n,m] un) {
      y = GatherElements(x, i)
      z = GatherND(x, p)
      fl = Flatten(t)
      all = Constant<value = int64[1] {-1}>()
      re = Reshape(t, all)
      l, r = Split<axis=1, num_outputs=2>(t)
      zero = Constant<value = int64[1] {0}>()
      sq = Unsqueeze(x, zero)
      un = Squeeze(sq, zero)
    }""", [floats(5, 7), R.integers(-5, 5, (3, 7)), ints(0, 6, -5, -7, 4, 0).reshape(3, 2), floats(3, 6, 5)]),
    "repeated": ("""g (float[n,3,h,w] x, uint8[n,3,h,w] z) => (float[n,3,a,b] y, uint8[n,3,c,d] u) {
      scales = Constant<value = float[4] {1,1,2,2}>()
      wide = Constant<value = float[4] {1,1,1,3}>()
      y = Resize<coordinate_transformation_mode="asymmetric", nearest_mode="floor">(x, , scales)
      u = Resize<coordinate_transformation_mode="asymmetric", nearest_mode="floor">(z, , wide)
    }""", [floats(2, 3, 5, 17), R.integers(0, 256, (2, 3, 5, 17)).astype(np.uint8)]),
    "normalised": ("""g (float[n,6,h] x, float[6] s, float[6] b, float[6] v, float[n,6,h,w] z,
       float[rows,64] r) =>
      (float[n,6,h] y, float[n,6,h] g2, float[n,6,h] i, float[n,6,h] p, float[n,6,h,w] l, float[rows,64] m) {
      y = BatchNormalization(x, s, b, b, v)
      g2 = GroupNormalization<num_groups=3>(x, s, b)
      i = InstanceNormalization(x, s, b)
      p = LpNormalization<axis=2, p=1>(x)
      l = LRN<size=3>(z)
      m = Softmax(r)
    }""", [floats(2, 6, 9), floats(6), floats(6), np.abs(floats(6)) + 1, floats(2, 6, 9, 5), floats(5, 64)]),
    "windows-back": ("""g (float[n,3,h,w] x, float[3,4,3,3] k) =>
      (float[n,4,a,b] y, float[n,3,1,1] p, float[u1,u2,u3,u4] u) {
      y = ConvTranspose<strides=[2,1], pads=[1,0,0,1]>(x, k)
      p = GlobalLpPool(x)
      m, i = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x)
      u = MaxUnpool<kernel_shape=[2,2], strides=[2,2]>(m, i)
    }""", [floats(2, 3, 6, 10), floats(3, 4, 3, 3)]),
    "layers": ("""g (float[t,n,5] x, float[1,7,5] w, float[1,7,7] r, float[2,21,5] wg, float[2,21,7] rg,
       float[1,28,5] wl, float[1,28,7] rl, float[1,56] bl) =>
      (float[t,1,n,7] y, float[t,2,n,7] z, float[t,1,n,7] l, float[1,n,7] h, float[1,n,7] c) {
      y = RNN<hidden_size=7>(x, w, r)
      z = GRU<hidden_size=7, direction="bidirectional">(x, wg, rg)
      l, h, c = LSTM<hidden_size=7>(x, wl, rl, bl)
    }""", [floats(4, 3, 5), floats(1, 7, 5), floats(1, 7, 7), floats(2, 21, 5), floats(2, 21, 7),
           floats(1, 28, 5), floats(1, 28, 7), floats(1, 56)]),
    "drawn": ("""g (float[n,m] x, float[2,2,3] theta) =>
      (float[n,m] b, float[n,m] d, bool[n,m] k, float[2,5,7,2] a, float[f,b2] mel, float[q,q] unused, float det) {
      p = Sigmoid(x)
      b = Bernoulli<seed=1.0>(p)
      half = Constant<value = float {0.5}>()
      yes = Constant<value = bool {1}>()
      d, k = Dropout<seed=3>(x, half, yes)
      size = Constant<value = int64[4] {2,1,5,7}>()
      a = AffineGrid(theta, size)
      bins = Constant<value = int64 {9}>()
      length = Constant<value = int64 {33}>()
      rate = Constant<value = int64 {8000}>()
      low = Constant<value = float {50}>()
      high = Constant<value = float {3000}>()
      mel = MelWeightMatrix(bins, length, rate, low, high)
      xt = Transpose(x)
      unused = MatMul(xt, x)
      det = Det(unused)
    }""", [floats(9, 5), floats(2, 2, 3)]),
    "branches": ("""g (bool c, float[n,m] x) => (float[a,b] y, float[n,m] w) {
      s = Mul(x, x)
      y = If(c) <
        then_branch = t () => (p) { p = Transpose(s) },
        else_branch = e () => (p) { p = Identity(s) }>
      w = Neg(s)
    }""", [np.array(True), floats(3, 17)]),
    "loops": ("""g (int64 n, float[k] x, float[t,k] rows) => (float[k] y, float[r,k] z, float[k] u, float[t,k] v) {
      yes = Constant<value = bool {1}>()
      y, z = Loop(n, yes, x) <body = b (int64 i, bool c, float[k] p) => (bool c2, float[k] p2, float[k] row) {
        c2 = Identity(c)
        f = Cast<to=1>(i)
        p2 = Add(p, f)
        row = Mul(p2, x)
      }>
      u, v = Scan(x, rows) <num_scan_inputs=1, body = s (float[k] a, float[k] one) => (float[k] a2, float[k] o) {
        a2 = Add(a, one)
        o = Neg(a2)
      }>
    }""", [np.array(5), floats(17), floats(3, 17)]),
    "grown": ("""g (float limit, float[k] x) => (float[k] y, float[r,k] z, bool[k] always) {
      most = Constant<value = int64 {100}>()
      yes = Constant<value = bool {1}>()
      y, z = Loop(most, yes, x) <body = b (int64 i, bool c, float[k] p) => (bool c2, float[k] p2, float[k] row) {
        p2 = Add(p, limit)
        total = ReduceMax<keepdims=0>(p2)
        twice = Mul(limit, limit)
        c2 = Less(total, twice)
        row = Neg(p2)
      }>
      one = CastLike(yes, x)
      p = Expand(one, n)
      drawn = Bernoulli(p)
      always = Cast<to=9>(drawn)
      n = Shape(x)
    }""", [np.array(9, np.float32), floats(17)]),
    "lists": ("""g (float[a,b,c] x, int64 p, int64[k] sizes, float[d,e] t) =>
      (float[s1,s2,s3] one, int64 n, float[z1,z2,z3] joined, float[j1,j2] all, bool has, float[d,e] o) {
      s = SplitToSequence<axis=1>(x, sizes)
      one = SequenceAt(s, p)
      n = SequenceLength(s)
      joined = ConcatFromSequence<axis=1>(s)
      q = SequenceConstruct(t, t)
      q2 = SequenceInsert(q, t, p)
      q3 = SequenceErase(q2, p)
      e = SequenceEmpty()
      e2 = SequenceInsert(e, t)
      e3 = Identity(e2)
      last = SequenceAt(e3, zero)
      q4 = SequenceInsert(q3, last)
      all = ConcatFromSequence<axis=0>(q4)
      opt = Optional(t)
      has = OptionalHasElement(opt)
      o = OptionalGetElement(opt)
      zero = Constant<value = int64 {0}>()
    }""", [floats(2, 5, 3), np.array(1), ints(1, 0, 4), floats(3, 7)]),
    "learned": ("""g (float[n,3] x, int64[n] l, int64[n] q) =>
      (int64[n] y, float[n,6] o, float[n,1] sr, int64[n] sl, float[n,k] sp, float[n,1] tr, int64[n] tl, float[n,j] tp,
       float[7] f) {
      y = ai.onnx.ml.LabelEncoder<keys_int64s=[1,2,5], values_int64s=[10,20,50], default_int64=-1>(l)
      o = ai.onnx.ml.OneHotEncoder<cats_int64s=[4,1,3,0,2,5], zeros=0>(l)
      sr = ai.onnx.ml.SVMRegressor<n_supports=2, support_vectors=[0.1,0.2,0.3,-0.4,0.5,0.6], coefficients=[0.7,-0.2],
        rho=[0.1], kernel_type="RBF", kernel_params=[0.3,0.0,3.0]>(x)
      sl, sp = ai.onnx.ml.SVMClassifier<classlabels_ints=[3,7], vectors_per_class=[1,1],
        support_vectors=[0.1,0.2,0.3,-0.4,0.5,0.6], coefficients=[0.7,-0.2], rho=[0.1], kernel_type="LINEAR",
        kernel_params=[0.3,0.0,3.0]>(x)
      tr = ai.onnx.ml.TreeEnsembleRegressor<n_targets=1, nodes_treeids=[0,0,0], nodes_nodeids=[0,1,2],
        nodes_featureids=[1,0,0], nodes_values=[0.2,0.0,0.0], nodes_modes=["BRANCH_LEQ","LEAF","LEAF"],
        nodes_truenodeids=[1,0,0], nodes_falsenodeids=[2,0,0], target_treeids=[0,0], target_nodeids=[1,2],
        target_ids=[0,0], target_weights=[1.5,-2.0]>(x)
      tl, tp = ai.onnx.ml.TreeEnsembleClassifier<classlabels_int64s=[5,6], nodes_treeids=[0,0,0],
        nodes_nodeids=[0,1,2], nodes_featureids=[2,0,0], nodes_values=[0.2,0.0,0.0],
        nodes_modes=["BRANCH_GT","LEAF","LEAF"], nodes_truenodeids=[1,0,0], nodes_falsenodeids=[2,0,0],
        class_treeids=[0,0], class_nodeids=[1,2], class_ids=[0,1], class_weights=[0.5,1.0]>(x)
      f = TfIdfVectorizer<mode="TF", min_gram_length=1, max_gram_length=2, max_skip_count=1, ngram_counts=[0,4],
        ngram_indexes=[0,1,2,3,4,5,6], pool_int64s=[2,3,5,4,5,6,7,8,6,7]>(q)
    }""", [floats(17, 3), R.integers(0, 6, 17), R.integers(2, 9, 17)]),
    "bytes": ("""g (float[n,c,h,w] x, uint8[2,9,5,7] u, int8[5,9,3,3] k) =>
      (int32[a1,a2,a3,a4] y, float[n,5,p,q] z) {
      y = ConvInteger<pads=[1,1,1,1]>(u, k)
      scale = Constant<value = float {0.02}>()
      zero = Constant<value = uint8 {7}>()
      none = Constant<value = int8 {0}>()
      xq = QuantizeLinear(x, scale, zero)
      xd = DequantizeLinear(xq, scale, zero)
      kd = DequantizeLinear(k, scale, none)
      z = Conv<pads=[1,1,1,1]>(xd, kd)
    }""", [floats(1, 9, 6, 5), R.integers(0, 256, (2, 9, 5, 7)).astype(np.uint8),
           R.integers(-128, 128, (5, 9, 3, 3)).astype(np.int8)]),
    "attended": ("""g (float[2,t,8] q, float[2,t,8] k, float[2,t,10] v, float[2,2,4,5] past) =>
      (float[2,t,10] y, float[2,2,4,5] state, float[2,t,8] plain) {
      y, state = LinearAttention<q_num_heads=2, kv_num_heads=2, update_rule="linear">(q, k, v, past)
      plain = Attention<q_num_heads=2, kv_num_heads=2>(q, k, k)
    }""", [floats(2, 3, 8), floats(2, 3, 8), floats(2, 3, 10), floats(2, 2, 4, 5)]),
}  # fmt: skip


def model(name: str) -> onnx.ModelProto:
    return parser.parse_model(f"{OPSETS} {GRAPHS[name][0]}")


def graph(name: str) -> sx.ModelGraph:
    return sx.OnnxModel.from_proto(model(name)).compile()
