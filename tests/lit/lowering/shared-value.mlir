// A value with two readers is computed once, into workspace.
// RUN: sardonyx-opt %s -t kernel | filecheck %s

// CHECK-COUNT-1: kernel.math "exp"
// CHECK-NOT:     kernel.math "exp"
// CHECK:         kernel.plan
// CHECK:         kernel.alloc
// CHECK-SAME:    slot = 0
func.func @main(%x: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<8xf32>) {
  %0 = sx.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %rows = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %columns = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.reduce_sum %0, %rows {keepdims = false} : (tensor<4x8xf32>, tensor<1xi64>) -> tensor<4xf32>
  %2 = sx.reduce_max %0, %columns {keepdims = false} : (tensor<4x8xf32>, tensor<1xi64>) -> tensor<8xf32>
  func.return %1, %2 : tensor<4xf32>, tensor<8xf32>
}
