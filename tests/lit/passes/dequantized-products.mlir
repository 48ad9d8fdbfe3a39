// RUN: sardonyx-opt %s -p dequantized-products | filecheck %s
// RUN: sardonyx-opt %s -p dequantized-products -o %t.mlir
// RUN: sardonyx-opt %t.mlir --verify-roundtrip | filecheck %s

// The cases of `dequantized-products`, by their numbers in its docstring.

// Case 1: a convolution whose weights have a scale for each channel.
func.func @conv(%x: tensor<?x1x4x4xui8, #sx.dims<n, _, _, _>>) -> tensor<?x2x3x3xf32, #sx.dims<n, _, _, _>> {
  %w = sx.constant {value = dense<[[[[1, 2], [3, 4]]], [[[-1, 5], [7, -8]]]]> : tensor<2x1x2x2xi8>} : () -> tensor<2x1x2x2xi8>
  %s = sx.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %z = sx.constant {value = dense<3> : tensor<ui8>} : () -> tensor<ui8>
  %t = sx.constant {value = dense<[0.25, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = sx.dequantize_linear %x, %s, %z : (tensor<?x1x4x4xui8, #sx.dims<n, _, _, _>>, tensor<f32>, tensor<ui8>) -> tensor<?x1x4x4xf32, #sx.dims<n, _, _, _>>
  %1 = sx.dequantize_linear %w, %t {axis = 0 : i64} : (tensor<2x1x2x2xi8>, tensor<2xf32>) -> tensor<2x1x2x2xf32>
  %2 = sx.conv %0, %1 : (tensor<?x1x4x4xf32, #sx.dims<n, _, _, _>>, tensor<2x1x2x2xf32>) -> tensor<?x2x3x3xf32, #sx.dims<n, _, _, _>>
  func.return %2 : tensor<?x2x3x3xf32, #sx.dims<n, _, _, _>>
}
// CHECK-LABEL: func.func @conv(
// CHECK:      %0 = sx.conv_integer %x, %w, %z
// CHECK-NEXT: %1 = sx.constant {value = dense<[{{\[\[}}2.500000e-01]], [[2.000000e+00]]]>
// CHECK-NEXT: %2 = native.factor %0, %s, %1
// CHECK-NEXT: func.return %2

// Case 1: a product with a bias; the dequantisations that nothing reads any more are gone (case 4).
func.func @gemm(%x: tensor<3x2xi8>, %c: tensor<2xf32>) -> tensor<3x2xf32> {
  %w = sx.constant {value = dense<[[1, 2], [3, -4]]> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %s = sx.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %0 = sx.dequantize_linear %x, %s : (tensor<3x2xi8>, tensor<f32>) -> tensor<3x2xf32>
  %1 = sx.dequantize_linear %w, %s : (tensor<2x2xi8>, tensor<f32>) -> tensor<2x2xf32>
  %2 = sx.gemm %0, %1, %c : (tensor<3x2xf32>, tensor<2x2xf32>, tensor<2xf32>) -> tensor<3x2xf32>
  func.return %2 : tensor<3x2xf32>
}
// CHECK-LABEL: func.func @gemm(
// CHECK-NOT:  sx.dequantize_linear
// CHECK:      %0 = sx.matmul_integer %x, %w
// CHECK-NEXT: %1 = native.factor %0, %s, %s
// CHECK-NEXT: %2 = sx.add %1, %c
// CHECK-NEXT: func.return %2

// Case 2: weights that are dequantised in blocks of four, read where they are.
func.func @few_rows(%x: tensor<2x8xf32>) -> tensor<2x2xf32> {
  %w = sx.constant {value = dense<[[1, 2], [3, -4], [5, 6], [7, -8], [1, 1], [2, 2], [3, 3], [4, 4]]> : tensor<8x2xi8>} : () -> tensor<8x2xi8>
  %s = sx.constant {value = dense<[[0.5, 0.25], [2.0, 1.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %0 = sx.dequantize_linear %w, %s {axis = 0 : i64, block_size = 4 : i64} : (tensor<8x2xi8>, tensor<2x2xf32>) -> tensor<8x2xf32>
  %1 = sx.matmul %x, %0 : (tensor<2x8xf32>, tensor<8x2xf32>) -> tensor<2x2xf32>
  func.return %1 : tensor<2x2xf32>
}
// CHECK-LABEL: func.func @few_rows(
// CHECK:      %3 = native.matmul_weights %x, %0, %1, %2 {bits = 8 : i64} : (tensor<2x8xf32>, tensor<8x2xi8>,
// CHECK-NEXT: func.return %3

// Case 3: with more rows they are floats.
func.func @many_rows(%x: tensor<9x4xf32>) -> tensor<9x1xf32> {
  %w = sx.constant {value = dense<[[1], [3], [5], [-7]]> : tensor<4x1xi8>} : () -> tensor<4x1xi8>
  %s = sx.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %0 = sx.dequantize_linear %w, %s : (tensor<4x1xi8>, tensor<f32>) -> tensor<4x1xf32>
  %1 = sx.matmul %x, %0 : (tensor<9x4xf32>, tensor<4x1xf32>) -> tensor<9x1xf32>
  func.return %1 : tensor<9x1xf32>
}
// CHECK-LABEL: func.func @many_rows(
// CHECK:      %0 = sx.constant {value = dense<[{{\[}}5.000000e-01], [1.500000e+00], [2.500000e+00], [-3.500000e+00]]>
// CHECK-NEXT: %1 = sx.matmul %x, %0

// Case 5: weights that are not constant.
func.func @not_constant(%x: tensor<9x4xi8>, %w: tensor<4x1xi8>) -> tensor<9x1xf32> {
  %s = sx.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %0 = sx.dequantize_linear %x, %s : (tensor<9x4xi8>, tensor<f32>) -> tensor<9x4xf32>
  %1 = sx.dequantize_linear %w, %s : (tensor<4x1xi8>, tensor<f32>) -> tensor<4x1xf32>
  %2 = sx.matmul %0, %1 : (tensor<9x4xf32>, tensor<4x1xf32>) -> tensor<9x1xf32>
  func.return %2 : tensor<9x1xf32>
}
// CHECK-LABEL: func.func @not_constant(
// CHECK:      %0 = sx.dequantize_linear %x, %s
// CHECK-NEXT: %1 = sx.dequantize_linear %w, %s
// CHECK-NEXT: %2 = sx.matmul %0, %1
