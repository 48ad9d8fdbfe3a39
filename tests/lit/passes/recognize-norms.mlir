// RUN: sardonyx-opt %s -p recognize-norms | filecheck %s
// RUN: sardonyx-opt %s -p recognize-norms --explain recognize-norms 2>&1 >/dev/null | filecheck %s --check-prefix=WHY

// WHY: 3 groups are not proved to divide 4 channels of each item

// Case 1: what PyTorch exports.
// CHECK-LABEL: func.func @layer
// CHECK:       %{{.*}} = sx.layer_norm %x, %g, %b {epsilon = {{.*}}} : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT:  return
func.func @layer(%x: tensor<?x4xf32, #sx.dims<n, _>>, %g: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<?x4xf32, #sx.dims<n, _>> {
  %a = sx.constant {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %e = sx.constant {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %2 = sx.constant {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %m = sx.reduce_mean %x, %a : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %c = sx.sub %x, %m : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %s = sx.pow %c, %2 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %v = sx.reduce_mean %s, %a : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %ve = sx.add %v, %e : (tensor<?x1xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %d = sx.sqrt %ve : (tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x1xf32, #sx.dims<n, _>>
  %q = sx.div %c, %d : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x1xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %p = sx.mul %q, %g : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<4xf32>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %y = sx.add %p, %b : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<4xf32>) -> tensor<?x4xf32, #sx.dims<n, _>>
  func.return %y : tensor<?x4xf32, #sx.dims<n, _>>
}

// Case 2: what TensorFlow exports.
// CHECK-LABEL: func.func @spread_out
// CHECK:       %{{.*}} = sx.layer_norm %x, %g, %b
// CHECK-NEXT:  return
func.func @spread_out(%x: tensor<3x4xf32>, %g: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<3x4xf32> {
  %a = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %e = sx.constant {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %m = sx.reduce_mean %x, %a : (tensor<3x4xf32>, tensor<1xi64>) -> tensor<3x1xf32>
  %c = sx.sub %x, %m : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %s = sx.mul %c, %c : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %v = sx.reduce_mean %s, %a : (tensor<3x4xf32>, tensor<1xi64>) -> tensor<3x1xf32>
  %ve = sx.add %v, %e : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %d = sx.sqrt %ve : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %r = sx.reciprocal %d : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %f = sx.mul %r, %g : (tensor<3x1xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %xf = sx.mul %x, %f : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %mf = sx.mul %m, %f : (tensor<3x1xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %bm = sx.sub %b, %mf : (tensor<4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %y = sx.add %xf, %bm : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return %y : tensor<3x4xf32>
}

// Cases 3 and 5: Llama's, in half precision.
// CHECK-LABEL: func.func @rms_half
// CHECK:       %{{.*}} = sx.rms_norm %x, %g {epsilon = {{.*}}} : (tensor<3x4xf16>, tensor<4xf16>) -> tensor<3x4xf16>
// CHECK-NEXT:  return
func.func @rms_half(%x: tensor<3x4xf16>, %g: tensor<4xf16>) -> tensor<3x4xf16> {
  %a = sx.constant {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %e = sx.constant {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %w = sx.cast %x {to = f32} : (tensor<3x4xf16>) -> tensor<3x4xf32>
  %s = sx.mul %w, %w : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %v = sx.reduce_mean %s, %a : (tensor<3x4xf32>, tensor<1xi64>) -> tensor<3x1xf32>
  %ve = sx.add %v, %e : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %d = sx.sqrt %ve : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %r = sx.reciprocal %d : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %q = sx.mul %w, %r : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %h = sx.cast %q {to = f16} : (tensor<3x4xf32>) -> tensor<3x4xf16>
  %y = sx.mul %g, %h : (tensor<4xf16>, tensor<3x4xf16>) -> tensor<3x4xf16>
  func.return %y : tensor<3x4xf16>
}

// Case 4.
// CHECK-LABEL: func.func @instance
// CHECK:       %[[G:.*]] = sx.reshape %{{.*}}, %{{.*}} -> tensor<2xf32>
// CHECK:       %{{.*}} = sx.instance_norm %x, %[[G]], %{{.*}}
// CHECK-NEXT:  return
func.func @instance(%x: tensor<?x2x3x?xf32, #sx.dims<n, _, _, t>>) -> tensor<?x2x3x?xf32, #sx.dims<n, _, _, t>> {
  %a = sx.constant {value = dense<[2, 3]> : tensor<2xi64>} : () -> tensor<2xi64>
  %e = sx.constant {value = dense<1.0e-3> : tensor<f32>} : () -> tensor<f32>
  %g = sx.constant {value = dense<[[[0.5]], [[2.0]]]> : tensor<2x1x1xf32>} : () -> tensor<2x1x1xf32>
  %m = sx.reduce_mean %x, %a : (tensor<?x2x3x?xf32, #sx.dims<n, _, _, t>>, tensor<2xi64>) -> tensor<?x2x1x1xf32, #sx.dims<n, _, _, _>>
  %c = sx.sub %x, %m : (tensor<?x2x3x?xf32, #sx.dims<n, _, _, t>>, tensor<?x2x1x1xf32, #sx.dims<n, _, _, _>>) -> tensor<?x2x3x?xf32, #sx.dims<n, _, _, t>>
  %s = sx.mul %c, %c : (tensor<?x2x3x?xf32, #sx.dims<n, _, _, t>>, tensor<?x2x3x?xf32, #sx.dims<n, _, _, t>>) -> tensor<?x2x3x?xf32, #sx.dims<n, _, _, t>>
  %v = sx.reduce_mean %s, %a : (tensor<?x2x3x?xf32, #sx.dims<n, _, _, t>>, tensor<2xi64>) -> tensor<?x2x1x1xf32, #sx.dims<n, _, _, _>>
  %ve = sx.add %v, %e : (tensor<?x2x1x1xf32, #sx.dims<n, _, _, _>>, tensor<f32>) -> tensor<?x2x1x1xf32, #sx.dims<n, _, _, _>>
  %d = sx.sqrt %ve : (tensor<?x2x1x1xf32, #sx.dims<n, _, _, _>>) -> tensor<?x2x1x1xf32, #sx.dims<n, _, _, _>>
  %q = sx.div %c, %d : (tensor<?x2x3x?xf32, #sx.dims<n, _, _, t>>, tensor<?x2x1x1xf32, #sx.dims<n, _, _, _>>) -> tensor<?x2x3x?xf32, #sx.dims<n, _, _, t>>
  %y = sx.mul %q, %g : (tensor<?x2x3x?xf32, #sx.dims<n, _, _, t>>, tensor<2x1x1xf32>) -> tensor<?x2x3x?xf32, #sx.dims<n, _, _, t>>
  func.return %y : tensor<?x2x3x?xf32, #sx.dims<n, _, _, t>>
}

// Case 6.
// CHECK-LABEL: func.func @bare
// CHECK:       %[[ONES:.*]] = sx.constant {value = dense<1.000000e+00> : tensor<4xf32>}
// CHECK-NEXT:  %{{.*}} = sx.rms_norm %x, %[[ONES]]
// CHECK-NEXT:  return
func.func @bare(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %a = sx.constant {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %e = sx.constant {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %s = sx.mul %x, %x : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %v = sx.reduce_mean %s, %a : (tensor<3x4xf32>, tensor<1xi64>) -> tensor<3x1xf32>
  %ve = sx.add %v, %e : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %d = sx.sqrt %ve : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %q = sx.div %x, %d : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  func.return %q : tensor<3x4xf32>
}

// Case 7: the variance is an output.
// CHECK-LABEL: func.func @read
// CHECK-NOT:   sx.rms_norm
// WHY: what sx.reduce_mean computes is read elsewhere, too
func.func @read(%x: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x1xf32>) {
  %a = sx.constant {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %e = sx.constant {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %s = sx.mul %x, %x : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %v = sx.reduce_mean %s, %a : (tensor<3x4xf32>, tensor<1xi64>) -> tensor<3x1xf32>
  %ve = sx.add %v, %e : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %d = sx.sqrt %ve : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %q = sx.div %x, %d : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  func.return %q, %v : tensor<3x4xf32>, tensor<3x1xf32>
}

// Case 7: 16 bits throughout, and another tensor above the line.
// CHECK-LABEL: func.func @half
// CHECK-NOT:   sx.rms_norm
// WHY: it is computed in float16 throughout
// WHY: nothing above the line is what was squared
func.func @half(%x: tensor<3x4xf16>, %y: tensor<3x4xf32>, %z: tensor<3x4xf32>) -> (tensor<3x4xf16>, tensor<3x4xf32>) {
  %a = sx.constant {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %e = sx.constant {value = dense<1.0e-3> : tensor<f16>} : () -> tensor<f16>
  %s = sx.mul %x, %x : (tensor<3x4xf16>, tensor<3x4xf16>) -> tensor<3x4xf16>
  %v = sx.reduce_mean %s, %a : (tensor<3x4xf16>, tensor<1xi64>) -> tensor<3x1xf16>
  %ve = sx.add %v, %e : (tensor<3x1xf16>, tensor<f16>) -> tensor<3x1xf16>
  %d = sx.sqrt %ve : (tensor<3x1xf16>) -> tensor<3x1xf16>
  %q = sx.div %x, %d : (tensor<3x4xf16>, tensor<3x1xf16>) -> tensor<3x4xf16>
  %e1 = sx.constant {value = dense<1.0e-3> : tensor<f32>} : () -> tensor<f32>
  %s1 = sx.mul %y, %y : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %v1 = sx.reduce_mean %s1, %a : (tensor<3x4xf32>, tensor<1xi64>) -> tensor<3x1xf32>
  %ve1 = sx.add %v1, %e1 : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %d1 = sx.sqrt %ve1 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %q1 = sx.div %z, %d1 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  func.return %q, %q1 : tensor<3x4xf16>, tensor<3x4xf32>
}

// Case 7: the first axis, and a root without its axis kept.
// CHECK-LABEL: func.func @first_axis
// CHECK-NOT:   sx.rms_norm
// WHY: it normalises the axes [0], which are not the last ones
func.func @first_axis(%x: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>) {
  %a = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %e = sx.constant {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %s = sx.mul %x, %x : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %v = sx.reduce_mean %s, %a : (tensor<3x3xf32>, tensor<1xi64>) -> tensor<1x3xf32>
  %ve = sx.add %v, %e : (tensor<1x3xf32>, tensor<f32>) -> tensor<1x3xf32>
  %d = sx.sqrt %ve : (tensor<1x3xf32>) -> tensor<1x3xf32>
  %q = sx.div %x, %d : (tensor<3x3xf32>, tensor<1x3xf32>) -> tensor<3x3xf32>
  %s1 = sx.mul %x, %x : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %v1 = sx.reduce_mean %s1, %1 {keepdims = false} : (tensor<3x3xf32>, tensor<1xi64>) -> tensor<3xf32>
  %ve1 = sx.add %v1, %e : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %d1 = sx.sqrt %ve1 : (tensor<3xf32>) -> tensor<3xf32>
  %q1 = sx.div %x, %d1 : (tensor<3x3xf32>, tensor<3xf32>) -> tensor<3x3xf32>
  func.return %q, %q1 : tensor<3x3xf32>, tensor<3x3xf32>
}

// Case 7: what PyTorch's older exporter makes of a group norm.
// CHECK-LABEL: func.func @groups
// CHECK:       %[[G:.*]] = sx.reshape %g
// CHECK:       %[[B:.*]] = sx.reshape %b
// CHECK-NEXT:  sx.group_norm %x, %[[G]], %[[B]] {num_groups = 2 : i64, epsilon = {{.*}}} : (tensor<?x4x?xf32, #sx.dims<n, _, w>>, tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT:  return
func.func @groups(%x: tensor<?x4x?xf32, #sx.dims<n, _, w>>, %g: tensor<4x1xf32>, %b: tensor<4x1xf32>) -> tensor<?x4x?xf32, #sx.dims<n, _, w>> {
  %one = sx.constant {value = dense<1.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %zero = sx.constant {value = dense<0.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %there = sx.constant {value = dense<[0, 2, -1]> : tensor<3xi64>} : () -> tensor<3xi64>
  %back = sx.shape %x : (tensor<?x4x?xf32, #sx.dims<n, _, w>>) -> tensor<3xi64>
  %0 = sx.reshape %x, %there : (tensor<?x4x?xf32, #sx.dims<n, _, w>>, tensor<3xi64>) -> tensor<?x2x?xf32, #sx.dims<n, _, w * 2>>
  %1 = sx.instance_norm %0, %one, %zero {epsilon = 1.0e-3 : f64} : (tensor<?x2x?xf32, #sx.dims<n, _, w * 2>>, tensor<2xf32>, tensor<2xf32>) -> tensor<?x2x?xf32, #sx.dims<n, _, w * 2>>
  %2 = sx.reshape %1, %back : (tensor<?x2x?xf32, #sx.dims<n, _, w * 2>>, tensor<3xi64>) -> tensor<?x4x?xf32, #sx.dims<n, _, w>>
  %3 = sx.mul %2, %g : (tensor<?x4x?xf32, #sx.dims<n, _, w>>, tensor<4x1xf32>) -> tensor<?x4x?xf32, #sx.dims<n, _, w>>
  %4 = sx.add %3, %b : (tensor<?x4x?xf32, #sx.dims<n, _, w>>, tensor<4x1xf32>) -> tensor<?x4x?xf32, #sx.dims<n, _, w>>
  func.return %4 : tensor<?x4x?xf32, #sx.dims<n, _, w>>
}

// Not: groups across items.
// CHECK-LABEL: func.func @no_groups
// CHECK:       sx.instance_norm
func.func @no_groups(%x: tensor<3x4x2xf32>) -> tensor<3x4x2xf32> {
  %one = sx.constant {value = dense<1.0> : tensor<3xf32>} : () -> tensor<3xf32>
  %zero = sx.constant {value = dense<0.0> : tensor<3xf32>} : () -> tensor<3xf32>
  %there = sx.constant {value = dense<[2, 3, 4]> : tensor<3xi64>} : () -> tensor<3xi64>
  %back = sx.constant {value = dense<[3, 4, 2]> : tensor<3xi64>} : () -> tensor<3xi64>
  %0 = sx.reshape %x, %there : (tensor<3x4x2xf32>, tensor<3xi64>) -> tensor<2x3x4xf32>
  %1 = sx.instance_norm %0, %one, %zero : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x4xf32>
  %2 = sx.reshape %1, %back : (tensor<2x3x4xf32>, tensor<3xi64>) -> tensor<3x4x2xf32>
  func.return %2 : tensor<3x4x2xf32>
}
