// RUN: sardonyx-opt %s -p compose-transposes,cse,simplify,fold-constants,channels-last --explain '*' 2>&1 >/dev/null | filecheck %s
// RUN: sardonyx-opt %s -p cse,simplify --explain 'cse@%b' --explain-format json 2>&1 >/dev/null | filecheck %s --check-prefix JSON
// RUN: sardonyx-opt %s -p cse,simplify --explain 'simplify@23' 2>&1 >/dev/null | filecheck %s --check-prefix LINE
// RUN: not sardonyx-opt %s -p cse --explain csee 2>&1 | filecheck %s --check-prefix WRONG

// Why patterns did not fire: per op with its line, with how often it was so; for one op by its value or its line.
// CHECK:      rewrites done: compose-transposes 0, cse 0, simplify 0, fold-constants 0, channels-last 0
// CHECK-DAG:  compose-transposes:compose on sx.transpose %t: it stays between an input and sx.reshape (transposes do not move through it)
// CHECK-DAG:  cse:merge on sx.softmax %b: an equal sx.softmax but for its attributes: axis is 0 : i64, there 1 : i64
// CHECK-DAG:  cse:merge on sx.sub %e: another sx.sub reads the same operands in another order
// CHECK-DAG:  cse:merge on sx.random_normal_like %n: it has effects or draws random numbers
// CHECK-DAG:  simplify:same-shape on sx.reshape %q: the extents are not proved to be equal: n and m
// CHECK-DAG:  fold-constants:fold on sx.sub %s: operand 0 is no constant
// CHECK-DAG:  channels-last:channels-last on sx.conv %v: no other convolution or pool is reached
// JSON:       "pass": "cse",
// JSON:       "result": "b",
// JSON:       "reason": "an equal sx.softmax but for its attributes: axis is 0 : i64, there 1 : i64",
// LINE:       {{.*}}:23: simplify:same-shape on sx.reshape %q
// LINE-NOT:   on sx.sub
// WRONG:      did you mean 'cse'?
func.func @main(%x: tensor<?x4xf32, #sx.dims<n, _>>, %i: tensor<1x2x4x4xf32>, %w: tensor<3x2x1x1xf32>, %k: tensor<2xi64>) -> (tensor<?xf32>, tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<m, _>>, tensor<1x3x4x4xf32>) {
  %t = sx.transpose %x {perm = array<i64: 1, 0>} : (tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<4x?xf32, #sx.dims<_, n>>
  %q = sx.reshape %x, %k : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<2xi64>) -> tensor<?x4xf32, #sx.dims<m, _>>
  %flat = sx.constant {value = dense<[-1]> : tensor<1xi64>} : () -> tensor<1xi64>
  %r = sx.reshape %t, %flat : (tensor<4x?xf32, #sx.dims<_, n>>, tensor<1xi64>) -> tensor<?xf32>
  %one = sx.constant {value = dense<1.5> : tensor<f32>} : () -> tensor<f32>
  %s = sx.sub %x, %one : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %a = sx.softmax %s {axis = 1 : i64} : (tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %b = sx.softmax %s {axis = 0 : i64} : (tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %d = sx.sub %a, %b : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %e = sx.sub %b, %a : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %n = sx.random_normal_like %a : (tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %v = sx.conv %i, %w : (tensor<1x2x4x4xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x4x4xf32>
  func.return %r, %s, %a, %d, %e, %n, %q, %v : tensor<?xf32>, tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<m, _>>, tensor<1x3x4x4xf32>
}
