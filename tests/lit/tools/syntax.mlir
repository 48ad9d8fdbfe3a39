// What comes out goes in again: custom and generic form, with locations.
// RUN: sardonyx-opt %s | filecheck %s
// RUN: sardonyx-opt %s | sardonyx-opt | filecheck %s
// RUN: sardonyx-opt %s --generic | sardonyx-opt - | filecheck %s
// RUN: sardonyx-opt %s --generic | filecheck %s --check-prefix GENERIC
// RUN: sardonyx-opt %s --locations | sardonyx-opt --locations | filecheck %s --check-prefix LOC

// CHECK:      builtin.module attributes {sx.graph = "net"} {
// CHECK-NEXT:   func.func @main(%x: tensor<?x37xf32, #sx.dims<batch, _>> {sx.name = "x"}, %max: tensor<f32> {sx.name = "max"}) -> (tensor<?x37xf32, #sx.dims<batch, _>> {sx.name = "y"}) {
// CHECK-NEXT:     %0 = sx.exp %x : (tensor<?x37xf32, #sx.dims<batch, _>>) -> tensor<?x37xf32, #sx.dims<batch, _>>
// CHECK-NEXT:     %1 = sx.clip %0, _, %max :
// CHECK-NEXT:     func.return %1 : tensor<?x37xf32, #sx.dims<batch, _>>
// GENERIC:      "builtin.module"() ({
// GENERIC:        "sx.exp"(%x)
// GENERIC:        "sx.clip"(%0, %max) <{operandSegmentSizes = array<i32: 1, 0, 1>}>
// An op without a location gets the line that it stands on; one that has a location keeps it.
// LOC: sx.exp {{.*}} loc("{{.*}}syntax.mlir":[[# @LINE + 4]]:5)
// LOC: sx.clip {{.*}} loc("net.py":3:1)
builtin.module attributes {sx.graph = "net"} {
  func.func @main(%x: tensor<?x37xf32, #sx.dims<batch, _>> {sx.name = "x"}, %max: tensor<f32> {sx.name = "max"}) -> (tensor<?x37xf32, #sx.dims<batch, _>> {sx.name = "y"}) {
    %0 = sx.exp %x : (tensor<?x37xf32, #sx.dims<batch, _>>) -> tensor<?x37xf32, #sx.dims<batch, _>>
    %1 = sx.clip %0, _, %max : (tensor<?x37xf32, #sx.dims<batch, _>>, tensor<f32>) -> tensor<?x37xf32, #sx.dims<batch, _>> loc("net.py":3:1)
    func.return %1 : tensor<?x37xf32, #sx.dims<batch, _>>
  }
}
