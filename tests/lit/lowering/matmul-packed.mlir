// A constant right operand is laid out in panels when the graph is compiled, so that a run reads it in one sweep.
// The panels are a constant of their own (number 1); nothing at run time packs them.
// RUN: sardonyx-opt %s -t kernel | filecheck %s

// CHECK:      kernel.func @matmul_0 {
// CHECK-NEXT: ^bb0([[A:%.*]]: !kernel.buffer<f32>, [[PANELS:%.*]]: !kernel.buffer<f32>, [[C:%.*]]: !kernel.buffer<f32>, {{%.*}}: index):
// CHECK:        "kernel.contract"([[A]], [[PANELS]], [[C]],
// CHECK-SAME:   packed = {{[0-9]+}} : i64
// CHECK-NOT:  kernel.func
// CHECK:      kernel.plan @main {
// CHECK:        [[X:%.*]] = kernel.input 0
// CHECK:        [[PACKED:%.*]] = kernel.weight 1 : i64
// CHECK:        [[Y:%.*]] = kernel.output 0
// CHECK:        kernel.launch @matmul_0([[X]], [[PACKED]], [[Y]],
// CHECK-NEXT:   kernel.yield
func.func @main(%x: tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x2xf32, #sx.dims<n, _>> {
  %w = sx.constant {value = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
  %0 = sx.matmul %x, %w : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3x2xf32>) -> tensor<?x2xf32, #sx.dims<n, _>>
  func.return %0 : tensor<?x2xf32, #sx.dims<n, _>>
}
