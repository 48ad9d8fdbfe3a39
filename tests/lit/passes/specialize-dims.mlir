// RUN: sardonyx-opt %s -p 'specialize-dims{dims="n=4","t=2"}' | filecheck %s
// RUN: sardonyx-opt %s -p 'specialize-dims{dims="n=4","m=1"}' 2>&1 | filecheck %s --check-prefix WARN
// RUN: not sardonyx-opt %s -p 'specialize-dims{dims="n4"}' 2>&1 | filecheck %s --check-prefix FORM
// RUN: not sardonyx-opt %s -p 'specialize-dims{dims="n=0"}' 2>&1 | filecheck %s --check-prefix NEGATIVE
// RUN: sardonyx-opt %s -p 'specialize-dims{dims="n=4","t=2"},simplify,fold-constants' | filecheck %s --check-prefix FOLDED

// WARN: warning: no dim is called 'm'
// FORM: error: specialize-dims: 'n4' is no NAME=EXTENT
// NEGATIVE: error: specialize-dims: the extent n - 1 would be -1

// Cases 1 and 2: inputs, expressions, and what follows.
// CHECK-LABEL: func.func @computed
// CHECK-SAME:    %x: tensor<4x3xf32>, %y: tensor<8x?x3xf32, #sx.dims<_, k, _>>
// CHECK:         sx.slice
// CHECK-SAME:    -> tensor<3x3xf32>
// CHECK:         sx.shape {{.*}} -> tensor<2xi64>
// FOLDED-LABEL: func.func @computed
// FOLDED:       sx.constant {value = dense<[4, 3]> : tensor<2xi64>}
func.func @computed(%x: tensor<?x3xf32, #sx.dims<n, _>>, %y: tensor<?x?x3xf32, #sx.dims<2*n, k, _>>)
    -> (tensor<?x3xf32, #sx.dims<n - 1, _>>, tensor<2xi64>, tensor<?x?x3xf32, #sx.dims<2*n, k, _>>) {
  %b = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %e = sx.constant {value = dense<9223372036854775807> : tensor<1xi64>} : () -> tensor<1xi64>
  %a = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = sx.slice %x, %b, %e, %a : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x3xf32, #sx.dims<n - 1, _>>
  %1 = sx.shape %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<2xi64>
  %2 = sx.neg %y : (tensor<?x?x3xf32, #sx.dims<2*n, k, _>>) -> tensor<?x?x3xf32, #sx.dims<2*n, k, _>>
  func.return %0, %1, %2 : tensor<?x3xf32, #sx.dims<n - 1, _>>, tensor<2xi64>, tensor<?x?x3xf32, #sx.dims<2*n, k, _>>
}

// Case 3: other names stay.
// CHECK-LABEL: func.func @others(%x: tensor<?x2xf32, #sx.dims<batch, _>>)
func.func @others(%x: tensor<?x?xf32, #sx.dims<batch, t>>) -> tensor<?x?xf32, #sx.dims<batch, t>> {
  %0 = sx.exp %x : (tensor<?x?xf32, #sx.dims<batch, t>>) -> tensor<?x?xf32, #sx.dims<batch, t>>
  func.return %0 : tensor<?x?xf32, #sx.dims<batch, t>>
}
