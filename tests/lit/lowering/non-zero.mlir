// How many elements are not 0 only the data tell: a first kernel lists their places block by block and counts them, the
// plan reads the total, binds the extent and takes the result's memory, a second kernel writes the coordinates.
// RUN: sardonyx-opt %s -t kernel | filecheck %s
// RUN: sardonyx-opt %s -t llvm-ir | filecheck %s --check-prefix LLVM

// CHECK:      kernel.func @non_zero_0 {
// CHECK:        "kernel.loop"({{.*}}) <{step = 1 : i64, parallel}>
// The list's end moves on where the element is not 0; nothing branches.
// CHECK:          "kernel.loop"({{.*}}) <{step = 1 : i64, reductions = ["serial"]}>
// CHECK:            kernel.store {{%.*}}, [[LISTS:%.*]][{{%.*}}] : i32
// CHECK:            [[SOME:%.*]] = arith.cmpf une
// CHECK-NEXT:       arith.extui [[SOME]]
// CHECK-NOT:        kernel.if
// CHECK:      kernel.func @add_up_1 {
// CHECK:      kernel.func @coordinates_2 {
// Places below 2^31 are divided in vectors.
// CHECK:        kernel.math "floordiv"
// CHECK:        kernel.math "udiv"({{.*}}) : (i32, i32) -> i32
// CHECK:      kernel.plan @main {
// CHECK:        kernel.launch @non_zero_0
// CHECK:        kernel.launch @add_up_1
// CHECK:        [[READ:%.*]] = kernel.load
// CHECK-NEXT:   [[COUNT:%.*]] = arith.index_cast [[READ]]
// CHECK:        kernel.require
// CHECK-NEXT:   [[TWO:%.*]] = arith.constant 2 : index
// CHECK-NEXT:   [[OUT:%.*]] = kernel.output 0{{.*}}[[[TWO]], [[COUNT]]]
// CHECK-NEXT:   kernel.launch @coordinates_2([[OUT]], [[COUNT]],
// CHECK-NEXT:   kernel.yield

// LLVM-LABEL: define i64 @entry(
// LLVM:         call ptr @sx.output(
func.func @main(%x: tensor<?x37xf32, #sx.dims<n, _>>) -> tensor<2x?xi64, #sx.dims<_, count>> {
  %0 = sx.non_zero %x : (tensor<?x37xf32, #sx.dims<n, _>>) -> tensor<2x?xi64, #sx.dims<_, count>>
  func.return %0 : tensor<2x?xi64, #sx.dims<_, count>>
}
