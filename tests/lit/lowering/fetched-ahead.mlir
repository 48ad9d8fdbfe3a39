// The first of several loops over a long row asks for what comes next, and for the memory of the result; short rows and
// single loops do not. Of the two rows that are side by side, each asks for the next two.
// RUN: sardonyx-opt %s -t kernel | filecheck %s

// CHECK-LABEL:   kernel.func @layer_norm
// CHECK:         {ahead = 1280 : i64}
// CHECK-NEXT:    kernel.fetch
// CHECK:         {ahead = 1280 : i64}
// CHECK-NEXT:    kernel.fetch
// CHECK-NOT:     ahead
// CHECK-NOT:     kernel.fetch
func.func @main(%x: tensor<4x768xf32>, %y: tensor<4x64xf32>, %s: tensor<768xf32>, %t: tensor<64xf32>)
    -> (tensor<4x768xf32>, tensor<4x64xf32>) {
  %0, %1, %2 = sx.layer_norm %x, %s {axis = -1} : (tensor<4x768xf32>, tensor<768xf32>) -> (tensor<4x768xf32>, tensor<4x1xf32>, tensor<4x1xf32>)
  %3, %4, %5 = sx.layer_norm %y, %t {axis = -1} : (tensor<4x64xf32>, tensor<64xf32>) -> (tensor<4x64xf32>, tensor<4x1xf32>, tensor<4x1xf32>)
  func.return %0, %3 : tensor<4x768xf32>, tensor<4x64xf32>
}
