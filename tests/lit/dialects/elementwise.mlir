// RUN: sardonyx-opt %s | filecheck %s
// RUN: sardonyx-opt --generic %s | sardonyx-opt - | filecheck %s

// The syntax of elementwise ops: custom and generic form are the same op.

func.func @unary(%x: tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>> {
  %0 = sx.identity %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %1 = sx.abs %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %2 = sx.neg %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %3 = sx.sign %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %4 = sx.ceil %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %5 = sx.floor %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %6 = sx.round %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %7 = sx.sqrt %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %8 = sx.exp %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %9 = sx.log %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %10 = sx.reciprocal %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %11 = sx.sin %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %12 = sx.cos %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %13 = sx.tan %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %14 = sx.asin %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %15 = sx.acos %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %16 = sx.atan %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %17 = sx.sinh %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %18 = sx.cosh %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %19 = sx.asinh %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %20 = sx.acosh %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %21 = sx.atanh %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %22 = sx.erf %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  func.return %22 : tensor<?x3xf32, #sx.dims<n, _>>
}
// CHECK-LABEL: func.func @unary(
// CHECK-NEXT: %0 = sx.identity %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %1 = sx.abs %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %2 = sx.neg %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %3 = sx.sign %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %4 = sx.ceil %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %5 = sx.floor %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %6 = sx.round %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %7 = sx.sqrt %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %8 = sx.exp %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %9 = sx.log %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %10 = sx.reciprocal %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %11 = sx.sin %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %12 = sx.cos %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %13 = sx.tan %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %14 = sx.asin %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %15 = sx.acos %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %16 = sx.atan %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %17 = sx.sinh %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %18 = sx.cosh %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %19 = sx.asinh %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %20 = sx.acosh %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %21 = sx.atanh %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %22 = sx.erf %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: func.return %22 : tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: }

func.func @tests_of_floats(%x: tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xi1, #sx.dims<n, _>> {
  %0 = sx.is_nan %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xi1, #sx.dims<n, _>>
  %1 = sx.is_inf %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xi1, #sx.dims<n, _>>
  %2 = sx.is_inf %x {detect_negative = false} : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xi1, #sx.dims<n, _>>
  %3 = sx.not %2 : (tensor<?x3xi1, #sx.dims<n, _>>) -> tensor<?x3xi1, #sx.dims<n, _>>
  func.return %3 : tensor<?x3xi1, #sx.dims<n, _>>
}
// CHECK-LABEL: func.func @tests_of_floats(
// CHECK-NEXT: %0 = sx.is_nan %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xi1, #sx.dims<n, _>>
// CHECK-NEXT: %1 = sx.is_inf %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xi1, #sx.dims<n, _>>
// CHECK-NEXT: %2 = sx.is_inf %x {detect_negative = false} : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xi1, #sx.dims<n, _>>
// CHECK-NEXT: %3 = sx.not %2 : (tensor<?x3xi1, #sx.dims<n, _>>) -> tensor<?x3xi1, #sx.dims<n, _>>
// CHECK-NEXT: func.return %3 : tensor<?x3xi1, #sx.dims<n, _>>
// CHECK-NEXT: }

func.func @activations(%x: tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>> {
  %0 = sx.relu %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %1 = sx.leaky_relu %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %2 = sx.elu %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %3 = sx.selu %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %4 = sx.celu %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %5 = sx.sigmoid %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %6 = sx.hard_sigmoid %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %7 = sx.hard_swish %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %8 = sx.tanh %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %9 = sx.softplus %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %10 = sx.softsign %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %11 = sx.gelu %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %12 = sx.mish %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %13 = sx.swish %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %14 = sx.thresholded_relu %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %15 = sx.shrink %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  func.return %15 : tensor<?x3xf32, #sx.dims<n, _>>
}
// CHECK-LABEL: func.func @activations(
// CHECK-NEXT: %0 = sx.relu %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %1 = sx.leaky_relu %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %2 = sx.elu %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %3 = sx.selu %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %4 = sx.celu %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %5 = sx.sigmoid %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %6 = sx.hard_sigmoid %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %7 = sx.hard_swish %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %8 = sx.tanh %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %9 = sx.softplus %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %10 = sx.softsign %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %11 = sx.gelu %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %12 = sx.mish %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %13 = sx.swish %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %14 = sx.thresholded_relu %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %15 = sx.shrink %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: func.return %15 : tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: }

func.func @activations_with_attributes(%x: tensor<?x3xf32, #sx.dims<n, _>>, %slope: tensor<3xf32>) -> tensor<?x3xf32, #sx.dims<n, _>> {
  %0 = sx.leaky_relu %x {alpha = 2.500000e-01 : f64} : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %1 = sx.selu %x {alpha = 1.500000e+00 : f64, gamma = 2.000000e+00 : f64} : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %2 = sx.gelu %x {approximate = "tanh"} : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %3 = sx.shrink %x {lambd = 1.000000e+00 : f64, bias = 5.000000e-01 : f64} : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %4 = sx.prelu %x, %slope : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xf32, #sx.dims<n, _>>
  func.return %4 : tensor<?x3xf32, #sx.dims<n, _>>
}
// CHECK-LABEL: func.func @activations_with_attributes(
// CHECK-NEXT: %0 = sx.leaky_relu %x {alpha = 2.500000e-01 : f64} : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %1 = sx.selu %x {alpha = 1.500000e+00 : f64, gamma = 2.000000e+00 : f64} : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %2 = sx.gelu %x {approximate = "tanh"} : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %3 = sx.shrink %x {lambd = 1.000000e+00 : f64, bias = 5.000000e-01 : f64} : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %4 = sx.prelu %x, %slope : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: func.return %4 : tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: }

func.func @binary(%x: tensor<?x3xf32, #sx.dims<n, _>>, %y: tensor<3xf32>) -> tensor<?x3xf32, #sx.dims<n, _>> {
  %0 = sx.add %x, %y : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %1 = sx.sub %x, %y : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %2 = sx.mul %x, %y : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %3 = sx.div %x, %y : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %4 = sx.mod %x, %y : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %5 = sx.pow %x, %y : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %6 = sx.mod %x, %y {fmod = true} : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xf32, #sx.dims<n, _>>
  func.return %6 : tensor<?x3xf32, #sx.dims<n, _>>
}
// CHECK-LABEL: func.func @binary(
// CHECK-NEXT: %0 = sx.add %x, %y : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %1 = sx.sub %x, %y : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %2 = sx.mul %x, %y : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %3 = sx.div %x, %y : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %4 = sx.mod %x, %y : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %5 = sx.pow %x, %y : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %6 = sx.mod %x, %y {fmod = true} : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: func.return %6 : tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: }

func.func @integers(%x: tensor<?x3xi32, #sx.dims<n, _>>, %y: tensor<3xi32>, %z: tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>> {
  %0 = sx.bitwise_and %x, %y : (tensor<?x3xi32, #sx.dims<n, _>>, tensor<3xi32>) -> tensor<?x3xi32, #sx.dims<n, _>>
  %1 = sx.bitwise_or %x, %y : (tensor<?x3xi32, #sx.dims<n, _>>, tensor<3xi32>) -> tensor<?x3xi32, #sx.dims<n, _>>
  %2 = sx.bitwise_xor %x, %y : (tensor<?x3xi32, #sx.dims<n, _>>, tensor<3xi32>) -> tensor<?x3xi32, #sx.dims<n, _>>
  %3 = sx.bitwise_not %x : (tensor<?x3xi32, #sx.dims<n, _>>) -> tensor<?x3xi32, #sx.dims<n, _>>
  %4 = sx.bit_shift %x, %y {direction = "LEFT"} : (tensor<?x3xi32, #sx.dims<n, _>>, tensor<3xi32>) -> tensor<?x3xi32, #sx.dims<n, _>>
  %5 = sx.pow %z, %x : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<?x3xi32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  func.return %5 : tensor<?x3xf32, #sx.dims<n, _>>
}
// CHECK-LABEL: func.func @integers(
// CHECK-NEXT: %0 = sx.bitwise_and %x, %y : (tensor<?x3xi32, #sx.dims<n, _>>, tensor<3xi32>) -> tensor<?x3xi32, #sx.dims<n, _>>
// CHECK-NEXT: %1 = sx.bitwise_or %x, %y : (tensor<?x3xi32, #sx.dims<n, _>>, tensor<3xi32>) -> tensor<?x3xi32, #sx.dims<n, _>>
// CHECK-NEXT: %2 = sx.bitwise_xor %x, %y : (tensor<?x3xi32, #sx.dims<n, _>>, tensor<3xi32>) -> tensor<?x3xi32, #sx.dims<n, _>>
// CHECK-NEXT: %3 = sx.bitwise_not %x : (tensor<?x3xi32, #sx.dims<n, _>>) -> tensor<?x3xi32, #sx.dims<n, _>>
// CHECK-NEXT: %4 = sx.bit_shift %x, %y {direction = "LEFT"} : (tensor<?x3xi32, #sx.dims<n, _>>, tensor<3xi32>) -> tensor<?x3xi32, #sx.dims<n, _>>
// CHECK-NEXT: %5 = sx.pow %z, %x : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<?x3xi32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: func.return %5 : tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: }

func.func @variadic(%x: tensor<?x3xf32, #sx.dims<n, _>>, %y: tensor<3xf32>, %z: tensor<f32>) -> tensor<?x3xf32, #sx.dims<n, _>> {
  %0 = sx.max %x, %y, %z : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>, tensor<f32>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %1 = sx.min %x, %y : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %2 = sx.sum %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %3 = sx.mean %x, %x, %y, %z : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>, tensor<f32>) -> tensor<?x3xf32, #sx.dims<n, _>>
  func.return %3 : tensor<?x3xf32, #sx.dims<n, _>>
}
// CHECK-LABEL: func.func @variadic(
// CHECK-NEXT: %0 = sx.max %x, %y, %z : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>, tensor<f32>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %1 = sx.min %x, %y : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %2 = sx.sum %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %3 = sx.mean %x, %x, %y, %z : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>, tensor<f32>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: func.return %3 : tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: }

func.func @compare_and_logic(%x: tensor<?x3xf32, #sx.dims<n, _>>, %y: tensor<3xf32>) -> tensor<?x3xi1, #sx.dims<n, _>> {
  %0 = sx.equal %x, %y : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xi1, #sx.dims<n, _>>
  %1 = sx.less %x, %y : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xi1, #sx.dims<n, _>>
  %2 = sx.less_equal %x, %y : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xi1, #sx.dims<n, _>>
  %3 = sx.greater %x, %y : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xi1, #sx.dims<n, _>>
  %4 = sx.greater_equal %x, %y : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xi1, #sx.dims<n, _>>
  %5 = sx.and %0, %1 : (tensor<?x3xi1, #sx.dims<n, _>>, tensor<?x3xi1, #sx.dims<n, _>>) -> tensor<?x3xi1, #sx.dims<n, _>>
  %6 = sx.or %0, %1 : (tensor<?x3xi1, #sx.dims<n, _>>, tensor<?x3xi1, #sx.dims<n, _>>) -> tensor<?x3xi1, #sx.dims<n, _>>
  %7 = sx.xor %0, %1 : (tensor<?x3xi1, #sx.dims<n, _>>, tensor<?x3xi1, #sx.dims<n, _>>) -> tensor<?x3xi1, #sx.dims<n, _>>
  func.return %7 : tensor<?x3xi1, #sx.dims<n, _>>
}
// CHECK-LABEL: func.func @compare_and_logic(
// CHECK-NEXT: %0 = sx.equal %x, %y : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xi1, #sx.dims<n, _>>
// CHECK-NEXT: %1 = sx.less %x, %y : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xi1, #sx.dims<n, _>>
// CHECK-NEXT: %2 = sx.less_equal %x, %y : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xi1, #sx.dims<n, _>>
// CHECK-NEXT: %3 = sx.greater %x, %y : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xi1, #sx.dims<n, _>>
// CHECK-NEXT: %4 = sx.greater_equal %x, %y : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xi1, #sx.dims<n, _>>
// CHECK-NEXT: %5 = sx.and %0, %1 : (tensor<?x3xi1, #sx.dims<n, _>>, tensor<?x3xi1, #sx.dims<n, _>>) -> tensor<?x3xi1, #sx.dims<n, _>>
// CHECK-NEXT: %6 = sx.or %0, %1 : (tensor<?x3xi1, #sx.dims<n, _>>, tensor<?x3xi1, #sx.dims<n, _>>) -> tensor<?x3xi1, #sx.dims<n, _>>
// CHECK-NEXT: %7 = sx.xor %0, %1 : (tensor<?x3xi1, #sx.dims<n, _>>, tensor<?x3xi1, #sx.dims<n, _>>) -> tensor<?x3xi1, #sx.dims<n, _>>
// CHECK-NEXT: func.return %7 : tensor<?x3xi1, #sx.dims<n, _>>
// CHECK-NEXT: }

func.func @select(%x: tensor<?x3xf32, #sx.dims<n, _>>, %y: tensor<3xf32>, %c: tensor<3xi1>, %low: tensor<f32>, %high: tensor<f32>) -> tensor<?x3xf32, #sx.dims<n, _>> {
  %0 = sx.where %c, %x, %y : (tensor<3xi1>, tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %1 = sx.clip %x, %low, %high : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<f32>, tensor<f32>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %2 = sx.clip %x, _, %high : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %3 = sx.clip %x, %low : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %4 = sx.clip %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  func.return %4 : tensor<?x3xf32, #sx.dims<n, _>>
}
// CHECK-LABEL: func.func @select(
// CHECK-NEXT: %0 = sx.where %c, %x, %y : (tensor<3xi1>, tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %1 = sx.clip %x, %low, %high : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<f32>, tensor<f32>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %2 = sx.clip %x, _, %high : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %3 = sx.clip %x, %low : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: %4 = sx.clip %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: func.return %4 : tensor<?x3xf32, #sx.dims<n, _>>
// CHECK-NEXT: }

func.func @cast(%x: tensor<?x3xf32, #sx.dims<n, _>>, %like: tensor<bf16>) -> tensor<?x3xbf16, #sx.dims<n, _>> {
  %0 = sx.cast %x {to = bf16} : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xbf16, #sx.dims<n, _>>
  %1 = sx.cast %x {to = i1} : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xi1, #sx.dims<n, _>>
  %2 = sx.cast %x {to = ui8, saturate = false} : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xui8, #sx.dims<n, _>>
  %3 = sx.cast_like %x, %like : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<bf16>) -> tensor<?x3xbf16, #sx.dims<n, _>>
  func.return %3 : tensor<?x3xbf16, #sx.dims<n, _>>
}
// CHECK-LABEL: func.func @cast(
// CHECK-NEXT: %0 = sx.cast %x {to = bf16} : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xbf16, #sx.dims<n, _>>
// CHECK-NEXT: %1 = sx.cast %x {to = i1} : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xi1, #sx.dims<n, _>>
// CHECK-NEXT: %2 = sx.cast %x {to = ui8, saturate = false} : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xui8, #sx.dims<n, _>>
// CHECK-NEXT: %3 = sx.cast_like %x, %like : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<bf16>) -> tensor<?x3xbf16, #sx.dims<n, _>>
// CHECK-NEXT: func.return %3 : tensor<?x3xbf16, #sx.dims<n, _>>
// CHECK-NEXT: }

func.func @dims_broadcast(%x: tensor<?x1xf32, #sx.dims<n, _>>, %y: tensor<?xf32, #sx.dims<m>>, %z: tensor<*xf32>) -> tensor<*xf32> {
  %0 = sx.add %x, %y : (tensor<?x1xf32, #sx.dims<n, _>>, tensor<?xf32, #sx.dims<m>>) -> tensor<?x?xf32, #sx.dims<n, m>>
  %1 = sx.add %y, %z : (tensor<?xf32, #sx.dims<m>>, tensor<*xf32>) -> tensor<*xf32>
  func.return %1 : tensor<*xf32>
}
// CHECK-LABEL: func.func @dims_broadcast(
// CHECK-NEXT: %0 = sx.add %x, %y : (tensor<?x1xf32, #sx.dims<n, _>>, tensor<?xf32, #sx.dims<m>>) -> tensor<?x?xf32, #sx.dims<n, m>>
// CHECK-NEXT: %1 = sx.add %y, %z : (tensor<?xf32, #sx.dims<m>>, tensor<*xf32>) -> tensor<*xf32>
// CHECK-NEXT: func.return %1 : tensor<*xf32>
// CHECK-NEXT: }
