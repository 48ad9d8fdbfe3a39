// Out to ONNX and in again.
// RUN: sardonyx-opt %s -t onnx -o %t.onnx
// RUN: sardonyx-opt %t.onnx | filecheck %s
// RUN: sardonyx-opt %t.onnx -p remove-dead-nodes -t kernel | filecheck %s --check-prefix KERNEL

// CHECK: sx.opset = {{[0-9]+}} : i64
// CHECK: func.func @main(%x: tensor<?x4xf32, #sx.dims<batch, _>> {sx.name = "x"}) -> (tensor<?x4xf32, #sx.dims<batch, _>> {sx.name = "y"
// CHECK-NEXT: sx.tanh %x
// KERNEL: kernel.plan @
func.func @main(%x: tensor<?x4xf32, #sx.dims<batch, _>> {sx.name = "x"}) -> (tensor<?x4xf32, #sx.dims<batch, _>> {sx.name = "y"}) {
  %0 = sx.tanh %x : (tensor<?x4xf32, #sx.dims<batch, _>>) -> tensor<?x4xf32, #sx.dims<batch, _>>
  func.return %0 : tensor<?x4xf32, #sx.dims<batch, _>>
}
