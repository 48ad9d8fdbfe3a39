// RUN: sardonyx-opt %s -p explicit-state | filecheck %s
// RUN: sardonyx-opt %s -p default | filecheck %s --check-prefix=KEPT

// Cases 1 and 2: a read is an input, a write an output.
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %x: tensor<2x3xf32> {sx.name = "x"}, %n: tensor<1x?x4xf32, #sx.dims<_, n, _>> {sx.name = "n"}, %acc: tensor<2x3xf32> {sx.name = "acc"}, %k: tensor<1x?x4xf32, #sx.dims<_, past, _>> {sx.name = "k"})
// CHECK-SAME:    {sx.name = "y"}, tensor<2x3xf32> {sx.name = "acc_out"}, tensor<1x?x4xf32, #sx.dims<_, n + past, _>> {sx.name = "k_out"})
// CHECK-NOT:     sx.state
// CHECK:         %u = sx.add %acc, %x
// CHECK:         %y = sx.add %acc, %u
// Case 3: an append is a concat.
// CHECK:         %p = sx.concat %k, %n {axis = 1 : i64}
// CHECK:         func.return %y, %u, %p

// Reads are of what a buffer held when the run began, so two are one, before and behind the write; writes stay, read or not.
// KEPT-LABEL: func.func @main(
// KEPT-NEXT:    %c = sx.state_read
// KEPT-NEXT:    %u = sx.add %c, %x
// KEPT-NEXT:    sx.state_write %u {state = "acc"}
// KEPT-NEXT:    %y = sx.add %c, %u
// KEPT-NEXT:    sx.cache_append %n {
// KEPT-NEXT:    func.return %y
func.func @main(%x: tensor<2x3xf32> {sx.name = "x"}, %n: tensor<1x?x4xf32, #sx.dims<_, n, _>> {sx.name = "n"})
    -> (tensor<2x3xf32> {sx.name = "y"}) {
  %c = sx.state_read {state = "acc"} : () -> tensor<2x3xf32>
  %u = sx.add %c, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  sx.state_write %u {state = "acc"} : (tensor<2x3xf32>) -> ()
  %d = sx.state_read {state = "acc"} : () -> tensor<2x3xf32>
  %unread = sx.state_read {state = "other"} : () -> tensor<2x3xf32>
  %y = sx.add %d, %u : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %p = sx.cache_append %n, _, _ {state = "k", axis = 1, rows = "past", capacity = 8} : (tensor<1x?x4xf32, #sx.dims<_, n, _>>) -> tensor<1x?x4xf32, #sx.dims<_, past + n, _>>
  func.return %y : tensor<2x3xf32>
}
