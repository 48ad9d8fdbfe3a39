// RUN: sardonyx-opt %s -p infer-types | filecheck %s

// The cases of `infer-types`, by their numbers in its docstring.

// Case 1: static extents and named dims reach all users; case 3: the function's type follows.
func.func @refined(%x: tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<*xf32> {
  %0 = sx.relu %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x?xf32>
  %1 = sx.add %0, %x : (tensor<?x?xf32>, tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<*xf32>
  func.return %1 : tensor<*xf32>
}
// CHECK-LABEL: func.func @refined(%x: tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>> {
// CHECK-NEXT: %0 = sx.relu %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %1 = sx.add %0, %x : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: func.return %1 : tensor<?x3xf32, #sx.dims<n, _>>

// Case 1: through shapes that are computed.
func.func @computed(%x: tensor<?x3x5xf32, #sx.dims<n, _, _>>) -> tensor<?x?xf32> {
  %0 = sx.relu %x : (tensor<?x3x5xf32, #sx.dims<n, _, _>>) -> tensor<?x?x?xf32>
  %1 = sx.shape %0 {end = 1 : i64} : (tensor<?x?x?xf32>) -> tensor<1xi64>
  %2 = sx.constant {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %3 = sx.concat %1, %2 {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %4 = sx.reshape %0, %3 : (tensor<?x?x?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  func.return %4 : tensor<?x?xf32>
}
// CHECK-LABEL: func.func @computed(
// CHECK: sx.reshape {{.*}} -> tensor<?x15xf32, #sx.dims<n, _>>

// Case 2: what is stated and not known stays.
func.func @stated(%x: tensor<?xf32, #sx.dims<n>>, %s: tensor<2xi64>) -> tensor<?x4xf32, #sx.dims<m, _>> {
  %0 = sx.reshape %x, %s : (tensor<?xf32, #sx.dims<n>>, tensor<2xi64>) -> tensor<?x4xf32, #sx.dims<m, _>>
  func.return %0 : tensor<?x4xf32, #sx.dims<m, _>>
}
// CHECK-LABEL: func.func @stated(
// CHECK-NEXT: %0 = sx.reshape %x, %s : (tensor<?xf32, #sx.dims<n>>, tensor<2xi64>) -> tensor<?x4xf32, #sx.dims<m, _>>
