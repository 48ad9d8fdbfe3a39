// RUN: sardonyx-opt %s -p recognize-rotary | filecheck %s
// RUN: sardonyx-opt %s -p recognize-rotary --explain recognize-rotary 2>&1 >/dev/null | filecheck %s --check-prefix=WHY

// WHY: the halves of cos or sin are not certainly the same
// WHY: the operator has no float64

// Cases 1 and 2: cosine and sine are of one half.
// CHECK-LABEL: func.func @llama
// CHECK:       %[[C:.*]] = sx.cos %f : (tensor<2x5x2xf32>) -> tensor<2x5x2xf32>
// CHECK:       %[[S:.*]] = sx.sin %f : (tensor<2x5x2xf32>) -> tensor<2x5x2xf32>
// CHECK-NEXT:  %[[R:.*]] = sx.rotary_embedding %x, %[[C]], %[[S]]
// CHECK-NEXT:  return %[[R]]
func.func @llama(%x: tensor<2x3x5x4xf32>, %f: tensor<2x5x2xf32>) -> tensor<2x3x5x4xf32> {
  %zero = sx.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %one = sx.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %half = sx.constant {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %last = sx.constant {value = dense<3> : tensor<1xi64>} : () -> tensor<1xi64>
  %end = sx.constant {value = dense<4> : tensor<1xi64>} : () -> tensor<1xi64>
  %t = sx.concat %f, %f {axis = -1 : i64} : (tensor<2x5x2xf32>, tensor<2x5x2xf32>) -> tensor<2x5x4xf32>
  %c3 = sx.cos %t : (tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  %s3 = sx.sin %t : (tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  %c = sx.unsqueeze %c3, %one : (tensor<2x5x4xf32>, tensor<1xi64>) -> tensor<2x1x5x4xf32>
  %s = sx.unsqueeze %s3, %one : (tensor<2x5x4xf32>, tensor<1xi64>) -> tensor<2x1x5x4xf32>
  %a = sx.slice %x, %zero, %half, %last : (tensor<2x3x5x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2x3x5x2xf32>
  %b = sx.slice %x, %half, %end, %last : (tensor<2x3x5x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2x3x5x2xf32>
  %n = sx.neg %b : (tensor<2x3x5x2xf32>) -> tensor<2x3x5x2xf32>
  %h = sx.concat %n, %a {axis = 3 : i64} : (tensor<2x3x5x2xf32>, tensor<2x3x5x2xf32>) -> tensor<2x3x5x4xf32>
  %p = sx.mul %x, %c : (tensor<2x3x5x4xf32>, tensor<2x1x5x4xf32>) -> tensor<2x3x5x4xf32>
  %q = sx.mul %h, %s : (tensor<2x3x5x4xf32>, tensor<2x1x5x4xf32>) -> tensor<2x3x5x4xf32>
  %r = sx.add %p, %q : (tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>) -> tensor<2x3x5x4xf32>
  func.return %r : tensor<2x3x5x4xf32>
}

// Case 3: one item's tables for a batch.
// CHECK-LABEL: func.func @batch
// CHECK:       sx.expand {{.*}} -> tensor<?x5x1xf32, #sx.dims<b, _, _>>
// CHECK:       sx.rotary_embedding %x
// CHECK-NEXT:  return
func.func @batch(%x: tensor<?x3x5x2xf32, #sx.dims<b, _, _, _>>, %f: tensor<5x1xf32>, %g: tensor<5x1xf32>) -> tensor<?x3x5x2xf32, #sx.dims<b, _, _, _>> {
  %c = sx.concat %f, %f {axis = 1 : i64} : (tensor<5x1xf32>, tensor<5x1xf32>) -> tensor<5x2xf32>
  %s = sx.concat %g, %g {axis = 1 : i64} : (tensor<5x1xf32>, tensor<5x1xf32>) -> tensor<5x2xf32>
  %a, %b = sx.split %x {axis = 3 : i64, num_outputs = 2 : i64} : (tensor<?x3x5x2xf32, #sx.dims<b, _, _, _>>) -> (tensor<?x3x5x1xf32, #sx.dims<b, _, _, _>>, tensor<?x3x5x1xf32, #sx.dims<b, _, _, _>>)
  %n = sx.neg %b : (tensor<?x3x5x1xf32, #sx.dims<b, _, _, _>>) -> tensor<?x3x5x1xf32, #sx.dims<b, _, _, _>>
  %h = sx.concat %n, %a {axis = 3 : i64} : (tensor<?x3x5x1xf32, #sx.dims<b, _, _, _>>, tensor<?x3x5x1xf32, #sx.dims<b, _, _, _>>) -> tensor<?x3x5x2xf32, #sx.dims<b, _, _, _>>
  %p = sx.mul %x, %c : (tensor<?x3x5x2xf32, #sx.dims<b, _, _, _>>, tensor<5x2xf32>) -> tensor<?x3x5x2xf32, #sx.dims<b, _, _, _>>
  %q = sx.mul %h, %s : (tensor<?x3x5x2xf32, #sx.dims<b, _, _, _>>, tensor<5x2xf32>) -> tensor<?x3x5x2xf32, #sx.dims<b, _, _, _>>
  %r = sx.add %p, %q : (tensor<?x3x5x2xf32, #sx.dims<b, _, _, _>>, tensor<?x3x5x2xf32, #sx.dims<b, _, _, _>>) -> tensor<?x3x5x2xf32, #sx.dims<b, _, _, _>>
  func.return %r : tensor<?x3x5x2xf32, #sx.dims<b, _, _, _>>
}

// Not case 2: the halves of the cosines differ.
// CHECK-LABEL: func.func @unlike
// CHECK-NOT:   sx.rotary_embedding
func.func @unlike(%x: tensor<1x3x5x2xf32>, %f: tensor<5x1xf32>, %g: tensor<5x1xf32>) -> tensor<1x3x5x2xf32> {
  %c = sx.concat %f, %g {axis = 1 : i64} : (tensor<5x1xf32>, tensor<5x1xf32>) -> tensor<5x2xf32>
  %s = sx.concat %g, %g {axis = 1 : i64} : (tensor<5x1xf32>, tensor<5x1xf32>) -> tensor<5x2xf32>
  %a, %b = sx.split %x {axis = 3 : i64, num_outputs = 2 : i64} : (tensor<1x3x5x2xf32>) -> (tensor<1x3x5x1xf32>, tensor<1x3x5x1xf32>)
  %n = sx.neg %b : (tensor<1x3x5x1xf32>) -> tensor<1x3x5x1xf32>
  %h = sx.concat %n, %a {axis = 3 : i64} : (tensor<1x3x5x1xf32>, tensor<1x3x5x1xf32>) -> tensor<1x3x5x2xf32>
  %p = sx.mul %x, %c : (tensor<1x3x5x2xf32>, tensor<5x2xf32>) -> tensor<1x3x5x2xf32>
  %q = sx.mul %h, %s : (tensor<1x3x5x2xf32>, tensor<5x2xf32>) -> tensor<1x3x5x2xf32>
  %r = sx.add %p, %q : (tensor<1x3x5x2xf32>, tensor<1x3x5x2xf32>) -> tensor<1x3x5x2xf32>
  func.return %r : tensor<1x3x5x2xf32>
}

// Not case 4: double precision.
// CHECK-LABEL: func.func @double
// CHECK-NOT:   sx.rotary_embedding
func.func @double(%x: tensor<1x3x5x2xf64>, %f: tensor<5x1xf64>) -> tensor<1x3x5x2xf64> {
  %c = sx.concat %f, %f {axis = 1 : i64} : (tensor<5x1xf64>, tensor<5x1xf64>) -> tensor<5x2xf64>
  %a, %b = sx.split %x {axis = 3 : i64, num_outputs = 2 : i64} : (tensor<1x3x5x2xf64>) -> (tensor<1x3x5x1xf64>, tensor<1x3x5x1xf64>)
  %n = sx.neg %b : (tensor<1x3x5x1xf64>) -> tensor<1x3x5x1xf64>
  %h = sx.concat %n, %a {axis = 3 : i64} : (tensor<1x3x5x1xf64>, tensor<1x3x5x1xf64>) -> tensor<1x3x5x2xf64>
  %p = sx.mul %x, %c : (tensor<1x3x5x2xf64>, tensor<5x2xf64>) -> tensor<1x3x5x2xf64>
  %q = sx.mul %h, %c : (tensor<1x3x5x2xf64>, tensor<5x2xf64>) -> tensor<1x3x5x2xf64>
  %r = sx.add %p, %q : (tensor<1x3x5x2xf64>, tensor<1x3x5x2xf64>) -> tensor<1x3x5x2xf64>
  func.return %r : tensor<1x3x5x2xf64>
}
