// Bias, activation and residual are computed with the sums, before they are stored; nothing else is launched.
// RUN: sardonyx-opt %s -t kernel | filecheck %s

// CHECK:      kernel.func @matmul_0 {
// CHECK-NEXT: ^bb0([[X:%.*]]: !kernel.buffer<f32>, [[PANELS:%.*]]: !kernel.buffer<f32>, [[Y:%.*]]: !kernel.buffer<f32>, [[BIAS:%.*]]: !kernel.buffer<f32>, [[RESIDUAL:%.*]]: !kernel.buffer<f32>,
// CHECK:        "kernel.loop"({{.*}}parallel
// CHECK:          "kernel.contract"([[X]], [[PANELS]], [[Y]],
// CHECK-SAME:     packed = {{[0-9]+}} : i64
// CHECK-NEXT:     ^bb{{[0-9]+}}([[SUM:%.*]]: f32, [[M:%.*]]: index, [[N:%.*]]: index):
// CHECK:            [[B:%.*]] = kernel.load [[BIAS]][
// CHECK:            [[R:%.*]] = kernel.load [[RESIDUAL]][
// CHECK:            [[A:%.*]] = arith.addf [[SUM]], [[B]]
// CHECK-NEXT:       [[T:%.*]] = kernel.math "tanh"([[A]])
// CHECK-NEXT:       [[V:%.*]] = arith.addf [[T]], [[R]]
// CHECK-NEXT:       kernel.yield [[V]] : f32
// CHECK-NOT:  kernel.func
// CHECK:      kernel.plan @main {
// CHECK:        kernel.launch @matmul_0(
// CHECK-NOT:    kernel.launch
func.func @main(%x: tensor<?x3xf32, #sx.dims<n, _>>, %r: tensor<?x2xf32, #sx.dims<n, _>>) -> tensor<?x2xf32, #sx.dims<n, _>> {
  %w = sx.constant {value = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
  %b = sx.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = sx.matmul %x, %w : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3x2xf32>) -> tensor<?x2xf32, #sx.dims<n, _>>
  %1 = sx.add %0, %b : (tensor<?x2xf32, #sx.dims<n, _>>, tensor<2xf32>) -> tensor<?x2xf32, #sx.dims<n, _>>
  %2 = sx.tanh %1 : (tensor<?x2xf32, #sx.dims<n, _>>) -> tensor<?x2xf32, #sx.dims<n, _>>
  %3 = sx.add %2, %r : (tensor<?x2xf32, #sx.dims<n, _>>, tensor<?x2xf32, #sx.dims<n, _>>) -> tensor<?x2xf32, #sx.dims<n, _>>
  func.return %3 : tensor<?x2xf32, #sx.dims<n, _>>
}
