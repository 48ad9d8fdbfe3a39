// A right operand that only the run knows is laid out in panels by a kernel of its own, where many rows use it.
// RUN: sardonyx-opt %s -t kernel | filecheck %s

// CHECK:      kernel.func @pack_0 {
// CHECK:        "kernel.loop"({{.*}}parallel
// CHECK:      kernel.func @matmul_1 {
// CHECK:        "kernel.contract"(
// CHECK-SAME:   packed = {{[0-9]+}} : i64
// CHECK:      kernel.plan @main {
// CHECK:        [[B:%.*]] = kernel.input 1
// CHECK:        [[PANELS:%.*]] = kernel.alloc
// CHECK:        kernel.launch @pack_0([[B]], [[PANELS]]
// CHECK:        kernel.launch @matmul_1({{%.*}}, [[PANELS]],
func.func @main(%x: tensor<64x100xf32>, %y: tensor<100x200xf32>) -> tensor<64x200xf32> {
  %0 = sx.matmul %x, %y : (tensor<64x100xf32>, tensor<100x200xf32>) -> tensor<64x200xf32>
  func.return %0 : tensor<64x200xf32>
}
