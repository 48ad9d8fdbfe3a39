// A vector loop over a dynamic extent: groups of vectors, whole vectors, then the rest as one masked vector. Loads promise the alignment of one element.
// RUN: sardonyx-opt %s -t llvm-ir | filecheck %s --check-prefix LLVM

// LLVM:      define internal i64 @neg_0(
// LLVM:        load <[[W:[0-9]+]] x float>, ptr {{%.*}}, align 4
// LLVM:        fneg <[[W]] x float>
// LLVM-NEXT:   getelementptr
// Where the result turns out to be large, it goes past the caches.
// LLVM:        store <[[W]] x float> {{%.*}}, ptr {{%.*}}, align {{[0-9]+}}, !nontemporal
// LLVM:        store <[[W]] x float> {{%.*}}, ptr {{%.*}}, align 4
// LLVM:        add nsw i64 {{%.*}}, [[W]]
// LLVM:        icmp slt <[[W]] x i32>
// LLVM:        call <[[W]] x float> @llvm.masked.load.v[[W]]f32.p0(ptr align 4 {{%.*}}, <[[W]] x i1>
// LLVM:        fneg <[[W]] x float>
// LLVM:        call void @llvm.masked.store.v[[W]]f32.p0(
// LLVM:        ret i64 0
// LLVM:      define i64 @entry(ptr %ctx)
// LLVM:      define i64 @entry_py(
func.func @main(%x: tensor<?xf32, #sx.dims<n>>) -> tensor<?xf32, #sx.dims<n>> {
  %0 = sx.neg %x : (tensor<?xf32, #sx.dims<n>>) -> tensor<?xf32, #sx.dims<n>>
  func.return %0 : tensor<?xf32, #sx.dims<n>>
}
