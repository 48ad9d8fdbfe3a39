// A reduction carries partial sums through a vector loop; in LLVM IR there are four of them, which hide the latency of
// an addition, the rest of a row is masked, and the horizontal sum is a tree of shuffles.
// RUN: sardonyx-opt %s -t kernel | filecheck %s
// RUN: sardonyx-opt %s -t llvm-ir | filecheck %s --check-prefix LLVM

// CHECK:      kernel.func @reduce_sum_0 {
// CHECK:        "kernel.loop"({{.*}}) <{step = 1 : i64, parallel}>
// CHECK:          [[ROW:%.*]] = "kernel.loop"({{.*}}) <{step = 1 : i64, vector, reductions = ["add"]}> ({
// CHECK-NEXT:     ^bb0({{%.*}}: index, [[ACC:%.*]]: f32):
// CHECK:            [[X:%.*]] = kernel.load
// CHECK-NEXT:       [[NEXT:%.*]] = arith.addf [[ACC]], [[X]] : f32
// CHECK-NEXT:       kernel.yield [[NEXT]] : f32
// CHECK:          kernel.store [[ROW]],

// LLVM-LABEL: define internal i64 @reduce_sum_0(
// LLVM:         phi <[[W:[0-9]+]] x float>
// LLVM-NEXT:    phi <[[W]] x float>
// LLVM-NEXT:    phi <[[W]] x float>
// LLVM-NEXT:    phi <[[W]] x float>
// LLVM:         fadd <[[W]] x float>
// LLVM:         shufflevector <[[W]] x float>
// LLVM:         extractelement <[[W]] x float>
// LLVM-NOT:   llvm.vector.reduce
func.func @main(%x: tensor<?x1000xf32, #sx.dims<n, _>>) -> tensor<?xf32, #sx.dims<n>> {
  %axes = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = sx.reduce_sum %x, %axes {keepdims = false} : (tensor<?x1000xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?xf32, #sx.dims<n>>
  func.return %0 : tensor<?xf32, #sx.dims<n>>
}
