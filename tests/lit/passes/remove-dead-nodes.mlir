// RUN: sardonyx-opt %s -p 'remove-dead-nodes' | filecheck %s

// The cases of `remove-dead-nodes`, by their numbers in its docstring.

// Cases 1 and 2: whole chains.
func.func @chain(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = sx.neg %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = sx.relu %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = sx.exp %1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %x : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @chain(
// CHECK-NEXT: func.return %x : tensor<2x3xf32>
// CHECK-NEXT: }

// Case 3: outputs stay, an inner value that is an output too.
func.func @outputs(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = sx.relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = sx.exp %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %0, %1 : tensor<2x3xf32>, tensor<2x3xf32>
}
// CHECK-LABEL: func.func @outputs(
// CHECK-NEXT: %0 = sx.relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: %1 = sx.exp %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: func.return %0, %1 : tensor<2x3xf32>, tensor<2x3xf32>
// CHECK-NEXT: }

// Case 6: one of several results.
func.func @several(%x: tensor<4xf32>) -> tensor<2xf32> {
  %0, %1 = sx.split %x {num_outputs = 2 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  %2 = sx.exp %0 : (tensor<2xf32>) -> tensor<2xf32>
  func.return %1 : tensor<2xf32>
}
// CHECK-LABEL: func.func @several(
// CHECK-NEXT: %0, %1 = sx.split %x {num_outputs = 2 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
// CHECK-NEXT: func.return %1 : tensor<2xf32>
// CHECK-NEXT: }

// Case 7: an input that nobody reads.
func.func @inputs(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  func.return %x : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @inputs(
// CHECK-NEXT: func.return %x : tensor<2x3xf32>
// CHECK-NEXT: }
