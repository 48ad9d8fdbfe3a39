// Extents of results are computed by the plan from those of the inputs; an input's dim 2*n is solved for n.
// RUN: sardonyx-opt %s -t kernel | filecheck %s

// CHECK:      kernel.plan @main {
// CHECK:        [[TWICE:%.*]] = kernel.input_dim 0 : i64, 0 : i64
// CHECK:        [[M:%.*]] = kernel.input_dim 1 : i64, 0 : i64
// CHECK:        [[TWO:%.*]] = arith.constant 2 : index
// CHECK-NEXT:   [[N:%.*]] = kernel.math "floordiv"([[TWICE]], [[TWO]])
// CHECK-NEXT:   [[AGAIN:%.*]] = kernel.mul_saturating [[TWO]], [[N]]
// CHECK-NEXT:   [[EVEN:%.*]] = arith.cmpi eq, [[TWICE]], [[AGAIN]]
// CHECK-NEXT:   kernel.require [[EVEN]],
// CHECK:        [[SUM:%.*]] = arith.addi [[M]],
// CHECK-NEXT:   kernel.output 0 : i64[[[SUM]]]
func.func @main(%x: tensor<?xf32, #sx.dims<2*n>>, %y: tensor<?xf32, #sx.dims<m>>) -> tensor<?xf32, #sx.dims<m + 2*n>> {
  %0 = sx.concat %x, %y {axis = 0 : i64} : (tensor<?xf32, #sx.dims<2*n>>, tensor<?xf32, #sx.dims<m>>) -> tensor<?xf32, #sx.dims<m + 2*n>>
  func.return %0 : tensor<?xf32, #sx.dims<m + 2*n>>
}
