// A matrix product is a contraction per block of rows; the blocks are shared out over threads.
// RUN: sardonyx-opt %s -t kernel | filecheck %s
// RUN: sardonyx-opt %s -t llvm-ir | filecheck %s --check-prefix LLVM

// CHECK:      kernel.func @matmul_0 {
// CHECK-NEXT: ^bb0([[A:%.*]]: !kernel.buffer<f32>, [[B:%.*]]: !kernel.buffer<f32>, [[C:%.*]]: !kernel.buffer<f32>, {{%.*}}: index):
// CHECK:        "kernel.loop"({{.*}}) <{step = 1 : i64, parallel}>
// CHECK:          "kernel.contract"([[A]], [[B]], [[C]],
// CHECK-NOT:  kernel.func
// CHECK:      kernel.launch @matmul_0(
// CHECK-SAME: writes = array<i64: 2>

// LLVM-LABEL: define internal i64 @matmul_0(
// LLVM:         phi <{{[0-9]+}} x float>
// LLVM-NOT:   define
// LLVM:         call <{{[0-9]+}} x float> @llvm.fma
func.func @main(%x: tensor<?x16xf32, #sx.dims<n, _>>, %y: tensor<16x24xf32>) -> tensor<?x24xf32, #sx.dims<n, _>> {
  %0 = sx.matmul %x, %y : (tensor<?x16xf32, #sx.dims<n, _>>, tensor<16x24xf32>) -> tensor<?x24xf32, #sx.dims<n, _>>
  func.return %0 : tensor<?x24xf32, #sx.dims<n, _>>
}
