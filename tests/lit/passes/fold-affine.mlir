// RUN: sardonyx-opt %s -p 'fold-affine' | filecheck %s

// The cases of `fold-affine`, by their numbers in its docstring.

// Case 1: a batch norm after a convolution.
func.func @conv_batch_norm(%x: tensor<?x1x4x4xf32, #sx.dims<n, _, _, _>>) -> tensor<?x2x4x4xf32, #sx.dims<n, _, _, _>> {
  %w = sx.constant {value = dense<[[[[2.0]]], [[[4.0]]]]> : tensor<2x1x1x1xf32>} : () -> tensor<2x1x1x1xf32>
  %b = sx.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = sx.conv %x, %w, %b : (tensor<?x1x4x4xf32, #sx.dims<n, _, _, _>>, tensor<2x1x1x1xf32>, tensor<2xf32>) -> tensor<?x2x4x4xf32, #sx.dims<n, _, _, _>>
  %scale = sx.constant {value = dense<[8.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %bias = sx.constant {value = dense<[0.5, 0.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %mean = sx.constant {value = dense<[1.0, 0.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %var = sx.constant {value = dense<[4.0, 1.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %1, %2, %3 = sx.batch_norm %0, %scale, %bias, %mean, %var {epsilon = 0.0 : f64} : (tensor<?x2x4x4xf32, #sx.dims<n, _, _, _>>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<?x2x4x4xf32, #sx.dims<n, _, _, _>>, tensor<2xf32>, tensor<2xf32>)
  func.return %1 : tensor<?x2x4x4xf32, #sx.dims<n, _, _, _>>
}
// CHECK-LABEL: func.func @conv_batch_norm(
// CHECK-NEXT: %0 = sx.constant {value = dense<8.000000e+00> : tensor<2x1x1x1xf32>} : () -> tensor<2x1x1x1xf32>
// CHECK-NEXT: %1 = sx.constant {value = dense<[5.000000e-01, 4.000000e+00]> : tensor<2xf32>} : () -> tensor<2xf32>
// CHECK-NEXT: %2 = sx.conv %x, %0, %1 : (tensor<?x1x4x4xf32, #sx.dims<n, _, _, _>>, tensor<2x1x1x1xf32>, tensor<2xf32>) -> tensor<?x2x4x4xf32, #sx.dims<n, _, _, _>>
// CHECK-NEXT: func.return %2 : tensor<?x2x4x4xf32, #sx.dims<n, _, _, _>>
// CHECK-NEXT: }

// Case 2: a product and a sum per channel after a convolution whose result has its channels last; a bias comes in.
func.func @conv_scale_shift(%x: tensor<1x1x4x4xf32>) -> tensor<1x4x4x2xf32> {
  %w = sx.constant {value = dense<[[[[2.0]]], [[[4.0]]]]> : tensor<2x1x1x1xf32>} : () -> tensor<2x1x1x1xf32>
  %0 = sx.conv %x, %w {layout = "NCHW->NHWC"} : (tensor<1x1x4x4xf32>, tensor<2x1x1x1xf32>) -> tensor<1x4x4x2xf32>
  %s = sx.constant {value = dense<[3.0, 5.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %1 = sx.mul %0, %s : (tensor<1x4x4x2xf32>, tensor<2xf32>) -> tensor<1x4x4x2xf32>
  %t = sx.constant {value = dense<7.0> : tensor<f32>} : () -> tensor<f32>
  %2 = sx.sub %t, %1 : (tensor<f32>, tensor<1x4x4x2xf32>) -> tensor<1x4x4x2xf32>
  func.return %2 : tensor<1x4x4x2xf32>
}
// CHECK-LABEL: func.func @conv_scale_shift(
// CHECK-NEXT: %0 = sx.constant {value = dense<[[[[-6.000000e+00]]], [[[-2.000000e+01]]]]> : tensor<2x1x1x1xf32>} : () -> tensor<2x1x1x1xf32>
// CHECK-NEXT: %1 = sx.constant {value = dense<7.000000e+00> : tensor<2xf32>} : () -> tensor<2xf32>
// CHECK-NEXT: %2 = sx.conv %x, %0, %1 {layout = "NCHW->NHWC"} : (tensor<1x1x4x4xf32>, tensor<2x1x1x1xf32>, tensor<2xf32>) -> tensor<1x4x4x2xf32>
// CHECK-NEXT: func.return %2 : tensor<1x4x4x2xf32>
// CHECK-NEXT: }

// Case 2: the groups of a transposed convolution.
func.func @conv_transpose(%x: tensor<1x2x4xf32>) -> tensor<1x4x4xf32> {
  %w = sx.constant {value = dense<[[[1.0], [2.0]], [[3.0], [4.0]]]> : tensor<2x2x1xf32>} : () -> tensor<2x2x1xf32>
  %0 = sx.conv_transpose %x, %w {group = 2 : i64} : (tensor<1x2x4xf32>, tensor<2x2x1xf32>) -> tensor<1x4x4xf32>
  %s = sx.constant {value = dense<[[1.0], [10.0], [100.0], [1000.0]]> : tensor<4x1xf32>} : () -> tensor<4x1xf32>
  %1 = sx.mul %s, %0 : (tensor<4x1xf32>, tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  func.return %1 : tensor<1x4x4xf32>
}
// CHECK-LABEL: func.func @conv_transpose(
// CHECK-NEXT: %0 = sx.constant {value = dense<[[[1.000000e+00], [2.000000e+01]], [[3.000000e+02], [4.000000e+03]]]> : tensor<2x2x1xf32>} : () -> tensor<2x2x1xf32>
// CHECK-NEXT: %1 = sx.conv_transpose %x, %0 {group = 2 : i64} : (tensor<1x2x4xf32>, tensor<2x2x1xf32>) -> tensor<1x4x4xf32>
// CHECK-NEXT: func.return %1 : tensor<1x4x4xf32>
// CHECK-NEXT: }

// Case 2: a gemm's factor for what it adds is taken in.
func.func @gemm(%x: tensor<?x2xf32, #sx.dims<n, _>>) -> tensor<?x2xf32, #sx.dims<n, _>> {
  %w = sx.constant {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %b = sx.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = sx.gemm %x, %w, %b {beta = 2.0 : f64, transB = true} : (tensor<?x2xf32, #sx.dims<n, _>>, tensor<2x2xf32>, tensor<2xf32>) -> tensor<?x2xf32, #sx.dims<n, _>>
  %s = sx.constant {value = dense<[10.0, 100.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %1 = sx.mul %0, %s : (tensor<?x2xf32, #sx.dims<n, _>>, tensor<2xf32>) -> tensor<?x2xf32, #sx.dims<n, _>>
  func.return %1 : tensor<?x2xf32, #sx.dims<n, _>>
}
// CHECK-LABEL: func.func @gemm(
// CHECK-NEXT: %0 = sx.constant {value = dense<[[1.000000e+01, 2.000000e+01], [3.000000e+02, 4.000000e+02]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
// CHECK-NEXT: %1 = sx.constant {value = dense<[2.000000e+01, 4.000000e+02]> : tensor<2xf32>} : () -> tensor<2xf32>
// CHECK-NEXT: %2 = sx.gemm %x, %0, %1 {transB = true} : (tensor<?x2xf32, #sx.dims<n, _>>, tensor<2x2xf32>, tensor<2xf32>) -> tensor<?x2xf32, #sx.dims<n, _>>
// CHECK-NEXT: func.return %2 : tensor<?x2xf32, #sx.dims<n, _>>
// CHECK-NEXT: }

// Case 3: after a batch norm of which nothing else is known.
func.func @batch_norm_scale(%x: tensor<?x2x4xf32, #sx.dims<n, _, _>>) -> tensor<?x2x4xf32, #sx.dims<n, _, _>> {
  %c = sx.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0, %1, %2 = sx.batch_norm %x, %c, %c, %c, %c : (tensor<?x2x4xf32, #sx.dims<n, _, _>>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<?x2x4xf32, #sx.dims<n, _, _>>, tensor<2xf32>, tensor<2xf32>)
  %s = sx.constant {value = dense<[[4.0], [8.0]]> : tensor<2x1xf32>} : () -> tensor<2x1xf32>
  %3 = sx.div %0, %s : (tensor<?x2x4xf32, #sx.dims<n, _, _>>, tensor<2x1xf32>) -> tensor<?x2x4xf32, #sx.dims<n, _, _>>
  func.return %3 : tensor<?x2x4xf32, #sx.dims<n, _, _>>
}
// CHECK-LABEL: func.func @batch_norm_scale(
// CHECK-NEXT: %c = sx.constant {value = dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>} : () -> tensor<2xf32>
// CHECK-NEXT: %0 = sx.constant {value = dense<2.500000e-01> : tensor<2xf32>} : () -> tensor<2xf32>
// CHECK-NEXT: %1 = sx.constant {value = dense<2.500000e-01> : tensor<2xf32>} : () -> tensor<2xf32>
// CHECK-NEXT: %2, %3, %4 = sx.batch_norm %x, %0, %1, %c, %c : (tensor<?x2x4xf32, #sx.dims<n, _, _>>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<?x2x4xf32, #sx.dims<n, _, _>>, tensor<2xf32>, tensor<2xf32>)
// CHECK-NEXT: func.return %2 : tensor<?x2x4xf32, #sx.dims<n, _, _>>
// CHECK-NEXT: }

// Case 4: a product of matrices and a bias.
func.func @matmul_add(%x: tensor<?x2xf32, #sx.dims<n, _>>, %w: tensor<2x3xf32>) -> tensor<?x3xf32, #sx.dims<n, _>> {
  %0 = sx.matmul %x, %w : (tensor<?x2xf32, #sx.dims<n, _>>, tensor<2x3xf32>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %b = sx.constant {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} : () -> tensor<3xf32>
  %1 = sx.add %b, %0 : (tensor<3xf32>, tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  func.return %1 : tensor<?x3xf32, #sx.dims<n, _>>
}
// CHECK-LABEL: func.func @matmul_add(
// CHECK-NEXT: %b = sx.constant {value = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]> : tensor<3xf32>} : () -> tensor<3xf32>
// CHECK-NEXT: %0 = sx.gemm %x, %w, %b : (tensor<?x2xf32, #sx.dims<n, _>>, tensor<2x3xf32>, tensor<3xf32>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: func.return %0 : tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: }

// Not: the result in between is read elsewhere; the constant varies along another axis; it broadcasts the result; a
// division by 0; a constant on the left of a division; batched matrices.
func.func @not(%x: tensor<1x1x2xf32>, %m: tensor<4x5x2xf32>) -> (tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<3x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<4x5x2xf32>) {
  %w = sx.constant {value = dense<[[[2.0]], [[4.0]]]> : tensor<2x1x1xf32>} : () -> tensor<2x1x1xf32>
  %w1 = sx.constant {value = dense<[[[2.0]], [[5.0]]]> : tensor<2x1x1xf32>} : () -> tensor<2x1x1xf32>
  %w2 = sx.constant {value = dense<[[[2.0]], [[6.0]]]> : tensor<2x1x1xf32>} : () -> tensor<2x1x1xf32>
  %w3 = sx.constant {value = dense<[[[2.0]], [[7.0]]]> : tensor<2x1x1xf32>} : () -> tensor<2x1x1xf32>
  %s = sx.constant {value = dense<[[3.0], [0.0]]> : tensor<2x1xf32>} : () -> tensor<2x1xf32>
  %other = sx.constant {value = dense<[3.0, 5.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %more = sx.constant {value = dense<1.5> : tensor<3x1x1xf32>} : () -> tensor<3x1x1xf32>
  %0 = sx.conv %x, %w : (tensor<1x1x2xf32>, tensor<2x1x1xf32>) -> tensor<1x2x2xf32>
  %1 = sx.mul %0, %s : (tensor<1x2x2xf32>, tensor<2x1xf32>) -> tensor<1x2x2xf32>
  %2 = sx.conv %x, %w1 : (tensor<1x1x2xf32>, tensor<2x1x1xf32>) -> tensor<1x2x2xf32>
  %3 = sx.mul %2, %other : (tensor<1x2x2xf32>, tensor<2xf32>) -> tensor<1x2x2xf32>
  %4 = sx.conv %x, %w2 : (tensor<1x1x2xf32>, tensor<2x1x1xf32>) -> tensor<1x2x2xf32>
  %5 = sx.add %4, %more : (tensor<1x2x2xf32>, tensor<3x1x1xf32>) -> tensor<3x2x2xf32>
  %6 = sx.conv %x, %w3 : (tensor<1x1x2xf32>, tensor<2x1x1xf32>) -> tensor<1x2x2xf32>
  %7 = sx.div %6, %s : (tensor<1x2x2xf32>, tensor<2x1xf32>) -> tensor<1x2x2xf32>
  %8 = sx.div %s, %7 : (tensor<2x1xf32>, tensor<1x2x2xf32>) -> tensor<1x2x2xf32>
  %v = sx.constant {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %9 = sx.matmul %m, %v : (tensor<4x5x2xf32>, tensor<2x2xf32>) -> tensor<4x5x2xf32>
  %10 = sx.add %9, %other : (tensor<4x5x2xf32>, tensor<2xf32>) -> tensor<4x5x2xf32>
  func.return %0, %1, %3, %5, %7, %8, %10 : tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<3x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<4x5x2xf32>
}
// CHECK-LABEL: func.func @not(
// CHECK-NEXT: %w = sx.constant {value = dense<[[[2.000000e+00]], [[4.000000e+00]]]> : tensor<2x1x1xf32>} : () -> tensor<2x1x1xf32>
// CHECK-NEXT: %w1 = sx.constant {value = dense<[[[2.000000e+00]], [[5.000000e+00]]]> : tensor<2x1x1xf32>} : () -> tensor<2x1x1xf32>
// CHECK-NEXT: %w2 = sx.constant {value = dense<[[[2.000000e+00]], [[6.000000e+00]]]> : tensor<2x1x1xf32>} : () -> tensor<2x1x1xf32>
// CHECK-NEXT: %w3 = sx.constant {value = dense<[[[2.000000e+00]], [[7.000000e+00]]]> : tensor<2x1x1xf32>} : () -> tensor<2x1x1xf32>
// CHECK-NEXT: %s = sx.constant {value = dense<[[3.000000e+00], [0.000000e+00]]> : tensor<2x1xf32>} : () -> tensor<2x1xf32>
// CHECK-NEXT: %other = sx.constant {value = dense<[3.000000e+00, 5.000000e+00]> : tensor<2xf32>} : () -> tensor<2xf32>
// CHECK-NEXT: %more = sx.constant {value = dense<1.500000e+00> : tensor<3x1x1xf32>} : () -> tensor<3x1x1xf32>
// CHECK-NEXT: %0 = sx.conv %x, %w : (tensor<1x1x2xf32>, tensor<2x1x1xf32>) -> tensor<1x2x2xf32>
// CHECK-NEXT: %1 = sx.mul %0, %s : (tensor<1x2x2xf32>, tensor<2x1xf32>) -> tensor<1x2x2xf32>
// CHECK-NEXT: %2 = sx.conv %x, %w1 : (tensor<1x1x2xf32>, tensor<2x1x1xf32>) -> tensor<1x2x2xf32>
// CHECK-NEXT: %3 = sx.mul %2, %other : (tensor<1x2x2xf32>, tensor<2xf32>) -> tensor<1x2x2xf32>
// CHECK-NEXT: %4 = sx.conv %x, %w2 : (tensor<1x1x2xf32>, tensor<2x1x1xf32>) -> tensor<1x2x2xf32>
// CHECK-NEXT: %5 = sx.add %4, %more : (tensor<1x2x2xf32>, tensor<3x1x1xf32>) -> tensor<3x2x2xf32>
// CHECK-NEXT: %6 = sx.conv %x, %w3 : (tensor<1x1x2xf32>, tensor<2x1x1xf32>) -> tensor<1x2x2xf32>
// CHECK-NEXT: %7 = sx.div %6, %s : (tensor<1x2x2xf32>, tensor<2x1xf32>) -> tensor<1x2x2xf32>
// CHECK-NEXT: %8 = sx.div %s, %7 : (tensor<2x1xf32>, tensor<1x2x2xf32>) -> tensor<1x2x2xf32>
// CHECK-NEXT: %v = sx.constant {value = dense<[[1.000000e+00, 2.000000e+00], [3.000000e+00, 4.000000e+00]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
// CHECK-NEXT: %9 = sx.matmul %m, %v : (tensor<4x5x2xf32>, tensor<2x2xf32>) -> tensor<4x5x2xf32>
// CHECK-NEXT: %10 = sx.add %9, %other : (tensor<4x5x2xf32>, tensor<2xf32>) -> tensor<4x5x2xf32>
// CHECK-NEXT: func.return %0, %1, %3, %5, %7, %8, %10 : tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<3x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<4x5x2xf32>
// CHECK-NEXT: }

// Not: a scale that varies along the width or broadcasts the batch, one that divides, weights that are no constant, a
// convolution with another reader, 16 bits.
func.func @not_either(%x: tensor<1x1x4xf32>, %v: tensor<2x1x1xf32>, %h: tensor<1x1x4xf16>) -> (tensor<1x2x4xf32>, tensor<2x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf16>) {
  %w = sx.constant {value = dense<[[[1.0]], [[2.0]]]> : tensor<2x1x1xf32>} : () -> tensor<2x1x1xf32>
  %u = sx.constant {value = dense<[[[1.0]], [[2.0]]]> : tensor<2x1x1xf16>} : () -> tensor<2x1x1xf16>
  %width = sx.constant {value = dense<[2.0, 3.0, 4.0, 5.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  %batch = sx.constant {value = dense<[[[2.0]], [[3.0]]]> : tensor<2x1x1xf32>} : () -> tensor<2x1x1xf32>
  %s = sx.constant {value = dense<[[2.0], [3.0]]> : tensor<2x1xf32>} : () -> tensor<2x1xf32>
  %t = sx.constant {value = dense<[[2.0], [3.0]]> : tensor<2x1xf16>} : () -> tensor<2x1xf16>
  %0 = sx.conv %x, %w : (tensor<1x1x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4xf32>
  %1 = sx.mul %0, %width : (tensor<1x2x4xf32>, tensor<4xf32>) -> tensor<1x2x4xf32>
  %2 = sx.conv %x, %w : (tensor<1x1x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4xf32>
  %3 = sx.mul %2, %batch : (tensor<1x2x4xf32>, tensor<2x1x1xf32>) -> tensor<2x2x4xf32>
  %4 = sx.conv %x, %w : (tensor<1x1x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4xf32>
  %5 = sx.div %s, %4 : (tensor<2x1xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %6 = sx.conv %x, %v : (tensor<1x1x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4xf32>
  %7 = sx.mul %6, %s : (tensor<1x2x4xf32>, tensor<2x1xf32>) -> tensor<1x2x4xf32>
  %8 = sx.conv %x, %w : (tensor<1x1x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4xf32>
  %9 = sx.mul %8, %s : (tensor<1x2x4xf32>, tensor<2x1xf32>) -> tensor<1x2x4xf32>
  %10 = sx.conv %h, %u : (tensor<1x1x4xf16>, tensor<2x1x1xf16>) -> tensor<1x2x4xf16>
  %11 = sx.mul %10, %t : (tensor<1x2x4xf16>, tensor<2x1xf16>) -> tensor<1x2x4xf16>
  func.return %1, %3, %5, %7, %8, %9, %11 : tensor<1x2x4xf32>, tensor<2x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf16>
}
// CHECK-LABEL: func.func @not_either(
// CHECK: sx.mul
// CHECK: sx.mul
// CHECK: sx.div
// CHECK: sx.mul
// CHECK: sx.mul
// CHECK: sx.mul
