// Transposes, reshapes and slices between elementwise ops are index maps of one kernel's loads.
// RUN: sardonyx-opt %s -t kernel | filecheck %s

// Heads are split off, scaled, and put in front of the positions: rows of 16 elements, which are read 80 apart.
// CHECK:      kernel.func @mul_0 {
// CHECK:        [[X:%.*]] = kernel.load {{%.*}}[{{%.*}}] : !kernel.buffer<f32> -> f32
// CHECK:        kernel.math "exp"
// CHECK:        kernel.store
// CHECK-NOT:    kernel.load
// A transpose that would be read across the lanes stays a kernel of its own, and so does what stands before it.
// CHECK:      kernel.func @exp_{{[0-9]+}} {
// CHECK:      kernel.func @transpose_{{[0-9]+}} {
// CHECK:        "kernel.turn"
// CHECK:      kernel.func @neg_{{[0-9]+}} {
// Two that undo each other vanish.
// CHECK:      kernel.func @tanh_{{[0-9]+}} {
// CHECK:        "kernel.loop"
// CHECK-NOT:    "kernel.loop"
// A slice reads from its first place on.
// CHECK:      kernel.func @relu_{{[0-9]+}} {
// CHECK:        arith.constant 27 : index
// CHECK-NOT:  kernel.func
// CHECK:      kernel.plan
func.func @main(%x: tensor<2x6x80xf32>, %m: tensor<40x24xf32>) -> (tensor<2x5x6x16xf32>, tensor<24x40xf32>, tensor<40x24xf32>, tensor<30x21xf32>) {
  %shape = sx.constant {value = dense<[2, 6, 5, 16]> : tensor<4xi64>} : () -> tensor<4xi64>
  %half = sx.constant {value = dense<5.000000e-01> : tensor<f32>} : () -> tensor<f32>
  %e = sx.exp %x : (tensor<2x6x80xf32>) -> tensor<2x6x80xf32>
  %r = sx.reshape %e, %shape : (tensor<2x6x80xf32>, tensor<4xi64>) -> tensor<2x6x5x16xf32>
  %t = sx.transpose %r {perm = array<i64: 0, 2, 1, 3>} : (tensor<2x6x5x16xf32>) -> tensor<2x5x6x16xf32>
  %y = sx.mul %t, %half : (tensor<2x5x6x16xf32>, tensor<f32>) -> tensor<2x5x6x16xf32>
  %f = sx.exp %m : (tensor<40x24xf32>) -> tensor<40x24xf32>
  %g = sx.transpose %f {perm = array<i64: 1, 0>} : (tensor<40x24xf32>) -> tensor<24x40xf32>
  %z = sx.neg %g : (tensor<24x40xf32>) -> tensor<24x40xf32>
  %a = sx.transpose %m {perm = array<i64: 1, 0>} : (tensor<40x24xf32>) -> tensor<24x40xf32>
  %b = sx.abs %a : (tensor<24x40xf32>) -> tensor<24x40xf32>
  %c = sx.transpose %b {perm = array<i64: 1, 0>} : (tensor<24x40xf32>) -> tensor<40x24xf32>
  %w = sx.tanh %c : (tensor<40x24xf32>) -> tensor<40x24xf32>
  %starts = sx.constant {value = dense<[1, 3]> : tensor<2xi64>} : () -> tensor<2xi64>
  %ends = sx.constant {value = dense<[31, 24]> : tensor<2xi64>} : () -> tensor<2xi64>
  %s = sx.slice %m, %starts, %ends : (tensor<40x24xf32>, tensor<2xi64>, tensor<2xi64>) -> tensor<30x21xf32>
  %v = sx.relu %s : (tensor<30x21xf32>) -> tensor<30x21xf32>
  func.return %y, %z, %w, %v : tensor<2x5x6x16xf32>, tensor<24x40xf32>, tensor<40x24xf32>, tensor<30x21xf32>
}
