// RUN: sardonyx-opt %s -p 'compose-transposes' | filecheck %s

// The cases of `compose-transposes`, by their numbers in its docstring.

// Case 1: adjacent transposes become one; order matters.
func.func @adjacent(%x: tensor<2x3x4xf32>) -> tensor<3x4x2xf32> {
  %0 = sx.transpose %x {perm = array<i64: 1, 0, 2>} : (tensor<2x3x4xf32>) -> tensor<3x2x4xf32>
  %1 = sx.transpose %0 {perm = array<i64: 0, 2, 1>} : (tensor<3x2x4xf32>) -> tensor<3x4x2xf32>
  func.return %1 : tensor<3x4x2xf32>
}
// CHECK-LABEL: func.func @adjacent(
// CHECK-NEXT: %0 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
// CHECK-NEXT: func.return %0 : tensor<3x4x2xf32>
// CHECK-NEXT: }

// Case 1: three of a 3-cycle are the identity.
func.func @three_cycles(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = sx.transpose %0 {perm = array<i64: 1, 2, 0>} : (tensor<3x4x2xf32>) -> tensor<4x2x3xf32>
  %2 = sx.transpose %1 {perm = array<i64: 1, 2, 0>} : (tensor<4x2x3xf32>) -> tensor<2x3x4xf32>
  func.return %2 : tensor<2x3x4xf32>
}
// CHECK-LABEL: func.func @three_cycles(
// CHECK-NEXT: func.return %x : tensor<2x3x4xf32>
// CHECK-NEXT: }

