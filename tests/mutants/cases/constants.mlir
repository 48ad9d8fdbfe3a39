// Constants that are folded to weights (more than a kilobyte), alike in dtype and shape and unlike in their contents;
// and small ones that are alike in all but one respect.

func.func @large(%x: tensor<300xf32>) -> (tensor<300xf32>, tensor<300xf32>, tensor<300xf32>) {
  %0 = sx.constant {value = dense<300> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.constant {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %2 = sx.constant {value = dense<3.0> : tensor<f32>} : () -> tensor<f32>
  %3 = sx.expand %1, %0 : (tensor<f32>, tensor<1xi64>) -> tensor<300xf32>
  %4 = sx.expand %2, %0 : (tensor<f32>, tensor<1xi64>) -> tensor<300xf32>
  %5 = sx.exp %3 : (tensor<300xf32>) -> tensor<300xf32>
  %6 = sx.exp %4 : (tensor<300xf32>) -> tensor<300xf32>
  %7 = sx.exp %3 : (tensor<300xf32>) -> tensor<300xf32>
  %8 = sx.mul %x, %5 : (tensor<300xf32>, tensor<300xf32>) -> tensor<300xf32>
  %9 = sx.mul %x, %6 : (tensor<300xf32>, tensor<300xf32>) -> tensor<300xf32>
  %10 = sx.mul %x, %7 : (tensor<300xf32>, tensor<300xf32>) -> tensor<300xf32>
  func.return %8, %9, %10 : tensor<300xf32>, tensor<300xf32>, tensor<300xf32>
}

func.func @alike_bits(%x: tensor<2x2xf32>, %y: tensor<4xf32>) -> (tensor<2x2xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<2x2xf32>) {
  %0 = sx.constant {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %1 = sx.constant {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  %2 = sx.constant {value = dense<[1.0, 2.0, 4.0, 3.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  %3 = sx.constant {value = dense<0.0> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %4 = sx.constant {value = dense<-0.0> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %5 = sx.constant {value = dense<[1065353216, 1073741824, 1077936128, 1082130432]> : tensor<4xi32>} : () -> tensor<4xi32>
  %6 = sx.mul %x, %0 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %7 = sx.mul %y, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %8 = sx.mul %y, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %9 = sx.neg %5 : (tensor<4xi32>) -> tensor<4xi32>
  %10 = sx.div %x, %3 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %11 = sx.div %x, %4 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %12 = sx.sub %10, %11 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  func.return %6, %7, %8, %9, %12 : tensor<2x2xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<2x2xf32>
}
