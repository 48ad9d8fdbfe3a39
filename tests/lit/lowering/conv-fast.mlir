// Convolutions that may be less exact: tiles are transformed into scratch memory of the chunk's own, multiplied point by
// point, and transformed back, or step by step where they are few. One without the attribute is summed directly.
// RUN: sardonyx-opt %s -t kernel | filecheck %s

// CHECK:      kernel.func @winograd_{{[0-9]+}} {
// CHECK:        kernel.chunk
// CHECK:        "kernel.contract"(
// CHECK-NOT:    kernel.chunk
// CHECK:      kernel.func @winograd_inputs_{{[0-9]+}} {
// CHECK:      kernel.func @winograd_{{[0-9]+}} {
// CHECK:        "kernel.contract"(
// CHECK:      kernel.func @winograd_outputs_{{[0-9]+}} {
// CHECK:      kernel.func @conv_{{[0-9]+}} {
// CHECK:      kernel.plan @main {
func.func @main(%x: tensor<?x8x8x16xf32, #sx.dims<n, _, _, _>>, %y: tensor<1x8x8x16xf32>) -> (tensor<?x8x8x16xf32, #sx.dims<n, _, _, _>>, tensor<1x6x6x16xf32>) {
  %w = sx.constant {value = dense<0.5> : tensor<16x16x3x3xf32>} : () -> tensor<16x16x3x3xf32>
  %0 = sx.conv %x, %w {layout = "NHWC", pads = array<i64: 1, 1, 1, 1>, fast} : (tensor<?x8x8x16xf32, #sx.dims<n, _, _, _>>, tensor<16x16x3x3xf32>) -> tensor<?x8x8x16xf32, #sx.dims<n, _, _, _>>
  %1 = sx.conv %y, %w {layout = "NHWC", pads = array<i64: 1, 1, 1, 1>, fast} : (tensor<1x8x8x16xf32>, tensor<16x16x3x3xf32>) -> tensor<1x8x8x16xf32>
  %2 = sx.conv %1, %w {layout = "NHWC"} : (tensor<1x8x8x16xf32>, tensor<16x16x3x3xf32>) -> tensor<1x6x6x16xf32>
  func.return %0, %2 : tensor<?x8x8x16xf32, #sx.dims<n, _, _, _>>, tensor<1x6x6x16xf32>
}
