// A transpose is a strided copy; axes that stay together are merged (5 and n here).
// RUN: sardonyx-opt %s -t kernel | filecheck %s

// CHECK:      kernel.func @transpose_0 {
// CHECK-NEXT: ^bb0([[X:%.*]]: !kernel.buffer<f32>, [[Y:%.*]]: !kernel.buffer<f32>, [[ROWS:%.*]]: index):
// CHECK:        [[C7:%.*]] = arith.constant 7 : index
// CHECK:        "kernel.loop"({{%.*}}, [[C7]])
// CHECK:        ^bb0([[I:%.*]]: index):
// CHECK-NEXT:     [[BEGIN:%.*]] = arith.muli [[I]], [[ROWS]] : index
// CHECK-NEXT:     "kernel.loop"({{%.*}}, [[ROWS]])
// CHECK:          ^bb0([[J:%.*]]: index):
// CHECK-NEXT:       [[STRIDED:%.*]] = arith.muli [[J]], [[C7]] : index
// CHECK-NEXT:       [[FROM:%.*]] = arith.addi [[I]], [[STRIDED]] : index
// CHECK-NEXT:       [[TO:%.*]] = arith.addi [[BEGIN]], [[J]] : index
// CHECK-NEXT:       [[E:%.*]] = kernel.load [[X]][[[FROM]]]
// CHECK-NEXT:       kernel.store [[E]], [[Y]][[[TO]]]
func.func @main(%x: tensor<?x5x7xf32, #sx.dims<n, _, _>>) -> tensor<7x?x5xf32, #sx.dims<_, n, _>> {
  %0 = sx.transpose %x {perm = array<i64: 2, 0, 1>} : (tensor<?x5x7xf32, #sx.dims<n, _, _>>) -> tensor<7x?x5xf32, #sx.dims<_, n, _>>
  func.return %0 : tensor<7x?x5xf32, #sx.dims<_, n, _>>
}
