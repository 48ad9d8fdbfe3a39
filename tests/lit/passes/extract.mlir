// RUN: sardonyx-opt %s -p 'extract{inputs="%a" outputs="b","c"}' | filecheck %s
// RUN: sardonyx-opt %s -p 'extract{outputs="net.py:4"}' | filecheck %s --check-prefix LINE
// RUN: sardonyx-opt %s -p 'extract{inputs="h" outputs="y"}' | filecheck %s --check-prefix DIMS
// RUN: sardonyx-opt %s -p 'extract{inputs="h" outputs="z"}' 2>&1 | filecheck %s --check-prefix BODY
// RUN: sardonyx-opt %s -p 'extract{inputs="b" outputs="y"},extract{inputs="b" outputs="y"}' --verify-each | filecheck %s --check-prefix TWICE
// RUN: not sardonyx-opt %s -p 'extract{inputs="k" outputs="z"}' 2>&1 | filecheck %s --check-prefix NEEDS
// RUN: not sardonyx-opt %s -p 'extract{outputs="aa"}' 2>&1 | filecheck %s --check-prefix NOTHING
// RUN: not sardonyx-opt %s -p 'extract{outputs="a","%a"}' 2>&1 | filecheck %s --check-prefix SAME
// RUN: sardonyx-opt %s -p 'extract{outputs="a"}' 2>&1 | filecheck %s --check-prefix EFFECT

// Cases 1 to 3: values of the text.
// CHECK:      func.func @main(%a: tensor<?x4xf32, #sx.dims<n, _>> {sx.name = "a"}) -> (tensor<?x4xf32, #sx.dims<n, _>> {sx.name = "b"}, tensor<?x2xf32, #sx.dims<n, _>> {sx.name = "c"})
// CHECK-NEXT:   %b = sx.neg %a
// CHECK:        %c = sx.slice %b
// CHECK-NEXT:   func.return %b, %c

// Case 3: a line; the inputs that it needs stay.
// LINE:      func.func @main(%x: tensor<?x4xf32, #sx.dims<n, _>> {sx.name = "x"}) -> (tensor<?x4xf32, #sx.dims<n, _>> {sx.name = "net.py:4"})
// LINE-NEXT:   sx.exp
// LINE-NEXT:   sx.neg
// LINE-NEXT:   func.return

// Case 4: nobody could tell n from half of it.
// DIMS:      func.func @main(%h: tensor<?x4xf32, #sx.dims<h_0, _>> {sx.name = "h"}) -> (tensor<?x4xf32, #sx.dims<h_0, _>> {sx.name = "y"})
// DIMS-NEXT:   sx.abs %h : (tensor<?x4xf32, #sx.dims<h_0, _>>) -> tensor<?x4xf32, #sx.dims<h_0, _>>

// Case 5: what a body reads; the loop stays whole.
// BODY:      func.func @main(%h: tensor<?x4xf32, #sx.dims<h_0, _>> {sx.name = "h"}) -> (tensor<?x4xf32, #sx.dims<{{.*}}, _>> {sx.name = "z"})
// BODY:        sx.if
// BODY:          sx.neg %h

// TWICE:     func.func @main(%b: tensor<?x4xf32, #sx.dims<n, _>> {sx.name = "b"})
// TWICE-NOT: sx.exp

// Case 6.
// NEEDS: error: extract: the outputs need the input 'x'
// NEEDS: hint: give 'x' among the inputs
// NOTHING: error: the graph has no value 'aa'
// NOTHING: hint: did you mean
// SAME: error: '%a' and 'a' are the same value

// Case 7.
// EFFECT: warning: sx.state_write is left out: no output needs it
func.func @main(%x: tensor<?x4xf32, #sx.dims<n, _>> {sx.name = "x"}, %k: tensor<1xi64> {sx.name = "k"}) -> (tensor<?x4xf32, #sx.dims<n floordiv 2, _>> {sx.name = "y"}, tensor<?x4xf32, #sx.dims<n floordiv 2, _>> {sx.name = "z"}) {
  %a = sx.exp %x : (tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>> loc("net.py":3:1)
  %b = sx.neg %a : (tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>> loc("net.py":4:1)
  %0 = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %2 = sx.constant {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %m = sx.constant {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %c = sx.slice %b, %0, %2, %1 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2xf32, #sx.dims<n, _>>
  %all = sx.shape %b {end = 1 : i64} : (tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<1xi64>
  %half = sx.div %all, %2 : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  %h = sx.slice %b, %0, %half, %0 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x4xf32, #sx.dims<n floordiv 2, _>>
  %y = sx.abs %h : (tensor<?x4xf32, #sx.dims<n floordiv 2, _>>) -> tensor<?x4xf32, #sx.dims<n floordiv 2, _>>
  %t = sx.constant {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %z = sx.if %t ({
    %p = sx.neg %h : (tensor<?x4xf32, #sx.dims<n floordiv 2, _>>) -> tensor<?x4xf32, #sx.dims<n floordiv 2, _>>
    sx.yield %p : tensor<?x4xf32, #sx.dims<n floordiv 2, _>>
  }, {
    sx.yield %h : tensor<?x4xf32, #sx.dims<n floordiv 2, _>>
  }) : (tensor<i1>) -> tensor<?x4xf32, #sx.dims<n floordiv 2, _>>
  %s = sx.constant {value = dense<0.0> : tensor<2xf32>} : () -> tensor<2xf32>
  sx.state_write %s {state = "s"} : (tensor<2xf32>) -> ()
  func.return %y, %z : tensor<?x4xf32, #sx.dims<n floordiv 2, _>>, tensor<?x4xf32, #sx.dims<n floordiv 2, _>>
}
