// A convolution per image: the padded border is written once, the interior copied, and the taps are one contraction.
// RUN: sardonyx-opt %s -t kernel | filecheck %s

// CHECK:      kernel.func @conv_{{[0-9]+}} {
// CHECK:        "kernel.contract"(
// CHECK:      kernel.plan @main {
// CHECK:        kernel.alloc
// CHECK:        kernel.launch @[[FILL:fill_[0-9]+]](
// CHECK:        kernel.launch @conv_
// CHECK-NOT:    kernel.launch
func.func @main(%x: tensor<?x3x8x8xf32, #sx.dims<n, _, _, _>>, %w: tensor<4x3x3x3xf32>) -> tensor<?x4x8x8xf32, #sx.dims<n, _, _, _>> {
  %0 = sx.conv %x, %w {pads = array<i64: 1, 1, 1, 1>} : (tensor<?x3x8x8xf32, #sx.dims<n, _, _, _>>, tensor<4x3x3x3xf32>) -> tensor<?x4x8x8xf32, #sx.dims<n, _, _, _>>
  func.return %0 : tensor<?x4x8x8xf32, #sx.dims<n, _, _, _>>
}
