// RUN: sardonyx-opt %s -p join-slices --check-passes=5 | filecheck %s
// RUN: sardonyx-opt %s -p join-slices,join-slices --statistics 2>&1 >/dev/null | filecheck %s --check-prefix TWICE

// TWICE: join-slices
// TWICE: join-slices (no change)

// Three gates, cut out in any order, the last bound beyond the end, one from behind (case 1); others may read the whole.
func.func @gates(%x: tensor<?x7xf32, #sx.dims<n, _>>) -> (tensor<?x2xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x1xf32, #sx.dims<n, _>>, tensor<?x7xf32, #sx.dims<n, _>>) {
  %0 = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %2 = sx.constant {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %6 = sx.constant {value = dense<6> : tensor<1xi64>} : () -> tensor<1xi64>
  %end = sx.constant {value = dense<9223372036854775807> : tensor<1xi64>} : () -> tensor<1xi64>
  %behind = sx.constant {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %axis = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %a = sx.slice %x, %behind, %end, %axis : (tensor<?x7xf32, #sx.dims<n, _>>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %b = sx.slice %x, %0, %2, %axis : (tensor<?x7xf32, #sx.dims<n, _>>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2xf32, #sx.dims<n, _>>
  %c = sx.slice %x, %2, %6, %behind : (tensor<?x7xf32, #sx.dims<n, _>>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %d = sx.neg %x : (tensor<?x7xf32, #sx.dims<n, _>>) -> tensor<?x7xf32, #sx.dims<n, _>>
  func.return %b, %c, %a, %d : tensor<?x2xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x1xf32, #sx.dims<n, _>>, tensor<?x7xf32, #sx.dims<n, _>>
}
// CHECK-LABEL: func.func @gates(
// CHECK-NOT:     sx.slice
// CHECK:         %[[SIZES:.*]] = sx.constant {value = dense<[2, 4, 1]> : tensor<3xi64>}
// CHECK-NEXT:    %[[A:.*]], %[[B:.*]], %[[C:.*]] = sx.split %x, %[[SIZES]] {axis = 1 : i64}
// CHECK:         func.return %[[A]], %[[B]], %[[C]],

// A part is missing; two overlap; one is along another axis, too; the extent is a symbol (case 2).
func.func @others(%x: tensor<4x6xf32>, %y: tensor<?xf32, #sx.dims<n>>) -> (tensor<2x6xf32>, tensor<1x6xf32>, tensor<4x4xf32>, tensor<4x3xf32>, tensor<?xf32, #sx.dims<"min(2, n)">>, tensor<?xf32, #sx.dims<"max(0, n - 2)">>) {
  %0 = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %2 = sx.constant {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %3 = sx.constant {value = dense<3> : tensor<1xi64>} : () -> tensor<1xi64>
  %4 = sx.constant {value = dense<4> : tensor<1xi64>} : () -> tensor<1xi64>
  %9 = sx.constant {value = dense<9> : tensor<1xi64>} : () -> tensor<1xi64>
  %a = sx.slice %x, %0, %2, %0 : (tensor<4x6xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2x6xf32>
  %b = sx.slice %x, %3, %4, %0 : (tensor<4x6xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<1x6xf32>
  %c = sx.slice %x, %0, %4, %1 : (tensor<4x6xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<4x4xf32>
  %d = sx.slice %x, %3, %9, %1 : (tensor<4x6xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<4x3xf32>
  %e = sx.slice %y, %0, %2, %0 : (tensor<?xf32, #sx.dims<n>>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32, #sx.dims<"min(2, n)">>
  %f = sx.slice %y, %2, %9, %0 : (tensor<?xf32, #sx.dims<n>>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32, #sx.dims<"max(0, n - 2)">>
  func.return %a, %b, %c, %d, %e, %f : tensor<2x6xf32>, tensor<1x6xf32>, tensor<4x4xf32>, tensor<4x3xf32>, tensor<?xf32, #sx.dims<"min(2, n)">>, tensor<?xf32, #sx.dims<"max(0, n - 2)">>
}
// CHECK-LABEL: func.func @others(
// CHECK-NOT:     sx.split
// CHECK-COUNT-6: sx.slice
