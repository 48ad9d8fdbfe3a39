// RUN: sardonyx-opt %s -p 'legalize-for-opset{version=13}' | filecheck %s

// The cases of `legalize-for-opset`, by their numbers in its docstring.

// Case 1: what the opset states stays.
func.func @main(%x: tensor<2x3xf32>, %h: tensor<4xbf16>, %i: tensor<3xi8>, %b: tensor<?x3xf32, #sx.dims<n, _>>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<1xi64>, tensor<2x5xf32>, tensor<4xbf16>, tensor<3xi8>, tensor<1x3xf32>) {
  %0 = sx.relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // Case 2: a later operator is decomposed.
  %1 = sx.swish %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // Case 3: later attributes and inputs.
  %2 = sx.shape %b {start = 1 : i64} : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<1xi64>
  %pads = sx.constant {value = dense<[2, 0]> : tensor<2xi64>} : () -> tensor<2xi64>
  %axes = sx.constant {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %3 = sx.pad %x, %pads, _, %axes : (tensor<2x3xf32>, tensor<2xi64>, tensor<1xi64>) -> tensor<2x5xf32>
  // Case 4: dtypes that the schema lacks.
  %4 = sx.sin %h : (tensor<4xbf16>) -> tensor<4xbf16>
  %5 = sx.add %i, %i : (tensor<3xi8>, tensor<3xi8>) -> tensor<3xi8>
  // Case 3: axes are an attribute, so that a constant stays as it is.
  %zero = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %6 = sx.reduce_mean %x, %zero : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<1x3xf32>
  func.return %0, %1, %2, %3, %4, %5, %6 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<1xi64>, tensor<2x5xf32>, tensor<4xbf16>, tensor<3xi8>, tensor<1x3xf32>
}
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %0 = sx.relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: [[gate:%\d+]] = sx.sigmoid %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: [[swish:%\d+]] = sx.mul %x, [[gate]]
// CHECK-NEXT: [[from:%\d+]] = sx.constant {value = dense<1> : tensor<1xi64>}
// CHECK-NEXT: [[to:%\d+]] = sx.constant {value = dense<9223372036854775807> : tensor<1xi64>}
// CHECK-NEXT: [[whole:%\d+]] = sx.shape %b : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<2xi64>
// CHECK-NEXT: [[at:%\d+]] = sx.constant {value = dense<0> : tensor<1xi64>}
// CHECK-NEXT: [[shape:%\d+]] = sx.slice [[whole]], [[from]], [[to]], [[at]]
// CHECK:      [[full:%\d+]] = sx.constant {value = dense<[0, 2, 0, 0]> : tensor<4xi64>}
// CHECK-NEXT: [[padded:%\d+]] = sx.pad %x, [[full]] : (tensor<2x3xf32>, tensor<4xi64>) -> tensor<2x5xf32>
// CHECK-NEXT: [[wide:%\d+]] = sx.cast %h {to = f32} : (tensor<4xbf16>) -> tensor<4xf32>
// CHECK-NEXT: [[sin:%\d+]] = sx.sin [[wide]] : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: [[narrow:%\d+]] = sx.cast [[sin]] {to = bf16} : (tensor<4xf32>) -> tensor<4xbf16>
// CHECK-NEXT: [[int:%\d+]] = sx.cast %i {to = i32} : (tensor<3xi8>) -> tensor<3xi32>
// CHECK-NEXT: [[sum:%\d+]] = sx.add [[int]], [[int]] : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
// CHECK-NEXT: [[wrapped:%\d+]] = sx.cast [[sum]] {to = i8} : (tensor<3xi32>) -> tensor<3xi8>
// CHECK:      [[mean:%\d+]] = sx.reduce_mean %x, {{%\S+}} : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<1x3xf32>
// CHECK-NEXT: func.return %0, [[swish]], [[shape]], [[padded]], [[narrow]], [[wrapped]], [[mean]]
