// Stock xdsl-opt sees our dialects, and our passes under the prefix sx-. (Not in this process: the collector gives what
// it does not know to a shell.)
// RUN: xdsl-opt %s -p 'sx-compose-transposes,sx-remove-dead-nodes' | filecheck %s
// RUN: xdsl-opt %s | sardonyx-opt | filecheck %s --check-prefix SAME

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    sx.exp
// CHECK-NEXT:    func.return

// SAME:      sx.transpose
// SAME-NEXT: sx.exp
// SAME-NEXT: sx.transpose
func.func @main(%x: tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>> {
  %0 = sx.transpose %x {perm = array<i64: 1, 0>} : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<3x?xf32, #sx.dims<_, n>>
  %1 = sx.exp %0 : (tensor<3x?xf32, #sx.dims<_, n>>) -> tensor<3x?xf32, #sx.dims<_, n>>
  %2 = sx.transpose %1 {perm = array<i64: 1, 0>} : (tensor<3x?xf32, #sx.dims<_, n>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  func.return %2 : tensor<?x3xf32, #sx.dims<n, _>>
}
