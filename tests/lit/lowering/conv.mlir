// A convolution per image: a frame is written once, and the windows are one contraction over it. Of so few channels that
// come second, each one's plane is framed as it is. The rows of a window that lie in the padding are left out.
// RUN: sardonyx-opt %s -t kernel | filecheck %s

// CHECK:      kernel.func @frame_0 {
// CHECK-NOT:    kernel.turn
// CHECK:      kernel.func @weights_1 {
// CHECK:      kernel.func @conv_2 {
// CHECK:        "kernel.contract"(
// CHECK-SAME:   clipped = 1
// CHECK:      kernel.plan @main {
// CHECK:        kernel.launch @frame_0(
// CHECK:        kernel.launch @weights_1(
// CHECK:        kernel.launch @conv_2(
// CHECK-NOT:    kernel.launch
func.func @main(%x: tensor<?x3x8x8xf32, #sx.dims<n, _, _, _>>, %w: tensor<4x3x3x3xf32>) -> tensor<?x4x8x8xf32, #sx.dims<n, _, _, _>> {
  %0 = sx.conv %x, %w {pads = array<i64: 1, 1, 1, 1>} : (tensor<?x3x8x8xf32, #sx.dims<n, _, _, _>>, tensor<4x3x3x3xf32>) -> tensor<?x4x8x8xf32, #sx.dims<n, _, _, _>>
  func.return %0 : tensor<?x4x8x8xf32, #sx.dims<n, _, _, _>>
}
