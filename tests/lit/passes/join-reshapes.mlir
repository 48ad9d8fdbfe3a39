// RUN: sardonyx-opt %s -p join-reshapes --check-passes=5 | filecheck %s
// RUN: sardonyx-opt %s -p join-reshapes,join-reshapes --statistics 2>&1 >/dev/null | filecheck %s --check-prefix TWICE

// TWICE: join-reshapes
// TWICE: join-reshapes (no change)

// An axis of extent 1 that moves is one reshape, with static and with named extents (case 1).
func.func @moved(%x: tensor<1x3x4xf32>, %y: tensor<1x?x4xf32, #sx.dims<_, n, _>>) -> (tensor<3x1x4xf32>, tensor<?x1x4xf32, #sx.dims<n, _, _>>) {
  %0 = sx.constant {value = dense<[0]> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.constant {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
  %2 = sx.squeeze %x, %0 : (tensor<1x3x4xf32>, tensor<1xi64>) -> tensor<3x4xf32>
  %3 = sx.unsqueeze %2, %1 : (tensor<3x4xf32>, tensor<1xi64>) -> tensor<3x1x4xf32>
  %4 = sx.squeeze %y, %0 : (tensor<1x?x4xf32, #sx.dims<_, n, _>>, tensor<1xi64>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %5 = sx.unsqueeze %4, %1 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1x4xf32, #sx.dims<n, _, _>>
  func.return %3, %5 : tensor<3x1x4xf32>, tensor<?x1x4xf32, #sx.dims<n, _, _>>
}
// CHECK-LABEL: func.func @moved(
// CHECK-NOT:     squeeze
// CHECK:         %[[A:.*]] = sx.constant {value = dense<[3, 1, 4]> : tensor<3xi64>}
// CHECK-NEXT:    %[[B:.*]] = sx.reshape %x, %[[A]]
// CHECK:         %[[C:.*]] = sx.constant {value = dense<[-1, 1, 4]> : tensor<3xi64>}
// CHECK-NEXT:    %[[D:.*]] = sx.reshape %y, %[[C]]
// CHECK-NEXT:    func.return %[[B]], %[[D]]

// A flatten of an unsqueeze, and a longer chain (case 2); empty ones keep their zeros.
func.func @chain(%x: tensor<2x3xf32>, %y: tensor<0x3xf32>) -> (tensor<1x6xf32>, tensor<3x0xf32>) {
  %0 = sx.constant {value = dense<[0]> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.unsqueeze %x, %0 : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<1x2x3xf32>
  %2 = sx.flatten %1 {axis = 1 : i64} : (tensor<1x2x3xf32>) -> tensor<1x6xf32>
  %3 = sx.constant {value = dense<[3, 0]> : tensor<2xi64>} : () -> tensor<2xi64>
  %4 = sx.unsqueeze %y, %0 : (tensor<0x3xf32>, tensor<1xi64>) -> tensor<1x0x3xf32>
  %5 = sx.reshape %4, %3 {allowzero = true} : (tensor<1x0x3xf32>, tensor<2xi64>) -> tensor<3x0xf32>
  func.return %2, %5 : tensor<1x6xf32>, tensor<3x0xf32>
}
// CHECK-LABEL: func.func @chain(
// CHECK-NOT:     unsqueeze
// CHECK:         sx.reshape %x, %{{.*}} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<1x6xf32>
// CHECK:         sx.reshape %y, %{{.*}} {allowzero = true} : (tensor<0x3xf32>, tensor<2xi64>) -> tensor<3x0xf32>

// What is in between is read, or two extents would be left open (case 3).
func.func @stay(%x: tensor<1x3xf32>, %y: tensor<1x?x?xf32, #sx.dims<_, n, m>>) -> (tensor<3xf32>, tensor<3x1xf32>, tensor<?x1x?xf32, #sx.dims<n, _, m>>) {
  %0 = sx.constant {value = dense<[0]> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.constant {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
  %2 = sx.squeeze %x, %0 : (tensor<1x3xf32>, tensor<1xi64>) -> tensor<3xf32>
  %3 = sx.unsqueeze %2, %1 : (tensor<3xf32>, tensor<1xi64>) -> tensor<3x1xf32>
  %4 = sx.squeeze %y, %0 : (tensor<1x?x?xf32, #sx.dims<_, n, m>>, tensor<1xi64>) -> tensor<?x?xf32, #sx.dims<n, m>>
  %5 = sx.unsqueeze %4, %1 : (tensor<?x?xf32, #sx.dims<n, m>>, tensor<1xi64>) -> tensor<?x1x?xf32, #sx.dims<n, _, m>>
  func.return %2, %3, %5 : tensor<3xf32>, tensor<3x1xf32>, tensor<?x1x?xf32, #sx.dims<n, _, m>>
}
// CHECK-LABEL: func.func @stay(
// CHECK-COUNT-2: sx.squeeze

// Scores and mask are unsqueezed alike: the sum is, once (case 4); a scalar has no axes. Not where an operand is read
// elsewhere, has axes of its own, or is unsqueezed elsewhere.
func.func @alike(%x: tensor<?x4xf32, #sx.dims<n, _>>, %m: tensor<?x4xi1, #sx.dims<n, _>>, %y: tensor<?x1x4xf32, #sx.dims<n, _, _>>) -> (tensor<?x1x4xf32, #sx.dims<n, _, _>>, tensor<?x1x4xf32, #sx.dims<n, _, _>>, tensor<?x1x4xf32, #sx.dims<n, _, _>>, tensor<?x1x4xf32, #sx.dims<n, _, _>>) {
  %c = sx.constant {value = dense<-1.000000e+04> : tensor<f32>} : () -> tensor<f32>
  %1 = sx.constant {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
  %2 = sx.unsqueeze %x, %1 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1x4xf32, #sx.dims<n, _, _>>
  %3 = sx.unsqueeze %m, %1 : (tensor<?x4xi1, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1x4xi1, #sx.dims<n, _, _>>
  %4 = sx.where %3, %2, %c : (tensor<?x1x4xi1, #sx.dims<n, _, _>>, tensor<?x1x4xf32, #sx.dims<n, _, _>>, tensor<f32>) -> tensor<?x1x4xf32, #sx.dims<n, _, _>>
  %5 = sx.unsqueeze %x, %1 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1x4xf32, #sx.dims<n, _, _>>
  %6 = sx.unsqueeze %x, %1 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1x4xf32, #sx.dims<n, _, _>>
  %7 = sx.add %5, %6 : (tensor<?x1x4xf32, #sx.dims<n, _, _>>, tensor<?x1x4xf32, #sx.dims<n, _, _>>) -> tensor<?x1x4xf32, #sx.dims<n, _, _>>
  %8 = sx.unsqueeze %m, %1 : (tensor<?x4xi1, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1x4xi1, #sx.dims<n, _, _>>
  %9 = sx.unsqueeze %x, %1 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1x4xf32, #sx.dims<n, _, _>>
  %10 = sx.where %8, %9, %y : (tensor<?x1x4xi1, #sx.dims<n, _, _>>, tensor<?x1x4xf32, #sx.dims<n, _, _>>, tensor<?x1x4xf32, #sx.dims<n, _, _>>) -> tensor<?x1x4xf32, #sx.dims<n, _, _>>
  func.return %4, %7, %6, %10 : tensor<?x1x4xf32, #sx.dims<n, _, _>>, tensor<?x1x4xf32, #sx.dims<n, _, _>>, tensor<?x1x4xf32, #sx.dims<n, _, _>>, tensor<?x1x4xf32, #sx.dims<n, _, _>>
}
// CHECK-LABEL: func.func @alike(
// CHECK:         %[[W:.*]] = sx.where %m, %x, %{{.*}} : (tensor<?x4xi1, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x4xf32, #sx.dims<n, _>>
// CHECK-NEXT:    sx.unsqueeze %[[W]]
// CHECK:         sx.add {{.*}} : (tensor<?x1x4xf32, #sx.dims<n, _, _>>
// CHECK:         sx.where {{.*}} : (tensor<?x1x4xi1, #sx.dims<n, _, _>>

// Rows with an axis of extent 1 between them are multiplied without it (case 5); not where the axis is the product's.
func.func @rows(%x: tensor<?x3xf32, #sx.dims<n, _>>, %w: tensor<3x4xf32>, %v: tensor<1x4xf32>) -> (tensor<?x4x1xf32, #sx.dims<n, _, _>>, tensor<?x12xf32, #sx.dims<n, _>>) {
  %1 = sx.constant {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
  %2 = sx.constant {value = dense<[-1, 4, 1]> : tensor<3xi64>} : () -> tensor<3xi64>
  %3 = sx.unsqueeze %x, %1 : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x1x3xf32, #sx.dims<n, _, _>>
  %4 = sx.matmul %3, %w : (tensor<?x1x3xf32, #sx.dims<n, _, _>>, tensor<3x4xf32>) -> tensor<?x1x4xf32, #sx.dims<n, _, _>>
  %5 = sx.reshape %4, %2 : (tensor<?x1x4xf32, #sx.dims<n, _, _>>, tensor<3xi64>) -> tensor<?x4x1xf32, #sx.dims<n, _, _>>
  %6 = sx.constant {value = dense<[2]> : tensor<1xi64>} : () -> tensor<1xi64>
  %7 = sx.unsqueeze %x, %6 : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<1xi64>) -> tensor<?x3x1xf32, #sx.dims<n, _, _>>
  %8 = sx.matmul %7, %v : (tensor<?x3x1xf32, #sx.dims<n, _, _>>, tensor<1x4xf32>) -> tensor<?x3x4xf32, #sx.dims<n, _, _>>
  %9 = sx.flatten %8 {axis = 1 : i64} : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<?x12xf32, #sx.dims<n, _>>
  func.return %5, %9 : tensor<?x4x1xf32, #sx.dims<n, _, _>>, tensor<?x12xf32, #sx.dims<n, _>>
}
// CHECK-LABEL: func.func @rows(
// CHECK:         %[[P:.*]] = sx.matmul %x, %w : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3x4xf32>) -> tensor<?x4xf32, #sx.dims<n, _>>
// CHECK:         sx.reshape %[[P]]
// CHECK:         sx.matmul %{{.*}}, %v : (tensor<?x3x1xf32
