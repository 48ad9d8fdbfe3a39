// A branch is a region of the plan. It yields buffers as they are, and the extents that the branches do not share.
// RUN: sardonyx-opt %s -t kernel | filecheck %s

// CHECK:      kernel.plan @main {
// CHECK:        [[X:%.*]] = kernel.input 1
// CHECK:        [[GO:%.*]] = kernel.load %{{.*}}[%{{.*}}] : !kernel.buffer<i1> -> i1
// CHECK-NEXT:   [[Y:%.*]], [[A:%.*]], [[B:%.*]] = "kernel.if"([[GO]]) ({
// CHECK:          [[T:%.*]] = kernel.alloc[%{{.*}}, %{{.*}}] {slot = 0 : i64, offset = 0 : i64}
// CHECK-NEXT:     kernel.launch @transpose_{{.*}}([[X]], [[T]])
// CHECK-NEXT:     kernel.yield [[T]], %{{.*}}, %{{.*}} : !kernel.buffer<f32>, index, index
// CHECK-NEXT:   }, {
// CHECK-NOT:      kernel.launch
// CHECK:          kernel.yield [[X]], %{{.*}}, %{{.*}} : !kernel.buffer<f32>, index, index
// CHECK:        }) : (i1) -> (!kernel.buffer<f32>, index, index)
// CHECK:        [[OUT:%.*]] = kernel.output 0 : i64[[[A]], [[B]]]
// CHECK:        kernel.launch @neg_{{.*}}([[Y]], [[OUT]],
func.func @main(%c: tensor<i1>, %x: tensor<2x3xf32>) -> tensor<?x?xf32, #sx.dims<a, b>> {
  %0 = sx.if %c ({
    %1 = sx.transpose %x {perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
    sx.yield %1 : tensor<3x2xf32>
  }, {
    sx.yield %x : tensor<2x3xf32>
  }) : (tensor<i1>) -> tensor<?x?xf32, #sx.dims<a, b>>
  %2 = sx.neg %0 : (tensor<?x?xf32, #sx.dims<a, b>>) -> tensor<?x?xf32, #sx.dims<a, b>>
  func.return %2 : tensor<?x?xf32, #sx.dims<a, b>>
}
