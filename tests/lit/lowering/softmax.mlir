// A row kernel: three stages over a row that stays in cache, in one kernel.
// RUN: sardonyx-opt %s -t kernel | filecheck %s

// CHECK:      kernel.func @softmax_0 {
// CHECK:        "kernel.loop"({{.*}}) <{step = 1 : i64, parallel}>
// CHECK:          [[MAX:%.*]] = "kernel.loop"({{.*}}) <{step = 1 : i64, vector, reductions = ["max"]}>
// CHECK:          "kernel.loop"({{.*}}) <{step = 1 : i64, vector, reductions = ["add"]}>
// CHECK:            arith.subf {{%.*}}, [[MAX]]
// CHECK-NEXT:       kernel.math "exp_nonpositive"
// CHECK:          "kernel.loop"({{.*}}) <{step = 1 : i64, vector}>
// CHECK:            arith.mulf
// CHECK-NOT:  kernel.func
// CHECK:      kernel.launch
// CHECK-NOT:  kernel.launch
func.func @main(%x: tensor<?x64xf32, #sx.dims<n, _>>) -> tensor<?x64xf32, #sx.dims<n, _>> {
  %0 = sx.softmax %x : (tensor<?x64xf32, #sx.dims<n, _>>) -> tensor<?x64xf32, #sx.dims<n, _>>
  func.return %0 : tensor<?x64xf32, #sx.dims<n, _>>
}
