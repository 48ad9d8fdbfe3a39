// A value whose readers are all in one elementwise group is computed there, once; one that is read elsewhere too is not.
// RUN: sardonyx-opt %s -t kernel | filecheck %s

// CHECK-COUNT-1: kernel.math "exp"
// CHECK:         kernel.math "tanh"
// CHECK:         kernel.plan
// CHECK-NOT:     kernel.alloc
// CHECK-COUNT-1: kernel.launch
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = sx.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = sx.tanh %0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = sx.mul %0, %1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = sx.add %2, %0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %3 : tensor<4x8xf32>
}
