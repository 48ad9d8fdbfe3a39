// RUN: sardonyx-opt %s -p 'simplify' | filecheck %s

// The cases of `simplify`, by their numbers in its docstring.

// Case 1: neutral elements, on either side where the op is commutative; the constants are gone too.
func.func @neutral(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = sx.constant {value = dense<1.000000e+00> : tensor<3xf32>} : () -> tensor<3xf32>
  %1 = sx.mul %x, %0 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %2 = sx.constant {value = dense<1.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %3 = sx.mul %2, %1 : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = sx.constant {value = dense<1.000000e+00> : tensor<1xf32>} : () -> tensor<1xf32>
  %5 = sx.div %3, %4 : (tensor<2x3xf32>, tensor<1xf32>) -> tensor<2x3xf32>
  %6 = sx.constant {value = dense<0.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %7 = sx.sub %5, %6 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %8 = sx.constant {value = dense<1.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %9 = sx.pow %7, %8 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  func.return %9 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @neutral(
// CHECK-NEXT: func.return %x : tensor<2x3xf32>
// CHECK-NEXT: }

// Case 1: x + -0 for floats, x + 0 for integers.
func.func @plus_zero(%x: tensor<2x3xf32>, %i: tensor<2xi32>) -> (tensor<2x3xf32>, tensor<2xi32>) {
  %0 = sx.constant {value = dense<-0.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %1 = sx.add %x, %0 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %2 = sx.constant {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %3 = sx.add %2, %i : (tensor<i32>, tensor<2xi32>) -> tensor<2xi32>
  func.return %1, %3 : tensor<2x3xf32>, tensor<2xi32>
}
// CHECK-LABEL: func.func @plus_zero(
// CHECK-NEXT: func.return %x, %i : tensor<2x3xf32>, tensor<2xi32>
// CHECK-NEXT: }

// Not: x + 0 changes -0; x - -0 too; 0 * x may be NaN; 1 - x and 1 / x are no x.
func.func @not_neutral(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = sx.constant {value = dense<0.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %1 = sx.add %x, %0 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %2 = sx.constant {value = dense<-0.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %3 = sx.sub %x, %2 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %4 = sx.constant {value = dense<0.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %5 = sx.mul %x, %4 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %6 = sx.constant {value = dense<0.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %7 = sx.sub %6, %x : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %8 = sx.constant {value = dense<1.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %9 = sx.div %8, %x : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1, %3, %5, %7, %9 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}
// CHECK-LABEL: func.func @not_neutral(
// CHECK-NEXT: %0 = sx.constant {value = dense<0.000000e+00> : tensor<f32>} : () -> tensor<f32>
// CHECK-NEXT: %1 = sx.add %x, %0 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
// CHECK-NEXT: %2 = sx.constant {value = dense<-0.000000e+00> : tensor<f32>} : () -> tensor<f32>
// CHECK-NEXT: %3 = sx.sub %x, %2 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
// CHECK-NEXT: %4 = sx.constant {value = dense<0.000000e+00> : tensor<f32>} : () -> tensor<f32>
// CHECK-NEXT: %5 = sx.mul %x, %4 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
// CHECK-NEXT: %6 = sx.constant {value = dense<0.000000e+00> : tensor<f32>} : () -> tensor<f32>
// CHECK-NEXT: %7 = sx.sub %6, %x : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: %8 = sx.constant {value = dense<1.000000e+00> : tensor<f32>} : () -> tensor<f32>
// CHECK-NEXT: %9 = sx.div %8, %x : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: func.return %1, %3, %5, %7, %9 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
// CHECK-NEXT: }

// Not: a neutral element still broadcasts.
func.func @broadcasts(%x: tensor<3xf32>) -> tensor<2x3xf32> {
  %0 = sx.constant {value = dense<1.000000e+00> : tensor<2x1xf32>} : () -> tensor<2x1xf32>
  %1 = sx.mul %x, %0 : (tensor<3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @broadcasts(
// CHECK-NEXT: %0 = sx.constant {value = dense<1.000000e+00> : tensor<2x1xf32>} : () -> tensor<2x1xf32>
// CHECK-NEXT: %1 = sx.mul %x, %0 : (tensor<3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: func.return %1 : tensor<2x3xf32>
// CHECK-NEXT: }

// Not: an extent that may or may not be 1.
func.func @maybe_broadcasts(%x: tensor<?xf32, #sx.dims<n>>) -> tensor<2xf32> {
  %0 = sx.constant {value = dense<1.000000e+00> : tensor<2xf32>} : () -> tensor<2xf32>
  %1 = sx.mul %x, %0 : (tensor<?xf32, #sx.dims<n>>, tensor<2xf32>) -> tensor<2xf32>
  func.return %1 : tensor<2xf32>
}
// CHECK-LABEL: func.func @maybe_broadcasts(
// CHECK-NEXT: %0 = sx.constant {value = dense<1.000000e+00> : tensor<2xf32>} : () -> tensor<2xf32>
// CHECK-NEXT: %1 = sx.mul %x, %0 : (tensor<?xf32, #sx.dims<n>>, tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT: func.return %1 : tensor<2xf32>
// CHECK-NEXT: }

// Case 1: logic and bits.
func.func @logic(%x: tensor<2xi1>, %i: tensor<2xi32>) -> (tensor<2xi1>, tensor<2xi32>) {
  %0 = sx.constant {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %1 = sx.and %x, %0 : (tensor<2xi1>, tensor<i1>) -> tensor<2xi1>
  %2 = sx.constant {value = dense<false> : tensor<i1>} : () -> tensor<i1>
  %3 = sx.or %1, %2 : (tensor<2xi1>, tensor<i1>) -> tensor<2xi1>
  %4 = sx.constant {value = dense<false> : tensor<i1>} : () -> tensor<i1>
  %5 = sx.xor %3, %4 : (tensor<2xi1>, tensor<i1>) -> tensor<2xi1>
  %6 = sx.constant {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %7 = sx.bitwise_or %i, %6 : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
  %8 = sx.constant {value = dense<0> : tensor<1xi32>} : () -> tensor<1xi32>
  %9 = sx.bitwise_xor %7, %8 : (tensor<2xi32>, tensor<1xi32>) -> tensor<2xi32>
  func.return %5, %9 : tensor<2xi1>, tensor<2xi32>
}
// CHECK-LABEL: func.func @logic(
// CHECK-NEXT: func.return %x, %i : tensor<2xi1>, tensor<2xi32>
// CHECK-NEXT: }

// Case 2.
func.func @no_op(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = sx.identity %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = sx.clip %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = sx.max %1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = sx.sum %2 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = sx.constant {value = dense<> : tensor<0xi64>} : () -> tensor<0xi64>
  %5 = sx.reduce_sum %3, %4 {noop_with_empty_axes = true} : (tensor<2x3xf32>, tensor<0xi64>) -> tensor<2x3xf32>
  func.return %5 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @no_op(
// CHECK-NEXT: func.return %x : tensor<2x3xf32>
// CHECK-NEXT: }

// Not: no axes mean all of them; L1 takes absolute values.
func.func @still_reduces(%x: tensor<2x3xf32>) -> (tensor<1x1xf32>, tensor<2x3xf32>) {
  %0 = sx.constant {value = dense<> : tensor<0xi64>} : () -> tensor<0xi64>
  %1 = sx.reduce_sum %x, %0 : (tensor<2x3xf32>, tensor<0xi64>) -> tensor<1x1xf32>
  %2 = sx.constant {value = dense<> : tensor<0xi64>} : () -> tensor<0xi64>
  %3 = sx.reduce_l1 %x, %2 {noop_with_empty_axes = true} : (tensor<2x3xf32>, tensor<0xi64>) -> tensor<2x3xf32>
  func.return %1, %3 : tensor<1x1xf32>, tensor<2x3xf32>
}
// CHECK-LABEL: func.func @still_reduces(
// CHECK-NEXT: %0 = sx.constant {value = dense<> : tensor<0xi64>} : () -> tensor<0xi64>
// CHECK-NEXT: %1 = sx.reduce_sum %x, %0 : (tensor<2x3xf32>, tensor<0xi64>) -> tensor<1x1xf32>
// CHECK-NEXT: %2 = sx.constant {value = dense<> : tensor<0xi64>} : () -> tensor<0xi64>
// CHECK-NEXT: %3 = sx.reduce_l1 %x, %2 {noop_with_empty_axes = true} : (tensor<2x3xf32>, tensor<0xi64>) -> tensor<2x3xf32>
// CHECK-NEXT: func.return %1, %3 : tensor<1x1xf32>, tensor<2x3xf32>
// CHECK-NEXT: }

// Case 3.
func.func @where(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>, %c: tensor<2x3xi1>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = sx.constant {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %1 = sx.where %0, %x, %y : (tensor<i1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = sx.constant {value = dense<false> : tensor<1xi1>} : () -> tensor<1xi1>
  %3 = sx.where %2, %x, %y : (tensor<1xi1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = sx.where %c, %x, %x : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1, %3, %4 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}
// CHECK-LABEL: func.func @where(
// CHECK-NEXT: func.return %x, %y, %x : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
// CHECK-NEXT: }

// Not: what is chosen is broadcast.
func.func @where_broadcasts(%x: tensor<3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = sx.constant {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %1 = sx.where %0, %x, %y : (tensor<i1>, tensor<3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @where_broadcasts(
// CHECK-NEXT: %0 = sx.constant {value = dense<true> : tensor<i1>} : () -> tensor<i1>
// CHECK-NEXT: %1 = sx.where %0, %x, %y : (tensor<i1>, tensor<3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: func.return %1 : tensor<2x3xf32>
// CHECK-NEXT: }

// Case 4.
func.func @undone(%x: tensor<2x3xf32>, %c: tensor<2xi1>, %i: tensor<2xi8>) -> (tensor<2x3xf32>, tensor<2xi1>, tensor<2xi8>) {
  %0 = sx.neg %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = sx.neg %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = sx.not %c : (tensor<2xi1>) -> tensor<2xi1>
  %3 = sx.not %2 : (tensor<2xi1>) -> tensor<2xi1>
  %4 = sx.bitwise_not %i : (tensor<2xi8>) -> tensor<2xi8>
  %5 = sx.bitwise_not %4 : (tensor<2xi8>) -> tensor<2xi8>
  func.return %1, %3, %5 : tensor<2x3xf32>, tensor<2xi1>, tensor<2xi8>
}
// CHECK-LABEL: func.func @undone(
// CHECK-NEXT: func.return %x, %c, %i : tensor<2x3xf32>, tensor<2xi1>, tensor<2xi8>
// CHECK-NEXT: }

// Case 5.
func.func @idempotent(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = sx.abs %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = sx.abs %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = sx.relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = sx.relu %2 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = sx.floor %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %5 = sx.floor %4 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %6 = sx.sign %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %7 = sx.sign %6 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1, %3, %5, %7 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}
// CHECK-LABEL: func.func @idempotent(
// CHECK-NEXT: %0 = sx.abs %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: %1 = sx.relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: %2 = sx.floor %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: %3 = sx.sign %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: func.return %0, %1, %2, %3 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
// CHECK-NEXT: }

// Case 6: casts that lose nothing.
func.func @casts(%h: tensor<2xf16>, %i: tensor<2xi8>, %f: tensor<2xf32>, %y: tensor<1xi64>, %c: tensor<2xi1>) -> (tensor<2xf16>, tensor<2xi16>, tensor<2xf32>, tensor<2xi8>, tensor<2xi64>) {
  %0 = sx.cast %h {to = f32} : (tensor<2xf16>) -> tensor<2xf32>
  %1 = sx.cast %0 {to = f16} : (tensor<2xf32>) -> tensor<2xf16>
  %2 = sx.cast %i {to = i32} : (tensor<2xi8>) -> tensor<2xi32>
  %3 = sx.cast %2 {to = i16} : (tensor<2xi32>) -> tensor<2xi16>
  %4 = sx.cast %f {to = f32} : (tensor<2xf32>) -> tensor<2xf32>
  %5 = sx.cast %c {to = f32} : (tensor<2xi1>) -> tensor<2xf32>
  %6 = sx.cast %5 {to = i8} : (tensor<2xf32>) -> tensor<2xi8>
  %7 = sx.cast_like %f, %y : (tensor<2xf32>, tensor<1xi64>) -> tensor<2xi64>
  func.return %1, %3, %4, %6, %7 : tensor<2xf16>, tensor<2xi16>, tensor<2xf32>, tensor<2xi8>, tensor<2xi64>
}
// CHECK-LABEL: func.func @casts(
// CHECK-NEXT: %0 = sx.cast %i {to = i16} : (tensor<2xi8>) -> tensor<2xi16>
// CHECK-NEXT: %1 = sx.cast %c {to = i8} : (tensor<2xi1>) -> tensor<2xi8>
// CHECK-NEXT: %2 = sx.cast %f {to = i64} : (tensor<2xf32>) -> tensor<2xi64>
// CHECK-NEXT: func.return %h, %0, %f, %1, %2 : tensor<2xf16>, tensor<2xi16>, tensor<2xf32>, tensor<2xi8>, tensor<2xi64>
// CHECK-NEXT: }

// Not: rounding, wrapping and saturation.
func.func @lossy(%f: tensor<2xf32>, %i: tensor<2xi32>, %u: tensor<2xui8>) -> (tensor<2xf32>, tensor<2xi32>, tensor<2xi8>, tensor<2xi32>, tensor<2xf32>) {
  %0 = sx.cast %f {to = f16} : (tensor<2xf32>) -> tensor<2xf16>
  %1 = sx.cast %0 {to = f32} : (tensor<2xf16>) -> tensor<2xf32>
  %2 = sx.cast %i {to = i8} : (tensor<2xi32>) -> tensor<2xi8>
  %3 = sx.cast %2 {to = i32} : (tensor<2xi8>) -> tensor<2xi32>
  %4 = sx.cast %i {to = f64} : (tensor<2xi32>) -> tensor<2xf64>
  %5 = sx.cast %4 {to = i8} : (tensor<2xf64>) -> tensor<2xi8>
  %6 = sx.cast %u {to = i8} : (tensor<2xui8>) -> tensor<2xi8>
  %7 = sx.cast %6 {to = i32} : (tensor<2xi8>) -> tensor<2xi32>
  %8 = sx.cast %f {to = i32} : (tensor<2xf32>) -> tensor<2xi32>
  %9 = sx.cast %8 {to = f32} : (tensor<2xi32>) -> tensor<2xf32>
  func.return %1, %3, %5, %7, %9 : tensor<2xf32>, tensor<2xi32>, tensor<2xi8>, tensor<2xi32>, tensor<2xf32>
}
// CHECK-LABEL: func.func @lossy(
// CHECK-NEXT: %0 = sx.cast %f {to = f16} : (tensor<2xf32>) -> tensor<2xf16>
// CHECK-NEXT: %1 = sx.cast %0 {to = f32} : (tensor<2xf16>) -> tensor<2xf32>
// CHECK-NEXT: %2 = sx.cast %i {to = i8} : (tensor<2xi32>) -> tensor<2xi8>
// CHECK-NEXT: %3 = sx.cast %2 {to = i32} : (tensor<2xi8>) -> tensor<2xi32>
// CHECK-NEXT: %4 = sx.cast %i {to = f64} : (tensor<2xi32>) -> tensor<2xf64>
// CHECK-NEXT: %5 = sx.cast %4 {to = i8} : (tensor<2xf64>) -> tensor<2xi8>
// CHECK-NEXT: %6 = sx.cast %u {to = i8} : (tensor<2xui8>) -> tensor<2xi8>
// CHECK-NEXT: %7 = sx.cast %6 {to = i32} : (tensor<2xi8>) -> tensor<2xi32>
// CHECK-NEXT: %8 = sx.cast %f {to = i32} : (tensor<2xf32>) -> tensor<2xi32>
// CHECK-NEXT: %9 = sx.cast %8 {to = f32} : (tensor<2xi32>) -> tensor<2xf32>
// CHECK-NEXT: func.return %1, %3, %5, %7, %9 : tensor<2xf32>, tensor<2xi32>, tensor<2xi8>, tensor<2xi32>, tensor<2xf32>
// CHECK-NEXT: }

// Case 7: named dims too.
func.func @same_shape(%x: tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>> {
  %0 = sx.shape %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<2xi64>
  %1 = sx.reshape %x, %0 : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<2xi64>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %2 = sx.flatten %1 : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %3 = sx.shape %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<2xi64>
  %4 = sx.expand %2, %3 : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<2xi64>) -> tensor<?x3xf32, #sx.dims<n, _>>
  func.return %4 : tensor<?x3xf32, #sx.dims<n, _>>
}
// CHECK-LABEL: func.func @same_shape(
// CHECK-NEXT: func.return %x : tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: }

// Case 7: 0 copies, -1 takes what is left.
func.func @same_shape_entries(%x: tensor<?x3xf32, #sx.dims<n, _>>) -> (tensor<?x3xf32, #sx.dims<n, _>>, tensor<?x3xf32, #sx.dims<n, _>>, tensor<?x3xf32, #sx.dims<n, _>>) {
  %0 = sx.constant {value = dense<[0, 3]> : tensor<2xi64>} : () -> tensor<2xi64>
  %1 = sx.reshape %x, %0 : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<2xi64>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %2 = sx.constant {value = dense<[-1, 3]> : tensor<2xi64>} : () -> tensor<2xi64>
  %3 = sx.reshape %x, %2 : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<2xi64>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %4 = sx.constant {value = dense<[0, -1]> : tensor<2xi64>} : () -> tensor<2xi64>
  %5 = sx.reshape %x, %4 : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<2xi64>) -> tensor<?x3xf32, #sx.dims<n, _>>
  func.return %1, %3, %5 : tensor<?x3xf32, #sx.dims<n, _>>, tensor<?x3xf32, #sx.dims<n, _>>, tensor<?x3xf32, #sx.dims<n, _>>
}
// CHECK-LABEL: func.func @same_shape_entries(
// CHECK-NEXT: func.return %x, %x, %x : tensor<?x3xf32, #sx.dims<n, _>>, tensor<?x3xf32, #sx.dims<n, _>>, tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: }

// Case 8.
func.func @keeps_all(%x: tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>> {
  %0 = sx.transpose %x {perm = array<i64: 0, 1>} : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %1 = sx.concat %0 {axis = -1 : i64} : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %2 = sx.split %1 {num_outputs = 1 : i64} : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %3 = sx.constant {value = dense<0> : tensor<2xi64>} : () -> tensor<2xi64>
  %4 = sx.constant {value = dense<[9223372036854775807, 3]> : tensor<2xi64>} : () -> tensor<2xi64>
  %5 = sx.slice %2, %3, %4 : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %6 = sx.constant {value = dense<0> : tensor<4xi64>} : () -> tensor<4xi64>
  %7 = sx.pad %5, %6 : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<4xi64>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %8 = sx.constant {value = dense<1> : tensor<2xi64>} : () -> tensor<2xi64>
  %9 = sx.tile %7, %8 : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<2xi64>) -> tensor<?x3xf32, #sx.dims<n, _>>
  func.return %9 : tensor<?x3xf32, #sx.dims<n, _>>
}
// CHECK-LABEL: func.func @keeps_all(
// CHECK-NEXT: func.return %x : tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: }

// Not: a slice that starts later or runs backwards, a pad that crops.
func.func @keeps_some(%x: tensor<2x3xf32>) -> (tensor<1x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.constant {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %2 = sx.slice %x, %0, %1 : (tensor<2x3xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<1x3xf32>
  %3 = sx.constant {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %4 = sx.constant {value = dense<-3> : tensor<1xi64>} : () -> tensor<1xi64>
  %5 = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %6 = sx.constant {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %7 = sx.slice %x, %3, %4, %5, %6 : (tensor<2x3xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2x3xf32>
  %8 = sx.constant {value = dense<[1, 0, -1, 0]> : tensor<4xi64>} : () -> tensor<4xi64>
  %9 = sx.pad %x, %8 : (tensor<2x3xf32>, tensor<4xi64>) -> tensor<2x3xf32>
  func.return %2, %7, %9 : tensor<1x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}
// CHECK-LABEL: func.func @keeps_some(
// CHECK-NEXT: %0 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
// CHECK-NEXT: %1 = sx.constant {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
// CHECK-NEXT: %2 = sx.slice %x, %0, %1 : (tensor<2x3xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<1x3xf32>
// CHECK-NEXT: %3 = sx.constant {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
// CHECK-NEXT: %4 = sx.constant {value = dense<-3> : tensor<1xi64>} : () -> tensor<1xi64>
// CHECK-NEXT: %5 = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
// CHECK-NEXT: %6 = sx.constant {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
// CHECK-NEXT: %7 = sx.slice %x, %3, %4, %5, %6 : (tensor<2x3xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2x3xf32>
// CHECK-NEXT: %8 = sx.constant {value = dense<[1, 0, -1, 0]> : tensor<4xi64>} : () -> tensor<4xi64>
// CHECK-NEXT: %9 = sx.pad %x, %8 : (tensor<2x3xf32>, tensor<4xi64>) -> tensor<2x3xf32>
// CHECK-NEXT: func.return %2, %7, %9 : tensor<1x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
// CHECK-NEXT: }

// Case 9.
func.func @reshape_of_reshape(%x: tensor<2x3x4xf32>) -> tensor<4x6xf32> {
  %0 = sx.constant {value = dense<[6, 4]> : tensor<2xi64>} : () -> tensor<2xi64>
  %1 = sx.reshape %x, %0 : (tensor<2x3x4xf32>, tensor<2xi64>) -> tensor<6x4xf32>
  %2 = sx.constant {value = dense<[4, -1]> : tensor<2xi64>} : () -> tensor<2xi64>
  %3 = sx.reshape %1, %2 : (tensor<6x4xf32>, tensor<2xi64>) -> tensor<4x6xf32>
  func.return %3 : tensor<4x6xf32>
}
// CHECK-LABEL: func.func @reshape_of_reshape(
// CHECK-NEXT: %0 = sx.constant {value = dense<[4, -1]> : tensor<2xi64>} : () -> tensor<2xi64>
// CHECK-NEXT: %1 = sx.reshape %x, %0 : (tensor<2x3x4xf32>, tensor<2xi64>) -> tensor<4x6xf32>
// CHECK-NEXT: func.return %1 : tensor<4x6xf32>
// CHECK-NEXT: }

// Case 9: the second copies an extent, and the result is static.
func.func @reshape_copies(%x: tensor<2x3x4xf32>) -> tensor<2x4x3xf32> {
  %0 = sx.flatten %x : (tensor<2x3x4xf32>) -> tensor<2x12xf32>
  %1 = sx.constant {value = dense<[0, 4, 3]> : tensor<3xi64>} : () -> tensor<3xi64>
  %2 = sx.reshape %0, %1 : (tensor<2x12xf32>, tensor<3xi64>) -> tensor<2x4x3xf32>
  func.return %2 : tensor<2x4x3xf32>
}
// CHECK-LABEL: func.func @reshape_copies(
// CHECK-NEXT: %0 = sx.constant {value = dense<[2, 4, 3]> : tensor<3xi64>} : () -> tensor<3xi64>
// CHECK-NEXT: %1 = sx.reshape %x, %0 : (tensor<2x3x4xf32>, tensor<3xi64>) -> tensor<2x4x3xf32>
// CHECK-NEXT: func.return %1 : tensor<2x4x3xf32>
// CHECK-NEXT: }

// Not: it copies an extent that the first operand has nowhere, beside one that is left open.
func.func @reshape_copies_unknown(%x: tensor<?x?x6xf32, #sx.dims<n, s, _>>) -> tensor<3x?x?xf32, #sx.dims<_, n, 2*s>> {
  %0 = sx.constant {value = dense<[0, 3, -1]> : tensor<3xi64>} : () -> tensor<3xi64>
  %1 = sx.reshape %x, %0 : (tensor<?x?x6xf32, #sx.dims<n, s, _>>, tensor<3xi64>) -> tensor<?x3x?xf32, #sx.dims<n, _, 2*s>>
  %2 = sx.constant {value = dense<[3, -1, 0]> : tensor<3xi64>} : () -> tensor<3xi64>
  %3 = sx.reshape %1, %2 : (tensor<?x3x?xf32, #sx.dims<n, _, 2*s>>, tensor<3xi64>) -> tensor<3x?x?xf32, #sx.dims<_, n, 2*s>>
  func.return %3 : tensor<3x?x?xf32, #sx.dims<_, n, 2*s>>
}
// CHECK-LABEL: func.func @reshape_copies_unknown(
// CHECK-NEXT: %0 = sx.constant {value = dense<[0, 3, -1]> : tensor<3xi64>} : () -> tensor<3xi64>
// CHECK-NEXT: %1 = sx.reshape %x, %0 : (tensor<?x?x6xf32, #sx.dims<n, s, _>>, tensor<3xi64>) -> tensor<?x3x?xf32, #sx.dims<n, _, 2*s>>
// CHECK-NEXT: %2 = sx.constant {value = dense<[3, -1, 0]> : tensor<3xi64>} : () -> tensor<3xi64>
// CHECK-NEXT: %3 = sx.reshape %1, %2 : (tensor<?x3x?xf32, #sx.dims<n, _, 2*s>>, tensor<3xi64>) -> tensor<3x?x?xf32, #sx.dims<_, n, 2*s>>
// CHECK-NEXT: func.return %3 : tensor<3x?x?xf32, #sx.dims<_, n, 2*s>>
// CHECK-NEXT: }

// Case 9: an empty tensor.
func.func @reshape_empty(%x: tensor<2x0x4xf32>) -> tensor<4x0xf32> {
  %0 = sx.constant {value = dense<[0, 8]> : tensor<2xi64>} : () -> tensor<2xi64>
  %1 = sx.reshape %x, %0 {allowzero = true} : (tensor<2x0x4xf32>, tensor<2xi64>) -> tensor<0x8xf32>
  %2 = sx.constant {value = dense<[4, 0]> : tensor<2xi64>} : () -> tensor<2xi64>
  %3 = sx.reshape %1, %2 {allowzero = true} : (tensor<0x8xf32>, tensor<2xi64>) -> tensor<4x0xf32>
  func.return %3 : tensor<4x0xf32>
}
// CHECK-LABEL: func.func @reshape_empty(
// CHECK-NEXT: %0 = sx.constant {value = dense<[4, 0]> : tensor<2xi64>} : () -> tensor<2xi64>
// CHECK-NEXT: %1 = sx.reshape %x, %0 {allowzero = true} : (tensor<2x0x4xf32>, tensor<2xi64>) -> tensor<4x0xf32>
// CHECK-NEXT: func.return %1 : tensor<4x0xf32>
// CHECK-NEXT: }

// Case 10: negative axes.
func.func @squeezes(%x: tensor<1x5x1x1xf32>, %v: tensor<5xf32>) -> (tensor<1x5xf32>, tensor<1x5x1x1xf32>) {
  %0 = sx.constant {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.squeeze %x, %0 : (tensor<1x5x1x1xf32>, tensor<1xi64>) -> tensor<1x5x1xf32>
  %2 = sx.constant {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %3 = sx.squeeze %1, %2 : (tensor<1x5x1xf32>, tensor<1xi64>) -> tensor<1x5xf32>
  %4 = sx.constant {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %5 = sx.unsqueeze %v, %4 : (tensor<5xf32>, tensor<1xi64>) -> tensor<5x1xf32>
  %6 = sx.constant {value = dense<[0, -1]> : tensor<2xi64>} : () -> tensor<2xi64>
  %7 = sx.unsqueeze %5, %6 : (tensor<5x1xf32>, tensor<2xi64>) -> tensor<1x5x1x1xf32>
  func.return %3, %7 : tensor<1x5xf32>, tensor<1x5x1x1xf32>
}
// CHECK-LABEL: func.func @squeezes(
// CHECK-NEXT: %0 = sx.constant {value = dense<[2, 3]> : tensor<2xi64>} : () -> tensor<2xi64>
// CHECK-NEXT: %1 = sx.squeeze %x, %0 : (tensor<1x5x1x1xf32>, tensor<2xi64>) -> tensor<1x5xf32>
// CHECK-NEXT: %2 = sx.constant {value = dense<[0, 2, 3]> : tensor<3xi64>} : () -> tensor<3xi64>
// CHECK-NEXT: %3 = sx.unsqueeze %v, %2 : (tensor<5xf32>, tensor<3xi64>) -> tensor<1x5x1x1xf32>
// CHECK-NEXT: func.return %1, %3 : tensor<1x5xf32>, tensor<1x5x1x1xf32>
// CHECK-NEXT: }

// Case 10: they cancel.
func.func @squeeze_unsqueeze(%x: tensor<?x3xf32, #sx.dims<n, _>>, %y: tensor<1x3xf32>) -> (tensor<?x3xf32, #sx.dims<n, _>>, tensor<1x3xf32>) {
  %0 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.unsqueeze %x, %0 : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1x3xf32, #sx.dims<n, _, _>>
  %2 = sx.constant {value = dense<-2> : tensor<1xi64>} : () -> tensor<1xi64>
  %3 = sx.squeeze %1, %2 : (tensor<?x1x3xf32, #sx.dims<n, _, _>>, tensor<1xi64>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %4 = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %5 = sx.squeeze %y, %4 : (tensor<1x3xf32>, tensor<1xi64>) -> tensor<3xf32>
  %6 = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %7 = sx.unsqueeze %5, %6 : (tensor<3xf32>, tensor<1xi64>) -> tensor<1x3xf32>
  func.return %3, %7 : tensor<?x3xf32, #sx.dims<n, _>>, tensor<1x3xf32>
}
// CHECK-LABEL: func.func @squeeze_unsqueeze(
// CHECK-NEXT: func.return %x, %y : tensor<?x3xf32, #sx.dims<n, _>>, tensor<1x3xf32>
// CHECK-NEXT: }

// Not: other axes; an extent that may not be 1.
func.func @squeeze_other(%x: tensor<1x3xf32>, %y: tensor<?x3xf32, #sx.dims<n, _>>) -> (tensor<3x1xf32>, tensor<1x3xf32>) {
  %0 = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.squeeze %x, %0 : (tensor<1x3xf32>, tensor<1xi64>) -> tensor<3xf32>
  %2 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %3 = sx.unsqueeze %1, %2 : (tensor<3xf32>, tensor<1xi64>) -> tensor<3x1xf32>
  %4 = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %5 = sx.squeeze %y, %4 : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<3xf32>
  %6 = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %7 = sx.unsqueeze %5, %6 : (tensor<3xf32>, tensor<1xi64>) -> tensor<1x3xf32>
  func.return %3, %7 : tensor<3x1xf32>, tensor<1x3xf32>
}
// CHECK-LABEL: func.func @squeeze_other(
// CHECK-NEXT: %0 = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
// CHECK-NEXT: %1 = sx.squeeze %x, %0 : (tensor<1x3xf32>, tensor<1xi64>) -> tensor<3xf32>
// CHECK-NEXT: %2 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
// CHECK-NEXT: %3 = sx.unsqueeze %1, %2 : (tensor<3xf32>, tensor<1xi64>) -> tensor<3x1xf32>
// CHECK-NEXT: %4 = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
// CHECK-NEXT: %5 = sx.squeeze %y, %4 : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<3xf32>
// CHECK-NEXT: %6 = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
// CHECK-NEXT: %7 = sx.unsqueeze %5, %6 : (tensor<3xf32>, tensor<1xi64>) -> tensor<1x3xf32>
// CHECK-NEXT: func.return %3, %7 : tensor<3x1xf32>, tensor<1x3xf32>
// CHECK-NEXT: }

// Case 11: what is computed from static extents.
func.func @known(%x: tensor<?x3x5xf32, #sx.dims<n, _, _>>) -> tensor<?x15xf32, #sx.dims<n, _>> {
  %0 = sx.shape %x : (tensor<?x3x5xf32, #sx.dims<n, _, _>>) -> tensor<3xi64>
  %1 = sx.constant {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %2 = sx.constant {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %3 = sx.gather %0, %2 : (tensor<3xi64>, tensor<i64>) -> tensor<i64>
  %4 = sx.constant {value = dense<2> : tensor<i64>} : () -> tensor<i64>
  %5 = sx.gather %0, %4 : (tensor<3xi64>, tensor<i64>) -> tensor<i64>
  %6 = sx.mul %3, %5 : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %7 = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %8 = sx.unsqueeze %6, %7 : (tensor<i64>, tensor<1xi64>) -> tensor<1xi64>
  %9 = sx.concat %1, %8 {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %10 = sx.reshape %x, %9 : (tensor<?x3x5xf32, #sx.dims<n, _, _>>, tensor<2xi64>) -> tensor<?x15xf32, #sx.dims<n, _>>
  func.return %10 : tensor<?x15xf32, #sx.dims<n, _>>
}
// CHECK-LABEL: func.func @known(
// CHECK-NEXT: %0 = sx.constant {value = dense<[-1, 15]> : tensor<2xi64>} : () -> tensor<2xi64>
// CHECK-NEXT: %1 = sx.reshape %x, %0 : (tensor<?x3x5xf32, #sx.dims<n, _, _>>, tensor<2xi64>) -> tensor<?x15xf32, #sx.dims<n, _>>
// CHECK-NEXT: func.return %1 : tensor<?x15xf32, #sx.dims<n, _>>
// CHECK-NEXT: }

// Not: from dims that are not known.
func.func @not_known(%x: tensor<?x3x5xf32, #sx.dims<n, _, _>>) -> (tensor<3xi64>, tensor<i64>) {
  %0 = sx.shape %x : (tensor<?x3x5xf32, #sx.dims<n, _, _>>) -> tensor<3xi64>
  %1 = sx.size %x : (tensor<?x3x5xf32, #sx.dims<n, _, _>>) -> tensor<i64>
  func.return %0, %1 : tensor<3xi64>, tensor<i64>
}
// CHECK-LABEL: func.func @not_known(
// CHECK-NEXT: %0 = sx.shape %x : (tensor<?x3x5xf32, #sx.dims<n, _, _>>) -> tensor<3xi64>
// CHECK-NEXT: %1 = sx.size %x : (tensor<?x3x5xf32, #sx.dims<n, _, _>>) -> tensor<i64>
// CHECK-NEXT: func.return %0, %1 : tensor<3xi64>, tensor<i64>
// CHECK-NEXT: }

// Case 12: computed shapes that constants state as well: extents that are copied, one that is left open.
func.func @computed_shape(%x: tensor<?x?x6xf32, #sx.dims<n, s, _>>) -> (tensor<?x?x2x3xf32, #sx.dims<n, s, _, _>>, tensor<?x6xf32, #sx.dims<n*s, _>>, tensor<?x?x6xf32, #sx.dims<n, s, _>>) {
  %0 = sx.shape %x {start = 0 : i64, end = 2 : i64} : (tensor<?x?x6xf32, #sx.dims<n, s, _>>) -> tensor<2xi64>
  %1 = sx.constant {value = dense<[2, 3]> : tensor<2xi64>} : () -> tensor<2xi64>
  %2 = sx.concat %0, %1 {axis = 0 : i64} : (tensor<2xi64>, tensor<2xi64>) -> tensor<4xi64>
  %3 = sx.reshape %x, %2 : (tensor<?x?x6xf32, #sx.dims<n, s, _>>, tensor<4xi64>) -> tensor<?x?x2x3xf32, #sx.dims<n, s, _, _>>
  %4 = sx.reduce_prod %0 {keepdims = true} : (tensor<2xi64>) -> tensor<1xi64>
  %5 = sx.constant {value = dense<6> : tensor<1xi64>} : () -> tensor<1xi64>
  %6 = sx.concat %4, %5 {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %7 = sx.reshape %x, %6 : (tensor<?x?x6xf32, #sx.dims<n, s, _>>, tensor<2xi64>) -> tensor<?x6xf32, #sx.dims<n*s, _>>
  %8 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %9 = sx.concat %0, %8 {axis = 0 : i64} : (tensor<2xi64>, tensor<1xi64>) -> tensor<3xi64>
  %10 = sx.expand %x, %9 : (tensor<?x?x6xf32, #sx.dims<n, s, _>>, tensor<3xi64>) -> tensor<?x?x6xf32, #sx.dims<n, s, _>>
  %11 = sx.neg %10 : (tensor<?x?x6xf32, #sx.dims<n, s, _>>) -> tensor<?x?x6xf32, #sx.dims<n, s, _>>
  func.return %3, %7, %11 : tensor<?x?x2x3xf32, #sx.dims<n, s, _, _>>, tensor<?x6xf32, #sx.dims<n*s, _>>, tensor<?x?x6xf32, #sx.dims<n, s, _>>
}
// CHECK-LABEL: func.func @computed_shape(
// CHECK-NEXT: %0 = sx.constant {value = dense<[0, 0, 2, 3]> : tensor<4xi64>} : () -> tensor<4xi64>
// CHECK-NEXT: %1 = sx.reshape %x, %0 : (tensor<?x?x6xf32, #sx.dims<n, s, _>>, tensor<4xi64>) -> tensor<?x?x2x3xf32, #sx.dims<n, s, _, _>>
// CHECK-NEXT: %2 = sx.constant {value = dense<[-1, 6]> : tensor<2xi64>} : () -> tensor<2xi64>
// CHECK-NEXT: %3 = sx.reshape %x, %2 : (tensor<?x?x6xf32, #sx.dims<n, s, _>>, tensor<2xi64>) -> tensor<?x6xf32, #sx.dims<n*s, _>>
// CHECK-NEXT: %4 = sx.neg %x : (tensor<?x?x6xf32, #sx.dims<n, s, _>>) -> tensor<?x?x6xf32, #sx.dims<n, s, _>>
// CHECK-NEXT: func.return %1, %3, %4 : tensor<?x?x2x3xf32, #sx.dims<n, s, _, _>>, tensor<?x6xf32, #sx.dims<n*s, _>>, tensor<?x?x6xf32, #sx.dims<n, s, _>>
// CHECK-NEXT: }

// Not: two extents that are not the operand's at the same place; beside a copied extent none can be left open.
func.func @computed_shape_not(%x: tensor<?x?x6xf32, #sx.dims<n, s, _>>) -> tensor<?x?x6xf32, #sx.dims<s, n, _>> {
  %0 = sx.shape %x : (tensor<?x?x6xf32, #sx.dims<n, s, _>>) -> tensor<3xi64>
  %1 = sx.constant {value = dense<[1, 0, 2]> : tensor<3xi64>} : () -> tensor<3xi64>
  %2 = sx.gather %0, %1 : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %3 = sx.reshape %x, %2 : (tensor<?x?x6xf32, #sx.dims<n, s, _>>, tensor<3xi64>) -> tensor<?x?x6xf32, #sx.dims<s, n, _>>
  func.return %3 : tensor<?x?x6xf32, #sx.dims<s, n, _>>
}
// CHECK-LABEL: func.func @computed_shape_not(
// CHECK-NEXT: %0 = sx.shape %x : (tensor<?x?x6xf32, #sx.dims<n, s, _>>) -> tensor<3xi64>
// CHECK-NEXT: %1 = sx.constant {value = dense<[1, 0, 2]> : tensor<3xi64>} : () -> tensor<3xi64>
// CHECK-NEXT: %2 = sx.gather %0, %1 : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
// CHECK-NEXT: %3 = sx.reshape %x, %2 : (tensor<?x?x6xf32, #sx.dims<n, s, _>>, tensor<3xi64>) -> tensor<?x?x6xf32, #sx.dims<s, n, _>>
// CHECK-NEXT: func.return %3 : tensor<?x?x6xf32, #sx.dims<s, n, _>>
// CHECK-NEXT: }

// Case 1: a neutral element in any shape.
func.func @filled(%x: tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>> {
  %0 = sx.shape %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<2xi64>
  %1 = sx.constant_of_shape %0 {value = dense<1.0> : tensor<1xf32>} : (tensor<2xi64>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %2 = sx.mul %x, %1 : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  func.return %2 : tensor<?x3xf32, #sx.dims<n, _>>
}
// CHECK-LABEL: func.func @filled(
// CHECK-NEXT: func.return %x : tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: }

// Case 9: a second shape that copies extents is stated in terms of the first operand's.
func.func @reshape_copies_stated(%x: tensor<?x4x6xf32, #sx.dims<n, _, _>>) -> tensor<?x8x3xf32, #sx.dims<n, _, _>> {
  %0 = sx.constant {value = dense<[0, 24]> : tensor<2xi64>} : () -> tensor<2xi64>
  %1 = sx.reshape %x, %0 : (tensor<?x4x6xf32, #sx.dims<n, _, _>>, tensor<2xi64>) -> tensor<?x24xf32, #sx.dims<n, _>>
  %2 = sx.constant {value = dense<[0, 8, 3]> : tensor<3xi64>} : () -> tensor<3xi64>
  %3 = sx.reshape %1, %2 : (tensor<?x24xf32, #sx.dims<n, _>>, tensor<3xi64>) -> tensor<?x8x3xf32, #sx.dims<n, _, _>>
  func.return %3 : tensor<?x8x3xf32, #sx.dims<n, _, _>>
}
// CHECK-LABEL: func.func @reshape_copies_stated(
// CHECK-NEXT: %0 = sx.constant {value = dense<[0, 8, 3]> : tensor<3xi64>} : () -> tensor<3xi64>
// CHECK-NEXT: %1 = sx.reshape %x, %0 : (tensor<?x4x6xf32, #sx.dims<n, _, _>>, tensor<3xi64>) -> tensor<?x8x3xf32, #sx.dims<n, _, _>>
// CHECK-NEXT: func.return %1 : tensor<?x8x3xf32, #sx.dims<n, _, _>>
// CHECK-NEXT: }

// Case 15: slices along different axes.
func.func @slices(%x: tensor<?x4x6xf32, #sx.dims<n, _, _>>) -> tensor<?x2x2xf32, #sx.dims<n, _, _>> {
  %s = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %e = sx.constant {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %a = sx.constant {value = dense<-2> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = sx.slice %x, %s, %e, %a : (tensor<?x4x6xf32, #sx.dims<n, _, _>>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2x6xf32, #sx.dims<n, _, _>>
  %a2 = sx.constant {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.slice %0, %s, %e, %a2, %a2 : (tensor<?x2x6xf32, #sx.dims<n, _, _>>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2x2xf32, #sx.dims<n, _, _>>
  func.return %1 : tensor<?x2x2xf32, #sx.dims<n, _, _>>
}
// CHECK-LABEL: func.func @slices(
// CHECK-NEXT: %0 = sx.constant {value = dense<1> : tensor<2xi64>} : () -> tensor<2xi64>
// CHECK-NEXT: %1 = sx.constant {value = dense<-1> : tensor<2xi64>} : () -> tensor<2xi64>
// CHECK-NEXT: %2 = sx.constant {value = dense<[1, 2]> : tensor<2xi64>} : () -> tensor<2xi64>
// CHECK-NEXT: %3 = sx.constant {value = dense<[1, 2]> : tensor<2xi64>} : () -> tensor<2xi64>
// CHECK-NEXT: %4 = sx.slice %x, %0, %1, %3, %2 : (tensor<?x4x6xf32, #sx.dims<n, _, _>>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x2x2xf32, #sx.dims<n, _, _>>
// CHECK-NEXT: func.return %4 : tensor<?x2x2xf32, #sx.dims<n, _, _>>
// CHECK-NEXT: }

// Not: along the same axis; where the first is read elsewhere too.
func.func @slices_not(%x: tensor<8x4xf32>) -> (tensor<4x4xf32>, tensor<6x4xf32>, tensor<6x2xf32>) {
  %s = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %e = sx.constant {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %a = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = sx.slice %x, %s, %e, %a : (tensor<8x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<6x4xf32>
  %1 = sx.slice %0, %s, %e, %a : (tensor<6x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<4x4xf32>
  %2 = sx.slice %x, %s, %e, %a : (tensor<8x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<6x4xf32>
  %3 = sx.slice %2, %s, %e, %s : (tensor<6x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<6x2xf32>
  func.return %1, %2, %3 : tensor<4x4xf32>, tensor<6x4xf32>, tensor<6x2xf32>
}
// CHECK-LABEL: func.func @slices_not(
// CHECK-NEXT: %s = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
// CHECK-NEXT: %e = sx.constant {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
// CHECK-NEXT: %a = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
// CHECK-NEXT: %0 = sx.slice %x, %s, %e, %a : (tensor<8x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<6x4xf32>
// CHECK-NEXT: %1 = sx.slice %0, %s, %e, %a : (tensor<6x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<4x4xf32>
// CHECK-NEXT: %2 = sx.slice %x, %s, %e, %a : (tensor<8x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<6x4xf32>
// CHECK-NEXT: %3 = sx.slice %2, %s, %e, %s : (tensor<6x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<6x2xf32>
// CHECK-NEXT: func.return %1, %2, %3 : tensor<4x4xf32>, tensor<6x4xf32>, tensor<6x2xf32>
// CHECK-NEXT: }

// Case 16: concats along one axis, and an operand without elements.
func.func @concats(%x: tensor<?x2xf32, #sx.dims<n, _>>, %y: tensor<?x0xf32, #sx.dims<n, _>>) -> tensor<?x6xf32, #sx.dims<n, _>> {
  %0 = sx.concat %x, %y, %x {axis = 1 : i64} : (tensor<?x2xf32, #sx.dims<n, _>>, tensor<?x0xf32, #sx.dims<n, _>>, tensor<?x2xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %1 = sx.concat %0, %x {axis = -1 : i64} : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x2xf32, #sx.dims<n, _>>) -> tensor<?x6xf32, #sx.dims<n, _>>
  func.return %1 : tensor<?x6xf32, #sx.dims<n, _>>
}
// CHECK-LABEL: func.func @concats(
// CHECK-NEXT: %0 = sx.concat %x, %x, %x {axis = 1 : i64} : (tensor<?x2xf32, #sx.dims<n, _>>, tensor<?x2xf32, #sx.dims<n, _>>, tensor<?x2xf32, #sx.dims<n, _>>) -> tensor<?x6xf32, #sx.dims<n, _>>
// CHECK-NEXT: func.return %0 : tensor<?x6xf32, #sx.dims<n, _>>
// CHECK-NEXT: }

// Not: along another axis; an operand without elements whose other extents are checked by the concat.
func.func @concats_not(%x: tensor<?x2xf32, #sx.dims<n, _>>, %y: tensor<?x0xf32, #sx.dims<m, _>>) -> tensor<?x2xf32, #sx.dims<2*n, _>> {
  %0 = sx.concat %x, %y {axis = 1 : i64} : (tensor<?x2xf32, #sx.dims<n, _>>, tensor<?x0xf32, #sx.dims<m, _>>) -> tensor<?x2xf32, #sx.dims<n, _>>
  %1 = sx.concat %0, %x {axis = 0 : i64} : (tensor<?x2xf32, #sx.dims<n, _>>, tensor<?x2xf32, #sx.dims<n, _>>) -> tensor<?x2xf32, #sx.dims<2*n, _>>
  func.return %1 : tensor<?x2xf32, #sx.dims<2*n, _>>
}
// CHECK-LABEL: func.func @concats_not(
// CHECK-NEXT: %0 = sx.concat %x, %y {axis = 1 : i64} : (tensor<?x2xf32, #sx.dims<n, _>>, tensor<?x0xf32, #sx.dims<m, _>>) -> tensor<?x2xf32, #sx.dims<n, _>>
// CHECK-NEXT: %1 = sx.concat %0, %x {axis = 0 : i64} : (tensor<?x2xf32, #sx.dims<n, _>>, tensor<?x2xf32, #sx.dims<n, _>>) -> tensor<?x2xf32, #sx.dims<2*n, _>>
// CHECK-NEXT: func.return %1 : tensor<?x2xf32, #sx.dims<2*n, _>>
// CHECK-NEXT: }

// Case 17: constant indices into what constant indices gave.
func.func @gathers(%x: tensor<5xf32>) -> tensor<f32> {
  %0 = sx.constant {value = dense<[4, 2, 0]> : tensor<3xi64>} : () -> tensor<3xi64>
  %1 = sx.gather %x, %0 : (tensor<5xf32>, tensor<3xi64>) -> tensor<3xf32>
  %2 = sx.constant {value = dense<-1> : tensor<i64>} : () -> tensor<i64>
  %3 = sx.gather %1, %2 : (tensor<3xf32>, tensor<i64>) -> tensor<f32>
  func.return %3 : tensor<f32>
}
// CHECK-LABEL: func.func @gathers(
// CHECK-NEXT: %0 = sx.constant {value = dense<0> : tensor<i64>} : () -> tensor<i64>
// CHECK-NEXT: %1 = sx.gather %x, %0 : (tensor<5xf32>, tensor<i64>) -> tensor<f32>
// CHECK-NEXT: func.return %1 : tensor<f32>
// CHECK-NEXT: }

// Not: along different axes.
func.func @gathers_not(%x: tensor<5x4xf32>) -> tensor<3xf32> {
  %0 = sx.constant {value = dense<[4, 2, 0]> : tensor<3xi64>} : () -> tensor<3xi64>
  %1 = sx.gather %x, %0 : (tensor<5x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  %2 = sx.constant {value = dense<-1> : tensor<i64>} : () -> tensor<i64>
  %3 = sx.gather %1, %2 {axis = 1 : i64} : (tensor<3x4xf32>, tensor<i64>) -> tensor<3xf32>
  func.return %3 : tensor<3xf32>
}
// CHECK-LABEL: func.func @gathers_not(
// CHECK-NEXT: %0 = sx.constant {value = dense<[4, 2, 0]> : tensor<3xi64>} : () -> tensor<3xi64>
// CHECK-NEXT: %1 = sx.gather %x, %0 : (tensor<5x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
// CHECK-NEXT: %2 = sx.constant {value = dense<-1> : tensor<i64>} : () -> tensor<i64>
// CHECK-NEXT: %3 = sx.gather %1, %2 {axis = 1 : i64} : (tensor<3x4xf32>, tensor<i64>) -> tensor<3xf32>
// CHECK-NEXT: func.return %3 : tensor<3xf32>
// CHECK-NEXT: }

// Parts of a vector that was put in another order are gathered at once (case 21), backwards too; not where the gather is
// read elsewhere, or a slice takes another axis.
func.func @parts(%x: tensor<?x?x?x?xf32, #sx.dims<n, a, b, c>>, %y: tensor<?x3xf32, #sx.dims<n, _>>) -> (tensor<2xi64>, tensor<2xi64>, tensor<2x3xf32>, tensor<1x3xf32>, tensor<2x1xf32>) {
  %order = sx.constant {value = dense<[0, 2, 1, 3]> : tensor<4xi64>} : () -> tensor<4xi64>
  %0 = sx.constant {value = dense<[0]> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.constant {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
  %2 = sx.constant {value = dense<[2]> : tensor<1xi64>} : () -> tensor<1xi64>
  %last = sx.constant {value = dense<[-1]> : tensor<1xi64>} : () -> tensor<1xi64>
  %far = sx.constant {value = dense<[-9]> : tensor<1xi64>} : () -> tensor<1xi64>
  %minus = sx.constant {value = dense<[-2]> : tensor<1xi64>} : () -> tensor<1xi64>
  %s = sx.shape %x : (tensor<?x?x?x?xf32, #sx.dims<n, a, b, c>>) -> tensor<4xi64>
  %g = sx.gather %s, %order : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  %a = sx.slice %g, %0, %2 : (tensor<4xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %b = sx.slice %g, %last, %far, %0, %minus : (tensor<4xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %pick = sx.constant {value = dense<[1, 0]> : tensor<2xi64>} : () -> tensor<2xi64>
  %h = sx.gather %y, %pick : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<2xi64>) -> tensor<2x3xf32>
  %c = sx.slice %h, %0, %1 : (tensor<2x3xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<1x3xf32>
  %pick2 = sx.constant {value = dense<[1, 1]> : tensor<2xi64>} : () -> tensor<2xi64>
  %i = sx.gather %y, %pick2 : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<2xi64>) -> tensor<2x3xf32>
  %d = sx.slice %i, %0, %1, %1 : (tensor<2x3xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2x1xf32>
  func.return %a, %b, %h, %c, %d : tensor<2xi64>, tensor<2xi64>, tensor<2x3xf32>, tensor<1x3xf32>, tensor<2x1xf32>
}
// CHECK-LABEL: func.func @parts(
// CHECK-DAG:     %[[A:.*]] = sx.constant {value = dense<[0, 2]> : tensor<2xi64>}
// CHECK-DAG:     %[[B:.*]] = sx.constant {value = dense<[3, 2]> : tensor<2xi64>}
// CHECK-DAG:     sx.gather %[[S:.*]], %[[A]] : (tensor<4xi64>
// CHECK-DAG:     sx.gather %[[S]], %[[B]] : (tensor<4xi64>
// CHECK-COUNT-2: sx.slice
