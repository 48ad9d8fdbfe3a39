// What looks like a norm or attention, and is or is not.

// Numbers on all sides.
func.func @scaled(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x?x4xf32, #sx.dims<_, _, t, _>>, %v: tensor<1x2x?x3xf32, #sx.dims<_, _, t, _>>) -> (tensor<1x2x3x3xf32>) {
  %0 = sx.constant {value = dense<4.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %1 = sx.div %q, %0 : (tensor<1x2x3x4xf32>, tensor<f32>) -> tensor<1x2x3x4xf32>
  %2 = sx.constant {value = dense<3.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %3 = sx.div %k, %2 : (tensor<1x2x?x4xf32, #sx.dims<_, _, t, _>>, tensor<f32>) -> tensor<1x2x?x4xf32, #sx.dims<_, _, t, _>>
  %4 = sx.transpose %3 {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x2x?x4xf32, #sx.dims<_, _, t, _>>) -> tensor<1x2x4x?xf32, #sx.dims<_, _, _, t>>
  %5 = sx.matmul %1, %4 : (tensor<1x2x3x4xf32>, tensor<1x2x4x?xf32, #sx.dims<_, _, _, t>>) -> tensor<1x2x3x?xf32, #sx.dims<_, _, _, t>>
  %6 = sx.constant {value = dense<5.000000e-01> : tensor<f32>} : () -> tensor<f32>
  %7 = sx.mul %5, %6 : (tensor<1x2x3x?xf32, #sx.dims<_, _, _, t>>, tensor<f32>) -> tensor<1x2x3x?xf32, #sx.dims<_, _, _, t>>
  %8 = sx.softmax %7 : (tensor<1x2x3x?xf32, #sx.dims<_, _, _, t>>) -> tensor<1x2x3x?xf32, #sx.dims<_, _, _, t>>
  %9 = sx.matmul %8, %v : (tensor<1x2x3x?xf32, #sx.dims<_, _, _, t>>, tensor<1x2x?x3xf32, #sx.dims<_, _, t, _>>) -> tensor<1x2x3x3xf32>
  func.return %9 : tensor<1x2x3x3xf32>
}

// Rows that see nothing: one column.
func.func @unguarded(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x1x4xf32>, %v: tensor<1x2x1x3xf32>, %m: tensor<3x1xi1>) -> (tensor<1x2x3x3xf32>) {
  %0 = sx.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x2x1x4xf32>) -> tensor<1x2x4x1xf32>
  %1 = sx.matmul %q, %0 : (tensor<1x2x3x4xf32>, tensor<1x2x4x1xf32>) -> tensor<1x2x3x1xf32>
  %2 = sx.constant {value = dense<"0x000080FF"> : tensor<f32>} : () -> tensor<f32>
  %3 = sx.where %m, %1, %2 : (tensor<3x1xi1>, tensor<1x2x3x1xf32>, tensor<f32>) -> tensor<1x2x3x1xf32>
  %4 = sx.softmax %3 : (tensor<1x2x3x1xf32>) -> tensor<1x2x3x1xf32>
  %5 = sx.matmul %4, %v : (tensor<1x2x3x1xf32>, tensor<1x2x1x3xf32>) -> tensor<1x2x3x3xf32>
  func.return %5 : tensor<1x2x3x3xf32>
}

// The same, and something else in these rows.
func.func @guarded(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x1x4xf32>, %v: tensor<1x2x1x3xf32>, %m: tensor<3x1xi1>) -> (tensor<1x2x3x3xf32>) {
  %0 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.reduce_max %m, %0 : (tensor<3x1xi1>, tensor<1xi64>) -> tensor<3x1xi1>
  %2 = sx.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x2x1x4xf32>) -> tensor<1x2x4x1xf32>
  %3 = sx.matmul %q, %2 : (tensor<1x2x3x4xf32>, tensor<1x2x4x1xf32>) -> tensor<1x2x3x1xf32>
  %4 = sx.constant {value = dense<"0x000080FF"> : tensor<f32>} : () -> tensor<f32>
  %5 = sx.where %m, %3, %4 : (tensor<3x1xi1>, tensor<1x2x3x1xf32>, tensor<f32>) -> tensor<1x2x3x1xf32>
  %6 = sx.softmax %5 : (tensor<1x2x3x1xf32>) -> tensor<1x2x3x1xf32>
  %7 = sx.matmul %6, %v : (tensor<1x2x3x1xf32>, tensor<1x2x1x3xf32>) -> tensor<1x2x3x3xf32>
  %8 = sx.constant {value = dense<7.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %9 = sx.where %1, %7, %8 : (tensor<3x1xi1>, tensor<1x2x3x3xf32>, tensor<f32>) -> tensor<1x2x3x3xf32>
  func.return %9 : tensor<1x2x3x3xf32>
}

// Another mask decides.
func.func @guarded_by_another(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x1x4xf32>, %v: tensor<1x2x1x3xf32>, %m: tensor<3x1xi1>, %n: tensor<3x1xi1>) -> (tensor<1x2x3x3xf32>) {
  %0 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.reduce_max %n, %0 : (tensor<3x1xi1>, tensor<1xi64>) -> tensor<3x1xi1>
  %2 = sx.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x2x1x4xf32>) -> tensor<1x2x4x1xf32>
  %3 = sx.matmul %q, %2 : (tensor<1x2x3x4xf32>, tensor<1x2x4x1xf32>) -> tensor<1x2x3x1xf32>
  %4 = sx.constant {value = dense<"0x000080FF"> : tensor<f32>} : () -> tensor<f32>
  %5 = sx.where %m, %3, %4 : (tensor<3x1xi1>, tensor<1x2x3x1xf32>, tensor<f32>) -> tensor<1x2x3x1xf32>
  %6 = sx.softmax %5 : (tensor<1x2x3x1xf32>) -> tensor<1x2x3x1xf32>
  %7 = sx.matmul %6, %v : (tensor<1x2x3x1xf32>, tensor<1x2x1x3xf32>) -> tensor<1x2x3x3xf32>
  %8 = sx.constant {value = dense<7.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %9 = sx.where %1, %7, %8 : (tensor<3x1xi1>, tensor<1x2x3x3xf32>, tensor<f32>) -> tensor<1x2x3x3xf32>
  func.return %9 : tensor<1x2x3x3xf32>
}

// The guard of ONNX's definition, and one that asks another mask.
func.func @inside(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x3x4xf32>, %v: tensor<1x2x3x3xf32>, %m: tensor<3x3xf32>, %n: tensor<3x3xf32>) -> (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) {
  %0 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.reduce_max %m, %0 : (tensor<3x3xf32>, tensor<1xi64>) -> tensor<3x1xf32>
  %2 = sx.constant {value = dense<"0x000080FF"> : tensor<f32>} : () -> tensor<f32>
  %3 = sx.equal %1, %2 : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xi1>
  %4 = sx.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x2x3x4xf32>) -> tensor<1x2x4x3xf32>
  %5 = sx.matmul %q, %4 : (tensor<1x2x3x4xf32>, tensor<1x2x4x3xf32>) -> tensor<1x2x3x3xf32>
  %6 = sx.add %5, %m : (tensor<1x2x3x3xf32>, tensor<3x3xf32>) -> tensor<1x2x3x3xf32>
  %7 = sx.softmax %6 : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %8 = sx.constant {value = dense<0.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %9 = sx.where %3, %8, %7 : (tensor<3x1xi1>, tensor<f32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %10 = sx.matmul %9, %v : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %11 = sx.reduce_max %n, %0 : (tensor<3x3xf32>, tensor<1xi64>) -> tensor<3x1xf32>
  %12 = sx.constant {value = dense<1.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %13 = sx.equal %11, %12 : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xi1>
  %14 = sx.mul %q, %q : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  %15 = sx.matmul %14, %4 : (tensor<1x2x3x4xf32>, tensor<1x2x4x3xf32>) -> tensor<1x2x3x3xf32>
  %16 = sx.add %15, %m : (tensor<1x2x3x3xf32>, tensor<3x3xf32>) -> tensor<1x2x3x3xf32>
  %17 = sx.softmax %16 : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %18 = sx.where %13, %8, %17 : (tensor<3x1xi1>, tensor<f32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %19 = sx.matmul %18, %v : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  func.return %10, %19 : tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>
}

// Columns up to the row, and from the row on.
func.func @causal(%q: tensor<1x2x?x4xf32, #sx.dims<_, _, s, _>>, %k: tensor<1x2x?x4xf32, #sx.dims<_, _, t, _>>, %v: tensor<1x2x?x3xf32, #sx.dims<_, _, t, _>>) -> (tensor<1x2x?x3xf32, #sx.dims<_, _, s, _>>, tensor<1x2x?x3xf32, #sx.dims<_, _, s, _>>) {
  %0 = sx.shape %k {start = 2 : i64, end = 3 : i64} : (tensor<1x2x?x4xf32, #sx.dims<_, _, t, _>>) -> tensor<1xi64>
  %1 = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %2 = sx.squeeze %0, %1 : (tensor<1xi64>, tensor<1xi64>) -> tensor<i64>
  %3 = sx.constant {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %4 = sx.constant {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %5 = sx.range %3, %2, %4 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, #sx.dims<t>>
  %6 = sx.unsqueeze %5, %1 : (tensor<?xi64, #sx.dims<t>>, tensor<1xi64>) -> tensor<1x?xi64, #sx.dims<_, t>>
  %7 = sx.shape %q {start = 2 : i64, end = 3 : i64} : (tensor<1x2x?x4xf32, #sx.dims<_, _, s, _>>) -> tensor<1xi64>
  %8 = sx.squeeze %7, %1 : (tensor<1xi64>, tensor<1xi64>) -> tensor<i64>
  %9 = sx.range %3, %8, %4 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, #sx.dims<s>>
  %10 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %11 = sx.unsqueeze %9, %10 : (tensor<?xi64, #sx.dims<s>>, tensor<1xi64>) -> tensor<?x1xi64, #sx.dims<s, _>>
  %12 = sx.less_equal %6, %11 : (tensor<1x?xi64, #sx.dims<_, t>>, tensor<?x1xi64, #sx.dims<s, _>>) -> tensor<?x?xi1, #sx.dims<s, t>>
  %13 = sx.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x2x?x4xf32, #sx.dims<_, _, t, _>>) -> tensor<1x2x4x?xf32, #sx.dims<_, _, _, t>>
  %14 = sx.matmul %q, %13 : (tensor<1x2x?x4xf32, #sx.dims<_, _, s, _>>, tensor<1x2x4x?xf32, #sx.dims<_, _, _, t>>) -> tensor<1x2x?x?xf32, #sx.dims<_, _, s, t>>
  %15 = sx.constant {value = dense<"0x000080FF"> : tensor<f32>} : () -> tensor<f32>
  %16 = sx.where %12, %14, %15 : (tensor<?x?xi1, #sx.dims<s, t>>, tensor<1x2x?x?xf32, #sx.dims<_, _, s, t>>, tensor<f32>) -> tensor<1x2x?x?xf32, #sx.dims<_, _, s, t>>
  %17 = sx.softmax %16 : (tensor<1x2x?x?xf32, #sx.dims<_, _, s, t>>) -> tensor<1x2x?x?xf32, #sx.dims<_, _, s, t>>
  %18 = sx.matmul %17, %v : (tensor<1x2x?x?xf32, #sx.dims<_, _, s, t>>, tensor<1x2x?x3xf32, #sx.dims<_, _, t, _>>) -> tensor<1x2x?x3xf32, #sx.dims<_, _, s, _>>
  %19 = sx.add %10, %7 : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  %20 = sx.squeeze %19, %1 : (tensor<1xi64>, tensor<1xi64>) -> tensor<i64>
  %21 = sx.range %4, %20, %4 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, #sx.dims<s>>
  %22 = sx.unsqueeze %21, %10 : (tensor<?xi64, #sx.dims<s>>, tensor<1xi64>) -> tensor<?x1xi64, #sx.dims<s, _>>
  %23 = sx.less_equal %6, %22 : (tensor<1x?xi64, #sx.dims<_, t>>, tensor<?x1xi64, #sx.dims<s, _>>) -> tensor<?x?xi1, #sx.dims<s, t>>
  %24 = sx.mul %q, %q : (tensor<1x2x?x4xf32, #sx.dims<_, _, s, _>>, tensor<1x2x?x4xf32, #sx.dims<_, _, s, _>>) -> tensor<1x2x?x4xf32, #sx.dims<_, _, s, _>>
  %25 = sx.matmul %24, %13 : (tensor<1x2x?x4xf32, #sx.dims<_, _, s, _>>, tensor<1x2x4x?xf32, #sx.dims<_, _, _, t>>) -> tensor<1x2x?x?xf32, #sx.dims<_, _, s, t>>
  %26 = sx.where %23, %25, %15 : (tensor<?x?xi1, #sx.dims<s, t>>, tensor<1x2x?x?xf32, #sx.dims<_, _, s, t>>, tensor<f32>) -> tensor<1x2x?x?xf32, #sx.dims<_, _, s, t>>
  %27 = sx.softmax %26 : (tensor<1x2x?x?xf32, #sx.dims<_, _, s, t>>) -> tensor<1x2x?x?xf32, #sx.dims<_, _, s, t>>
  %28 = sx.matmul %27, %v : (tensor<1x2x?x?xf32, #sx.dims<_, _, s, t>>, tensor<1x2x?x3xf32, #sx.dims<_, _, t, _>>) -> tensor<1x2x?x3xf32, #sx.dims<_, _, s, _>>
  func.return %18, %28 : tensor<1x2x?x3xf32, #sx.dims<_, _, s, _>>, tensor<1x2x?x3xf32, #sx.dims<_, _, s, _>>
}

// Heads that are joined in another order.
func.func @heads(%q: tensor<1x4x8xf32>, %k: tensor<1x4x8xf32>, %v: tensor<1x4x8xf32>) -> (tensor<1x4x8xf32>) {
  %0 = sx.constant {value = dense<[1, 4, 2, 4]> : tensor<4xi64>} : () -> tensor<4xi64>
  %1 = sx.reshape %q, %0 : (tensor<1x4x8xf32>, tensor<4xi64>) -> tensor<1x4x2x4xf32>
  %2 = sx.transpose %1 {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x4x2x4xf32>) -> tensor<1x2x4x4xf32>
  %3 = sx.reshape %k, %0 : (tensor<1x4x8xf32>, tensor<4xi64>) -> tensor<1x4x2x4xf32>
  %4 = sx.transpose %3 {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x4x2x4xf32>) -> tensor<1x2x4x4xf32>
  %5 = sx.transpose %4 {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %6 = sx.matmul %2, %5 : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %7 = sx.softmax %6 : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %8 = sx.reshape %v, %0 : (tensor<1x4x8xf32>, tensor<4xi64>) -> tensor<1x4x2x4xf32>
  %9 = sx.transpose %8 {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x4x2x4xf32>) -> tensor<1x2x4x4xf32>
  %10 = sx.matmul %7, %9 : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %11 = sx.constant {value = dense<[1, 4, 8]> : tensor<3xi64>} : () -> tensor<3xi64>
  %12 = sx.reshape %10, %11 : (tensor<1x2x4x4xf32>, tensor<3xi64>) -> tensor<1x4x8xf32>
  func.return %12 : tensor<1x4x8xf32>
}

// Roots above and below the line.
func.func @roots_0(%x: tensor<?x4xf32, #sx.dims<n, _>>) -> (tensor<?x4xf32, #sx.dims<n, _>>) {
  %0 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.reduce_mean %x, %0 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %2 = sx.sub %x, %1 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %3 = sx.mul %2, %2 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %4 = sx.reduce_mean %3, %0 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %5 = sx.constant {value = dense<2.500000e-01> : tensor<f32>} : () -> tensor<f32>
  %6 = sx.add %4, %5 : (tensor<?x1xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %7 = sx.constant {value = dense<5.000000e-01> : tensor<f32>} : () -> tensor<f32>
  %8 = sx.pow %6, %7 : (tensor<?x1xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %9 = sx.mul %2, %8 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  func.return %9 : tensor<?x4xf32, #sx.dims<n, _>>
}

func.func @roots_1(%x: tensor<?x4xf32, #sx.dims<n, _>>) -> (tensor<?x4xf32, #sx.dims<n, _>>) {
  %0 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.constant {value = dense<2.500000e-01> : tensor<f32>} : () -> tensor<f32>
  %2 = sx.reduce_mean %x, %0 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %3 = sx.sub %x, %2 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %4 = sx.mul %3, %3 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %5 = sx.reduce_mean %4, %0 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %6 = sx.add %5, %1 : (tensor<?x1xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %7 = sx.constant {value = dense<-5.000000e-01> : tensor<f32>} : () -> tensor<f32>
  %8 = sx.pow %6, %7 : (tensor<?x1xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %9 = sx.div %3, %8 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  func.return %9 : tensor<?x4xf32, #sx.dims<n, _>>
}

func.func @roots_2(%x: tensor<?x4xf32, #sx.dims<n, _>>) -> (tensor<?x4xf32, #sx.dims<n, _>>) {
  %0 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.constant {value = dense<2.500000e-01> : tensor<f32>} : () -> tensor<f32>
  %2 = sx.constant {value = dense<5.000000e-01> : tensor<f32>} : () -> tensor<f32>
  %3 = sx.mul %x, %x : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %4 = sx.reduce_mean %3, %0 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %5 = sx.add %4, %1 : (tensor<?x1xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %6 = sx.pow %5, %2 : (tensor<?x1xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %7 = sx.div %x, %6 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  func.return %7 : tensor<?x4xf32, #sx.dims<n, _>>
}

func.func @roots_3(%x: tensor<?x4xf32, #sx.dims<n, _>>) -> (tensor<?x4xf32, #sx.dims<n, _>>) {
  %0 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.constant {value = dense<2.500000e-01> : tensor<f32>} : () -> tensor<f32>
  %2 = sx.constant {value = dense<-5.000000e-01> : tensor<f32>} : () -> tensor<f32>
  %3 = sx.mul %x, %x : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %4 = sx.reduce_mean %3, %0 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %5 = sx.add %4, %1 : (tensor<?x1xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %6 = sx.pow %5, %2 : (tensor<?x1xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %7 = sx.mul %x, %6 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  func.return %7 : tensor<?x4xf32, #sx.dims<n, _>>
}

func.func @roots_4(%x: tensor<?x4xf32, #sx.dims<n, _>>) -> (tensor<?x4xf32, #sx.dims<n, _>>) {
  %0 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.constant {value = dense<2.500000e-01> : tensor<f32>} : () -> tensor<f32>
  %2 = sx.mul %x, %x : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %3 = sx.reduce_mean %2, %0 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %4 = sx.add %3, %1 : (tensor<?x1xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %5 = sx.constant {value = dense<2.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %6 = sx.pow %4, %5 : (tensor<?x1xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %7 = sx.div %x, %6 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  func.return %7 : tensor<?x4xf32, #sx.dims<n, _>>
}

// Other centres, and other tensors.
func.func @centres_0(%x: tensor<?x4xf32, #sx.dims<n, _>>, %y: tensor<?x4xf32, #sx.dims<n, _>>) -> (tensor<?x4xf32, #sx.dims<n, _>>) {
  %0 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.reduce_mean %y, %0 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %2 = sx.sub %x, %1 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %3 = sx.reduce_mean %x, %0 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %4 = sx.sub %x, %3 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %5 = sx.mul %4, %4 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %6 = sx.reduce_mean %5, %0 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %7 = sx.constant {value = dense<2.500000e-01> : tensor<f32>} : () -> tensor<f32>
  %8 = sx.add %6, %7 : (tensor<?x1xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %9 = sx.sqrt %8 : (tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %10 = sx.div %2, %9 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  func.return %10 : tensor<?x4xf32, #sx.dims<n, _>>
}

func.func @centres_1(%x: tensor<?x4xf32, #sx.dims<n, _>>, %y: tensor<?x4xf32, #sx.dims<n, _>>) -> (tensor<?x4xf32, #sx.dims<n, _>>) {
  %0 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.constant {value = dense<2.500000e-01> : tensor<f32>} : () -> tensor<f32>
  %2 = sx.reduce_mean %y, %0 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %3 = sx.sub %y, %2 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %4 = sx.reduce_mean %x, %0 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %5 = sx.sub %x, %4 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %6 = sx.mul %5, %5 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %7 = sx.reduce_mean %6, %0 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %8 = sx.add %7, %1 : (tensor<?x1xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %9 = sx.sqrt %8 : (tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %10 = sx.div %3, %9 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  func.return %10 : tensor<?x4xf32, #sx.dims<n, _>>
}

func.func @centres_2(%x: tensor<?x4xf32, #sx.dims<n, _>>, %y: tensor<?x4xf32, #sx.dims<n, _>>) -> (tensor<?x4xf32, #sx.dims<n, _>>) {
  %0 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.constant {value = dense<2.500000e-01> : tensor<f32>} : () -> tensor<f32>
  %2 = sx.mul %x, %x : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %3 = sx.reduce_mean %2, %0 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %4 = sx.add %3, %1 : (tensor<?x1xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %5 = sx.sqrt %4 : (tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %6 = sx.div %y, %5 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  func.return %6 : tensor<?x4xf32, #sx.dims<n, _>>
}

func.func @centres_3(%x: tensor<?x4xf32, #sx.dims<n, _>>, %y: tensor<?x4xf32, #sx.dims<n, _>>) -> (tensor<?x4xf32, #sx.dims<n, _>>) {
  %0 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.constant {value = dense<2.500000e-01> : tensor<f32>} : () -> tensor<f32>
  %2 = sx.mul %x, %x : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %3 = sx.reduce_mean %2, %0 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %4 = sx.add %3, %1 : (tensor<?x1xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %5 = sx.sqrt %4 : (tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %6 = sx.mul %5, %y : (tensor<?x1xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %7 = sx.div %x, %6 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  func.return %7 : tensor<?x4xf32, #sx.dims<n, _>>
}

// Means by sums, one of them by another number.
func.func @sums_0(%x: tensor<?x4xf32, #sx.dims<n, _>>) -> (tensor<?x4xf32, #sx.dims<n, _>>) {
  %0 = sx.mul %x, %x : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %1 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %2 = sx.reduce_sum %0, %1 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %3 = sx.constant {value = dense<4.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %4 = sx.div %2, %3 : (tensor<?x1xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %5 = sx.constant {value = dense<2.500000e-01> : tensor<f32>} : () -> tensor<f32>
  %6 = sx.add %4, %5 : (tensor<?x1xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %7 = sx.sqrt %6 : (tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %8 = sx.div %x, %7 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  func.return %8 : tensor<?x4xf32, #sx.dims<n, _>>
}

func.func @sums_1(%x: tensor<?x4xf32, #sx.dims<n, _>>) -> (tensor<?x4xf32, #sx.dims<n, _>>) {
  %0 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.constant {value = dense<2.500000e-01> : tensor<f32>} : () -> tensor<f32>
  %2 = sx.mul %x, %x : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %3 = sx.reduce_sum %2, %0 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %4 = sx.mul %3, %1 : (tensor<?x1xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %5 = sx.add %4, %1 : (tensor<?x1xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %6 = sx.sqrt %5 : (tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %7 = sx.div %x, %6 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  func.return %7 : tensor<?x4xf32, #sx.dims<n, _>>
}

func.func @sums_2(%x: tensor<?x4xf32, #sx.dims<n, _>>) -> (tensor<?x4xf32, #sx.dims<n, _>>) {
  %0 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.constant {value = dense<4.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %2 = sx.constant {value = dense<2.500000e-01> : tensor<f32>} : () -> tensor<f32>
  %3 = sx.mul %x, %x : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %4 = sx.reduce_sum %3, %0 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %5 = sx.mul %4, %1 : (tensor<?x1xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %6 = sx.add %5, %2 : (tensor<?x1xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %7 = sx.sqrt %6 : (tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %8 = sx.div %x, %7 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  func.return %8 : tensor<?x4xf32, #sx.dims<n, _>>
}
