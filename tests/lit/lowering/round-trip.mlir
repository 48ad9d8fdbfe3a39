// The kernel level is text too: what is printed is read back and says the same.
// RUN: sardonyx-opt %s -t kernel -o %t.mlir
// RUN: sardonyx-opt %t.mlir -o %t.again.mlir
// RUN: cmp %t.mlir %t.again.mlir
func.func @main(%x: tensor<?x64xf32, #sx.dims<n, _>>) -> tensor<?x64xf32, #sx.dims<n, _>> {
  %0 = sx.softmax %x : (tensor<?x64xf32, #sx.dims<n, _>>) -> tensor<?x64xf32, #sx.dims<n, _>>
  func.return %0 : tensor<?x64xf32, #sx.dims<n, _>>
}
