// RUN: sardonyx-opt %s -p 'fold-batch-norm' | filecheck %s

// The cases of `fold-batch-norm`, by their numbers in its docstring.

// Case 1: (x * 1 + 2 - 1) * 2 + 3 and (x * 2 + 3 - 2) * 3 + 4 per channel.
func.func @conv(%x: tensor<?x1x4x4xf32, #sx.dims<n, _, _, _>>) -> tensor<?x2x4x4xf32, #sx.dims<n, _, _, _>> {
  %w = sx.constant {value = dense<[[[[1.0]]], [[[2.0]]]]> : tensor<2x1x1x1xf32>} : () -> tensor<2x1x1x1xf32>
  %b = sx.constant {value = dense<[2.0, 3.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %scale = sx.constant {value = dense<[4.0, 6.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %bias = sx.constant {value = dense<[3.0, 4.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %mean = sx.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %var = sx.constant {value = dense<[4.0, 4.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = sx.conv %x, %w, %b : (tensor<?x1x4x4xf32, #sx.dims<n, _, _, _>>, tensor<2x1x1x1xf32>, tensor<2xf32>) -> tensor<?x2x4x4xf32, #sx.dims<n, _, _, _>>
  %1, %2, %3 = sx.batch_norm %0, %scale, %bias, %mean, %var {epsilon = 0.0 : f64} : (tensor<?x2x4x4xf32, #sx.dims<n, _, _, _>>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<?x2x4x4xf32, #sx.dims<n, _, _, _>>, tensor<2xf32>, tensor<2xf32>)
  func.return %1 : tensor<?x2x4x4xf32, #sx.dims<n, _, _, _>>
}
// CHECK-LABEL: func.func @conv(
// CHECK-NEXT: [[W:%[0-9]+]] = sx.constant {value = dense<{{.*}}2.000000e+00{{.*}}6.000000e+00{{.*}}> : tensor<2x1x1x1xf32>}
// CHECK-NEXT: [[B:%[0-9]+]] = sx.constant {value = dense<[5.000000e+00, 7.000000e+00]> : tensor<2xf32>}
// CHECK-NEXT: sx.conv %x, [[W]], [[B]]
// CHECK-NEXT: func.return

// Case 1: a transposed convolution in two groups, without a bias.
func.func @transposed(%x: tensor<1x2x3xf32>) -> tensor<1x2x4xf32> {
  %w = sx.constant {value = dense<[[[1.0, 2.0]], [[3.0, 4.0]]]> : tensor<2x1x2xf32>} : () -> tensor<2x1x2xf32>
  %scale = sx.constant {value = dense<[2.0, 3.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %zero = sx.constant {value = dense<[0.0, 0.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %one = sx.constant {value = dense<[1.0, 1.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = sx.conv_transpose %x, %w {group = 2 : i64} : (tensor<1x2x3xf32>, tensor<2x1x2xf32>) -> tensor<1x2x4xf32>
  %1, %2, %3 = sx.batch_norm %0, %scale, %zero, %zero, %one {epsilon = 0.0 : f64} : (tensor<1x2x4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<1x2x4xf32>, tensor<2xf32>, tensor<2xf32>)
  func.return %1 : tensor<1x2x4xf32>
}
// CHECK-LABEL: func.func @transposed(
// CHECK: dense<{{\[\[\[}}2.000000e+00, 4.000000e+00]], {{\[\[}}9.000000e+00, 1.200000e+01]]]> : tensor<2x1x2xf32>
// CHECK-NOT: sx.batch_norm

// Case 2: one that follows no convolution; the statistics that come out again are those given.
func.func @alone(%x: tensor<1x2x3xf32>) -> (tensor<1x2x3xf32>, tensor<2xf32>) {
  %scale = sx.constant {value = dense<[2.0, 3.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %bias = sx.constant {value = dense<[5.0, 6.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %mean = sx.constant {value = dense<[7.0, 8.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %one = sx.constant {value = dense<[1.0, 1.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %1, %2, %3 = sx.batch_norm %x, %scale, %bias, %mean, %one {epsilon = 0.0 : f64} : (tensor<1x2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<1x2x3xf32>, tensor<2xf32>, tensor<2xf32>)
  func.return %1, %2 : tensor<1x2x3xf32>, tensor<2xf32>
}
// CHECK-LABEL: func.func @alone(
// CHECK: [[MEAN:%[a-z0-9]+]] = sx.constant {value = dense<[7.000000e+00, 8.000000e+00]> : tensor<2xf32>}
// CHECK: sx.sub %x,
// CHECK: sx.mul
// CHECK: [[Y:%[0-9]+]] = sx.add
// CHECK-NEXT: func.return [[Y]], [[MEAN]]

// Case 3: (x * w + 0) * [2, 3] - 1, and 1 - that.
func.func @scale(%x: tensor<1x1x4xf32>) -> tensor<1x2x4xf32> {
  %w = sx.constant {value = dense<[[[1.0]], [[2.0]]]> : tensor<2x1x1xf32>} : () -> tensor<2x1x1xf32>
  %s = sx.constant {value = dense<[[2.0], [3.0]]> : tensor<2x1xf32>} : () -> tensor<2x1xf32>
  %one = sx.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0 = sx.conv %x, %w : (tensor<1x1x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4xf32>
  %1 = sx.mul %s, %0 : (tensor<2x1xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %2 = sx.sub %1, %one : (tensor<1x2x4xf32>, tensor<f32>) -> tensor<1x2x4xf32>
  %3 = sx.sub %one, %2 : (tensor<f32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  func.return %3 : tensor<1x2x4xf32>
}
// CHECK-LABEL: func.func @scale(
// CHECK-NEXT: sx.constant {value = dense<{{.*}}-2.000000e+00{{.*}}-6.000000e+00
// CHECK-NEXT: sx.constant {value = dense<2.000000e+00> : tensor<2xf32>}
// CHECK-NEXT: sx.conv
// CHECK-NEXT: func.return

// Not: a scale that varies along the width or broadcasts the batch, one that divides, weights that are no constant, a
// convolution with another reader, 16 bits.
func.func @not(%x: tensor<1x1x4xf32>, %v: tensor<2x1x1xf32>, %h: tensor<1x1x4xf16>) -> (tensor<1x2x4xf32>, tensor<2x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf16>) {
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
// CHECK-LABEL: func.func @not(
// CHECK: sx.mul
// CHECK: sx.mul
// CHECK: sx.div
// CHECK: sx.mul
// CHECK: sx.mul
// CHECK: sx.mul
