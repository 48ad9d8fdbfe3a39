// RUN: not sardonyx-opt --split-input-file %s 2>&1 | filecheck %s

// The verifier names the constraint that is broken.

func.func @f(%x: tensor<2xi32>) -> tensor<2xi32> {
  %0 = sx.exp %x : (tensor<2xi32>) -> tensor<2xi32>
  func.return %0 : tensor<2xi32>
}
// CHECK: error: (C1) the operand has dtype int32; allowed: float16, bfloat16, float32, float64

// -----

func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = sx.gelu %x {approximate = "fast"} : (tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
// CHECK: error: (C2) approximate is 'fast'; allowed: none, tanh

// -----

func.func @f(%x: tensor<2x3xf32>, %y: tensor<2xf32>) -> tensor<2x3xf32> {
  %0 = sx.add %x, %y : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  func.return %0 : tensor<2x3xf32>
}
// CHECK: error: (C2) shapes [2, 3] and [2] do not broadcast

// -----

func.func @f(%x: tensor<2xi32>, %y: tensor<2xi64>) -> tensor<2xi1> {
  %0 = sx.less %x, %y : (tensor<2xi32>, tensor<2xi64>) -> tensor<2xi1>
  func.return %0 : tensor<2xi1>
}
// CHECK: error: (C1) the operands have different dtypes: int32, int64

// -----

func.func @f(%x: tensor<2xi8>) -> tensor<2xi8> {
  %0 = sx.bit_shift %x, %x {direction = "UP"} : (tensor<2xi8>, tensor<2xi8>) -> tensor<2xi8>
  func.return %0 : tensor<2xi8>
}
// CHECK: error: (C3) direction is 'UP'; allowed: LEFT, RIGHT

// -----

func.func @f(%x: tensor<2xf32>, %y: tensor<1xf32>) -> tensor<2xf32> {
  %0 = sx.clip %x, %y : (tensor<2xf32>, tensor<1xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
// CHECK: error: (C3) a bound is a scalar

// -----

func.func @f(%x: tensor<2xf32>) -> tensor<2xi32> {
  %0 = sx.cast %x {to = i7} : (tensor<2xf32>) -> tensor<2xi32>
  func.return %0 : tensor<2xi32>
}
// CHECK: error: (C1) i7 is not a dtype

// -----

func.func @f(%x: tensor<2x3xf32>, %y: tensor<1xi32>) -> tensor<2x1xf32> {
  %0 = sx.reduce_sum %x, %y : (tensor<2x3xf32>, tensor<1xi32>) -> tensor<2x1xf32>
  func.return %0 : tensor<2x1xf32>
}
// CHECK: error: (C2) axes has dtype int32; allowed: int64

// -----

func.func @f(%x: tensor<2x0xf32>) -> tensor<2x1xi64> {
  %0 = sx.arg_max %x {axis = 1 : i64} : (tensor<2x0xf32>) -> tensor<2x1xi64>
  func.return %0 : tensor<2x1xi64>
}
// CHECK: error: (C3) axis 1 has extent 0

// -----

func.func @f(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = sx.softmax %x {axis = 2 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %0 : tensor<2x3xf32>
}
// CHECK: error: (C2) axis 2 is out of range for rank 2

// -----

func.func @f(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %0 = sx.exp %x : (tensor<2x3xf32>) -> tensor<3x2xf32>
  func.return %0 : tensor<3x2xf32>
}
// CHECK: error: the type is stated as tensor<3x2xf32>, but tensor<2x3xf32> follows from the operands
