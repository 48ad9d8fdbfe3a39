// A vector loop over a dynamic extent: whole vectors, then the rest one by one. Loads promise the alignment of one element.
// RUN: sardonyx-opt %s -t llvm-ir | filecheck %s --check-prefix LLVM

// LLVM:      define internal i64 @neg_0(
// LLVM:        load <[[W:[0-9]+]] x float>, ptr {{%.*}}, align 4
// LLVM:        fneg <[[W]] x float>
// LLVM-NEXT:   getelementptr
// LLVM-NEXT:   store <[[W]] x float> {{%.*}}, ptr {{%.*}}, align 4
// LLVM:        add nsw i64 {{%.*}}, [[W]]
// LLVM:        load float, ptr {{%.*}}, align 4
// LLVM:        fneg float
// LLVM:        store float
// LLVM:        add nsw i64 {{%.*}}, 1
// LLVM:        ret i64 0
// LLVM:      define i64 @entry(ptr %ctx)
// LLVM:      define i64 @entry_py(
func.func @main(%x: tensor<?xf32, #sx.dims<n>>) -> tensor<?xf32, #sx.dims<n>> {
  %0 = sx.neg %x : (tensor<?xf32, #sx.dims<n>>) -> tensor<?xf32, #sx.dims<n>>
  func.return %0 : tensor<?xf32, #sx.dims<n>>
}
