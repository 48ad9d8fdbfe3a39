// RUN: sardonyx-opt %s -p 'cse' | filecheck %s

// The cases of `cse`, by their numbers in its docstring.

// Case 1: equal ops, chains of them; a property that is its default.
func.func @equal(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = sx.relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = sx.exp %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = sx.relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = sx.exp %2 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = sx.leaky_relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %5 = sx.leaky_relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1, %3, %4, %5 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}
// CHECK-LABEL: func.func @equal(
// CHECK-NEXT: %0 = sx.relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: %1 = sx.exp %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: %2 = sx.leaky_relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: func.return %1, %1, %2, %2 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
// CHECK-NEXT: }

// Not: other properties, other dtypes.
func.func @properties(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xi8>, tensor<2x3xui8>) {
  %0 = sx.softmax %x {axis = 0 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = sx.softmax %x {axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = sx.cast %x {to = i8} : (tensor<2x3xf32>) -> tensor<2x3xi8>
  %3 = sx.cast %x {to = ui8} : (tensor<2x3xf32>) -> tensor<2x3xui8>
  func.return %0, %1, %2, %3 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xi8>, tensor<2x3xui8>
}
// CHECK-LABEL: func.func @properties(
// CHECK-NEXT: %0 = sx.softmax %x {axis = 0 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: %1 = sx.softmax %x {axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: %2 = sx.cast %x {to = i8} : (tensor<2x3xf32>) -> tensor<2x3xi8>
// CHECK-NEXT: %3 = sx.cast %x {to = ui8} : (tensor<2x3xf32>) -> tensor<2x3xui8>
// CHECK-NEXT: func.return %0, %1, %2, %3 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xi8>, tensor<2x3xui8>
// CHECK-NEXT: }

// Case 2: constants by their contents.
func.func @constants(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = sx.constant {value = dense<1.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %1 = sx.add %x, %0 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %2 = sx.constant {value = dense<1.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %3 = sx.add %1, %2 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  func.return %3 : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @constants(
// CHECK-NEXT: %0 = sx.constant {value = dense<1.000000e+00> : tensor<f32>} : () -> tensor<f32>
// CHECK-NEXT: %1 = sx.add %x, %0 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
// CHECK-NEXT: %2 = sx.add %1, %0 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
// CHECK-NEXT: func.return %2 : tensor<2x3xf32>
// CHECK-NEXT: }

// Not: -0 and 0, dtypes, shapes.
func.func @near_constants(%x: tensor<2x3xf32>, %d: tensor<f64>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<f64>) {
  %0 = sx.constant {value = dense<0.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %1 = sx.add %x, %0 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %2 = sx.constant {value = dense<-0.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %3 = sx.add %x, %2 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %4 = sx.constant {value = dense<0.000000e+00> : tensor<1xf32>} : () -> tensor<1xf32>
  %5 = sx.add %x, %4 : (tensor<2x3xf32>, tensor<1xf32>) -> tensor<2x3xf32>
  %6 = sx.constant {value = dense<0.000000e+00> : tensor<f64>} : () -> tensor<f64>
  %7 = sx.add %d, %6 : (tensor<f64>, tensor<f64>) -> tensor<f64>
  func.return %1, %3, %5, %7 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<f64>
}
// CHECK-LABEL: func.func @near_constants(
// CHECK-NEXT: %0 = sx.constant {value = dense<0.000000e+00> : tensor<f32>} : () -> tensor<f32>
// CHECK-NEXT: %1 = sx.add %x, %0 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
// CHECK-NEXT: %2 = sx.constant {value = dense<-0.000000e+00> : tensor<f32>} : () -> tensor<f32>
// CHECK-NEXT: %3 = sx.add %x, %2 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
// CHECK-NEXT: %4 = sx.constant {value = dense<0.000000e+00> : tensor<1xf32>} : () -> tensor<1xf32>
// CHECK-NEXT: %5 = sx.add %x, %4 : (tensor<2x3xf32>, tensor<1xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: %6 = sx.constant {value = dense<0.000000e+00> : tensor<f64>} : () -> tensor<f64>
// CHECK-NEXT: %7 = sx.add %d, %6 : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: func.return %1, %3, %5, %7 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<f64>
// CHECK-NEXT: }

// Case 3: swapped operands.
func.func @commutative(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = sx.add %x, %y : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = sx.add %y, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %0, %1 : tensor<2x3xf32>, tensor<2x3xf32>
}
// CHECK-LABEL: func.func @commutative(
// CHECK-NEXT: %0 = sx.add %x, %y : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: func.return %0, %0 : tensor<2x3xf32>, tensor<2x3xf32>
// CHECK-NEXT: }

// Not: ops that are not commutative, and max, whose zeros may differ.
func.func @not_commutative(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = sx.sub %x, %y : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = sx.sub %y, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = sx.max %x, %y : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = sx.max %y, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %0, %1, %2, %3 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}
// CHECK-LABEL: func.func @not_commutative(
// CHECK-NEXT: %0 = sx.sub %x, %y : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: %1 = sx.sub %y, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: %2 = sx.max %x, %y : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: %3 = sx.max %y, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: func.return %0, %1, %2, %3 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
// CHECK-NEXT: }

// Several results.
func.func @several(%x: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %0, %1 = sx.split %x {num_outputs = 2 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  %2, %3 = sx.split %x {num_outputs = 2 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  %4 = sx.add %0, %2 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %5 = sx.mul %1, %3 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %4, %5 : tensor<2xf32>, tensor<2xf32>
}
// CHECK-LABEL: func.func @several(
// CHECK-NEXT: %0, %1 = sx.split %x {num_outputs = 2 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
// CHECK-NEXT: %2 = sx.add %0, %0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT: %3 = sx.mul %1, %1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT: func.return %2, %3 : tensor<2xf32>, tensor<2xf32>
// CHECK-NEXT: }

// Not: as many parts differ.
func.func @parts(%x: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %0, %1 = sx.split %x {num_outputs = 2 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  %2, %3, %4 = sx.split %x {num_outputs = 3 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<0xf32>)
  func.return %0, %2 : tensor<2xf32>, tensor<2xf32>
}
// CHECK-LABEL: func.func @parts(
// CHECK-NEXT: %0, %1 = sx.split %x {num_outputs = 2 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
// CHECK-NEXT: %2, %3, %4 = sx.split %x {num_outputs = 3 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<0xf32>)
// CHECK-NEXT: func.return %0, %2 : tensor<2xf32>, tensor<2xf32>
// CHECK-NEXT: }
