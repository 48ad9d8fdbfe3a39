// A row kernel: three stages over a row that stays in cache, in one kernel. Where the result turns out to be large, it
// goes past the caches, and the powers wait on the stack; else two rows are side by side.
// RUN: sardonyx-opt %s -t kernel | filecheck %s

// CHECK:      kernel.func @softmax_0 {
// CHECK:        [[LARGE:%.*]] = kernel.nontemporal [[Y:%.*]][{{%.*}} by {{%.*}}] : !kernel.buffer<f32>
// CHECK:        "kernel.if"([[LARGE]])
// CHECK:          [[WAIT:%.*]] = kernel.scratch
// CHECK:          "kernel.loop"({{.*}}) <{step = 1 : i64, parallel}>
// CHECK:            [[MAX:%.*]] = "kernel.loop"({{.*}}) <{step = 1 : i64, vector, reductions = ["max"]}>
// CHECK:            "kernel.loop"({{.*}}) <{step = 1 : i64, vector, reductions = ["add"]}>
// CHECK:              arith.subf {{%.*}}, [[MAX]]
// CHECK-NEXT:         kernel.math "exp_nonpositive"
// CHECK:              kernel.store {{%.*}}, [[WAIT]][
// CHECK:            "kernel.loop"({{.*}}) <{step = 1 : i64, vector}>
// CHECK:              arith.mulf
// CHECK:              kernel.store {{%.*}}, [[Y]][{{%.*}}] past
// CHECK:          "kernel.loop"({{.*}}) <{step = 2 : i64, parallel}>
// CHECK:            [[FIRST:%.*]], [[SECOND:%.*]] = "kernel.loop"({{.*}}) <{step = 1 : i64, vector, reductions = ["max", "max"]}>
// CHECK:            "kernel.loop"({{.*}}) <{step = 1 : i64, vector, reductions = ["add"]}>
// CHECK:              arith.subf {{%.*}}, [[FIRST]]
// CHECK-NEXT:         kernel.math "exp_nonpositive"
// CHECK:              kernel.store {{%.*}}, [[Y]][{{%.*}}] :
// CHECK:            "kernel.loop"({{.*}}) <{step = 1 : i64, vector, reductions = ["add"]}>
// CHECK:              arith.subf {{%.*}}, [[SECOND]]
// CHECK-NEXT:         kernel.math "exp_nonpositive"
// CHECK:            "kernel.loop"({{.*}}) <{step = 1 : i64, vector}>
// CHECK:              arith.mulf
// CHECK-NOT:  kernel.func
// CHECK:      kernel.launch
// CHECK-NOT:  kernel.launch
func.func @main(%x: tensor<?x64xf32, #sx.dims<n, _>>) -> tensor<?x64xf32, #sx.dims<n, _>> {
  %0 = sx.softmax %x : (tensor<?x64xf32, #sx.dims<n, _>>) -> tensor<?x64xf32, #sx.dims<n, _>>
  func.return %0 : tensor<?x64xf32, #sx.dims<n, _>>
}
