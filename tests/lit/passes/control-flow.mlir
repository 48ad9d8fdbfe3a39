// RUN: sardonyx-opt %s -p remove-dead-nodes --split-input-file | filecheck %s --check-prefix DEAD
// RUN: sardonyx-opt %s -p cse --split-input-file | filecheck %s --check-prefix CSE
// RUN: sardonyx-opt %s -p fold-constants --split-input-file | filecheck %s --check-prefix FOLD
// RUN: sardonyx-opt %s -p simplify --split-input-file | filecheck %s --check-prefix SIMPLE
// RUN: sardonyx-opt %s -p compose-transposes --split-input-file | filecheck %s --check-prefix TRANSPOSE
// RUN: sardonyx-opt %s -p infer-types --split-input-file | filecheck %s --check-prefix INFER

// What a body reads from outside stays, dead ops in it go; it may read an equal op from outside; what it computes of
// constants folds in it; transposes in it compose, those of values from outside stay where they are.
func.func @captures(%x: tensor<2x3xf32>, %go: tensor<i1>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = sx.neg %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = sx.transpose %0 {perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %trips = sx.constant {value = dense<3> : tensor<i64>} : () -> tensor<i64>
  %2 = sx.loop %trips, %go, %x ({
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<2x3xf32>):
    %3 = sx.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
    %4 = sx.mul %3, %3 : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %5 = sx.exp %v : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %6 = sx.neg %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %7 = sx.transpose %v {perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %8 = sx.transpose %7 {perm = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
    %9 = sx.mul %8, %4 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    %10 = sx.add %9, %6 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %11 = sx.transpose %1 {perm = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
    %12 = sx.sub %10, %11 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    sx.yield %c, %12 : tensor<i1>, tensor<2x3xf32>
  }) : (tensor<i64>, tensor<i1>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %0, %2 : tensor<2x3xf32>, tensor<2x3xf32>
}
// DEAD-LABEL: func.func @captures(
// DEAD:         sx.transpose %0
// DEAD:         sx.loop
// DEAD-NOT:       sx.exp
// DEAD:           sx.yield

// CSE-LABEL: func.func @captures(
// CSE:         sx.loop
// CSE-NOT:       sx.neg
// CSE:           sx.add %{{.*}}, %0 :

// FOLD-LABEL: func.func @captures(
// FOLD:         sx.loop
// FOLD:           sx.constant {value = dense<2.500000e-01> : tensor<f32>}
// FOLD:           sx.yield

// SIMPLE-LABEL: func.func @captures(
// SIMPLE:         sx.loop

// TRANSPOSE-LABEL: func.func @captures(
// TRANSPOSE:         %[[OUTER:.*]] = sx.transpose %0 {perm
// TRANSPOSE:         sx.loop
// TRANSPOSE-NOT:       sx.transpose %v
// TRANSPOSE:           sx.mul %v,
// TRANSPOSE:           sx.transpose %[[OUTER]]
// TRANSPOSE:           sx.yield

// -----

// An if with a known condition is the branch that is taken, ops in it included (simplify, case 13); one with an unknown
// condition stays.
func.func @known_branch(%x: tensor<2x3xf32>, %c: tensor<i1>) -> tensor<3x2xf32> {
  %0 = sx.exp %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = sx.constant {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %2 = sx.if %1 ({
    %3 = sx.transpose %0 {perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %4 = sx.if %c ({
      sx.yield %3 : tensor<3x2xf32>
    }, {
      %5 = sx.neg %3 : (tensor<3x2xf32>) -> tensor<3x2xf32>
      sx.yield %5 : tensor<3x2xf32>
    }) : (tensor<i1>) -> tensor<3x2xf32>
    sx.yield %4 : tensor<3x2xf32>
  }, {
    %6 = sx.abs %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %7 = sx.transpose %6 {perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
    sx.yield %7 : tensor<3x2xf32>
  }) : (tensor<i1>) -> tensor<3x2xf32>
  func.return %2 : tensor<3x2xf32>
}
// SIMPLE-LABEL: func.func @known_branch(
// SIMPLE-NEXT:    %0 = sx.exp %x
// SIMPLE-NEXT:    %1 = sx.transpose %0
// SIMPLE-NEXT:    %2 = sx.if %c ({
// SIMPLE-NEXT:      sx.yield %1
// SIMPLE-NOT:     sx.abs
// SIMPLE:         func.return %2

// -----

// A loop that never runs (simplify, case 14), by its trip count or by its condition.
func.func @never_runs(%x: tensor<2xf32>, %n: tensor<i64>) -> (tensor<2xf32>, tensor<0x2xf32>, tensor<2xf32>) {
  %0 = sx.constant {value = dense<-1> : tensor<i64>} : () -> tensor<i64>
  %1, %2 = sx.loop %0, _, %x ({
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<2xf32>):
    %3 = sx.exp %v : (tensor<2xf32>) -> tensor<2xf32>
    sx.yield %c, %3, %v : tensor<i1>, tensor<2xf32>, tensor<2xf32>
  }) : (tensor<i64>, tensor<2xf32>) -> (tensor<2xf32>, tensor<0x2xf32>)
  %4 = sx.constant {value = dense<false> : tensor<i1>} : () -> tensor<i1>
  %5 = sx.loop %n, %4, %x ({
  ^bb0(%i_1: tensor<i64>, %c_1: tensor<i1>, %v_1: tensor<2xf32>):
    %6 = sx.exp %v_1 : (tensor<2xf32>) -> tensor<2xf32>
    sx.yield %c_1, %6 : tensor<i1>, tensor<2xf32>
  }) : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
  func.return %1, %2, %5 : tensor<2xf32>, tensor<0x2xf32>, tensor<2xf32>
}
// SIMPLE-LABEL: func.func @never_runs(
// SIMPLE-NEXT:    %0 = sx.constant {value = dense<> : tensor<0x2xf32>} : () -> tensor<0x2xf32>
// SIMPLE-NEXT:    func.return %x, %0, %x

// -----

// What is found out in a branch reaches the results of the if, and what reads them (infer-types).
func.func @types(%x: tensor<2x3xf32>, %c: tensor<i1>) -> tensor<?x?xf32> {
  %0 = sx.if %c ({
    %1 = sx.exp %x : (tensor<2x3xf32>) -> tensor<?x?xf32>
    sx.yield %1 : tensor<?x?xf32>
  }, {
    sx.yield %x : tensor<2x3xf32>
  }) : (tensor<i1>) -> tensor<?x?xf32>
  %2 = sx.neg %0 : (tensor<?x?xf32>) -> tensor<?x?xf32>
  func.return %2 : tensor<?x?xf32>
}
// INFER-LABEL: func.func @types(
// INFER-SAME:    -> tensor<2x3xf32> {
// INFER:         sx.yield %{{.*}} : tensor<2x3xf32>
// INFER:         }) : (tensor<i1>) -> tensor<2x3xf32>
// INFER:         sx.neg %{{.*}} : (tensor<2x3xf32>) -> tensor<2x3xf32>

// -----

// Sequences pass through transposes' composition untouched, and an identity of one goes.
func.func @sequences(%x: tensor<2x3xf32>) -> (tensor<3x2xf32>, tensor<i64>) {
  %0 = sx.transpose %x {perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = sx.sequence_construct %0, %0 : (tensor<3x2xf32>, tensor<3x2xf32>) -> !sx.seq<tensor<3x2xf32>>
  %2 = sx.identity %1 : (!sx.seq<tensor<3x2xf32>>) -> !sx.seq<tensor<3x2xf32>>
  %3 = sx.constant {value = dense<-1> : tensor<i64>} : () -> tensor<i64>
  %4 = sx.sequence_at %2, %3 : (!sx.seq<tensor<3x2xf32>>, tensor<i64>) -> tensor<3x2xf32>
  %5 = sx.sequence_length %2 : (!sx.seq<tensor<3x2xf32>>) -> tensor<i64>
  func.return %4, %5 : tensor<3x2xf32>, tensor<i64>
}
// SIMPLE-LABEL: func.func @sequences(
// SIMPLE-NEXT:    %0 = sx.transpose %x
// SIMPLE-NEXT:    %1 = sx.constant {value = dense<2> : tensor<i64>}
// SIMPLE-NEXT:    func.return %0, %1
// TRANSPOSE-LABEL: func.func @sequences(
// TRANSPOSE:         sx.sequence_construct %0, %0

// -----

// Sequences and optionals whose elements are known become tensors (simplify, cases 18 and 19).
func.func @known_elements(%x: tensor<5x2xf32>, %y: tensor<?x2xf32, #sx.dims<n, _>>)
    -> (tensor<1x2xf32>, tensor<i64>, tensor<?x2xf32>, tensor<2x5x2xf32>, tensor<5x2xf32>, tensor<i1>, tensor<i1>) {
  %0 = sx.constant {value = dense<2> : tensor<i64>} : () -> tensor<i64>
  %1 = sx.split_to_sequence %x, %0 : (tensor<5x2xf32>, tensor<i64>) -> !sx.seq<tensor<?x2xf32>>
  %2 = sx.sequence_at %1, %0 : (!sx.seq<tensor<?x2xf32>>, tensor<i64>) -> tensor<1x2xf32>
  %3 = sx.sequence_length %1 : (!sx.seq<tensor<?x2xf32>>) -> tensor<i64>
  %4 = sx.sequence_construct %x, %y : (tensor<5x2xf32>, tensor<?x2xf32, #sx.dims<n, _>>) -> !sx.seq<tensor<?x2xf32>>
  %5 = sx.concat_from_sequence %4 {axis = 0 : i64} : (!sx.seq<tensor<?x2xf32>>) -> tensor<?x2xf32>
  %6 = sx.sequence_construct %x, %x : (tensor<5x2xf32>, tensor<5x2xf32>) -> !sx.seq<tensor<5x2xf32>>
  %7 = sx.concat_from_sequence %6 {axis = 0 : i64, new_axis = true} : (!sx.seq<tensor<5x2xf32>>) -> tensor<2x5x2xf32>
  %8 = sx.optional %x : (tensor<5x2xf32>) -> !sx.opt<tensor<5x2xf32>>
  %9 = sx.optional_get_element %8 : (!sx.opt<tensor<5x2xf32>>) -> tensor<5x2xf32>
  %10 = sx.optional_has_element %8 : (!sx.opt<tensor<5x2xf32>>) -> tensor<i1>
  %11 = sx.optional {type = tensor<2xf32>} : () -> !sx.opt<tensor<2xf32>>
  %12 = sx.optional_has_element %11 : (!sx.opt<tensor<2xf32>>) -> tensor<i1>
  func.return %2, %3, %5, %7, %9, %10, %12 : tensor<1x2xf32>, tensor<i64>, tensor<?x2xf32>, tensor<2x5x2xf32>, tensor<5x2xf32>, tensor<i1>, tensor<i1>
}
// SIMPLE-LABEL: func.func @known_elements(
// SIMPLE-NOT:     sequence
// SIMPLE-NOT:     optional
// SIMPLE-DAG:     sx.slice %x,
// SIMPLE-DAG:     sx.constant {value = dense<3> : tensor<i64>}
// SIMPLE-DAG:     sx.concat %x, %y {axis = 0 : i64}
// SIMPLE-DAG:     sx.concat %{{.*}}, %{{.*}} {axis = 0 : i64} : (tensor<1x5x2xf32>, tensor<1x5x2xf32>)
// SIMPLE-DAG:     sx.constant {value = dense<false> : tensor<i1>}
// SIMPLE:         func.return %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %x,

// -----

// Not where that is not certain: a position that is computed, elements that may differ in shape.
func.func @not_known(%x: tensor<5x2xf32>, %y: tensor<?x2xf32, #sx.dims<n, _>>, %i: tensor<i64>)
    -> (tensor<?x2xf32>, tensor<?x?x2xf32>) {
  %0 = sx.sequence_construct %x, %y : (tensor<5x2xf32>, tensor<?x2xf32, #sx.dims<n, _>>) -> !sx.seq<tensor<?x2xf32>>
  %1 = sx.sequence_at %0, %i : (!sx.seq<tensor<?x2xf32>>, tensor<i64>) -> tensor<?x2xf32>
  %2 = sx.concat_from_sequence %0 {axis = 0 : i64, new_axis = true} : (!sx.seq<tensor<?x2xf32>>) -> tensor<?x?x2xf32>
  func.return %1, %2 : tensor<?x2xf32>, tensor<?x?x2xf32>
}
// SIMPLE-LABEL: func.func @not_known(
// SIMPLE:         sx.sequence_at
// SIMPLE:         sx.concat_from_sequence

// -----

// What a loop carries and its body yields as it came is read from outside, and is the result (simplify, case 20); then
// what the body computes of a constant folds.
func.func @invariant(%x: tensor<2x3xf32>, %n: tensor<i64>, %k: tensor<?xf32, #sx.dims<k>>) -> (tensor<2x3xf32>, tensor<3x2xf32>, tensor<?xf32, #sx.dims<k>>, tensor<?x2xf32>) {
  %go = sx.constant {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %w = sx.constant {value = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
  %0, %1, %2, %3 = sx.loop %n, %go, %x, %w, %k ({
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<2x3xf32>, %u: tensor<3x2xf32>, %m: tensor<?xf32, #sx.dims<k>>):
    %4 = sx.transpose %u {perm = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
    %5 = sx.mul %v, %4 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %s = sx.reduce_sum %5 {keepdims = false} : (tensor<2x3xf32>) -> tensor<f32>
    %r = sx.reduce_sum %m {keepdims = false} : (tensor<?xf32, #sx.dims<k>>) -> tensor<f32>
    %z = sx.constant {value = dense<[0]> : tensor<1xi64>} : () -> tensor<1xi64>
    %a = sx.unsqueeze %s, %z : (tensor<f32>, tensor<1xi64>) -> tensor<1xf32>
    %b = sx.unsqueeze %r, %z : (tensor<f32>, tensor<1xi64>) -> tensor<1xf32>
    %j = sx.concat %a, %b {axis = 0 : i64} : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
    sx.yield %c, %5, %u, %m, %j : tensor<i1>, tensor<2x3xf32>, tensor<3x2xf32>, tensor<?xf32, #sx.dims<k>>, tensor<2xf32>
  }) : (tensor<i64>, tensor<i1>, tensor<2x3xf32>, tensor<3x2xf32>, tensor<?xf32, #sx.dims<k>>) -> (tensor<2x3xf32>, tensor<3x2xf32>, tensor<?xf32, #sx.dims<k>>, tensor<?x2xf32>)
  func.return %0, %1, %2, %3 : tensor<2x3xf32>, tensor<3x2xf32>, tensor<?xf32, #sx.dims<k>>, tensor<?x2xf32>
}
// SIMPLE-LABEL: func.func @invariant(
// SIMPLE:         %[[LAST:.*]], %[[ROWS:.*]] = sx.loop %n, %go, %x ({
// SIMPLE-NEXT:    ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<2x3xf32>):
// SIMPLE-NEXT:      sx.transpose %w
// SIMPLE:           sx.reduce_sum %k
// SIMPLE:           sx.yield %c, %{{.*}}, %{{.*}} : tensor<i1>, tensor<2x3xf32>, tensor<2xf32>
// SIMPLE:         func.return %[[LAST]], %w, %k, %[[ROWS]]

// -----

// One that the body states more of than is known, and one that changes, stay (simplify, case 20).
func.func @variant(%x: tensor<?xf32, #sx.dims<n>>, %y: tensor<2xf32>, %n: tensor<i64>) -> (tensor<?xf32>, tensor<2xf32>) {
  %go = sx.constant {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %0, %1 = sx.loop %n, %go, %x, %y ({
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<2xf32>, %u: tensor<2xf32>):
    %2 = sx.add %u, %v : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    sx.yield %c, %v, %2 : tensor<i1>, tensor<2xf32>, tensor<2xf32>
  }) : (tensor<i64>, tensor<i1>, tensor<?xf32, #sx.dims<n>>, tensor<2xf32>) -> (tensor<?xf32>, tensor<2xf32>)
  func.return %0, %1 : tensor<?xf32>, tensor<2xf32>
}
// SIMPLE-LABEL: func.func @variant(
// SIMPLE:         sx.loop %n, %go, %x, %y
