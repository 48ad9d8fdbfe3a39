// Equal kernels are one function of the LLVM IR, called twice; sizes are arguments, so that one serves all of them.
// RUN: sardonyx-opt %s -t kernel | filecheck %s
// RUN: sardonyx-opt %s -t llvm-ir | filecheck %s --check-prefix LLVM

// CHECK: kernel.func @matmul_0
// CHECK: kernel.func @matmul_1
// CHECK: kernel.launch @matmul_0(
// CHECK: kernel.launch @matmul_1(

// LLVM:         define internal i64 @matmul_0(
// LLVM-NOT:     define internal i64 @matmul
// LLVM:         define i64 @entry(
// LLVM:         call i64 @matmul_0(
// LLVM:         call i64 @matmul_0(
// LLVM-NOT:     @matmul_1
func.func @main(%x: tensor<?x16xf32, #sx.dims<n, _>>, %y: tensor<16x16xf32>) -> tensor<?x16xf32, #sx.dims<n, _>> {
  %0 = sx.matmul %x, %y : (tensor<?x16xf32, #sx.dims<n, _>>, tensor<16x16xf32>) -> tensor<?x16xf32, #sx.dims<n, _>>
  %1 = sx.matmul %0, %y : (tensor<?x16xf32, #sx.dims<n, _>>, tensor<16x16xf32>) -> tensor<?x16xf32, #sx.dims<n, _>>
  func.return %1 : tensor<?x16xf32, #sx.dims<n, _>>
}
