// A reshape moves nothing: both kernels read and write the same buffers, and the plan has no copy.
// RUN: sardonyx-opt %s -t kernel | filecheck %s

// CHECK:      kernel.plan @main {
// CHECK:        [[X:%.*]] = kernel.input 0
// CHECK:        [[BETWEEN:%.*]] = kernel.alloc
// CHECK:        kernel.launch @{{.*}}([[X]], [[BETWEEN]],
// CHECK:        [[Y:%.*]] = kernel.output 0
// CHECK:        kernel.launch @softmax_1({{.*}}[[BETWEEN]], [[Y]])
// CHECK-NOT:    kernel.copy
func.func @main(%x: tensor<?x6xf32, #sx.dims<n, _>>) -> tensor<?x2x3xf32, #sx.dims<n, _, _>> {
  %shape = sx.constant {value = dense<[-1, 2, 3]> : tensor<3xi64>} : () -> tensor<3xi64>
  %0 = sx.exp %x : (tensor<?x6xf32, #sx.dims<n, _>>) -> tensor<?x6xf32, #sx.dims<n, _>>
  %1 = sx.reshape %0, %shape : (tensor<?x6xf32, #sx.dims<n, _>>, tensor<3xi64>) -> tensor<?x2x3xf32, #sx.dims<n, _, _>>
  %2 = sx.softmax %1 : (tensor<?x2x3xf32, #sx.dims<n, _, _>>) -> tensor<?x2x3xf32, #sx.dims<n, _, _>>
  func.return %2 : tensor<?x2x3xf32, #sx.dims<n, _, _>>
}
