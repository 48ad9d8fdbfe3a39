// A chain of elementwise ops is one kernel, whose axes are merged into one; nothing is stored in between.
// RUN: sardonyx-opt %s -t kernel | filecheck %s

// CHECK:      kernel.func
// CHECK:        "kernel.loop"
// CHECK-SAME:   vector, parallel
// CHECK:        kernel.load
// CHECK-NEXT:   kernel.load
// CHECK-NEXT:   kernel.math "exp"
// CHECK-NEXT:   arith.mulf
// CHECK:        arith.cmpf
// CHECK:        arith.select
// CHECK-NEXT:   kernel.store
// CHECK-NOT:  kernel.func
// CHECK-NOT:  kernel.store

// Both inputs name n: that they agree is checked before anything runs.
// CHECK:      kernel.plan @main {
// CHECK:        [[A:%.*]] = kernel.input_dim 0 : i64, 0 : i64
// CHECK:        [[B:%.*]] = kernel.input_dim 1 : i64, 0 : i64
// CHECK-NEXT:   [[SAME:%.*]] = arith.cmpi eq, [[B]], [[A]]
// CHECK-NEXT:   kernel.require [[SAME]],
// CHECK-NOT:    kernel.alloc
// CHECK:        kernel.launch
// CHECK-NOT:    kernel.launch
func.func @main(%x: tensor<?x8xf32, #sx.dims<n, _>>, %y: tensor<?x8xf32, #sx.dims<n, _>>) -> tensor<?x8xf32, #sx.dims<n, _>> {
  %0 = sx.exp %x : (tensor<?x8xf32, #sx.dims<n, _>>) -> tensor<?x8xf32, #sx.dims<n, _>>
  %1 = sx.mul %0, %y : (tensor<?x8xf32, #sx.dims<n, _>>, tensor<?x8xf32, #sx.dims<n, _>>) -> tensor<?x8xf32, #sx.dims<n, _>>
  %2 = sx.relu %1 : (tensor<?x8xf32, #sx.dims<n, _>>) -> tensor<?x8xf32, #sx.dims<n, _>>
  func.return %2 : tensor<?x8xf32, #sx.dims<n, _>>
}
