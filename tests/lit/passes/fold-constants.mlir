// RUN: sardonyx-opt %s -p 'fold-constants' | filecheck %s

// The cases of `fold-constants`, by their numbers in its docstring.

// Case 1: chains fold in one run.
func.func @chain(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = sx.constant {value = dense<0.000000e+00> : tensor<3xf32>} : () -> tensor<3xf32>
  %1 = sx.constant {value = dense<2.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %2 = sx.mul %0, %1 : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %3 = sx.exp %2 : (tensor<3xf32>) -> tensor<3xf32>
  %4 = sx.add %x, %3 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return %4 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @chain(
// CHECK-NEXT: %0 = sx.constant {value = dense<1.000000e+00> : tensor<3xf32>} : () -> tensor<3xf32>
// CHECK-NEXT: %1 = sx.add %x, %0 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: func.return %1 : tensor<2x3xf32>
// CHECK-NEXT: }

// Case 1: shapes of operands, casts, rounding as the reference does it.
func.func @cast(%x: tensor<2xf16>) -> tensor<2xf16> {
  %0 = sx.constant {value = dense<[1.00146484, 7.000000e+04]> : tensor<2xf32>} : () -> tensor<2xf32>
  %1 = sx.cast %0 {to = f16} : (tensor<2xf32>) -> tensor<2xf16>
  %2 = sx.add %x, %1 : (tensor<2xf16>, tensor<2xf16>) -> tensor<2xf16>
  func.return %2 : tensor<2xf16>
}
// CHECK-LABEL: func.func @cast(
// CHECK-NEXT: %0 = sx.constant {value = dense<"0x023C007C"> : tensor<2xf16>} : () -> tensor<2xf16>
// CHECK-NEXT: %1 = sx.add %x, %0 : (tensor<2xf16>, tensor<2xf16>) -> tensor<2xf16>
// CHECK-NEXT: func.return %1 : tensor<2xf16>
// CHECK-NEXT: }

// Case 2: one constant per result that is read.
func.func @several(%x: tensor<2xi64>) -> tensor<2xi64> {
  %0 = sx.constant {value = dense<[1, 2, 3, 4, 5]> : tensor<5xi64>} : () -> tensor<5xi64>
  %1 = sx.constant {value = dense<[2, 3]> : tensor<2xi64>} : () -> tensor<2xi64>
  %2, %3 = sx.split %0, %1 : (tensor<5xi64>, tensor<2xi64>) -> (tensor<2xi64>, tensor<3xi64>)
  %4 = sx.add %x, %2 : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  func.return %4 : tensor<2xi64>
}
// CHECK-LABEL: func.func @several(
// CHECK-NEXT: %0 = sx.constant {value = dense<[1, 2]> : tensor<2xi64>} : () -> tensor<2xi64>
// CHECK-NEXT: %1 = sx.add %x, %0 : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
// CHECK-NEXT: func.return %1 : tensor<2xi64>
// CHECK-NEXT: }

// Case 3: a larger result than the budget stays; one within the budget folds.
func.func @budget(%x: tensor<3xf32>) -> (tensor<100x100x100xf32>, tensor<3xf32>) {
  %0 = sx.constant {value = dense<1.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %1 = sx.constant {value = dense<100> : tensor<3xi64>} : () -> tensor<3xi64>
  %2 = sx.expand %0, %1 : (tensor<f32>, tensor<3xi64>) -> tensor<100x100x100xf32>
  %3 = sx.constant {value = dense<1.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %4 = sx.constant {value = dense<3> : tensor<1xi64>} : () -> tensor<1xi64>
  %5 = sx.expand %3, %4 : (tensor<f32>, tensor<1xi64>) -> tensor<3xf32>
  %6 = sx.add %x, %5 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return %2, %6 : tensor<100x100x100xf32>, tensor<3xf32>
}
// CHECK-LABEL: func.func @budget(
// CHECK-NEXT: %0 = sx.constant {value = dense<1.000000e+00> : tensor<f32>} : () -> tensor<f32>
// CHECK-NEXT: %1 = sx.constant {value = dense<100> : tensor<3xi64>} : () -> tensor<3xi64>
// CHECK-NEXT: %2 = sx.expand %0, %1 : (tensor<f32>, tensor<3xi64>) -> tensor<100x100x100xf32>
// CHECK-NEXT: %3 = sx.constant {value = dense<1.000000e+00> : tensor<3xf32>} : () -> tensor<3xf32>
// CHECK-NEXT: %4 = sx.add %x, %3 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
// CHECK-NEXT: func.return %2, %4 : tensor<100x100x100xf32>, tensor<3xf32>
// CHECK-NEXT: }

// Not: an operand is no constant.
func.func @not_constant(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = sx.relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %0 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @not_constant(
// CHECK-NEXT: %0 = sx.relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: func.return %0 : tensor<2x3xf32>
// CHECK-NEXT: }

// Empty tensors fold.
func.func @empty(%x: tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>> {
  %0 = sx.constant {value = dense<> : tensor<0x4xf32>} : () -> tensor<0x4xf32>
  %1 = sx.exp %0 : (tensor<0x4xf32>) -> tensor<0x4xf32>
  %2 = sx.concat %x, %1 {axis = 0 : i64} : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<0x4xf32>) -> tensor<?x4xf32, #sx.dims<n, _>>
  func.return %2 : tensor<?x4xf32, #sx.dims<n, _>>
}
// CHECK-LABEL: func.func @empty(
// CHECK-NEXT: %0 = sx.constant {value = dense<> : tensor<0x4xf32>} : () -> tensor<0x4xf32>
// CHECK-NEXT: %1 = sx.concat %x, %0 {axis = 0 : i64} : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<0x4xf32>) -> tensor<?x4xf32, #sx.dims<n, _>>
// CHECK-NEXT: func.return %1 : tensor<?x4xf32, #sx.dims<n, _>>
// CHECK-NEXT: }

// 5. A dequantisation stays.
func.func @quantised(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = sx.constant {value = dense<[1, 2, 3]> : tensor<3xi8>} : () -> tensor<3xi8>
  %1 = sx.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %2 = sx.dequantize_linear %0, %1, _ : (tensor<3xi8>, tensor<f32>) -> tensor<3xf32>
  %3 = sx.add %x, %2 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return %3 : tensor<3xf32>
}
// CHECK-LABEL: func.func @quantised(
// CHECK: %[[REAL:.*]] = sx.dequantize_linear
// CHECK-NEXT: sx.add %x, %[[REAL]]
