// A transpose whose elements lie in runs on both sides, but along different axes, works by tiles in registers; axes that
// stay together are merged (5 and n here). Blocks of columns are what threads share.
// RUN: sardonyx-opt %s -t kernel | filecheck %s
// RUN: sardonyx-opt %s -t llvm-ir | filecheck %s --check-prefix LLVM

// CHECK:      kernel.func @transpose_0 {
// CHECK-NEXT: ^bb0([[X:%.*]]: !kernel.buffer<f32>, [[Y:%.*]]: !kernel.buffer<f32>, [[ROWS:%.*]]: index):
// CHECK:        [[C70:%.*]] = arith.constant 70 : index
// CHECK:        "kernel.loop"({{%.*}}, [[C70]]) <{step = 64 : i64, parallel}> ({
// CHECK-NEXT:   ^bb0([[FIRST:%.*]]: index):
// CHECK:          [[BEGIN:%.*]] = arith.muli [[FIRST]], [[ROWS]] : index
// CHECK:          "kernel.turn"([[X]], [[Y]], [[ROWS]], {{%.*}}, [[FIRST]], [[BEGIN]], [[C70]], [[ROWS]])
// CHECK-NOT:    kernel.load

// Whole rows of a tile are loaded, interleaved and stored.
// LLVM-LABEL: define internal i64 @transpose_0(
// LLVM:         load <[[W:[0-9]+]] x float>
// LLVM:         shufflevector <[[W]] x float>
// LLVM:         store <[[W]] x float>
func.func @main(%x: tensor<?x5x70xf32, #sx.dims<n, _, _>>) -> tensor<70x?x5xf32, #sx.dims<_, n, _>> {
  %0 = sx.transpose %x {perm = array<i64: 2, 0, 1>} : (tensor<?x5x70xf32, #sx.dims<n, _, _>>) -> tensor<70x?x5xf32, #sx.dims<_, n, _>>
  func.return %0 : tensor<70x?x5xf32, #sx.dims<_, n, _>>
}
