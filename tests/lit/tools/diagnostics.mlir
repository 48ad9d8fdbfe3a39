// Diagnostics that the comments expect, as mlir-opt checks them.
// RUN: sardonyx-opt %s --split-input-file --verify-diagnostics --load %S/Inputs/remark.py -p 'test-remark{warn}' --remarks
// RUN: not sardonyx-opt %s --split-input-file --verify-diagnostics 2>&1 | filecheck %s

// Without the pass, what it says is missed.
// CHECK: diagnostics.mlir:[[# @LINE + 3]]: error: expected remark of line [[# @LINE + 3]] did not come: an sx.exp
// CHECK: error: expected warning of line [[# @LINE + 2]] did not come
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = sx.exp %x : (tensor<3xf32>) -> tensor<3xf32>  // expected-remark {{an sx.exp}} expected-warning-re {{look{{s?}}}}
  func.return %0 : tensor<3xf32>
}

// -----

func.func @main(%x: tensor<3xf32>) -> tensor<4xf32> {
  // expected-error @below {{the type is stated as tensor<4xf32>, but tensor<3xf32> follows}}
  %0 = sx.exp %x : (tensor<3xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<3xf32>) {
  // expected-error @+1 {{Operation sx.epx is not registered}}
  %0 = sx.epx %x : (tensor<3xf32>) -> tensor<3xf32>
  func.return
}
