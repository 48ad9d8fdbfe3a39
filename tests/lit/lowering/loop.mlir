// A loop is a region of the plan. The op that computes the next state writes it where it is carried (one of two blocks
// by turns), the op that computes a row writes it into the result; what the body alone needs is workspace.
// RUN: sardonyx-opt %s -t kernel | filecheck %s
// RUN: sardonyx-opt %s -t kernel -o %t.mlir
// RUN: sardonyx-opt %t.mlir -o %t.again.mlir
// RUN: cmp %t.mlir %t.again.mlir

// CHECK:      kernel.plan @main {
// CHECK:        [[X:%.*]] = kernel.input 0
// CHECK:        [[TRIPS:%.*]] = kernel.math "smax"(
// CHECK:        [[ROWS:%.*]] = kernel.output 1 : i64[[[TRIPS]],
// CHECK:        [[COUNT:%.*]], [[LAST:%.*]] = "kernel.repeat"([[TRIPS]], %{{.*}}, [[X]]) ({
// CHECK-NEXT:   ^bb0([[TURN:%.*]]: index, [[V:%.*]]: !kernel.buffer<f32>):
// CHECK:          [[E:%.*]] = kernel.alloc[%{{.*}}, %{{.*}}] {slot = 0 : i64, offset = 0 : i64}
// CHECK:          kernel.launch @exp_{{.*}}([[V]], [[E]])
// CHECK:          [[AT:%.*]] = arith.muli [[TURN]],
// CHECK-NEXT:     [[ROW:%.*]] = kernel.view [[ROWS]][[[AT]]]
// CHECK-NEXT:     kernel.launch @neg_{{.*}}([[E]], [[ROW]])
// CHECK-NEXT:     [[NEXT:%.*]] = kernel.alternate [[TURN]][%{{.*}}, %{{.*}}] {slot = 0 : i64}
// CHECK-NEXT:     kernel.launch @add_{{.*}}([[E]], [[X]], [[NEXT]])
// CHECK:          kernel.yield %{{.*}}, [[NEXT]] : i1, !kernel.buffer<f32>
// CHECK-NEXT:   })
// CHECK:        [[Y:%.*]] = kernel.output 0
// CHECK:        kernel.copy [[LAST]], [[Y]],
func.func @main(%x: tensor<2x3xf32>, %n: tensor<i64>) -> (tensor<2x3xf32>, tensor<?x2x3xf32, #sx.dims<r, _, _>>) {
  %state, %rows = sx.loop %n, _, %x ({
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %v: tensor<2x3xf32>):
    %1 = sx.exp %v : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %2 = sx.neg %1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %3 = sx.add %1, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    sx.yield %go, %3, %2 : tensor<i1>, tensor<2x3xf32>, tensor<2x3xf32>
  }) : (tensor<i64>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<?x2x3xf32, #sx.dims<r, _, _>>)
  func.return %state, %rows : tensor<2x3xf32>, tensor<?x2x3xf32, #sx.dims<r, _, _>>
}
