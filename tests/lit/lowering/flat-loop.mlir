// Operands of equal shape are one axis, whatever the rank: the plan multiplies the extents, the kernel sees the product.
// RUN: sardonyx-opt %s -t kernel | filecheck %s

// CHECK:      kernel.func @[[K:add_[0-9]+]] {
// CHECK-NEXT: ^bb0([[X:%.*]]: !kernel.buffer<f32>, [[Y:%.*]]: !kernel.buffer<f32>, [[SUM:%.*]]: !kernel.buffer<f32>, [[TOTAL:%.*]]: index):
// CHECK:        "kernel.loop"({{%.*}}, [[TOTAL]]) <{step = 1 : i64, vector, parallel}> ({
// CHECK-NEXT:   ^bb0([[I:%.*]]: index):
// CHECK-NEXT:     kernel.load [[X]][[[I]]]
// CHECK-NEXT:     kernel.load [[Y]][[[I]]]
// CHECK-NEXT:     [[S:%.*]] = arith.addf
// CHECK-NEXT:     kernel.store [[S]], [[SUM]][[[I]]]
// CHECK-NOT:    "kernel.loop"

// Each dim that both inputs name is compared on its own: [2,6] and [3,4] have equal products.
// CHECK:      kernel.plan @main {
// CHECK:        [[N:%.*]] = kernel.input_dim 0 : i64, 0 : i64
// CHECK:        [[M:%.*]] = kernel.input_dim 0 : i64, 1 : i64
// CHECK:        [[N1:%.*]] = kernel.input_dim 1 : i64, 0 : i64
// CHECK:        [[M1:%.*]] = kernel.input_dim 1 : i64, 1 : i64
// CHECK:        [[SAME_N:%.*]] = arith.cmpi eq, [[N1]], [[N]]
// CHECK-NEXT:   kernel.require [[SAME_N]], {{[0-9]+}} : i64([[N1]], [[N]])
// CHECK:        [[SAME_M:%.*]] = arith.cmpi eq, [[M1]], [[M]]
// CHECK-NEXT:   kernel.require [[SAME_M]], {{[0-9]+}} : i64([[M1]], [[M]])
// CHECK:        [[ALL:%.*]] = kernel.mul_saturating [[N]], [[M]]
// CHECK:        kernel.launch @[[K]]({{%.*}}, {{%.*}}, {{%.*}}, [[ALL]])
func.func @main(%x: tensor<?x?xf32, #sx.dims<n, m>>, %y: tensor<?x?xf32, #sx.dims<n, m>>) -> tensor<?x?xf32, #sx.dims<n, m>> {
  %0 = sx.add %x, %y : (tensor<?x?xf32, #sx.dims<n, m>>, tensor<?x?xf32, #sx.dims<n, m>>) -> tensor<?x?xf32, #sx.dims<n, m>>
  func.return %0 : tensor<?x?xf32, #sx.dims<n, m>>
}
