// Indices are checked once, before the copy: over lanes the least and the greatest. Only where one of them is bad the
// first bad index is looked for; it ends the run with a status that shows it and the bound.
// RUN: sardonyx-opt %s -t kernel | filecheck %s
// RUN: sardonyx-opt %s -t llvm-ir | filecheck %s --check-prefix LLVM

// CHECK:      kernel.func @check_indices_0 {
// CHECK-NEXT: ^bb0([[INDICES:%.*]]: !kernel.buffer<i64>, {{%.*}}: index, [[BOUND:%.*]]: index):
// CHECK:        [[LEAST:%.*]], [[GREATEST:%.*]] = "kernel.loop"({{.*}}) <{step = 1 : i64, vector, reductions = ["min", "max"]}>
// CHECK:          kernel.load [[INDICES]]
// CHECK:        arith.cmpi sge, [[LEAST]],
// CHECK-NEXT:   arith.cmpi slt, [[GREATEST]], [[BOUND]]
// CHECK:        "kernel.if"
// CHECK-NEXT:     kernel.yield
// CHECK:          kernel.load [[INDICES]]
// CHECK:          [[LOW:%.*]] = arith.cmpi sge,
// CHECK-NEXT:     [[HIGH:%.*]] = arith.cmpi slt, {{%.*}}, [[BOUND]]
// CHECK-NEXT:     [[GOOD:%.*]] = arith.andi [[LOW]], [[HIGH]]
// CHECK-NEXT:     kernel.require [[GOOD]], 0 : i64({{%.*}}, [[BOUND]])
// CHECK:      kernel.func @gather_1 {
// A negative index counts from the end.
// CHECK:        arith.cmpi slt
// CHECK-NEXT:   arith.addi
// CHECK-NEXT:   arith.select
// CHECK:      kernel.plan @main {
// CHECK:        kernel.launch @check_indices_0(
// CHECK-SAME:   writes = array<i64>
// CHECK:        kernel.launch @gather_1(

// LLVM-LABEL: define internal i64 @check_indices_0(
// LLVM:         icmp sge i64
// LLVM:         store i64
// LLVM:         store i64
// LLVM-NEXT:    ret i64 1
// LLVM:         ret i64 0
func.func @main(%x: tensor<?x5xf32, #sx.dims<v, _>>, %i: tensor<?xi64, #sx.dims<n>>) -> tensor<?x5xf32, #sx.dims<n, _>> {
  %0 = sx.gather %x, %i : (tensor<?x5xf32, #sx.dims<v, _>>, tensor<?xi64, #sx.dims<n>>) -> tensor<?x5xf32, #sx.dims<n, _>>
  func.return %0 : tensor<?x5xf32, #sx.dims<n, _>>
}
