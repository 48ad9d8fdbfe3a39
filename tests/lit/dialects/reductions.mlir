// RUN: sardonyx-opt %s | filecheck %s
// RUN: sardonyx-opt --generic %s | sardonyx-opt - | filecheck %s

// The syntax of reductions, arg-reductions, the softmax family and cumsum.

func.func @all_axes(%x: tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<1x1x1xf32> {
  %0 = sx.reduce_sum %x : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<1x1x1xf32>
  %1 = sx.reduce_mean %x : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<1x1x1xf32>
  %2 = sx.reduce_max %x : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<1x1x1xf32>
  %3 = sx.reduce_min %x : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<1x1x1xf32>
  %4 = sx.reduce_prod %x : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<1x1x1xf32>
  %5 = sx.reduce_l1 %x : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<1x1x1xf32>
  %6 = sx.reduce_l2 %x : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<1x1x1xf32>
  %7 = sx.reduce_log_sum %x : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<1x1x1xf32>
  %8 = sx.reduce_log_sum_exp %x : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<1x1x1xf32>
  %9 = sx.reduce_sum_square %x : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<1x1x1xf32>
  func.return %9 : tensor<1x1x1xf32>
}
// CHECK-LABEL: func.func @all_axes(
// CHECK-NEXT: %0 = sx.reduce_sum %x : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<1x1x1xf32>
// CHECK-NEXT: %1 = sx.reduce_mean %x : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<1x1x1xf32>
// CHECK-NEXT: %2 = sx.reduce_max %x : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<1x1x1xf32>
// CHECK-NEXT: %3 = sx.reduce_min %x : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<1x1x1xf32>
// CHECK-NEXT: %4 = sx.reduce_prod %x : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<1x1x1xf32>
// CHECK-NEXT: %5 = sx.reduce_l1 %x : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<1x1x1xf32>
// CHECK-NEXT: %6 = sx.reduce_l2 %x : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<1x1x1xf32>
// CHECK-NEXT: %7 = sx.reduce_log_sum %x : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<1x1x1xf32>
// CHECK-NEXT: %8 = sx.reduce_log_sum_exp %x : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<1x1x1xf32>
// CHECK-NEXT: %9 = sx.reduce_sum_square %x : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<1x1x1xf32>
// CHECK-NEXT: func.return %9 : tensor<1x1x1xf32>
// CHECK-NEXT: }

func.func @known_axes(%x: tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<?x3x4xf32, #sx.dims<n, _, _>> {
  %0 = sx.constant {value = dense<[-1, 0]> : tensor<2xi64>} : () -> tensor<2xi64>
  %1 = sx.reduce_sum %x, %0 : (tensor<?x3x4xf32, #sx.dims<n, _, _>>, tensor<2xi64>) -> tensor<1x3x1xf32>
  %2 = sx.reduce_max %x, %0 {keepdims = false} : (tensor<?x3x4xf32, #sx.dims<n, _, _>>, tensor<2xi64>) -> tensor<3xf32>
  %3 = sx.reduce_min %x {noop_with_empty_axes = true} : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<?x3x4xf32, #sx.dims<n, _, _>>
  func.return %3 : tensor<?x3x4xf32, #sx.dims<n, _, _>>
}
// CHECK-LABEL: func.func @known_axes(
// CHECK-NEXT: %0 = sx.constant {value = dense<[-1, 0]> : tensor<2xi64>} : () -> tensor<2xi64>
// CHECK-NEXT: %1 = sx.reduce_sum %x, %0 : (tensor<?x3x4xf32, #sx.dims<n, _, _>>, tensor<2xi64>) -> tensor<1x3x1xf32>
// CHECK-NEXT: %2 = sx.reduce_max %x, %0 {keepdims = false} : (tensor<?x3x4xf32, #sx.dims<n, _, _>>, tensor<2xi64>) -> tensor<3xf32>
// CHECK-NEXT: %3 = sx.reduce_min %x {noop_with_empty_axes = true} : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<?x3x4xf32, #sx.dims<n, _, _>>
// CHECK-NEXT: func.return %3 : tensor<?x3x4xf32, #sx.dims<n, _, _>>
// CHECK-NEXT: }

func.func @axes_of_the_run(%x: tensor<?x3x4xf32, #sx.dims<n, _, _>>, %one: tensor<1xi64>, %some: tensor<?xi64, #sx.dims<k>>) -> tensor<*xf32> {
  %0 = sx.reduce_sum %x, %one {keepdims = false} : (tensor<?x3x4xf32, #sx.dims<n, _, _>>, tensor<1xi64>) -> tensor<?x?xf32, #sx.dims<a, b>>
  %1 = sx.reduce_sum %x, %some {keepdims = false} : (tensor<?x3x4xf32, #sx.dims<n, _, _>>, tensor<?xi64, #sx.dims<k>>) -> tensor<*xf32>
  func.return %1 : tensor<*xf32>
}
// CHECK-LABEL: func.func @axes_of_the_run(
// CHECK-NEXT: %0 = sx.reduce_sum %x, %one {keepdims = false} : (tensor<?x3x4xf32, #sx.dims<n, _, _>>, tensor<1xi64>) -> tensor<?x?xf32, #sx.dims<a, b>>
// CHECK-NEXT: %1 = sx.reduce_sum %x, %some {keepdims = false} : (tensor<?x3x4xf32, #sx.dims<n, _, _>>, tensor<?xi64, #sx.dims<k>>) -> tensor<*xf32>
// CHECK-NEXT: func.return %1 : tensor<*xf32>
// CHECK-NEXT: }

func.func @arg(%x: tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<?x3xi64, #sx.dims<n, _>> {
  %0 = sx.arg_max %x : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<1x3x4xi64>
  %1 = sx.arg_min %x {axis = -1 : i64, keepdims = false, select_last_index = true} : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<?x3xi64, #sx.dims<n, _>>
  func.return %1 : tensor<?x3xi64, #sx.dims<n, _>>
}
// CHECK-LABEL: func.func @arg(
// CHECK-NEXT: %0 = sx.arg_max %x : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<1x3x4xi64>
// CHECK-NEXT: %1 = sx.arg_min %x {axis = -1 : i64, keepdims = false, select_last_index = true} : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<?x3xi64, #sx.dims<n, _>>
// CHECK-NEXT: func.return %1 : tensor<?x3xi64, #sx.dims<n, _>>
// CHECK-NEXT: }

func.func @softmax(%x: tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<?x3x4xf32, #sx.dims<n, _, _>> {
  %0 = sx.softmax %x : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<?x3x4xf32, #sx.dims<n, _, _>>
  %1 = sx.log_softmax %x {axis = 0 : i64} : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<?x3x4xf32, #sx.dims<n, _, _>>
  %2 = sx.hardmax %x {axis = 1 : i64} : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<?x3x4xf32, #sx.dims<n, _, _>>
  func.return %2 : tensor<?x3x4xf32, #sx.dims<n, _, _>>
}
// CHECK-LABEL: func.func @softmax(
// CHECK-NEXT: %0 = sx.softmax %x : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<?x3x4xf32, #sx.dims<n, _, _>>
// CHECK-NEXT: %1 = sx.log_softmax %x {axis = 0 : i64} : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<?x3x4xf32, #sx.dims<n, _, _>>
// CHECK-NEXT: %2 = sx.hardmax %x {axis = 1 : i64} : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<?x3x4xf32, #sx.dims<n, _, _>>
// CHECK-NEXT: func.return %2 : tensor<?x3x4xf32, #sx.dims<n, _, _>>
// CHECK-NEXT: }

func.func @cumsum(%x: tensor<?x3x4xf32, #sx.dims<n, _, _>>, %axis: tensor<i64>) -> tensor<?x3x4xf32, #sx.dims<n, _, _>> {
  %0 = sx.cumsum %x, %axis : (tensor<?x3x4xf32, #sx.dims<n, _, _>>, tensor<i64>) -> tensor<?x3x4xf32, #sx.dims<n, _, _>>
  %1 = sx.cumsum %x, %axis {exclusive = true, reverse = true} : (tensor<?x3x4xf32, #sx.dims<n, _, _>>, tensor<i64>) -> tensor<?x3x4xf32, #sx.dims<n, _, _>>
  func.return %1 : tensor<?x3x4xf32, #sx.dims<n, _, _>>
}
// CHECK-LABEL: func.func @cumsum(
// CHECK-NEXT: %0 = sx.cumsum %x, %axis : (tensor<?x3x4xf32, #sx.dims<n, _, _>>, tensor<i64>) -> tensor<?x3x4xf32, #sx.dims<n, _, _>>
// CHECK-NEXT: %1 = sx.cumsum %x, %axis {exclusive = true, reverse = true} : (tensor<?x3x4xf32, #sx.dims<n, _, _>>, tensor<i64>) -> tensor<?x3x4xf32, #sx.dims<n, _, _>>
// CHECK-NEXT: func.return %1 : tensor<?x3x4xf32, #sx.dims<n, _, _>>
// CHECK-NEXT: }
