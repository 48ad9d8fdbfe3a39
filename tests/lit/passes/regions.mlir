// RUN: sardonyx-opt %s -p remove-dead-nodes --split-input-file | filecheck %s --check-prefix DEAD
// RUN: sardonyx-opt %s -p compose-transposes --split-input-file | filecheck %s --check-prefix TRANSPOSE
// RUN: sardonyx-opt %s -p cse --split-input-file | filecheck %s --check-prefix CSE

// What a region reads from outside is needed; dead ops inside it go, and a region op that nobody reads goes whole
// (remove-dead-nodes, cases 4 and 5). Transposes that a region reads stay where they are (compose-transposes). A region
// may read an equal op outside, and sibling regions share nothing (cse, case 4).
func.func @captures(%c: i1, %x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = sx.transpose %x : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = sx.neg %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = scf.if %c -> (tensor<2x3xf32>) {
    %3 = sx.transpose %0 : (tensor<3x2xf32>) -> tensor<2x3xf32>
    %4 = sx.exp %0 : (tensor<3x2xf32>) -> tensor<3x2xf32>
    %5 = sx.tanh %1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
    scf.yield %3 : tensor<2x3xf32>
  } else {
    %6 = sx.neg %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %7 = sx.tanh %6 : (tensor<2x3xf32>) -> tensor<2x3xf32>
    scf.yield %7 : tensor<2x3xf32>
  }
  %8 = scf.if %c -> (tensor<2x3xf32>) {
    %9 = sx.abs %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
    scf.yield %9 : tensor<2x3xf32>
  } else {
    scf.yield %x : tensor<2x3xf32>
  }
  func.return %2 : tensor<2x3xf32>
}
// DEAD-LABEL: func.func @captures(
// DEAD-NEXT:    %0 = sx.transpose %x : (tensor<2x3xf32>) -> tensor<3x2xf32>
// DEAD-NEXT:    %1 = scf.if %c -> (tensor<2x3xf32>) {
// DEAD-NEXT:      %2 = sx.transpose %0 : (tensor<3x2xf32>) -> tensor<2x3xf32>
// DEAD-NEXT:      scf.yield %2 : tensor<2x3xf32>
// DEAD-NEXT:    } else {
// DEAD-NEXT:      %3 = sx.neg %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
// DEAD-NEXT:      %4 = sx.tanh %3 : (tensor<2x3xf32>) -> tensor<2x3xf32>
// DEAD-NEXT:      scf.yield %4 : tensor<2x3xf32>
// DEAD-NEXT:    }
// DEAD-NEXT:    func.return %1 : tensor<2x3xf32>

// TRANSPOSE-LABEL: func.func @captures(
// TRANSPOSE-NEXT:    %0 = sx.transpose %x : (tensor<2x3xf32>) -> tensor<3x2xf32>
// TRANSPOSE:           %3 = sx.transpose %0 : (tensor<3x2xf32>) -> tensor<2x3xf32>

// CSE-LABEL: func.func @captures(
// CSE:         %1 = sx.neg %x
// CSE:           %5 = sx.tanh %1
// CSE:         } else {
// CSE-NEXT:      %6 = sx.tanh %1
// CSE-NEXT:      scf.yield %6

// -----

// An op with effects stays, with all that it reads (remove-dead-nodes, case 4).
func.func private @log(tensor<2x3xf32>) -> ()
func.func @effects(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = sx.neg %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.call @log(%0) : (tensor<2x3xf32>) -> ()
  %1 = sx.exp %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %x : tensor<2x3xf32>
}
// DEAD-LABEL: func.func @effects(
// DEAD-NEXT:    %0 = sx.neg %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
// DEAD-NEXT:    func.call @log(%0) : (tensor<2x3xf32>) -> ()
// DEAD-NEXT:    func.return %x : tensor<2x3xf32>
