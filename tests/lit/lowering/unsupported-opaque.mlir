// An op that the importer kept opaque is refused by its name and its node's, at both levels.
// RUN: not sardonyx-opt %s -t kernel 2>&1 | filecheck %s
// RUN: not sardonyx-opt %s -t llvm-ir 2>&1 | filecheck %s

// CHECK-NOT:  kernel.plan
// CHECK:      node 'block1/spin': error: com.acme.Spin has no native form yet
// CHECK-NOT:  define
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = sx.opaque %x {domain = "com.acme", op_type = "Spin"} : (tensor<2xf32>) -> tensor<2xf32> loc("block1/spin")
  func.return %0 : tensor<2xf32>
}