// Case 1: dims keep their names.
func.func @named(%x: tensor<?x3x?xf32, #sx.dims<n, _, t>>) -> tensor<?x3x?xf32, #sx.dims<t, _, n>> {
  %0 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<?x3x?xf32, #sx.dims<n, _, t>>) -> tensor<3x?x?xf32, #sx.dims<_, t, n>>
  %1 = sx.transpose %0 {perm = array<i64: 1, 0, 2>} : (tensor<3x?x?xf32, #sx.dims<_, t, n>>) -> tensor<?x3x?xf32, #sx.dims<t, _, n>>
  func.return %1 : tensor<?x3x?xf32, #sx.dims<t, _, n>>
}
// CHECK-LABEL: func.func @named(
// CHECK-NEXT: %0 = sx.transpose %x {perm = array<i64: 2, 1, 0>} : (tensor<?x3x?xf32, #sx.dims<n, _, t>>) -> tensor<?x3x?xf32, #sx.dims<t, _, n>>
// CHECK-NEXT: func.return %0 : tensor<?x3x?xf32, #sx.dims<t, _, n>>
// CHECK-NEXT: }

// Case 2: nothing moves, perm stated or (rank 1 and 0) absent.
func.func @identity(%x: tensor<2x3xf32>, %v: tensor<5xf32>, %s: tensor<f32>) -> (tensor<2x3xf32>, tensor<5xf32>, tensor<f32>) {
  %0 = sx.transpose %x {perm = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = sx.transpose %v : (tensor<5xf32>) -> tensor<5xf32>
  %2 = sx.transpose %s : (tensor<f32>) -> tensor<f32>
  func.return %0, %1, %2 : tensor<2x3xf32>, tensor<5xf32>, tensor<f32>
}
// CHECK-LABEL: func.func @identity(
// CHECK-NEXT: func.return %x, %v, %s : tensor<2x3xf32>, tensor<5xf32>, tensor<f32>
// CHECK-NEXT: }

// Case 3: the same transpose twice.
func.func @twice(%x: tensor<2x3x4xf32>) -> (tensor<4x3x2xf32>, tensor<4x3x2xf32>) {
  %0 = sx.transpose %x : (tensor<2x3x4xf32>) -> tensor<4x3x2xf32>
  %1 = sx.relu %0 : (tensor<4x3x2xf32>) -> tensor<4x3x2xf32>
  %2 = sx.transpose %x {perm = array<i64: 2, 1, 0>} : (tensor<2x3x4xf32>) -> tensor<4x3x2xf32>
  %3 = sx.exp %2 : (tensor<4x3x2xf32>) -> tensor<4x3x2xf32>
  func.return %1, %3 : tensor<4x3x2xf32>, tensor<4x3x2xf32>
}
// CHECK-LABEL: func.func @twice(
// CHECK-NEXT: %0 = sx.transpose %x : (tensor<2x3x4xf32>) -> tensor<4x3x2xf32>
// CHECK-NEXT: %1 = sx.relu %0 : (tensor<4x3x2xf32>) -> tensor<4x3x2xf32>
// CHECK-NEXT: %2 = sx.exp %0 : (tensor<4x3x2xf32>) -> tensor<4x3x2xf32>
// CHECK-NEXT: func.return %1, %2 : tensor<4x3x2xf32>, tensor<4x3x2xf32>
// CHECK-NEXT: }

// Case 4: past a chain of elementwise ops, to its inverse.
func.func @elementwise(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf64> {
  %0 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = sx.relu %0 : (tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
  %2 = sx.exp %1 : (tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
  %3 = sx.cast %2 {to = f64} : (tensor<3x4x2xf32>) -> tensor<3x4x2xf64>
  %4 = sx.transpose %3 {perm = array<i64: 2, 0, 1>} : (tensor<3x4x2xf64>) -> tensor<2x3x4xf64>
  func.return %4 : tensor<2x3x4xf64>
}
// CHECK-LABEL: func.func @elementwise(
// CHECK-NEXT: %0 = sx.relu %x : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: %1 = sx.exp %0 : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: %2 = sx.cast %1 {to = f64} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf64>
// CHECK-NEXT: func.return %2 : tensor<2x3x4xf64>
// CHECK-NEXT: }

// Case 4: an operand of lower rank gets its axes lined up; a small constant at once.
func.func @lower_rank(%x: tensor<2x3x4xf32>, %v: tensor<2xf32>) -> tensor<2x3x4xf32> {
  %0 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = sx.add %0, %v : (tensor<3x4x2xf32>, tensor<2xf32>) -> tensor<3x4x2xf32>
  %2 = sx.constant {value = dense<[[1.000000e+00], [2.000000e+00], [3.000000e+00], [4.000000e+00]]> : tensor<4x1xf32>} : () -> tensor<4x1xf32>
  %3 = sx.mul %1, %2 : (tensor<3x4x2xf32>, tensor<4x1xf32>) -> tensor<3x4x2xf32>
  %4 = sx.transpose %3 {perm = array<i64: 2, 0, 1>} : (tensor<3x4x2xf32>) -> tensor<2x3x4xf32>
  func.return %4 : tensor<2x3x4xf32>
}
// CHECK-LABEL: func.func @lower_rank(
// CHECK-NEXT: %0 = sx.constant {value = dense<[1, 2]> : tensor<2xi64>} : () -> tensor<2xi64>
// CHECK-NEXT: %1 = sx.unsqueeze %v, %0 : (tensor<2xf32>, tensor<2xi64>) -> tensor<2x1x1xf32>
// CHECK-NEXT: %2 = sx.add %x, %1 : (tensor<2x3x4xf32>, tensor<2x1x1xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: %3 = sx.constant {value = dense<[[[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]]]> : tensor<1x1x4xf32>} : () -> tensor<1x1x4xf32>
// CHECK-NEXT: %4 = sx.mul %2, %3 : (tensor<2x3x4xf32>, tensor<1x1x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: func.return %4 : tensor<2x3x4xf32>
// CHECK-NEXT: }

// Case 4: an operand whose axes of extent 1 only would move needs no transpose.
func.func @ones(%x: tensor<?x8x8x3xf32, #sx.dims<n, _, _, _>>, %s: tensor<?x3x1x1xf32, #sx.dims<n, _, _, _>>) -> tensor<?x8x8x3xf32, #sx.dims<n, _, _, _>> {
  %0 = sx.transpose %x {perm = array<i64: 0, 3, 1, 2>} : (tensor<?x8x8x3xf32, #sx.dims<n, _, _, _>>) -> tensor<?x3x8x8xf32, #sx.dims<n, _, _, _>>
  %1 = sx.mul %0, %s : (tensor<?x3x8x8xf32, #sx.dims<n, _, _, _>>, tensor<?x3x1x1xf32, #sx.dims<n, _, _, _>>) -> tensor<?x3x8x8xf32, #sx.dims<n, _, _, _>>
  %2 = sx.transpose %1 {perm = array<i64: 0, 2, 3, 1>} : (tensor<?x3x8x8xf32, #sx.dims<n, _, _, _>>) -> tensor<?x8x8x3xf32, #sx.dims<n, _, _, _>>
  func.return %2 : tensor<?x8x8x3xf32, #sx.dims<n, _, _, _>>
}
// CHECK-LABEL: func.func @ones(
// CHECK-NEXT: %0 = sx.constant {value = dense<[2, 3]> : tensor<2xi64>} : () -> tensor<2xi64>
// CHECK-NEXT: %1 = sx.squeeze %s, %0 : (tensor<?x3x1x1xf32, #sx.dims<n, _, _, _>>, tensor<2xi64>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %2 = sx.constant {value = dense<[1, 2]> : tensor<2xi64>} : () -> tensor<2xi64>
// CHECK-NEXT: %3 = sx.unsqueeze %1, %2 : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<2xi64>) -> tensor<?x1x1x3xf32, #sx.dims<n, _, _, _>>
// CHECK-NEXT: %4 = sx.mul %x, %3 : (tensor<?x8x8x3xf32, #sx.dims<n, _, _, _>>, tensor<?x1x1x3xf32, #sx.dims<n, _, _, _>>) -> tensor<?x8x8x3xf32, #sx.dims<n, _, _, _>>
// CHECK-NEXT: func.return %4 : tensor<?x8x8x3xf32, #sx.dims<n, _, _, _>>
// CHECK-NEXT: }

// Case 4: two operands transposed alike: one is left.
func.func @both(%x: tensor<2x3x4xf32>, %y: tensor<2x3x4xf32>) -> tensor<3x4x2xf32> {
  %0 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = sx.transpose %y {perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %2 = sx.add %0, %1 : (tensor<3x4x2xf32>, tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
  func.return %2 : tensor<3x4x2xf32>
}
// CHECK-LABEL: func.func @both(
// CHECK-NEXT: %0 = sx.add %x, %y : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: %1 = sx.transpose %0 {perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
// CHECK-NEXT: func.return %1 : tensor<3x4x2xf32>
// CHECK-NEXT: }

// Not: operands transposed differently.
func.func @differently(%x: tensor<3x4xf32>, %y: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %0 = sx.transpose %x : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %1 = sx.add %0, %y : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  func.return %1 : tensor<4x3xf32>
}
// CHECK-LABEL: func.func @differently(
// CHECK-NEXT: %0 = sx.transpose %x : (tensor<3x4xf32>) -> tensor<4x3xf32>
// CHECK-NEXT: %1 = sx.add %0, %y : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
// CHECK-NEXT: func.return %1 : tensor<4x3xf32>
// CHECK-NEXT: }

// Case 4, backwards: only one operand is transposed, and the result is transposed back.
func.func @backwards(%x: tensor<3x4xf32>, %y: tensor<4x3xf32>) -> tensor<3x4xf32> {
  %0 = sx.transpose %x : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %1 = sx.add %0, %y : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %2 = sx.relu %1 : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %3 = sx.transpose %2 : (tensor<4x3xf32>) -> tensor<3x4xf32>
  func.return %3 : tensor<3x4xf32>
}
// CHECK-LABEL: func.func @backwards(
// CHECK-NEXT: %0 = sx.transpose %y {perm = array<i64: 1, 0>} : (tensor<4x3xf32>) -> tensor<3x4xf32>
// CHECK-NEXT: %1 = sx.add %x, %0 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
// CHECK-NEXT: %2 = sx.relu %1 : (tensor<3x4xf32>) -> tensor<3x4xf32>
// CHECK-NEXT: func.return %2 : tensor<3x4xf32>
// CHECK-NEXT: }

// Case 5: the axis of softmax.
func.func @softmax(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = sx.softmax %0 : (tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
  %2 = sx.transpose %1 {perm = array<i64: 2, 0, 1>} : (tensor<3x4x2xf32>) -> tensor<2x3x4xf32>
  func.return %2 : tensor<2x3x4xf32>
}
// CHECK-LABEL: func.func @softmax(
// CHECK-NEXT: %0 = sx.softmax %x {axis = 0 : i64} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: func.return %0 : tensor<2x3x4xf32>
// CHECK-NEXT: }

// Case 5: the axis operand of cumsum.
func.func @cumsum(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = sx.constant {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %2 = sx.cumsum %0, %1 : (tensor<3x4x2xf32>, tensor<i64>) -> tensor<3x4x2xf32>
  %3 = sx.transpose %2 {perm = array<i64: 2, 0, 1>} : (tensor<3x4x2xf32>) -> tensor<2x3x4xf32>
  func.return %3 : tensor<2x3x4xf32>
}
// CHECK-LABEL: func.func @cumsum(
// CHECK-NEXT: %0 = sx.constant {value = dense<1> : tensor<i64>} : () -> tensor<i64>
// CHECK-NEXT: %1 = sx.cumsum %x, %0 : (tensor<2x3x4xf32>, tensor<i64>) -> tensor<2x3x4xf32>
// CHECK-NEXT: func.return %1 : tensor<2x3x4xf32>
// CHECK-NEXT: }

// Case 6: axes of a reduction, negative ones too; what is left of the transpose is smaller.
func.func @reduce(%x: tensor<2x3x4xf32>) -> tensor<4xf32> {
  %0 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = sx.constant {value = dense<[-1, 0]> : tensor<2xi64>} : () -> tensor<2xi64>
  %2 = sx.reduce_sum %0, %1 {keepdims = false} : (tensor<3x4x2xf32>, tensor<2xi64>) -> tensor<4xf32>
  func.return %2 : tensor<4xf32>
}
// CHECK-LABEL: func.func @reduce(
// CHECK-NEXT: %0 = sx.constant {value = dense<[0, 1]> : tensor<2xi64>} : () -> tensor<2xi64>
// CHECK-NEXT: %1 = sx.reduce_sum %x, %0 {keepdims = false} : (tensor<2x3x4xf32>, tensor<2xi64>) -> tensor<4xf32>
// CHECK-NEXT: func.return %1 : tensor<4xf32>
// CHECK-NEXT: }

// Case 6: keepdims.
func.func @reduce_keep(%x: tensor<2x3x4xf32>) -> tensor<1x1x4xf32> {
  %0 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = sx.constant {value = dense<[0, 2]> : tensor<2xi64>} : () -> tensor<2xi64>
  %2 = sx.reduce_max %0, %1 : (tensor<3x4x2xf32>, tensor<2xi64>) -> tensor<1x4x1xf32>
  %3 = sx.transpose %2 {perm = array<i64: 2, 0, 1>} : (tensor<1x4x1xf32>) -> tensor<1x1x4xf32>
  func.return %3 : tensor<1x1x4xf32>
}
// CHECK-LABEL: func.func @reduce_keep(
// CHECK-NEXT: %0 = sx.constant {value = dense<[0, 1]> : tensor<2xi64>} : () -> tensor<2xi64>
// CHECK-NEXT: %1 = sx.reduce_max %x, %0 : (tensor<2x3x4xf32>, tensor<2xi64>) -> tensor<1x1x4xf32>
// CHECK-NEXT: func.return %1 : tensor<1x1x4xf32>
// CHECK-NEXT: }

// Case 6: arg_max.
func.func @arg_max(%x: tensor<2x3x4xf32>) -> tensor<3x2xi64> {
  %0 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = sx.arg_max %0 {axis = 1 : i64, keepdims = false} : (tensor<3x4x2xf32>) -> tensor<3x2xi64>
  func.return %1 : tensor<3x2xi64>
}
// CHECK-LABEL: func.func @arg_max(
// CHECK-NEXT: %0 = sx.arg_max %x {axis = 2 : i64, keepdims = false} : (tensor<2x3x4xf32>) -> tensor<2x3xi64>
// CHECK-NEXT: %1 = sx.transpose %0 {perm = array<i64: 1, 0>} : (tensor<2x3xi64>) -> tensor<3x2xi64>
// CHECK-NEXT: func.return %1 : tensor<3x2xi64>
// CHECK-NEXT: }

// Case 7: squeeze and unsqueeze.
func.func @squeeze(%x: tensor<1x3x4xf32>) -> tensor<4x3xf32> {
  %0 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<1x3x4xf32>) -> tensor<3x4x1xf32>
  %1 = sx.constant {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %2 = sx.squeeze %0, %1 : (tensor<3x4x1xf32>, tensor<1xi64>) -> tensor<3x4xf32>
  %3 = sx.transpose %2 : (tensor<3x4xf32>) -> tensor<4x3xf32>
  func.return %3 : tensor<4x3xf32>
}
// CHECK-LABEL: func.func @squeeze(
// CHECK-NEXT: %0 = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
// CHECK-NEXT: %1 = sx.squeeze %x, %0 : (tensor<1x3x4xf32>, tensor<1xi64>) -> tensor<3x4xf32>
// CHECK-NEXT: %2 = sx.transpose %1 {perm = array<i64: 1, 0>} : (tensor<3x4xf32>) -> tensor<4x3xf32>
// CHECK-NEXT: func.return %2 : tensor<4x3xf32>
// CHECK-NEXT: }

func.func @unsqueeze(%x: tensor<2x3x4xf32>) -> tensor<2x3x1x4xf32> {
  %0 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %2 = sx.unsqueeze %0, %1 : (tensor<3x4x2xf32>, tensor<1xi64>) -> tensor<3x1x4x2xf32>
  %3 = sx.transpose %2 {perm = array<i64: 3, 0, 1, 2>} : (tensor<3x1x4x2xf32>) -> tensor<2x3x1x4xf32>
  func.return %3 : tensor<2x3x1x4xf32>
}
// CHECK-LABEL: func.func @unsqueeze(
// CHECK-NEXT: %0 = sx.constant {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
// CHECK-NEXT: %1 = sx.unsqueeze %x, %0 : (tensor<2x3x4xf32>, tensor<1xi64>) -> tensor<2x3x1x4xf32>
// CHECK-NEXT: func.return %1 : tensor<2x3x1x4xf32>
// CHECK-NEXT: }

// Case 8: concat on a negative axis.
func.func @concat(%x: tensor<2x3x4xf32>, %y: tensor<2x5x4xf32>) -> tensor<2x8x4xf32> {
  %0 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = sx.transpose %y {perm = array<i64: 1, 2, 0>} : (tensor<2x5x4xf32>) -> tensor<5x4x2xf32>
  %2 = sx.concat %0, %1 {axis = -3 : i64} : (tensor<3x4x2xf32>, tensor<5x4x2xf32>) -> tensor<8x4x2xf32>
  %3 = sx.transpose %2 {perm = array<i64: 2, 0, 1>} : (tensor<8x4x2xf32>) -> tensor<2x8x4xf32>
  func.return %3 : tensor<2x8x4xf32>
}
// CHECK-LABEL: func.func @concat(
// CHECK-NEXT: %0 = sx.concat %x, %y {axis = 1 : i64} : (tensor<2x3x4xf32>, tensor<2x5x4xf32>) -> tensor<2x8x4xf32>
// CHECK-NEXT: func.return %0 : tensor<2x8x4xf32>
// CHECK-NEXT: }

// Case 8: a third operand gets a transpose of its own, since it still pays.
func.func @concat_third(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>, %z: tensor<3x5xf32>) -> tensor<9x3xf32> {
  %0 = sx.transpose %x : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = sx.transpose %y : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %2 = sx.concat %0, %1, %z {axis = 1 : i64} : (tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x5xf32>) -> tensor<3x9xf32>
  %3 = sx.transpose %2 : (tensor<3x9xf32>) -> tensor<9x3xf32>
  func.return %3 : tensor<9x3xf32>
}
// CHECK-LABEL: func.func @concat_third(
// CHECK-NEXT: %0 = sx.transpose %z {perm = array<i64: 1, 0>} : (tensor<3x5xf32>) -> tensor<5x3xf32>
// CHECK-NEXT: %1 = sx.concat %x, %y, %0 {axis = 0 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<5x3xf32>) -> tensor<9x3xf32>
// CHECK-NEXT: func.return %1 : tensor<9x3xf32>
// CHECK-NEXT: }

// Case 8: split.
func.func @split(%x: tensor<2x3x4xf32>) -> (tensor<2x3x1xf32>, tensor<2x3x3xf32>) {
  %0 = sx.transpose %x {perm = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %1 = sx.constant {value = dense<[1, 3]> : tensor<2xi64>} : () -> tensor<2xi64>
  %2, %3 = sx.split %0, %1 {axis = -3 : i64} : (tensor<4x2x3xf32>, tensor<2xi64>) -> (tensor<1x2x3xf32>, tensor<3x2x3xf32>)
  %4 = sx.transpose %2 {perm = array<i64: 1, 2, 0>} : (tensor<1x2x3xf32>) -> tensor<2x3x1xf32>
  %5 = sx.transpose %3 {perm = array<i64: 1, 2, 0>} : (tensor<3x2x3xf32>) -> tensor<2x3x3xf32>
  func.return %4, %5 : tensor<2x3x1xf32>, tensor<2x3x3xf32>
}
// CHECK-LABEL: func.func @split(
// CHECK-NEXT: %0 = sx.constant {value = dense<[1, 3]> : tensor<2xi64>} : () -> tensor<2xi64>
// CHECK-NEXT: %1, %2 = sx.split %x, %0 {axis = 2 : i64} : (tensor<2x3x4xf32>, tensor<2xi64>) -> (tensor<2x3x1xf32>, tensor<2x3x3xf32>)
// CHECK-NEXT: func.return %1, %2 : tensor<2x3x1xf32>, tensor<2x3x3xf32>
// CHECK-NEXT: }

// Case 9: pads are put in order.
func.func @pad(%x: tensor<2x3x4xf32>) -> tensor<7x8x5xf32> {
  %0 = sx.transpose %x {perm = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %1 = sx.constant {value = dense<[1, 2, 0, 0, 3, 5]> : tensor<6xi64>} : () -> tensor<6xi64>
  %2 = sx.pad %0, %1 : (tensor<4x2x3xf32>, tensor<6xi64>) -> tensor<5x7x8xf32>
  %3 = sx.transpose %2 {perm = array<i64: 1, 2, 0>} : (tensor<5x7x8xf32>) -> tensor<7x8x5xf32>
  func.return %3 : tensor<7x8x5xf32>
}
// CHECK-LABEL: func.func @pad(
// CHECK-NEXT: %0 = sx.constant {value = dense<[2, 0, 1, 3, 5, 0]> : tensor<6xi64>} : () -> tensor<6xi64>
// CHECK-NEXT: %1 = sx.pad %x, %0 : (tensor<2x3x4xf32>, tensor<6xi64>) -> tensor<7x8x5xf32>
// CHECK-NEXT: func.return %1 : tensor<7x8x5xf32>
// CHECK-NEXT: }

// Case 9: pads that are not known: the axes are stated.
func.func @pad_run_time(%x: tensor<2x3x4xf32>, %p: tensor<6xi64>) -> tensor<?x?x?xf32, #sx.dims<d0, d1, d2>> {
  %0 = sx.transpose %x {perm = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %1 = sx.pad %0, %p : (tensor<4x2x3xf32>, tensor<6xi64>) -> tensor<?x?x?xf32, #sx.dims<d2, d0, d1>>
  %2 = sx.transpose %1 {perm = array<i64: 1, 2, 0>} : (tensor<?x?x?xf32, #sx.dims<d2, d0, d1>>) -> tensor<?x?x?xf32, #sx.dims<d0, d1, d2>>
  func.return %2 : tensor<?x?x?xf32, #sx.dims<d0, d1, d2>>
}
// CHECK-LABEL: func.func @pad_run_time(
// CHECK-NEXT: %0 = sx.constant {value = dense<[2, 0, 1]> : tensor<3xi64>} : () -> tensor<3xi64>
// CHECK-NEXT: %1 = sx.pad %x, %p, _, %0 : (tensor<2x3x4xf32>, tensor<6xi64>, tensor<3xi64>) -> tensor<?x?x?xf32, #sx.dims<d0, d1, d2>>
// CHECK-NEXT: func.return %1 : tensor<?x?x?xf32, #sx.dims<d0, d1, d2>>
// CHECK-NEXT: }

// Case 9: the axes of a slice, bounds computed at run time.
func.func @slice(%x: tensor<2x3x4xf32>, %s: tensor<1xi64>, %e: tensor<1xi64>) -> tensor<2x3x?xf32, #sx.dims<_, _, d0>> {
  %0 = sx.transpose %x {perm = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %1 = sx.slice %0, %s, %e : (tensor<4x2x3xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2x3xf32, #sx.dims<d0, _, _>>
  %2 = sx.transpose %1 {perm = array<i64: 1, 2, 0>} : (tensor<?x2x3xf32, #sx.dims<d0, _, _>>) -> tensor<2x3x?xf32, #sx.dims<_, _, d0>>
  func.return %2 : tensor<2x3x?xf32, #sx.dims<_, _, d0>>
}
// CHECK-LABEL: func.func @slice(
// CHECK-NEXT: %0 = sx.constant {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
// CHECK-NEXT: %1 = sx.slice %x, %s, %e, %0 : (tensor<2x3x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2x3x?xf32, #sx.dims<_, _, d0>>
// CHECK-NEXT: func.return %1 : tensor<2x3x?xf32, #sx.dims<_, _, d0>>
// CHECK-NEXT: }

// Case 10: expand and tile.
func.func @expand(%x: tensor<2x1x4xf32>) -> tensor<4x9x4xf32> {
  %0 = sx.transpose %x {perm = array<i64: 2, 0, 1>} : (tensor<2x1x4xf32>) -> tensor<4x2x1xf32>
  %1 = sx.constant {value = dense<[4, 2, 3]> : tensor<3xi64>} : () -> tensor<3xi64>
  %2 = sx.expand %0, %1 : (tensor<4x2x1xf32>, tensor<3xi64>) -> tensor<4x2x3xf32>
  %3 = sx.constant {value = dense<[1, 2, 3]> : tensor<3xi64>} : () -> tensor<3xi64>
  %4 = sx.tile %2, %3 : (tensor<4x2x3xf32>, tensor<3xi64>) -> tensor<4x4x9xf32>
  %5 = sx.transpose %4 {perm = array<i64: 1, 2, 0>} : (tensor<4x4x9xf32>) -> tensor<4x9x4xf32>
  func.return %5 : tensor<4x9x4xf32>
}
// CHECK-LABEL: func.func @expand(
// CHECK-NEXT: %0 = sx.constant {value = dense<[2, 3, 4]> : tensor<3xi64>} : () -> tensor<3xi64>
// CHECK-NEXT: %1 = sx.expand %x, %0 : (tensor<2x1x4xf32>, tensor<3xi64>) -> tensor<2x3x4xf32>
// CHECK-NEXT: %2 = sx.constant {value = dense<[2, 3, 1]> : tensor<3xi64>} : () -> tensor<3xi64>
// CHECK-NEXT: %3 = sx.tile %1, %2 : (tensor<2x3x4xf32>, tensor<3xi64>) -> tensor<4x9x4xf32>
// CHECK-NEXT: func.return %3 : tensor<4x9x4xf32>
// CHECK-NEXT: }

// Case 11: gather.
func.func @gather(%x: tensor<2x3x4xf32>, %i: tensor<5xi64>) -> tensor<5x3x4xf32> {
  %0 = sx.transpose %x {perm = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %1 = sx.gather %0, %i {axis = 1 : i64} : (tensor<4x2x3xf32>, tensor<5xi64>) -> tensor<4x5x3xf32>
  %2 = sx.transpose %1 {perm = array<i64: 1, 2, 0>} : (tensor<4x5x3xf32>) -> tensor<5x3x4xf32>
  func.return %2 : tensor<5x3x4xf32>
}
// CHECK-LABEL: func.func @gather(
// CHECK-NEXT: %0 = sx.gather %x, %i : (tensor<2x3x4xf32>, tensor<5xi64>) -> tensor<5x3x4xf32>
// CHECK-NEXT: func.return %0 : tensor<5x3x4xf32>
// CHECK-NEXT: }

// Case 12: leading axes on both sides of a matmul.
func.func @matmul_lead(%x: tensor<2x3x4x5xf32>, %y: tensor<2x3x5x6xf32>) -> tensor<3x2x4x6xf32> {
  %0 = sx.transpose %x {perm = array<i64: 1, 0, 2, 3>} : (tensor<2x3x4x5xf32>) -> tensor<3x2x4x5xf32>
  %1 = sx.transpose %y {perm = array<i64: 1, 0, 2, 3>} : (tensor<2x3x5x6xf32>) -> tensor<3x2x5x6xf32>
  %2 = sx.matmul %0, %1 : (tensor<3x2x4x5xf32>, tensor<3x2x5x6xf32>) -> tensor<3x2x4x6xf32>
  func.return %2 : tensor<3x2x4x6xf32>
}
// CHECK-LABEL: func.func @matmul_lead(
// CHECK-NEXT: %0 = sx.matmul %x, %y : (tensor<2x3x4x5xf32>, tensor<2x3x5x6xf32>) -> tensor<2x3x4x6xf32>
// CHECK-NEXT: %1 = sx.transpose %0 {perm = array<i64: 1, 0, 2, 3>} : (tensor<2x3x4x6xf32>) -> tensor<3x2x4x6xf32>
// CHECK-NEXT: func.return %1 : tensor<3x2x4x6xf32>
// CHECK-NEXT: }

// Case 12: two transposed matrices are multiplied the other way round.
func.func @matmul_swap(%x: tensor<2x5x4xf32>, %y: tensor<2x6x5xf32>) -> tensor<2x4x6xf32> {
  %0 = sx.transpose %x {perm = array<i64: 0, 2, 1>} : (tensor<2x5x4xf32>) -> tensor<2x4x5xf32>
  %1 = sx.transpose %y {perm = array<i64: 0, 2, 1>} : (tensor<2x6x5xf32>) -> tensor<2x5x6xf32>
  %2 = sx.matmul %0, %1 : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>
  func.return %2 : tensor<2x4x6xf32>
}
// CHECK-LABEL: func.func @matmul_swap(
// CHECK-NEXT: %0 = sx.matmul %y, %x : (tensor<2x6x5xf32>, tensor<2x5x4xf32>) -> tensor<2x6x4xf32>
// CHECK-NEXT: %1 = sx.transpose %0 {perm = array<i64: 0, 2, 1>} : (tensor<2x6x4xf32>) -> tensor<2x4x6xf32>
// CHECK-NEXT: func.return %1 : tensor<2x4x6xf32>
// CHECK-NEXT: }

// Case 12: gemm takes transposes up, with its flags.
func.func @gemm(%x: tensor<5x4xf32>, %y: tensor<6x5xf32>, %z: tensor<6xf32>) -> tensor<4x6xf32> {
  %0 = sx.transpose %x : (tensor<5x4xf32>) -> tensor<4x5xf32>
  %1 = sx.transpose %y : (tensor<6x5xf32>) -> tensor<5x6xf32>
  %2 = sx.gemm %0, %1, %z {alpha = 5.000000e-01 : f64} : (tensor<4x5xf32>, tensor<5x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  func.return %2 : tensor<4x6xf32>
}
// CHECK-LABEL: func.func @gemm(
// CHECK-NEXT: %0 = sx.gemm %x, %y, %z {alpha = 5.000000e-01 : f64, transA = true, transB = true} : (tensor<5x4xf32>, tensor<6x5xf32>, tensor<6xf32>) -> tensor<4x6xf32>
// CHECK-NEXT: func.return %0 : tensor<4x6xf32>
// CHECK-NEXT: }

func.func @gemm_flag(%x: tensor<5x4xf32>, %y: tensor<5x6xf32>) -> tensor<4x6xf32> {
  %0 = sx.transpose %x : (tensor<5x4xf32>) -> tensor<4x5xf32>
  %1 = sx.transpose %y : (tensor<5x6xf32>) -> tensor<6x5xf32>
  %2 = sx.gemm %0, %1 {transB = true} : (tensor<4x5xf32>, tensor<6x5xf32>) -> tensor<4x6xf32>
  func.return %2 : tensor<4x6xf32>
}
// CHECK-LABEL: func.func @gemm_flag(
// CHECK-NEXT: %0 = sx.gemm %x, %y {transA = true} : (tensor<5x4xf32>, tensor<5x6xf32>) -> tensor<4x6xf32>
// CHECK-NEXT: func.return %0 : tensor<4x6xf32>
// CHECK-NEXT: }

// Case 12: a transposed result.
func.func @gemm_result(%x: tensor<4x5xf32>, %y: tensor<5x6xf32>, %z: tensor<6xf32>) -> tensor<6x4xf32> {
  %0 = sx.gemm %x, %y, %z : (tensor<4x5xf32>, tensor<5x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %1 = sx.transpose %0 : (tensor<4x6xf32>) -> tensor<6x4xf32>
  func.return %1 : tensor<6x4xf32>
}
// CHECK-LABEL: func.func @gemm_result(
// CHECK-NEXT: %0 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
// CHECK-NEXT: %1 = sx.unsqueeze %z, %0 : (tensor<6xf32>, tensor<1xi64>) -> tensor<6x1xf32>
// CHECK-NEXT: %2 = sx.gemm %y, %x, %1 {transA = true, transB = true} : (tensor<5x6xf32>, tensor<4x5xf32>, tensor<6x1xf32>) -> tensor<6x4xf32>
// CHECK-NEXT: func.return %2 : tensor<6x4xf32>
// CHECK-NEXT: }

// Case 13: shape reads from before the transpose.
func.func @shape(%x: tensor<?x3x?xf32, #sx.dims<n, _, t>>) -> (tensor<3xi64>, tensor<2xi64>, tensor<i64>) {
  %0 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<?x3x?xf32, #sx.dims<n, _, t>>) -> tensor<3x?x?xf32, #sx.dims<_, t, n>>
  %1 = sx.shape %0 : (tensor<3x?x?xf32, #sx.dims<_, t, n>>) -> tensor<3xi64>
  %2 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<?x3x?xf32, #sx.dims<n, _, t>>) -> tensor<3x?x?xf32, #sx.dims<_, t, n>>
  %3 = sx.shape %2 {start = 1 : i64} : (tensor<3x?x?xf32, #sx.dims<_, t, n>>) -> tensor<2xi64>
  %4 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<?x3x?xf32, #sx.dims<n, _, t>>) -> tensor<3x?x?xf32, #sx.dims<_, t, n>>
  %5 = sx.size %4 : (tensor<3x?x?xf32, #sx.dims<_, t, n>>) -> tensor<i64>
  func.return %1, %3, %5 : tensor<3xi64>, tensor<2xi64>, tensor<i64>
}
// CHECK-LABEL: func.func @shape(
// CHECK-NEXT: %0 = sx.shape %x : (tensor<?x3x?xf32, #sx.dims<n, _, t>>) -> tensor<3xi64>
// CHECK-NEXT: %1 = sx.constant {value = dense<[1, 2, 0]> : tensor<3xi64>} : () -> tensor<3xi64>
// CHECK-NEXT: %2 = sx.gather %0, %1 : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
// CHECK-NEXT: %3 = sx.shape %x : (tensor<?x3x?xf32, #sx.dims<n, _, t>>) -> tensor<3xi64>
// CHECK-NEXT: %4 = sx.constant {value = dense<[2, 0]> : tensor<2xi64>} : () -> tensor<2xi64>
// CHECK-NEXT: %5 = sx.gather %3, %4 : (tensor<3xi64>, tensor<2xi64>) -> tensor<2xi64>
// CHECK-NEXT: %6 = sx.size %x : (tensor<?x3x?xf32, #sx.dims<n, _, t>>) -> tensor<i64>
// CHECK-NEXT: func.return %2, %5, %6 : tensor<3xi64>, tensor<2xi64>, tensor<i64>
// CHECK-NEXT: }

// Case 14: the channels stay where they are.
func.func @batch_norm(%x: tensor<2x3x4x5xf32>, %s: tensor<3xf32>) -> tensor<2x3x4x5xf32> {
  %0 = sx.transpose %x {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x4x5xf32>) -> tensor<2x3x5x4xf32>
  %1, %2, %3 = sx.batch_norm %0, %s, %s, %s, %s : (tensor<2x3x5x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x5x4xf32>, tensor<3xf32>, tensor<3xf32>)
  %4 = sx.transpose %1 {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x5x4xf32>) -> tensor<2x3x4x5xf32>
  func.return %4 : tensor<2x3x4x5xf32>
}
// CHECK-LABEL: func.func @batch_norm(
// CHECK-NEXT: %0, %1, %2 = sx.batch_norm %x, %s, %s, %s, %s : (tensor<2x3x4x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4x5xf32>, tensor<3xf32>, tensor<3xf32>)
// CHECK-NEXT: func.return %0 : tensor<2x3x4x5xf32>
// CHECK-NEXT: }

// Not: they would move.
func.func @batch_norm_channels(%x: tensor<2x4x5x3xf32>, %s: tensor<3xf32>) -> tensor<2x4x5x3xf32> {
  %0 = sx.transpose %x {perm = array<i64: 0, 3, 1, 2>} : (tensor<2x4x5x3xf32>) -> tensor<2x3x4x5xf32>
  %1, %2, %3 = sx.batch_norm %0, %s, %s, %s, %s : (tensor<2x3x4x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4x5xf32>, tensor<3xf32>, tensor<3xf32>)
  %4 = sx.transpose %1 {perm = array<i64: 0, 2, 3, 1>} : (tensor<2x3x4x5xf32>) -> tensor<2x4x5x3xf32>
  func.return %4 : tensor<2x4x5x3xf32>
}
// CHECK-LABEL: func.func @batch_norm_channels(
// CHECK-NEXT: %0 = sx.transpose %x {perm = array<i64: 0, 3, 1, 2>} : (tensor<2x4x5x3xf32>) -> tensor<2x3x4x5xf32>
// CHECK-NEXT: %1, %2, %3 = sx.batch_norm %0, %s, %s, %s, %s : (tensor<2x3x4x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4x5xf32>, tensor<3xf32>, tensor<3xf32>)
// CHECK-NEXT: %4 = sx.transpose %1 {perm = array<i64: 0, 2, 3, 1>} : (tensor<2x3x4x5xf32>) -> tensor<2x4x5x3xf32>
// CHECK-NEXT: func.return %4 : tensor<2x4x5x3xf32>
// CHECK-NEXT: }

// Case 15: a value that two ops read (swish).
func.func @fork_and_join(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = sx.sigmoid %0 : (tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
  %2 = sx.mul %0, %1 : (tensor<3x4x2xf32>, tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
  %3 = sx.transpose %2 {perm = array<i64: 2, 0, 1>} : (tensor<3x4x2xf32>) -> tensor<2x3x4xf32>
  func.return %3 : tensor<2x3x4xf32>
}
// CHECK-LABEL: func.func @fork_and_join(
// CHECK-NEXT: %0 = sx.sigmoid %x : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: %1 = sx.mul %x, %0 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: func.return %1 : tensor<2x3x4xf32>
// CHECK-NEXT: }

// Case 15: layer normalisation in steps.
func.func @steps(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = sx.constant {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %2 = sx.reduce_mean %0, %1 : (tensor<3x4x2xf32>, tensor<1xi64>) -> tensor<3x4x1xf32>
  %3 = sx.sub %0, %2 : (tensor<3x4x2xf32>, tensor<3x4x1xf32>) -> tensor<3x4x2xf32>
  %4 = sx.mul %3, %3 : (tensor<3x4x2xf32>, tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
  %5 = sx.constant {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %6 = sx.reduce_mean %4, %5 : (tensor<3x4x2xf32>, tensor<1xi64>) -> tensor<3x4x1xf32>
  %7 = sx.constant {value = dense<1.000000e-05> : tensor<f32>} : () -> tensor<f32>
  %8 = sx.add %6, %7 : (tensor<3x4x1xf32>, tensor<f32>) -> tensor<3x4x1xf32>
  %9 = sx.sqrt %8 : (tensor<3x4x1xf32>) -> tensor<3x4x1xf32>
  %10 = sx.div %3, %9 : (tensor<3x4x2xf32>, tensor<3x4x1xf32>) -> tensor<3x4x2xf32>
  %11 = sx.transpose %10 {perm = array<i64: 2, 0, 1>} : (tensor<3x4x2xf32>) -> tensor<2x3x4xf32>
  func.return %11 : tensor<2x3x4xf32>
}
// CHECK-LABEL: func.func @steps(
// CHECK-NEXT: %0 = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
// CHECK-NEXT: %1 = sx.reduce_mean %x, %0 : (tensor<2x3x4xf32>, tensor<1xi64>) -> tensor<1x3x4xf32>
// CHECK-NEXT: %2 = sx.sub %x, %1 : (tensor<2x3x4xf32>, tensor<1x3x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: %3 = sx.mul %2, %2 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: %4 = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
// CHECK-NEXT: %5 = sx.reduce_mean %3, %4 : (tensor<2x3x4xf32>, tensor<1xi64>) -> tensor<1x3x4xf32>
// CHECK-NEXT: %6 = sx.constant {value = dense<1.000000e-05> : tensor<f32>} : () -> tensor<f32>
// CHECK-NEXT: %7 = sx.add %5, %6 : (tensor<1x3x4xf32>, tensor<f32>) -> tensor<1x3x4xf32>
// CHECK-NEXT: %8 = sx.sqrt %7 : (tensor<1x3x4xf32>) -> tensor<1x3x4xf32>
// CHECK-NEXT: %9 = sx.div %2, %8 : (tensor<2x3x4xf32>, tensor<1x3x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: func.return %9 : tensor<2x3x4xf32>
// CHECK-NEXT: }

// Not: one transpose would become two.
func.func @fork(%x: tensor<2x3x4xf32>) -> (tensor<3x4x2xf32>, tensor<3x4x2xf32>) {
  %0 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = sx.relu %0 : (tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
  %2 = sx.tanh %0 : (tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
  func.return %1, %2 : tensor<3x4x2xf32>, tensor<3x4x2xf32>
}
// CHECK-LABEL: func.func @fork(
// CHECK-NEXT: %0 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
// CHECK-NEXT: %1 = sx.relu %0 : (tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
// CHECK-NEXT: %2 = sx.tanh %0 : (tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
// CHECK-NEXT: func.return %1, %2 : tensor<3x4x2xf32>, tensor<3x4x2xf32>
// CHECK-NEXT: }

// Case 15: of two readers one leads to the inverse.
func.func @fork_one_pays(%x: tensor<2x3x4xf32>) -> (tensor<3x4x2xf32>, tensor<2x3x4xf32>) {
  %0 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = sx.relu %0 : (tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
  %2 = sx.tanh %0 : (tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
  %3 = sx.transpose %2 {perm = array<i64: 2, 0, 1>} : (tensor<3x4x2xf32>) -> tensor<2x3x4xf32>
  func.return %1, %3 : tensor<3x4x2xf32>, tensor<2x3x4xf32>
}
// CHECK-LABEL: func.func @fork_one_pays(
// CHECK-NEXT: %0 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
// CHECK-NEXT: %1 = sx.relu %0 : (tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
// CHECK-NEXT: %2 = sx.tanh %x : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: func.return %1, %2 : tensor<3x4x2xf32>, tensor<2x3x4xf32>
// CHECK-NEXT: }

// Case 16: no element moves.
func.func @only_ones(%x: tensor<?x1x28x28xf32, #sx.dims<n, _, _, _>>, %y: tensor<1x1x3xf32>) -> (tensor<?x28x28x1xf32, #sx.dims<n, _, _, _>>, tensor<1x1x3xf32>) {
  %0 = sx.transpose %x {perm = array<i64: 0, 2, 3, 1>} : (tensor<?x1x28x28xf32, #sx.dims<n, _, _, _>>) -> tensor<?x28x28x1xf32, #sx.dims<n, _, _, _>>
  %1 = sx.transpose %y {perm = array<i64: 1, 0, 2>} : (tensor<1x1x3xf32>) -> tensor<1x1x3xf32>
  func.return %0, %1 : tensor<?x28x28x1xf32, #sx.dims<n, _, _, _>>, tensor<1x1x3xf32>
}
// CHECK-LABEL: func.func @only_ones(
// CHECK-NEXT: %0 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
// CHECK-NEXT: %1 = sx.squeeze %x, %0 : (tensor<?x1x28x28xf32, #sx.dims<n, _, _, _>>, tensor<1xi64>) -> tensor<?x28x28xf32, #sx.dims<n, _, _>>
// CHECK-NEXT: %2 = sx.constant {value = dense<3> : tensor<1xi64>} : () -> tensor<1xi64>
// CHECK-NEXT: %3 = sx.unsqueeze %1, %2 : (tensor<?x28x28xf32, #sx.dims<n, _, _>>, tensor<1xi64>) -> tensor<?x28x28x1xf32, #sx.dims<n, _, _, _>>
// CHECK-NEXT: func.return %3, %y : tensor<?x28x28x1xf32, #sx.dims<n, _, _, _>>, tensor<1x1x3xf32>
// CHECK-NEXT: }

// Case 16: such transposes cancel like others.
func.func @only_ones_cancel(%x: tensor<?x1x28x28xf32, #sx.dims<n, _, _, _>>) -> tensor<?x1x28x28xf32, #sx.dims<n, _, _, _>> {
  %0 = sx.transpose %x {perm = array<i64: 0, 2, 3, 1>} : (tensor<?x1x28x28xf32, #sx.dims<n, _, _, _>>) -> tensor<?x28x28x1xf32, #sx.dims<n, _, _, _>>
  %1 = sx.relu %0 : (tensor<?x28x28x1xf32, #sx.dims<n, _, _, _>>) -> tensor<?x28x28x1xf32, #sx.dims<n, _, _, _>>
  %2 = sx.transpose %1 {perm = array<i64: 0, 3, 1, 2>} : (tensor<?x28x28x1xf32, #sx.dims<n, _, _, _>>) -> tensor<?x1x28x28xf32, #sx.dims<n, _, _, _>>
  func.return %2 : tensor<?x1x28x28xf32, #sx.dims<n, _, _, _>>
}
// CHECK-LABEL: func.func @only_ones_cancel(
// CHECK-NEXT: %0 = sx.relu %x : (tensor<?x1x28x28xf32, #sx.dims<n, _, _, _>>) -> tensor<?x1x28x28xf32, #sx.dims<n, _, _, _>>
// CHECK-NEXT: func.return %0 : tensor<?x1x28x28xf32, #sx.dims<n, _, _, _>>
// CHECK-NEXT: }

// Not: reshape mixes the axes.
func.func @reshape(%x: tensor<2x3x4xf32>) -> tensor<2x6x2xf32> {
  %0 = sx.transpose %x {perm = array<i64: 0, 2, 1>} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %1 = sx.constant {value = dense<[2, 2, 6]> : tensor<3xi64>} : () -> tensor<3xi64>
  %2 = sx.reshape %0, %1 : (tensor<2x4x3xf32>, tensor<3xi64>) -> tensor<2x2x6xf32>
  %3 = sx.transpose %2 {perm = array<i64: 0, 2, 1>} : (tensor<2x2x6xf32>) -> tensor<2x6x2xf32>
  func.return %3 : tensor<2x6x2xf32>
}
// CHECK-LABEL: func.func @reshape(
// CHECK-NEXT: %0 = sx.transpose %x {perm = array<i64: 0, 2, 1>} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
// CHECK-NEXT: %1 = sx.constant {value = dense<[2, 2, 6]> : tensor<3xi64>} : () -> tensor<3xi64>
// CHECK-NEXT: %2 = sx.reshape %0, %1 : (tensor<2x4x3xf32>, tensor<3xi64>) -> tensor<2x2x6xf32>
// CHECK-NEXT: %3 = sx.transpose %2 {perm = array<i64: 0, 2, 1>} : (tensor<2x2x6xf32>) -> tensor<2x6x2xf32>
// CHECK-NEXT: func.return %3 : tensor<2x6x2xf32>
// CHECK-NEXT: }

// Not: nothing is gained.
func.func @alone(%x: tensor<2x3x4xf32>) -> tensor<3x4x2xf32> {
  %0 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = sx.relu %0 : (tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
  func.return %1 : tensor<3x4x2xf32>
}
// CHECK-LABEL: func.func @alone(
// CHECK-NEXT: %0 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
// CHECK-NEXT: %1 = sx.relu %0 : (tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
// CHECK-NEXT: func.return %1 : tensor<3x4x2xf32>
// CHECK-NEXT: }

// Empty tensors.
func.func @empty(%x: tensor<2x0x4xf32>) -> tensor<2x1x4xf32> {
  %0 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<2x0x4xf32>) -> tensor<0x4x2xf32>
  %1 = sx.relu %0 : (tensor<0x4x2xf32>) -> tensor<0x4x2xf32>
  %2 = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %3 = sx.reduce_sum %1, %2 : (tensor<0x4x2xf32>, tensor<1xi64>) -> tensor<1x4x2xf32>
  %4 = sx.transpose %3 {perm = array<i64: 2, 0, 1>} : (tensor<1x4x2xf32>) -> tensor<2x1x4xf32>
  func.return %4 : tensor<2x1x4xf32>
}
// CHECK-LABEL: func.func @empty(
// CHECK-NEXT: %0 = sx.relu %x : (tensor<2x0x4xf32>) -> tensor<2x0x4xf32>
// CHECK-NEXT: %1 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
// CHECK-NEXT: %2 = sx.reduce_sum %0, %1 : (tensor<2x0x4xf32>, tensor<1xi64>) -> tensor<2x1x4xf32>
// CHECK-NEXT: func.return %2 : tensor<2x1x4xf32>
// CHECK-NEXT: }
