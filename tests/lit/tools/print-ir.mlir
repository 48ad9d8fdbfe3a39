// The IR around passes, on standard error.
// RUN: sardonyx-opt %s -p cse,remove-dead-nodes --print-ir-after-change 2>&1 | filecheck %s --check-prefix CHANGE
// RUN: sardonyx-opt %s -p cse,remove-dead-nodes --print-ir-before 2>&1 | filecheck %s --check-prefix BEFORE
// RUN: sardonyx-opt %s -p cse,remove-dead-nodes --print-ir-before=remove-dead-nodes --print-ir-after=cse 2>&1 | filecheck %s --check-prefix NAMED
// RUN: sardonyx-opt %s -p cse,remove-dead-nodes --print-ir-after-all --statistics --timing | filecheck %s --check-prefix CLEAN
// RUN: sardonyx-opt %s -p cse,remove-dead-nodes --statistics 2>&1 | filecheck %s --check-prefix STATS

// CHANGE-NOT: IR Dump After cse
// CHANGE:     // -----// IR Dump After remove-dead-nodes //----- //
// CHANGE-NOT: sx.tanh

// BEFORE: IR Dump Before cse
// BEFORE: sx.tanh
// BEFORE: IR Dump Before remove-dead-nodes

// NAMED:     IR Dump After cse
// NAMED:     IR Dump Before remove-dead-nodes
// NAMED-NOT: IR Dump

// CLEAN-NOT: IR Dump
// CLEAN-NOT: ===
// CLEAN:     sx.exp

// STATS:      ===--- Pass statistics report ---===
// STATS-NEXT: cse (no change)
// STATS-NEXT: remove-dead-nodes
// STATS-NEXT:        1  removed
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = sx.exp %x : (tensor<3xf32>) -> tensor<3xf32>
  %1 = sx.tanh %x : (tensor<3xf32>) -> tensor<3xf32>
  func.return %0 : tensor<3xf32>
}
