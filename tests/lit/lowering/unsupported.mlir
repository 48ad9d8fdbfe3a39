// What has no native form is refused by name, with its line.
// RUN: not sardonyx-opt %s --allow-unregistered-dialect -t kernel 2>&1 | filecheck %s

// CHECK:      unsupported.mlir:[[# @LINE + 4]]: error: {{.*}} has no native form
// CHECK-NOT:  kernel.plan
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = sx.exp %x : (tensor<3xf32>) -> tensor<3xf32>
  %1 = "test.unknown"(%0) : (tensor<3xf32>) -> tensor<3xf32>
  func.return %1 : tensor<3xf32>
}
