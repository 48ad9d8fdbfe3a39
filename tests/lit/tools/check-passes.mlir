// RUN: sardonyx-opt %s -p simplify,cse --check-passes --statistics 2>&1 | filecheck %s
// RUN: not sardonyx-opt %s --load %S/Inputs/wrong.py -p cse,drop-negations --check-passes=2 2>&1 | filecheck %s --check-prefix WRONG
// RUN: sardonyx-opt %s --load %S/Inputs/wrong.py -p cse,drop-negations --check-passes=2 --fuel=2 | filecheck %s --check-prefix FUEL
// RUN: not sardonyx-opt %s --load %S/Inputs/wrong.py -p drop-negations --check-passes=2 --check-reproducer %t.mlir
// RUN: not sardonyx-opt %t.mlir --load %S/Inputs/wrong.py -p drop-negations --check-passes=2 2>&1 | filecheck %s --check-prefix AGAIN

// Passes that keep values pass; one that drops two negations and then a third one is stopped at the rewrite that does
// it, with what differs first and where that comes from, and a small case.
// CHECK:      func.func @main(
// WRONG:      {{.*}}check-passes.mlir:20: error: pass 'drop-negations' changes values: pattern 'drop-one' on sx.neg: output 0 of @main at [0, 0]: {{.*}} before, {{.*}} after ({{.*}} elements differ) (promise: exact) [CHECK_FAILED]
// WRONG:      note: with ordinary inputs with n=3
// WRONG:      note: the first wrong rewrite is number 3; --fuel=3 stops there
// WRONG:      note: the value comes from sx.exp <- {{.*}}check-passes.mlir:21
// FUEL:       func.func @main(
// FUEL-COUNT-1: sx.neg
// AGAIN:      changes values: pattern 'drop-one' on sx.neg
func.func @main(%x: tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>> {
  %0 = sx.neg %x : (tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %1 = sx.neg %0 : (tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %2 = sx.neg %1 : (tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %3 = sx.exp %2 : (tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  func.return %3 : tensor<?x4xf32, #sx.dims<n, _>>
}
