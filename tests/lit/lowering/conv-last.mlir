// With channels last, a 1x1 convolution is one product of the image; the bias and the activation are its epilogue.
// RUN: sardonyx-opt %s -t kernel | filecheck %s

// CHECK-NOT:  kernel.func @frame
// CHECK:      kernel.func @conv_0 {
// CHECK:        "kernel.contract"(
// CHECK-SAME:     packed = {{[0-9]+}}
// CHECK:        arith.addf
// CHECK:      kernel.plan @main {
// CHECK:        kernel.launch @conv_0(
// CHECK-NOT:    kernel.launch
func.func @main(%x: tensor<?x8x8x2xf32, #sx.dims<n, _, _, _>>) -> tensor<?x8x8x2xf32, #sx.dims<n, _, _, _>> {
  %w = sx.constant {value = dense<[[[[1.0]], [[2.0]]], [[[3.0]], [[4.0]]]]> : tensor<2x2x1x1xf32>} : () -> tensor<2x2x1x1xf32>
  %b = sx.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = sx.conv %x, %w, %b {layout = "NHWC"} : (tensor<?x8x8x2xf32, #sx.dims<n, _, _, _>>, tensor<2x2x1x1xf32>, tensor<2xf32>) -> tensor<?x8x8x2xf32, #sx.dims<n, _, _, _>>
  %1 = sx.relu %0 : (tensor<?x8x8x2xf32, #sx.dims<n, _, _, _>>) -> tensor<?x8x8x2xf32, #sx.dims<n, _, _, _>>
  func.return %1 : tensor<?x8x8x2xf32, #sx.dims<n, _, _, _>>
}
