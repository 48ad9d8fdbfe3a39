// Convolutions and pools of equal extents: a permutation that is mistaken leaves the types as they are.

func.func @chain(%x: tensor<3x3x3x3xf32>, %w: tensor<3x3x3x3xf32>, %v: tensor<3x3x1x1xf32>, %b: tensor<3xf32>) -> (tensor<3x3x3x3xf32>, tensor<3x3x3x3xf32>) {
  %0 = sx.conv %x, %w, %b {pads = array<i64: 1, 1, 1, 1>} : (tensor<3x3x3x3xf32>, tensor<3x3x3x3xf32>, tensor<3xf32>) -> tensor<3x3x3x3xf32>
  %1 = sx.tanh %0 : (tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  %2, %i = sx.max_pool %1 {kernel_shape = array<i64: 3, 1>, pads = array<i64: 1, 0, 1, 0>} : (tensor<3x3x3x3xf32>) -> (tensor<3x3x3x3xf32>, tensor<3x3x3x3xi64>)
  %3 = sx.conv %2, %v : (tensor<3x3x3x3xf32>, tensor<3x3x1x1xf32>) -> tensor<3x3x3x3xf32>
  %4 = sx.add %3, %x : (tensor<3x3x3x3xf32>, tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  %5 = sx.average_pool %4 {kernel_shape = array<i64: 1, 3>, pads = array<i64: 0, 1, 0, 1>} : (tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  func.return %5, %1 : tensor<3x3x3x3xf32>, tensor<3x3x3x3xf32>
}

func.func @given_last(%x: tensor<3x3x3x3xf32>, %w: tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32> {
  %0 = sx.transpose %x {perm = array<i64: 0, 2, 3, 1>} : (tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  %1 = sx.conv %0, %w {pads = array<i64: 1, 1, 1, 1>} : (tensor<3x3x3x3xf32>, tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  %2 = sx.conv %1, %w {pads = array<i64: 1, 1, 1, 1>} : (tensor<3x3x3x3xf32>, tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  %3 = sx.transpose %2 {perm = array<i64: 0, 3, 1, 2>} : (tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  func.return %3 : tensor<3x3x3x3xf32>
}

func.func @turned_already(%x: tensor<3x3x3x3xf32>, %w: tensor<3x3x3x3xf32>) -> (tensor<3x3x3x3xf32>, tensor<3x3x3x3xf32>, tensor<3x3x3x3xf32>) {
  %0 = sx.transpose %x {perm = array<i64: 0, 2, 3, 1>} : (tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  %1 = sx.conv %0, %w {layout = "NHWC", pads = array<i64: 1, 1, 1, 1>} : (tensor<3x3x3x3xf32>, tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  %2 = sx.transpose %1 {perm = array<i64: 0, 3, 1, 2>} : (tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  %3 = sx.conv %2, %w {pads = array<i64: 1, 1, 1, 1>} : (tensor<3x3x3x3xf32>, tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  %4 = sx.conv %3, %w {pads = array<i64: 1, 1, 1, 1>} : (tensor<3x3x3x3xf32>, tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  %5 = sx.transpose %x {perm = array<i64: 0, 3, 1, 2>} : (tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  %6 = sx.conv %5, %w {layout = "NHWC", pads = array<i64: 1, 1, 1, 1>} : (tensor<3x3x3x3xf32>, tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  %7 = sx.transpose %6 {perm = array<i64: 0, 2, 3, 1>} : (tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  %8 = sx.conv %7, %w {pads = array<i64: 1, 1, 1, 1>} : (tensor<3x3x3x3xf32>, tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  func.return %4, %8, %0 : tensor<3x3x3x3xf32>, tensor<3x3x3x3xf32>, tensor<3x3x3x3xf32>
}

func.func @turned_for_two(%x: tensor<3x3x3x3xf32>, %w: tensor<3x3x3x3xf32>) -> (tensor<3x3x3x3xf32>, tensor<3x3x3x3xf32>) {
  %0 = sx.conv %x, %w {pads = array<i64: 1, 1, 1, 1>} : (tensor<3x3x3x3xf32>, tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  %1 = sx.conv %x, %w {pads = array<i64: 1, 1, 1, 1>} : (tensor<3x3x3x3xf32>, tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  %2 = sx.conv %0, %w {pads = array<i64: 1, 1, 1, 1>} : (tensor<3x3x3x3xf32>, tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  %3 = sx.transpose %0 {perm = array<i64: 0, 2, 3, 1>} : (tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  %4 = sx.add %3, %1 : (tensor<3x3x3x3xf32>, tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  func.return %2, %4 : tensor<3x3x3x3xf32>, tensor<3x3x3x3xf32>
}

func.func @reduced(%x: tensor<3x3x3x3xf32>, %w: tensor<3x3x3x3xf32>) -> (tensor<3x3x1x1xf32>, tensor<3x3x1x1xf32>) {
  %0 = sx.conv %x, %w {pads = array<i64: 1, 1, 1, 1>} : (tensor<3x3x3x3xf32>, tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  %1 = sx.global_average_pool %0 : (tensor<3x3x3x3xf32>) -> tensor<3x3x1x1xf32>
  %2 = sx.global_max_pool %0 : (tensor<3x3x3x3xf32>) -> tensor<3x3x1x1xf32>
  func.return %1, %2 : tensor<3x3x1x1xf32>, tensor<3x3x1x1xf32>
}

func.func @pooled_between(%x: tensor<3x3x3x3xf32>, %y: tensor<3x3x3x3xf32>) -> (tensor<3x3x3x3xf32>, tensor<3x3x3x3xf32>) {
  %0 = sx.average_pool %x {kernel_shape = array<i64: 3, 1>, pads = array<i64: 1, 0, 1, 0>} : (tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  %1 = sx.average_pool %0 {kernel_shape = array<i64: 1, 3>, pads = array<i64: 0, 1, 0, 1>} : (tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  %2 = sx.transpose %y {perm = array<i64: 0, 2, 3, 1>} : (tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  %3 = sx.average_pool %2 {kernel_shape = array<i64: 3, 1>, layout = "NHWC", pads = array<i64: 1, 0, 1, 0>} : (tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  %4 = sx.transpose %3 {perm = array<i64: 0, 3, 1, 2>} : (tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  %5 = sx.average_pool %4 {kernel_shape = array<i64: 1, 3>, pads = array<i64: 0, 1, 0, 1>} : (tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  %6 = sx.average_pool %5 {kernel_shape = array<i64: 3, 1>, pads = array<i64: 1, 0, 1, 0>} : (tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
  func.return %1, %6 : tensor<3x3x3x3xf32>, tensor<3x3x3x3xf32>
}

func.func @along_one_axis(%x: tensor<3x3x3xf32>, %w: tensor<3x3x3xf32>) -> tensor<3x3x3xf32> {
  %0 = sx.conv %x, %w {pads = array<i64: 1, 1>} : (tensor<3x3x3xf32>, tensor<3x3x3xf32>) -> tensor<3x3x3xf32>
  %1 = sx.conv %0, %w {pads = array<i64: 1, 1>} : (tensor<3x3x3xf32>, tensor<3x3x3xf32>) -> tensor<3x3x3xf32>
  func.return %1 : tensor<3x3x3xf32>
}
