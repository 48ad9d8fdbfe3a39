// Every part of a split file has its errors, with lines that count from the top of the file, and no dump of the module.
// RUN: not sardonyx-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK:      errors.mlir:[[# @LINE + 5]]: error: the type is stated as tensor<4xf32>, but tensor<3xf32> follows from the operands [INVALID_ARGUMENT]
// CHECK-NEXT:   op: sx.exp
// CHECK-NOT:  func.func
// CHECK-NOT:  sx.exp
func.func @main(%x: tensor<3xf32>) -> tensor<4xf32> {
  %0 = sx.exp %x : (tensor<3xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// -----

// CHECK:      errors.mlir:[[# @LINE + 5]]:8: error: Operation sx.transpse is not registered [INVALID_ARGUMENT]
// CHECK-NEXT:     %0 = sx.transpse %x
// CHECK-NEXT:          ^
// CHECK-NEXT:   hint: did you mean 'sx.transpose'?
func.func @main(%x: tensor<3x2xf32>) {
  %0 = sx.transpse %x : (tensor<3x2xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// The good part is written all the same.
// CHECK: func.func @good()
func.func @good() {
  func.return
}
