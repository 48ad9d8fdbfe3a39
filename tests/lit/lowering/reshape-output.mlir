// A reshape that is a graph output is copied, since an output's memory is the caller's; still there is no kernel.
// RUN: sardonyx-opt %s -t kernel | filecheck %s

// CHECK-NOT:  kernel.func
// CHECK:      kernel.plan @main {
// CHECK:        [[X:%.*]] = kernel.input 0
// CHECK:        [[Y:%.*]] = kernel.output 0
// CHECK:        [[BYTES:%.*]] = arith.constant 96 : index
// CHECK-NEXT:   kernel.copy [[X]], [[Y]], [[BYTES]] :
// CHECK-NOT:    kernel.launch
func.func @main(%x: tensor<4x6xf32>) -> tensor<24xf32> {
  %shape = sx.constant {value = dense<24> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = sx.reshape %x, %shape : (tensor<4x6xf32>, tensor<1xi64>) -> tensor<24xf32>
  func.return %0 : tensor<24xf32>
}
