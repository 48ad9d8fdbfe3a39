// Nearest neighbours at twice the width: whole vectors are spread, and no table is read for that axis; the rows' places
// are a table. The extents of the image are the run's. Batch and channels stay as they are.
// RUN: sardonyx-opt %s -t kernel | filecheck %s

// CHECK:      kernel.func @resize_table_0 {
// CHECK:      kernel.func @resize_nearest_{{[0-9]+}} {
// CHECK:        [[ROW:%.*]] = kernel.load {{%.*}}[{{%.*}}] : !kernel.buffer<i64> -> i64
// CHECK:        "kernel.spread"({{.*}}) <{times = 2 : i64}>
// CHECK-NOT:    kernel.load
// CHECK:      kernel.plan @main {
// CHECK:        kernel.launch @resize_nearest_{{[0-9]+}}(
func.func @main(%x: tensor<1x3x?x?xf32, #sx.dims<_, _, h, w>>) -> tensor<1x3x?x?xf32, #sx.dims<_, _, 2*h, 2*w>> {
  %s = sx.constant {value = dense<[1.0, 1.0, 2.0, 2.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  %0 = "sx.resize"(%x, %s) <{coordinate_transformation_mode = "asymmetric", nearest_mode = "floor", operandSegmentSizes = array<i32: 1, 0, 1, 0>}> : (tensor<1x3x?x?xf32, #sx.dims<_, _, h, w>>, tensor<4xf32>) -> tensor<1x3x?x?xf32, #sx.dims<_, _, 2*h, 2*w>>
  func.return %0 : tensor<1x3x?x?xf32, #sx.dims<_, _, 2*h, 2*w>>
}
