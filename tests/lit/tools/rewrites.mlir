// Single rewrites: traces, fuel, counters.
// RUN: sardonyx-opt %s -p simplify --trace-rewrites 2>&1 | filecheck %s --check-prefix TRACE
// RUN: sardonyx-opt %s -p simplify --fuel 1 | filecheck %s --check-prefix FUEL
// RUN: sardonyx-opt %s -p simplify --debug-counter 'simplify:no-op=' | filecheck %s --check-prefix COUNTER
// RUN: sardonyx-opt %s -p simplify --print-debug-counters 2>&1 | filecheck %s --check-prefix COUNTS
// RUN: sardonyx-opt %s -p 'builtin.module(func.func(simplify,cse))' --verify-roundtrip --verify-each | filecheck %s --check-prefix NESTED
// RUN: sardonyx-opt %s -p simplify --print-ir-diff 2>&1 | filecheck %s --check-prefix DIFF
// RUN: sardonyx-opt %s --load %S/Inputs/remark.py -t op-count | filecheck %s --check-prefix TARGET

// TRACE:      rewrite 0 (try 0): simplify:no-op on sx.identity at {{.*}}rewrites.mlir:[[# @LINE + 25]]
// TRACE-NEXT: rewrite 1 (try 1): simplify:undone on sx.neg
// TRACE-NEXT: rewrite 2 {{.*}}simplify:remove-dead on sx.neg
// TRACE:      builtin.module

// FUEL-NOT: sx.identity
// FUEL:     sx.neg
// FUEL:     sx.neg

// COUNTER:     sx.identity
// COUNTER-NOT: sx.neg

// COUNTS: 1  simplify:no-op
// COUNTS: 1  simplify:undone

// NESTED:      func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
// NESTED-NEXT:   func.return %x

// DIFF:      IR Dump Changes of simplify
// DIFF:      -    %0 = sx.identity
// DIFF-NEXT: -    %1 = sx.neg
// DIFF-NEXT: -    %2 = sx.neg

// TARGET: {{^6$}}
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = sx.identity %x : (tensor<3xf32>) -> tensor<3xf32>
  %1 = sx.neg %0 : (tensor<3xf32>) -> tensor<3xf32>
  %2 = sx.neg %1 : (tensor<3xf32>) -> tensor<3xf32>
  func.return %2 : tensor<3xf32>
}
