// Over an outer axis the lanes are neighbouring results. A tile of them is walked down, eight elements of each at a time, so
// that memory is read in long runs; the sums wait in the result.
// RUN: sardonyx-opt %s -t kernel | filecheck %s
// RUN: sardonyx-opt %s -t llvm-ir | filecheck %s --check-prefix LLVM

// CHECK:      kernel.func @reduce_sum_0 {
// CHECK:        [[WIDTH:%.*]] = arith.constant 100 : index
// CHECK:        "kernel.loop"({{%.*}}, [[WIDTH]]) <{step = 64 : i64, parallel}> ({
// CHECK-NEXT:   ^bb0([[START:%.*]]: index):
// Each sum begins with zero.
// CHECK:          "kernel.loop"([[START]], [[END:%.*]]) <{step = 1 : i64, vector}> ({
// CHECK:            [[ZERO:%.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:       kernel.store [[ZERO]], [[Y:%.*]][
// Eight rows of the operand at a time, added in pairs.
// CHECK:          "kernel.loop"({{%.*}}, {{%.*}}) <{step = 8 : i64}> ({
// CHECK:            "kernel.loop"([[START]], [[END]]) <{step = 1 : i64, vector}> ({
// CHECK-COUNT-8:      kernel.load [[X:%.*]][
// CHECK-COUNT-7:      arith.addf
// CHECK:              kernel.load [[Y]][
// CHECK:              arith.addf
// CHECK:              kernel.store {{%.*}}, [[Y]][
// The rest of them one by one.
// CHECK:          "kernel.loop"({{%.*}}, {{%.*}}) <{step = 1 : i64}> ({

// LLVM-LABEL: define internal i64 @reduce_sum_0(
// LLVM-NOT:     extractelement
// LLVM-COUNT-8: load <[[W:[0-9]+]] x float>
// LLVM-NOT:     extractelement
// LLVM:         store <{{[0-9]+}} x float>
// LLVM-NOT:     extractelement
// LLVM:         ret i64 0
func.func @main(%x: tensor<84x100xf32>) -> tensor<100xf32> {
  %axes = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = sx.reduce_sum %x, %axes {keepdims = false} : (tensor<84x100xf32>, tensor<1xi64>) -> tensor<100xf32>
  func.return %0 : tensor<100xf32>
}
