// RUN: sardonyx-opt %s -p recognize-attention | filecheck %s
// RUN: sardonyx-opt %s -p recognize-attention --explain recognize-attention 2>&1 >/dev/null | filecheck %s --check-prefix=WHY
// RUN: sardonyx-opt %s -p 'recognize-attention{rows-see=true}' | filecheck %s --check-prefix=SEEN

// Cases 1 and 2: the mask is never -inf.
// CHECK-LABEL: func.func @masked
// CHECK:       %[[M:.*]] = sx.where %m
// CHECK:       sx.attention %q, %k, %v, %[[M]] {scale = 5.000000e-01 : f64}
// CHECK-NEXT:  return
func.func @masked(%q: tensor<?x2x?x4xf32, #sx.dims<b, _, s, _>>, %k: tensor<?x2x?x4xf32, #sx.dims<b, _, t, _>>, %v: tensor<?x2x?x3xf32, #sx.dims<b, _, t, _>>, %m: tensor<?x?xi1, #sx.dims<s, t>>) -> tensor<?x2x?x3xf32, #sx.dims<b, _, s, _>> {
  %h = sx.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %0 = sx.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %l = sx.constant {value = dense<-1.0e9> : tensor<f32>} : () -> tensor<f32>
  %kt = sx.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x2x?x4xf32, #sx.dims<b, _, t, _>>) -> tensor<?x2x4x?xf32, #sx.dims<b, _, _, t>>
  %p = sx.matmul %q, %kt : (tensor<?x2x?x4xf32, #sx.dims<b, _, s, _>>, tensor<?x2x4x?xf32, #sx.dims<b, _, _, t>>) -> tensor<?x2x?x?xf32, #sx.dims<b, _, s, t>>
  %c = sx.mul %p, %h : (tensor<?x2x?x?xf32, #sx.dims<b, _, s, t>>, tensor<f32>) -> tensor<?x2x?x?xf32, #sx.dims<b, _, s, t>>
  %w = sx.where %m, %0, %l : (tensor<?x?xi1, #sx.dims<s, t>>, tensor<f32>, tensor<f32>) -> tensor<?x?xf32, #sx.dims<s, t>>
  %a = sx.add %c, %w : (tensor<?x2x?x?xf32, #sx.dims<b, _, s, t>>, tensor<?x?xf32, #sx.dims<s, t>>) -> tensor<?x2x?x?xf32, #sx.dims<b, _, s, t>>
  %x = sx.softmax %a : (tensor<?x2x?x?xf32, #sx.dims<b, _, s, t>>) -> tensor<?x2x?x?xf32, #sx.dims<b, _, s, t>>
  %y = sx.matmul %x, %v : (tensor<?x2x?x?xf32, #sx.dims<b, _, s, t>>, tensor<?x2x?x3xf32, #sx.dims<b, _, t, _>>) -> tensor<?x2x?x3xf32, #sx.dims<b, _, s, _>>
  func.return %y : tensor<?x2x?x3xf32, #sx.dims<b, _, s, _>>
}

// Cases 3 and 7: -inf is chosen; with a guard, and without one.
// CHECK-LABEL: func.func @chosen
// CHECK:       %[[Y:.*]] = sx.attention %q, %k, %v, %m
// CHECK:       %{{.*}} = sx.where %{{.*}}, %[[Y]]
// CHECK:       sx.softmax
// SEEN-LABEL:  func.func @chosen
// SEEN-NOT:    sx.softmax
// SEEN:        return
// WHY: a row that sees nothing is NaN here, and 0 in the operator (rows-see=true says that there is no such row)
func.func @chosen(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x4xf32>, %m: tensor<3x5xi1>, %n: tensor<3x5xi1>) -> (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) {
  %0 = sx.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %a = sx.constant {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %l = sx.constant {value = dense<"0x000080FF"> : tensor<1xf32>} : () -> tensor<1xf32>
  %kt = sx.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x2x5x4xf32>) -> tensor<1x2x4x5xf32>
  %p = sx.matmul %q, %kt : (tensor<1x2x3x4xf32>, tensor<1x2x4x5xf32>) -> tensor<1x2x3x5xf32>
  %w = sx.where %m, %p, %l : (tensor<3x5xi1>, tensor<1x2x3x5xf32>, tensor<1xf32>) -> tensor<1x2x3x5xf32>
  %x = sx.softmax %w : (tensor<1x2x3x5xf32>) -> tensor<1x2x3x5xf32>
  %y = sx.matmul %x, %v : (tensor<1x2x3x5xf32>, tensor<1x2x5x4xf32>) -> tensor<1x2x3x4xf32>
  %s = sx.reduce_max %m, %a : (tensor<3x5xi1>, tensor<1xi64>) -> tensor<3x1xi1>
  %g = sx.where %s, %y, %0 : (tensor<3x1xi1>, tensor<1x2x3x4xf32>, tensor<f32>) -> tensor<1x2x3x4xf32>
  %q1 = sx.neg %q : (tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  %p1 = sx.matmul %q1, %kt : (tensor<1x2x3x4xf32>, tensor<1x2x4x5xf32>) -> tensor<1x2x3x5xf32>
  %w1 = sx.where %n, %p1, %l : (tensor<3x5xi1>, tensor<1x2x3x5xf32>, tensor<1xf32>) -> tensor<1x2x3x5xf32>
  %x1 = sx.softmax %w1 : (tensor<1x2x3x5xf32>) -> tensor<1x2x3x5xf32>
  %y1 = sx.matmul %x1, %v : (tensor<1x2x3x5xf32>, tensor<1x2x5x4xf32>) -> tensor<1x2x3x4xf32>
  func.return %g, %y1 : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>
}

// Cases 4 and 6.
// CHECK-LABEL: func.func @flat
// CHECK:       sx.attention %q, %k, %v {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, scale = 1.000000e+00 : f64, is_causal = true}
// CHECK-NEXT:  return
func.func @flat(%q: tensor<1x2x8xf32>, %k: tensor<1x2x8xf32>, %v: tensor<1x2x8xf32>) -> tensor<1x2x8xf32> {
  %l = sx.constant {value = dense<"0x000080FF"> : tensor<1xf32>} : () -> tensor<1xf32>
  %m = sx.constant {value = dense<[[true, false], [true, true]]> : tensor<2x2xi1>} : () -> tensor<2x2xi1>
  %i = sx.constant {value = dense<[0, 0, 2, 4]> : tensor<4xi64>} : () -> tensor<4xi64>
  %o = sx.constant {value = dense<[0, 0, 8]> : tensor<3xi64>} : () -> tensor<3xi64>
  %q4 = sx.reshape %q, %i : (tensor<1x2x8xf32>, tensor<4xi64>) -> tensor<1x2x2x4xf32>
  %k4 = sx.reshape %k, %i : (tensor<1x2x8xf32>, tensor<4xi64>) -> tensor<1x2x2x4xf32>
  %v4 = sx.reshape %v, %i : (tensor<1x2x8xf32>, tensor<4xi64>) -> tensor<1x2x2x4xf32>
  %qh = sx.transpose %q4 {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x2x2x4xf32>) -> tensor<1x2x2x4xf32>
  %kt = sx.transpose %k4 {perm = array<i64: 0, 2, 3, 1>} : (tensor<1x2x2x4xf32>) -> tensor<1x2x4x2xf32>
  %vh = sx.transpose %v4 {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x2x2x4xf32>) -> tensor<1x2x2x4xf32>
  %p = sx.matmul %qh, %kt : (tensor<1x2x2x4xf32>, tensor<1x2x4x2xf32>) -> tensor<1x2x2x2xf32>
  %w = sx.where %m, %p, %l : (tensor<2x2xi1>, tensor<1x2x2x2xf32>, tensor<1xf32>) -> tensor<1x2x2x2xf32>
  %x = sx.softmax %w : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
  %y = sx.matmul %x, %vh : (tensor<1x2x2x2xf32>, tensor<1x2x2x4xf32>) -> tensor<1x2x2x4xf32>
  %t = sx.transpose %y {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x2x2x4xf32>) -> tensor<1x2x2x4xf32>
  %r = sx.reshape %t, %o : (tensor<1x2x2x4xf32>, tensor<3xi64>) -> tensor<1x2x8xf32>
  func.return %r : tensor<1x2x8xf32>
}

// Case 5.
// CHECK-LABEL: func.func @grouped
// CHECK:       sx.attention %q, %k, %v {scale = 1.000000e+00 : f64} : (tensor<1x4x3x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>)
// CHECK-NEXT:  return
func.func @grouped(%q: tensor<1x4x3x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x4xf32>) -> tensor<1x4x3x4xf32> {
  %2 = sx.constant {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %e = sx.constant {value = dense<[1, 1, 2, 1, 1]> : tensor<5xi64>} : () -> tensor<5xi64>
  %s = sx.constant {value = dense<[1, 4, 5, 4]> : tensor<4xi64>} : () -> tensor<4xi64>
  %k5 = sx.unsqueeze %k, %2 : (tensor<1x2x5x4xf32>, tensor<1xi64>) -> tensor<1x2x1x5x4xf32>
  %v5 = sx.unsqueeze %v, %2 : (tensor<1x2x5x4xf32>, tensor<1xi64>) -> tensor<1x2x1x5x4xf32>
  %kw = sx.expand %k5, %e : (tensor<1x2x1x5x4xf32>, tensor<5xi64>) -> tensor<1x2x2x5x4xf32>
  %vw = sx.expand %v5, %e : (tensor<1x2x1x5x4xf32>, tensor<5xi64>) -> tensor<1x2x2x5x4xf32>
  %k4 = sx.reshape %kw, %s : (tensor<1x2x2x5x4xf32>, tensor<4xi64>) -> tensor<1x4x5x4xf32>
  %v4 = sx.reshape %vw, %s : (tensor<1x2x2x5x4xf32>, tensor<4xi64>) -> tensor<1x4x5x4xf32>
  %kt = sx.transpose %k4 {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x4x5x4xf32>) -> tensor<1x4x4x5xf32>
  %p = sx.matmul %q, %kt : (tensor<1x4x3x4xf32>, tensor<1x4x4x5xf32>) -> tensor<1x4x3x5xf32>
  %x = sx.softmax %p : (tensor<1x4x3x5xf32>) -> tensor<1x4x3x5xf32>
  %y = sx.matmul %x, %v4 : (tensor<1x4x3x5xf32>, tensor<1x4x5x4xf32>) -> tensor<1x4x3x4xf32>
  func.return %y : tensor<1x4x3x4xf32>
}
