// RUN: sardonyx-opt %s -p 'decompose-batch-norm' | filecheck %s

// The cases of `decompose-batch-norm`, by their numbers in its docstring.

// Case 1: the statistics that come out again are those given.
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

// Not: training mode; 16 bits; statistics that are not constant.
func.func @not(%x: tensor<1x2x3xf32>, %h: tensor<1x2x3xf16>, %v: tensor<2xf32>) -> (tensor<1x2x3xf32>, tensor<1x2x3xf16>, tensor<1x2x3xf32>) {
  %c = sx.constant {value = dense<[2.0, 3.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %d = sx.constant {value = dense<[2.0, 3.0]> : tensor<2xf16>} : () -> tensor<2xf16>
  %0, %1, %2 = sx.batch_norm %x, %c, %c, %c, %c {training_mode = true} : (tensor<1x2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<1x2x3xf32>, tensor<2xf32>, tensor<2xf32>)
  %3, %4, %5 = sx.batch_norm %h, %d, %d, %d, %d : (tensor<1x2x3xf16>, tensor<2xf16>, tensor<2xf16>, tensor<2xf16>, tensor<2xf16>) -> (tensor<1x2x3xf16>, tensor<2xf16>, tensor<2xf16>)
  %6, %7, %8 = sx.batch_norm %x, %c, %c, %c, %v : (tensor<1x2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<1x2x3xf32>, tensor<2xf32>, tensor<2xf32>)
  func.return %0, %3, %6 : tensor<1x2x3xf32>, tensor<1x2x3xf16>, tensor<1x2x3xf32>
}
// CHECK-LABEL: func.func @not(
// CHECK: sx.batch_norm
// CHECK: sx.batch_norm
// CHECK: sx.batch_norm
