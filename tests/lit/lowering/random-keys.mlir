// A seed is a key that stands in the plan; without one every run asks the system for a key.
// RUN: sardonyx-opt %s -t kernel | filecheck %s

// CHECK:      kernel.plan @main {
// CHECK:        [[KEY:%.*]] = kernel.entropy
// CHECK-NOT:    kernel.entropy
// CHECK:        kernel.launch @random_uniform_{{[0-9]+}}({{.*}}[[KEY]]
func.func @main() -> (tensor<7xf32>, tensor<7xf32>) {
  %0 = sx.random_uniform {seed = 1.0 : f32, shape = array<i64: 7>} : () -> tensor<7xf32>
  %1 = sx.random_uniform {shape = array<i64: 7>} : () -> tensor<7xf32>
  func.return %0, %1 : tensor<7xf32>, tensor<7xf32>
}
