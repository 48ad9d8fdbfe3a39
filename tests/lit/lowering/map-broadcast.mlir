// An elementwise op becomes a nest of loops: rows, shared out over threads, and a vector loop over the contiguous axis.
// The operand of lower rank is read at the column only; the dynamic extent is an argument, the static one a constant.
// RUN: sardonyx-opt %s -t kernel | filecheck %s

// CHECK:      kernel.func @[[K:add_[0-9]+]] {
// CHECK-NEXT: ^bb0([[X:%.*]]: !kernel.buffer<f32>, [[B:%.*]]: !kernel.buffer<f32>, [[Y:%.*]]: !kernel.buffer<f32>, [[N:%.*]]: index):
// CHECK:        [[C:%.*]] = arith.constant 37 : index
// CHECK:        "kernel.loop"({{%.*}}, [[N]]) <{step = 1 : i64, parallel}>
// CHECK:          "kernel.loop"({{%.*}}, [[C]]) <{step = 1 : i64, vector}> ({
// CHECK-NEXT:     ^bb0([[COLUMN:%.*]]: index):
// CHECK:            kernel.load [[X]][
// CHECK-NEXT:       kernel.load [[B]][[[COLUMN]]]
// CHECK-NEXT:       [[SUM:%.*]] = arith.addf
// CHECK-NEXT:       kernel.store [[SUM]], [[Y]][
// CHECK-NOT:    kernel.func

// CHECK:      kernel.plan @main {
// CHECK:        [[ROWS:%.*]] = kernel.input_dim 0 : i64, 0 : i64
// CHECK:        kernel.output 0 : i64[[[ROWS]],
// CHECK:        kernel.launch @[[K]](
// CHECK-NEXT:   kernel.yield
func.func @main(%x: tensor<?x37xf32, #sx.dims<batch, _>>, %b: tensor<37xf32>) -> tensor<?x37xf32, #sx.dims<batch, _>> {
  %0 = sx.add %x, %b : (tensor<?x37xf32, #sx.dims<batch, _>>, tensor<37xf32>) -> tensor<?x37xf32, #sx.dims<batch, _>>
  func.return %0 : tensor<?x37xf32, #sx.dims<batch, _>>
}
