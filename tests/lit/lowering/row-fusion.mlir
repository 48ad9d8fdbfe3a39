// A layer normalisation in primitives, what stands before it and what stands behind it are one kernel of three loops over
// each row, two rows side by side: the mean, the variance, the result. Values of a row are computed between them.
// RUN: sardonyx-opt %s -t kernel | filecheck %s

// CHECK:      kernel.func
// CHECK:        "kernel.loop"({{.*}}) <{step = 2 : i64, parallel}>
// The producer is computed once a loop, the sum goes over it.
// CHECK:          [[SUM:%.*]], {{%.*}} = "kernel.loop"({{.*}}) <{step = 1 : i64, vector, reductions = ["add", "add"]}>
// CHECK:            kernel.load
// CHECK:            kernel.load
// CHECK:            [[H:%.*]] = arith.addf
// CHECK:            arith.addf {{%.*}}, [[H]]
// CHECK:          [[MEAN:%.*]] = arith.divf [[SUM]],
// CHECK:          "kernel.loop"({{.*}}) <{step = 1 : i64, vector, reductions = ["add", "add"]}>
// CHECK:            arith.subf {{%.*}}, [[MEAN]]
// A power that is known is a product.
// CHECK-NEXT:       arith.mulf
// CHECK:          kernel.math "sqrt"
// What is divided by a root that the row shares is multiplied by its reciprocal.
// CHECK:          arith.divf
// CHECK:          "kernel.loop"({{.*}}) <{step = 1 : i64, vector}>
// CHECK-NOT:        arith.divf
// CHECK:            arith.mulf
// CHECK:            arith.select
// CHECK:            kernel.store
// CHECK-NOT:  kernel.func
// CHECK:      kernel.launch
// CHECK-NOT:  kernel.launch
func.func @main(%x: tensor<?x70xf32, #sx.dims<n, _>>, %r: tensor<?x70xf32, #sx.dims<n, _>>) -> tensor<?x70xf32, #sx.dims<n, _>> {
  %axes = sx.constant {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %two = sx.constant {value = dense<2.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %eps = sx.constant {value = dense<1.000000e-05> : tensor<f32>} : () -> tensor<f32>
  %h = sx.add %x, %r : (tensor<?x70xf32, #sx.dims<n, _>>, tensor<?x70xf32, #sx.dims<n, _>>) -> tensor<?x70xf32, #sx.dims<n, _>>
  %m = sx.reduce_mean %h, %axes : (tensor<?x70xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %d = sx.sub %h, %m : (tensor<?x70xf32, #sx.dims<n, _>>, tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x70xf32, #sx.dims<n, _>>
  %p = sx.pow %d, %two : (tensor<?x70xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x70xf32, #sx.dims<n, _>>
  %v = sx.reduce_mean %p, %axes : (tensor<?x70xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %e = sx.add %v, %eps : (tensor<?x1xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %s = sx.sqrt %e : (tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %q = sx.div %d, %s : (tensor<?x70xf32, #sx.dims<n, _>>, tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x70xf32, #sx.dims<n, _>>
  %y = sx.relu %q : (tensor<?x70xf32, #sx.dims<n, _>>) -> tensor<?x70xf32, #sx.dims<n, _>>
  func.return %y : tensor<?x70xf32, #sx.dims<n, _>>
}
