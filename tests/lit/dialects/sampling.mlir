// RUN: sardonyx-opt %s | filecheck %s
// RUN: sardonyx-opt --generic %s | sardonyx-opt - | filecheck %s

// Ops that sample, choose and place elements. Extents follow from known scales, sizes and counts; what depends on data
// has a symbol of its own, which results share.

func.func @extents(%x: tensor<?x3x?x8xf32, #sx.dims<b, _, h, _>>, %k: tensor<1xi64>) -> tensor<?x3x?x8xf32, #sx.dims<b, _, h, _>> {
  %scales = sx.constant {value = dense<[2.0, 0.5]> : tensor<2xf32>} : () -> tensor<2xf32>
  %zero = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %one = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %last = sx.constant {value = dense<3> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = sx.resize %x, _, %scales {axes = array<i64: 2, 3>, mode = "linear"} : (tensor<?x3x?x8xf32, #sx.dims<b, _, h, _>>, tensor<2xf32>) -> tensor<?x3x?x4xf32, #sx.dims<b, _, 2*h, _>>
  %1, %2 = sx.top_k %x, %k {axis = 1 : i64} : (tensor<?x3x?x8xf32, #sx.dims<b, _, h, _>>, tensor<1xi64>) -> (tensor<?x?x?x8xf32, #sx.dims<b, k, h, _>>, tensor<?x?x?x8xi64, #sx.dims<b, k, h, _>>)
  %3, %4, %5, %6 = sx.unique %x {axis = 0 : i64} : (tensor<?x3x?x8xf32, #sx.dims<b, _, h, _>>) -> (tensor<?x3x?x8xf32, #sx.dims<u, _, h, _>>, tensor<?xi64, #sx.dims<u>>, tensor<?xi64, #sx.dims<b>>, tensor<?xi64, #sx.dims<u>>)
  %7 = sx.einsum %x, %x {equation = "bchw,bdhw->bcd"} : (tensor<?x3x?x8xf32, #sx.dims<b, _, h, _>>, tensor<?x3x?x8xf32, #sx.dims<b, _, h, _>>) -> tensor<?x3x3xf32, #sx.dims<b, _, _>>
  %half = sx.slice %x, %zero, %one, %last : (tensor<?x3x?x8xf32, #sx.dims<b, _, h, _>>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x3x?x1xf32, #sx.dims<b, _, h, _>>
  %8 = sx.dft %half {onesided = true} : (tensor<?x3x?x1xf32, #sx.dims<b, _, h, _>>) -> tensor<?x3x?x2xf32, #sx.dims<b, _, h floordiv 2 + 1, _>>
  func.return %x : tensor<?x3x?x8xf32, #sx.dims<b, _, h, _>>
}
// CHECK-LABEL: func.func @extents(
// CHECK: %0 = sx.resize %x, _, %scales {axes = array<i64: 2, 3>, mode = "linear"} : ({{.*}}) -> tensor<?x3x?x4xf32, #sx.dims<b, _, 2*h, _>>
// CHECK-NEXT: %1, %2 = sx.top_k %x, %k {axis = 1 : i64} : ({{.*}}) -> (tensor<?x?x?x8xf32, #sx.dims<b, k, h, _>>, tensor<?x?x?x8xi64, #sx.dims<b, k, h, _>>)
// CHECK-NEXT: %3, %4, %5, %6 = sx.unique %x {axis = 0 : i64} : ({{.*}}) -> (tensor<?x3x?x8xf32, #sx.dims<u, _, h, _>>, tensor<?xi64, #sx.dims<u>>, tensor<?xi64, #sx.dims<b>>, tensor<?xi64, #sx.dims<u>>)
// CHECK-NEXT: %7 = sx.einsum %x, %x {equation = "bchw,bdhw->bcd"} : ({{.*}}) -> tensor<?x3x3xf32, #sx.dims<b, _, _>>
// CHECK: %8 = sx.dft %half {onesided = true} : (tensor<?x3x?x1xf32, #sx.dims<b, _, h, _>>) -> tensor<?x3x?x2xf32, #sx.dims<b, _, h floordiv 2 + 1, _>>

func.func @drawn() -> tensor<2x3xf32> {
  %0 = sx.random_uniform {shape = array<i64: 2, 3>, seed = 5.000000e-01 : f64} : () -> tensor<2x3xf32>
  %1 = sx.random_normal_like %0 {dtype = f16, mean = 1.000000e+00 : f64} : (tensor<2x3xf32>) -> tensor<2x3xf16>
  %2, %3 = sx.dropout %0 {seed = 7 : i64} : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xi1>)
  func.return %2 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @drawn(
// CHECK-NEXT: %0 = sx.random_uniform {shape = array<i64: 2, 3>, seed = 5.000000e-01 : f64} : () -> tensor<2x3xf32>
// CHECK-NEXT: %1 = sx.random_normal_like %0 {dtype = f16, mean = 1.000000e+00 : f64} : (tensor<2x3xf32>) -> tensor<2x3xf16>
// CHECK-NEXT: %2, %3 = sx.dropout %0 {seed = 7 : i64} : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xi1>)
