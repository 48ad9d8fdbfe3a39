// RUN: sardonyx-opt %s -p 'legalize-for-opset{version=28}' | filecheck %s

// Case 1: the newest opset states all of this as it is.
func.func @main(%x: tensor<2x3xf32>, %h: tensor<4xbf16>, %i: tensor<3xi8>) -> (tensor<2x3xf32>, tensor<1xi64>, tensor<4xbf16>, tensor<3xi8>) {
  %0 = sx.swish %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = sx.shape %x {start = 1 : i64} : (tensor<2x3xf32>) -> tensor<1xi64>
  %2 = sx.sin %h : (tensor<4xbf16>) -> tensor<4xbf16>
  %3 = sx.bit_shift %i, %i {direction = "LEFT"} : (tensor<3xi8>, tensor<3xi8>) -> tensor<3xi8>
  func.return %0, %1, %2, %3 : tensor<2x3xf32>, tensor<1xi64>, tensor<4xbf16>, tensor<3xi8>
}
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %0 = sx.swish %x
// CHECK-NEXT: %1 = sx.shape %x {start = 1 : i64}
// CHECK-NEXT: %2 = sx.sin %h
// CHECK-NEXT: %3 = sx.bit_shift %i, %i {direction = "LEFT"}
// CHECK-NEXT: func.return %0, %1, %2, %3
