// Elementary functions are written out, over whole vectors and again over a masked one for the rest: no kernel calls a C library.
// LLVM's own intrinsics of these names would become such calls, so they don't occur either.
// RUN: sardonyx-opt %s -t llvm-ir | filecheck %s --check-prefix LLVM
// RUN: sardonyx-opt %s -t llvm-ir | filecheck %s --check-prefix NONE

// LLVM-LABEL: define internal i64 @tanh_0(
// LLVM-NOT:     call {{[^@]*}}@{{[^l]}}
// LLVM:         call <[[W:[0-9]+]] x float> @llvm.fma
// LLVM-NOT:     call {{[^@]*}}@{{[^l]}}
// LLVM:         store <[[W]] x float>
// LLVM-NOT:     call {{[^@]*}}@{{[^l]}}
// LLVM:         call <[[W]] x float> @llvm.fma
// LLVM-NOT:     call {{[^@]*}}@{{[^l]}}
// LLVM:         call void @llvm.masked.store
// LLVM:         ret i64 0

// NONE-NOT:   @{{(llvm[.])?(exp|log|sin|tanh)[^_]}}
func.func @main(%x: tensor<37xf32>) -> tensor<37xf32> {
  %0 = sx.exp %x : (tensor<37xf32>) -> tensor<37xf32>
  %1 = sx.log %0 : (tensor<37xf32>) -> tensor<37xf32>
  %2 = sx.sin %1 : (tensor<37xf32>) -> tensor<37xf32>
  %3 = sx.tanh %2 : (tensor<37xf32>) -> tensor<37xf32>
  func.return %3 : tensor<37xf32>
}
