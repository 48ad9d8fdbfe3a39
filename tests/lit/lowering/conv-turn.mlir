// A result whose channels come second is turned in registers, panel by panel, before it is written.
// RUN: sardonyx-opt %s -t kernel | filecheck %s

// CHECK:      kernel.func @conv_0 {
// CHECK:        "kernel.contract"(
// CHECK-SAME:   turned = {{[0-9]+}}
// CHECK:        arith.addf
// CHECK-NOT:    kernel.turn
// CHECK:      kernel.plan @main {
// CHECK:        kernel.launch @conv_0(
// CHECK-NOT:    kernel.launch
func.func @main(%x: tensor<?x8x8x2xf32, #sx.dims<n, _, _, _>>) -> tensor<?x2x8x8xf32, #sx.dims<n, _, _, _>> {
  %w = sx.constant {value = dense<[[[[1.0]], [[2.0]]], [[[3.0]], [[4.0]]]]> : tensor<2x2x1x1xf32>} : () -> tensor<2x2x1x1xf32>
  %b = sx.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = sx.conv %x, %w, %b {layout = "NHWC->NCHW"} : (tensor<?x8x8x2xf32, #sx.dims<n, _, _, _>>, tensor<2x2x1x1xf32>, tensor<2xf32>) -> tensor<?x2x8x8xf32, #sx.dims<n, _, _, _>>
  %1 = sx.relu %0 : (tensor<?x2x8x8xf32, #sx.dims<n, _, _, _>>) -> tensor<?x2x8x8xf32, #sx.dims<n, _, _, _>>
  func.return %1 : tensor<?x2x8x8xf32, #sx.dims<n, _, _, _>>
}
