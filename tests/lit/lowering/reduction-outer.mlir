// Over an outer axis the lanes are neighbouring results: the vector loop is outside, and nothing is summed across lanes.
// RUN: sardonyx-opt %s -t kernel | filecheck %s
// RUN: sardonyx-opt %s -t llvm-ir | filecheck %s --check-prefix LLVM

// CHECK:      kernel.func @reduce_sum_0 {
// CHECK-NEXT: ^bb0([[ROWS:%.*]]: index, [[X:%.*]]: !kernel.buffer<f32>, [[Y:%.*]]: !kernel.buffer<f32>):
// CHECK:        [[WIDTH:%.*]] = arith.constant 100 : index
// CHECK:        "kernel.loop"({{%.*}}, [[WIDTH]]) <{step = 1 : i64, vector
// CHECK-NEXT:   ^bb0([[COLUMN:%.*]]: index):
// The rows are summed in blocks, so that the error grows with the number of blocks and not of rows.
// CHECK:          [[TOTAL:%.*]] = "kernel.loop"({{%.*}}, [[ROWS]], {{%.*}}) <{step = 64 : i64, reductions = ["add"]}> ({
// CHECK-NEXT:     ^bb0([[FIRST:%.*]]: index, [[SUM:%.*]]: f32):
// CHECK:            [[LAST:%.*]] = kernel.math "smin"({{%.*}}, [[ROWS]])
// CHECK:            [[BLOCK:%.*]] = "kernel.loop"([[FIRST]], [[LAST]], {{%.*}}) <{step = 1 : i64, reductions = ["add"]}> ({
// CHECK-NEXT:       ^bb0([[ROW:%.*]]: index, [[ACC:%.*]]: f32):
// CHECK-NEXT:         [[BEGIN:%.*]] = arith.muli [[ROW]], [[WIDTH]] : index
// CHECK-NEXT:         [[AT:%.*]] = arith.addi [[COLUMN]], [[BEGIN]] : index
// CHECK-NEXT:         [[E:%.*]] = kernel.load [[X]][[[AT]]]
// CHECK-NEXT:         [[NEXT:%.*]] = arith.addf [[ACC]], [[E]] : f32
// CHECK-NEXT:         kernel.yield [[NEXT]] : f32
// CHECK:            [[MORE:%.*]] = arith.addf [[SUM]], [[BLOCK]] : f32
// CHECK-NEXT:       kernel.yield [[MORE]] : f32
// CHECK:          kernel.store [[TOTAL]], [[Y]][[[COLUMN]]]

// LLVM-LABEL: define internal i64 @reduce_sum_0(
// LLVM-NOT:     extractelement
// LLVM:         phi <[[W:[0-9]+]] x float>
// LLVM-NOT:     extractelement
// LLVM:         load <[[W]] x float>
// LLVM-NOT:     extractelement
// LLVM:         store <[[W]] x float>
// LLVM-NOT:     extractelement
// LLVM:         ret i64 0
func.func @main(%x: tensor<?x100xf32, #sx.dims<n, _>>) -> tensor<100xf32> {
  %axes = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = sx.reduce_sum %x, %axes {keepdims = false} : (tensor<?x100xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<100xf32>
  func.return %0 : tensor<100xf32>
}
