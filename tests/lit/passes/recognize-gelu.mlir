// RUN: sardonyx-opt %s -p recognize-gelu | filecheck %s

// Case 1.
// CHECK-LABEL: func.func @erf
// CHECK-NEXT:  %{{.*}} = sx.gelu %x : (tensor<?x4xf32, #sx.dims<n, _>>)
// CHECK-NEXT:  return
func.func @erf(%x: tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>> {
  %h = sx.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %one = sx.constant {value = dense<1.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %r = sx.constant {value = dense<1.4142135> : tensor<f32>} : () -> tensor<f32>
  %0 = sx.div %x, %r : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %1 = sx.erf %0 : (tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %2 = sx.add %one, %1 : (tensor<1xf32>, tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %3 = sx.mul %2, %h : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x4xf32, #sx.dims<n, _>>
  %4 = sx.mul %x, %3 : (tensor<?x4xf32, #sx.dims<n, _>>, tensor<?x4xf32, #sx.dims<n, _>>) -> tensor<?x4xf32, #sx.dims<n, _>>
  func.return %4 : tensor<?x4xf32, #sx.dims<n, _>>
}

// Cases 2 and 3.
// CHECK-LABEL: func.func @tanh
// CHECK-NEXT:  %{{.*}} = sx.gelu %x {approximate = "tanh"}
// CHECK-NEXT:  return
func.func @tanh(%x: tensor<5xf32>) -> tensor<5xf32> {
  %h = sx.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %one = sx.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %c = sx.constant {value = dense<0.044715> : tensor<f32>} : () -> tensor<f32>
  %s = sx.constant {value = dense<0.7978846> : tensor<f32>} : () -> tensor<f32>
  %0 = sx.mul %x, %x : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  %1 = sx.mul %0, %x : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  %2 = sx.mul %c, %1 : (tensor<f32>, tensor<5xf32>) -> tensor<5xf32>
  %3 = sx.add %x, %2 : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  %4 = sx.mul %3, %s : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  %5 = sx.tanh %4 : (tensor<5xf32>) -> tensor<5xf32>
  %6 = sx.add %5, %one : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  %7 = sx.mul %x, %h : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  %8 = sx.mul %7, %6 : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  func.return %8 : tensor<5xf32>
}

// Case 2: the cube is a power.
// CHECK-LABEL: func.func @cube
// CHECK-NEXT:  %{{.*}} = sx.gelu %x {approximate = "tanh"}
// CHECK-NEXT:  return
func.func @cube(%x: tensor<5xf32>) -> tensor<5xf32> {
  %h = sx.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %one = sx.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %three = sx.constant {value = dense<3.0> : tensor<f32>} : () -> tensor<f32>
  %c = sx.constant {value = dense<0.044715> : tensor<f32>} : () -> tensor<f32>
  %s = sx.constant {value = dense<0.7978846> : tensor<f32>} : () -> tensor<f32>
  %1 = sx.pow %x, %three : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  %2 = sx.mul %1, %c : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  %3 = sx.add %x, %2 : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  %4 = sx.mul %3, %s : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  %5 = sx.tanh %4 : (tensor<5xf32>) -> tensor<5xf32>
  %6 = sx.add %5, %one : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  %7 = sx.mul %x, %h : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  %8 = sx.mul %7, %6 : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  func.return %8 : tensor<5xf32>
}

// Case 2: an x is taken out of the sum.
// CHECK-LABEL: func.func @outside
// CHECK-NEXT:  %{{.*}} = sx.gelu %x {approximate = "tanh"}
// CHECK-NEXT:  return
func.func @outside(%x: tensor<5xf32>) -> tensor<5xf32> {
  %h = sx.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %one = sx.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %c = sx.constant {value = dense<0.044715> : tensor<f32>} : () -> tensor<f32>
  %s = sx.constant {value = dense<0.7978846> : tensor<f32>} : () -> tensor<f32>
  %0 = sx.mul %x, %x : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  %1 = sx.mul %0, %c : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  %2 = sx.add %1, %one : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  %3 = sx.mul %x, %s : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  %4 = sx.mul %3, %2 : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  %5 = sx.tanh %4 : (tensor<5xf32>) -> tensor<5xf32>
  %6 = sx.add %5, %one : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  %7 = sx.mul %x, %h : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  %8 = sx.mul %7, %6 : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  func.return %8 : tensor<5xf32>
}

// Case 4: the sum is an output, too.
// CHECK-LABEL: func.func @read
// CHECK-NOT:   sx.gelu
func.func @read(%x: tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
  %h = sx.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %one = sx.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %r = sx.constant {value = dense<0.70710677> : tensor<f32>} : () -> tensor<f32>
  %0 = sx.mul %x, %r : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  %1 = sx.erf %0 : (tensor<5xf32>) -> tensor<5xf32>
  %2 = sx.add %one, %1 : (tensor<f32>, tensor<5xf32>) -> tensor<5xf32>
  %3 = sx.mul %2, %h : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  %4 = sx.mul %x, %3 : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  func.return %4, %2 : tensor<5xf32>, tensor<5xf32>
}

// Not: another x inside, or another number.
// CHECK-LABEL: func.func @other
// CHECK-NOT:   sx.gelu
func.func @other(%x: tensor<5xf32>, %y: tensor<5xf32>) -> tensor<5xf32> {
  %h = sx.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %one = sx.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %r = sx.constant {value = dense<0.70710677> : tensor<f32>} : () -> tensor<f32>
  %0 = sx.mul %y, %r : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  %1 = sx.erf %0 : (tensor<5xf32>) -> tensor<5xf32>
  %2 = sx.add %one, %1 : (tensor<f32>, tensor<5xf32>) -> tensor<5xf32>
  %3 = sx.mul %2, %h : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  %4 = sx.mul %x, %3 : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  func.return %4 : tensor<5xf32>
}
