// RUN: sardonyx-opt %s -p 'channels-last' | filecheck %s

// The cases of `channels-last`, by their numbers in its docstring.

// Cases 1, 2, 3: the first convolution reads what it gets, the rest have their channels last, and nothing is
// transposed.
func.func @net(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %v: tensor<4x4x1x1xf32>) -> tensor<2x4xf32> {
  %0 = sx.conv %x, %w {pads = array<i64: 1, 1, 1, 1>} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x8x8xf32>
  %1 = sx.relu %0 : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %2, %i = sx.max_pool %1 {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<2x4x8x8xf32>) -> (tensor<2x4x4x4xf32>, tensor<2x4x4x4xi64>)
  %3 = sx.conv %2, %v : (tensor<2x4x4x4xf32>, tensor<4x4x1x1xf32>) -> tensor<2x4x4x4xf32>
  %4 = sx.add %3, %2 : (tensor<2x4x4x4xf32>, tensor<2x4x4x4xf32>) -> tensor<2x4x4x4xf32>
  %5 = sx.global_average_pool %4 : (tensor<2x4x4x4xf32>) -> tensor<2x4x1x1xf32>
  %6 = sx.flatten %5 : (tensor<2x4x1x1xf32>) -> tensor<2x4xf32>
  func.return %6 : tensor<2x4xf32>
}
// CHECK-LABEL: func.func @net(
// CHECK: sx.conv %x, %w {{.*}}layout = "NCHW->NHWC"{{.*}} -> tensor<2x8x8x4xf32>
// CHECK-NEXT: sx.relu
// CHECK-NEXT: sx.max_pool {{.*}}layout = "NHWC"{{.*}} -> (tensor<2x4x4x4xf32>
// CHECK-NEXT: sx.conv {{.*}}layout = "NHWC"
// CHECK-NEXT: sx.add
// CHECK-NEXT: sx.constant {value = dense<[1, 2]>
// CHECK-NEXT: sx.reduce_mean
// CHECK-NOT: sx.transpose
// CHECK: func.return

// Case 2: the last one writes what is asked for; extents that are not known do not matter.
func.func @ends(%x: tensor<?x3x?x?xf32, #sx.dims<n, _, h, w>>, %w: tensor<4x3x1x1xf32>, %v: tensor<5x4x1x1xf32>) -> tensor<?x5x?x?xf32, #sx.dims<n, _, h, w>> {
  %0 = sx.conv %x, %w : (tensor<?x3x?x?xf32, #sx.dims<n, _, h, w>>, tensor<4x3x1x1xf32>) -> tensor<?x4x?x?xf32, #sx.dims<n, _, h, w>>
  %1 = sx.conv %0, %v : (tensor<?x4x?x?xf32, #sx.dims<n, _, h, w>>, tensor<5x4x1x1xf32>) -> tensor<?x5x?x?xf32, #sx.dims<n, _, h, w>>
  func.return %1 : tensor<?x5x?x?xf32, #sx.dims<n, _, h, w>>
}
// CHECK-LABEL: func.func @ends(
// CHECK-NEXT: sx.conv %x, %w {layout = "NCHW->NHWC"} : {{.*}} -> tensor<?x?x?x4xf32, #sx.dims<n, h, w, _>>
// CHECK-NEXT: sx.conv {{.*}} {layout = "NHWC->NCHW"} : {{.*}} -> tensor<?x5x?x?xf32, #sx.dims<n, _, h, w>>
// CHECK-NEXT: func.return

// One axis and three.
func.func @ranks(%x: tensor<1x2x8xf32>, %w: tensor<2x2x3xf32>, %y: tensor<1x2x4x4x4xf32>, %v: tensor<2x2x1x1x1xf32>) -> (tensor<1x2x4xf32>, tensor<1x2x4x4x4xf32>) {
  %0 = sx.conv %x, %w : (tensor<1x2x8xf32>, tensor<2x2x3xf32>) -> tensor<1x2x6xf32>
  %1 = sx.average_pool %0 {kernel_shape = array<i64: 3>} : (tensor<1x2x6xf32>) -> tensor<1x2x4xf32>
  %2 = sx.conv %y, %v : (tensor<1x2x4x4x4xf32>, tensor<2x2x1x1x1xf32>) -> tensor<1x2x4x4x4xf32>
  %3 = sx.conv %2, %v : (tensor<1x2x4x4x4xf32>, tensor<2x2x1x1x1xf32>) -> tensor<1x2x4x4x4xf32>
  func.return %1, %3 : tensor<1x2x4xf32>, tensor<1x2x4x4x4xf32>
}
// CHECK-LABEL: func.func @ranks(
// CHECK-NEXT: sx.conv %x, %w {layout = "NCHW->NHWC"} : {{.*}} -> tensor<1x6x2xf32>
// CHECK-NEXT: sx.average_pool {{.*}}layout = "NHWC"{{.*}} -> tensor<1x4x2xf32>
// CHECK-NEXT: sx.transpose {{.*}} {perm = array<i64: 0, 2, 1>}
// CHECK-NEXT: sx.conv %y, %v {layout = "NCHW->NHWC"} : {{.*}} -> tensor<1x4x4x4x2xf32>
// CHECK-NEXT: sx.conv {{.*}} {layout = "NHWC->NCHW"} : {{.*}} -> tensor<1x2x4x4x4xf32>

// Not: one that stands alone, with what follows it.
func.func @alone(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32> {
  %0 = sx.conv %x, %w : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  %1 = sx.relu %0 : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  func.return %1 : tensor<2x4x6x6xf32>
}
// CHECK-LABEL: func.func @alone(
// CHECK-NEXT: sx.conv %x, %w :
// CHECK-NEXT: sx.relu
// CHECK-NEXT: func.return

// Not: a pool whose positions are read.
func.func @positions(%x: tensor<1x1x4x4xf32>, %w: tensor<1x1x1x1xf32>) -> (tensor<1x1x2x2xf32>, tensor<1x1x2x2xi64>) {
  %0 = sx.conv %x, %w : (tensor<1x1x4x4xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x4x4xf32>
  %1, %2 = sx.max_pool %0 {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<1x1x4x4xf32>) -> (tensor<1x1x2x2xf32>, tensor<1x1x2x2xi64>)
  func.return %1, %2 : tensor<1x1x2x2xf32>, tensor<1x1x2x2xi64>
}
// CHECK-LABEL: func.func @positions(
// CHECK-NOT: layout
// CHECK: func.return
