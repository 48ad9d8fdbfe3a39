// RUN: sardonyx-opt %s -p 'legalize-for-opset{version=13}' | filecheck %s

// What older opsets lack of ops that sample and place elements.

// The axes of a Resize (before opset 18) become scales or sizes of all axes.
// A write into a cache (before opset 24) becomes one by computed positions.
func.func @main(%x: tensor<1x2x4x6xf32>, %cache: tensor<2x8x3xf32>, %new: tensor<2x1x3xf32>, %at: tensor<2xi64>, %wanted: tensor<2xi64>) -> (tensor<1x2x8x3xf32>, tensor<1x2x?x?xf32, #sx.dims<_, _, p, q>>, tensor<2x8x3xf32>) {
  %scales = sx.constant {value = dense<[2.0, 0.5]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = sx.resize %x, _, %scales {axes = array<i64: -2, -1>, mode = "linear"} : (tensor<1x2x4x6xf32>, tensor<2xf32>) -> tensor<1x2x8x3xf32>
  %1 = sx.resize %x, _, _, %wanted {axes = array<i64: 2, 3>} : (tensor<1x2x4x6xf32>, tensor<2xi64>) -> tensor<1x2x?x?xf32, #sx.dims<_, _, p, q>>
  %2 = sx.tensor_scatter %cache, %new, %at {mode = "circular"} : (tensor<2x8x3xf32>, tensor<2x1x3xf32>, tensor<2xi64>) -> tensor<2x8x3xf32>
  func.return %0, %1, %2 : tensor<1x2x8x3xf32>, tensor<1x2x?x?xf32, #sx.dims<_, _, p, q>>, tensor<2x8x3xf32>
}
// CHECK-LABEL: func.func @main(
// CHECK:      [[all:%\d+]] = sx.constant {value = dense<[1.000000e+00, 1.000000e+00, 2.000000e+00, 5.000000e-01]> : tensor<4xf32>}
// CHECK-NEXT: [[resized:%\d+]] = sx.resize %x, _, [[all]] {mode = "linear"} : (tensor<1x2x4x6xf32>, tensor<4xf32>) -> tensor<1x2x8x3xf32>
// CHECK:      [[axes:%\d+]] = sx.constant {value = dense<[2, 3]> : tensor<2xi64>}
// CHECK-NEXT: [[sizes:%\d+]] = sx.scatter_elements {{%\d+}}, [[axes]], %wanted
// CHECK-NEXT: [[sized:%\d+]] = sx.resize %x, _, _, [[sizes]] : (tensor<1x2x4x6xf32>, tensor<4xi64>)
// CHECK:      [[steps:%\d+]] = sx.range
// CHECK:      [[column:%\d+]] = sx.unsqueeze %at,
// CHECK-NEXT: [[from:%\d+]] = sx.add {{%\d+}}, [[column]]
// CHECK:      [[wrapped:%\d+]] = sx.mod [[from]],
// CHECK-NEXT: [[places:%\d+]] = sx.expand [[wrapped]],
// CHECK-NEXT: [[written:%\d+]] = sx.scatter_elements %cache, [[places]], %new {axis = 1 : i64}
// CHECK-NEXT: func.return [[resized]], [[sized]], [[written]]
