// RUN: sardonyx-opt %s -p prepare-native --locations | filecheck %s --check-prefix=GRAPH
// RUN: sardonyx-opt %s -p prepare-native -t kernel | filecheck %s --check-prefix=KERNEL
// RUN: sardonyx-opt %s -p prepare-native,fast-conv,fast-conv --statistics 2>&1 | filecheck %s --check-prefix=FAST
// RUN: sardonyx-opt --help-pass prepare-native | filecheck %s --check-prefix=PASSES

// What native compilation runs before it lowers a graph, one pass after the other.
// PASSES:      prepare-native is a pipeline:
// PASSES-NEXT:   move-constants
// PASSES-NEXT:   dequantized-products
// PASSES-NEXT:   gelu-sums
// PASSES-NEXT:   fold-affine{make-gemm=false}
// PASSES-NEXT:   decompose-batch-norm
// PASSES-NEXT:   channels-last

// A weight that is transposed at each run is a constant, and the chain of a GELU one op that bears `as_a_sum`.
// GRAPH-LABEL: func.func @main(
// GRAPH:      sx.constant {value = dense<[{{\[}}1.000000e+00, 3.000000e+00], [2.000000e+00, 4.000000e+00]]>
// GRAPH-SAME: loc({{.*}}"pass:move-constants:move-constant"
// GRAPH-NEXT: sx.matmul %x,
// GRAPH-NEXT: sx.gelu %{{.*}} {as_a_sum}
// GRAPH-SAME: loc({{.*}}"pass:gelu-sums:gelu-sum"
// GRAPH-NEXT: sx.conv %{{.*}}, %k : (tensor<?x1x3x3xf32, {{.*}}>, tensor<2x1x3x3xf32>)
// GRAPH-NEXT: func.return
func.func @main(%x: tensor<?x2xf32, #sx.dims<n, _>>, %i: tensor<?x1x3x3xf32, #sx.dims<m, _, _, _>>) -> (tensor<?x2xf32, #sx.dims<n, _>>, tensor<?x2x1x1xf32, #sx.dims<m, _, _, _>>) {
  %w = sx.constant {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %k = sx.constant {value = dense<0.5> : tensor<2x1x3x3xf32>} : () -> tensor<2x1x3x3xf32>
  %h = sx.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %one = sx.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %r = sx.constant {value = dense<1.4142135> : tensor<f32>} : () -> tensor<f32>
  %t = sx.transpose %w {perm = array<i64: 1, 0>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %0 = sx.matmul %x, %t : (tensor<?x2xf32, #sx.dims<n, _>>, tensor<2x2xf32>) -> tensor<?x2xf32, #sx.dims<n, _>>
  %1 = sx.div %0, %r : (tensor<?x2xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x2xf32, #sx.dims<n, _>>
  %2 = sx.erf %1 : (tensor<?x2xf32, #sx.dims<n, _>>) -> tensor<?x2xf32, #sx.dims<n, _>>
  %3 = sx.add %one, %2 : (tensor<f32>, tensor<?x2xf32, #sx.dims<n, _>>) -> tensor<?x2xf32, #sx.dims<n, _>>
  %4 = sx.mul %3, %h : (tensor<?x2xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x2xf32, #sx.dims<n, _>>
  %5 = sx.mul %0, %4 : (tensor<?x2xf32, #sx.dims<n, _>>, tensor<?x2xf32, #sx.dims<n, _>>) -> tensor<?x2xf32, #sx.dims<n, _>>
  %6 = sx.conv %i, %k : (tensor<?x1x3x3xf32, #sx.dims<m, _, _, _>>, tensor<2x1x3x3xf32>) -> tensor<?x2x1x1xf32, #sx.dims<m, _, _, _>>
  func.return %5, %6 : tensor<?x2xf32, #sx.dims<n, _>>, tensor<?x2x1x1xf32, #sx.dims<m, _, _, _>>
}

// KERNEL: kernel.func @matmul
// KERNEL: kernel.math "gelu_sum"
// KERNEL: kernel.func @conv

// `finalize(fast_conv=True)` marks convolutions; once is enough.
// FAST:      1{{ +}}rewrites:fast-conv
// FAST-NEXT: fast-conv (no change)
// FAST:      sx.conv %i, %k {fast} :
