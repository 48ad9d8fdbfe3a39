// RUN: sardonyx-opt %s -t kernel | filecheck %s

// A buffer is one more input, and what is written one more output; a cache is an input that native code writes to,
// and a vector of bytes whose extent is its length.
// CHECK-LABEL: kernel.func @append_0
// CHECK-NOT:   @transpose
// CHECK:       kernel.plan @main
// CHECK-NEXT:    %[[X:.*]] = kernel.input 0
// CHECK-NEXT:    %[[N:.*]] = kernel.input_dim 0 : i64, 0
// CHECK-NEXT:    %[[CACHE:.*]] = kernel.input 1 : i64 : !kernel.buffer<f32>
// CHECK-NEXT:    kernel.input 2 : i64 : !kernel.buffer<i8>
// CHECK-NEXT:    %[[PAST:.*]] = kernel.input_dim 2 : i64, 0
// CHECK-NEXT:    %[[SUM:.*]] = kernel.input 3
// CHECK:         kernel.require {{.*}}(%[[PAST]], %[[N]], %{{.*}})
// CHECK:         kernel.launch @append_0(%[[X]], %[[CACHE]]
// CHECK:         kernel.launch @matmul_1(%[[CACHE]], %{{.*}}
// CHECK:         kernel.output 1
// CHECK:         kernel.launch @add_2(%[[SUM]]
func.func @main(%x: tensor<?x4xf32, #sx.dims<n, _>> {sx.name = "x"}) -> (tensor<4x4xf32> {sx.name = "y"}) {
  %held = sx.state_read {state = "sum"} : () -> tensor<4x4xf32>
  %all = sx.cache_append %x, _, _ {state = "rows", axis = 0, rows = "past", capacity = 16} : (tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n + past, _>>
  %turned = sx.transpose %all {perm = array<i64: 1, 0>} : (tensor<?x4xf32, #sx.dims<n + past, _>>) -> tensor<4x?xf32, #sx.dims<_, n + past>>
  %y = sx.matmul %turned, %all : (tensor<4x?xf32, #sx.dims<_, n + past>>, tensor<?x4xf32, #sx.dims<n + past, _>>) -> tensor<4x4xf32>
  %sum = sx.add %held, %y : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  sx.state_write %sum {state = "sum"} : (tensor<4x4xf32>) -> ()
  func.return %y : tensor<4x4xf32>
}
