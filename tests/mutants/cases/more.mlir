// What the lit files of the passes lack: cases in which a guard is all that keeps a value.
func.func @fold_sub(%x: tensor<1x2x3x3xf32>) -> (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) {
  %w = sx.constant {value = dense<[[[[1.5]], [[-2.0]]], [[[0.5]], [[3.0]]]]> : tensor<2x2x1x1xf32>} : () -> tensor<2x2x1x1xf32>
  %v = sx.constant {value = dense<[[[[1.0]], [[2.0]]], [[[3.0]], [[4.0]]]]> : tensor<2x2x1x1xf32>} : () -> tensor<2x2x1x1xf32>
  %u = sx.constant {value = dense<[[[[1.0]], [[2.5]]], [[[3.0]], [[4.0]]]]> : tensor<2x2x1x1xf32>} : () -> tensor<2x2x1x1xf32>
  %t = sx.constant {value = dense<[[[[1.0]], [[2.5]]], [[[3.5]], [[4.0]]]]> : tensor<2x2x1x1xf32>} : () -> tensor<2x2x1x1xf32>
  %c = sx.constant {value = dense<[[[3.0]], [[-5.0]]]> : tensor<2x1x1xf32>} : () -> tensor<2x1x1xf32>
  %0 = sx.conv %x, %w : (tensor<1x2x3x3xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x3x3xf32>
  %1 = sx.sub %0, %c : (tensor<1x2x3x3xf32>, tensor<2x1x1xf32>) -> tensor<1x2x3x3xf32>
  %2 = sx.conv %x, %v : (tensor<1x2x3x3xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x3x3xf32>
  %3 = sx.sub %c, %2 : (tensor<2x1x1xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %4 = sx.conv %x, %u : (tensor<1x2x3x3xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x3x3xf32>
  %5 = sx.div %4, %c : (tensor<1x2x3x3xf32>, tensor<2x1x1xf32>) -> tensor<1x2x3x3xf32>
  %6 = sx.conv %x, %t : (tensor<1x2x3x3xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x3x3xf32>
  %7 = sx.div %c, %6 : (tensor<2x1x1xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  func.return %1, %3, %5, %7 : tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>
}

func.func @divided_by_zero(%x: tensor<1x2x3xf32>) -> tensor<1x2x3xf32> {
  %w = sx.constant {value = dense<[[[1.5], [-2.0]], [[0.5], [3.0]]]> : tensor<2x2x1xf32>} : () -> tensor<2x2x1xf32>
  %c = sx.constant {value = dense<[[3.0], [0.0]]> : tensor<2x1xf32>} : () -> tensor<2x1xf32>
  %0 = sx.conv %x, %w : (tensor<1x2x3xf32>, tensor<2x2x1xf32>) -> tensor<1x2x3xf32>
  %1 = sx.div %0, %c : (tensor<1x2x3xf32>, tensor<2x1xf32>) -> tensor<1x2x3xf32>
  func.return %1 : tensor<1x2x3xf32>
}

func.func @training(%x: tensor<4x2x3xf32>) -> (tensor<4x2x3xf32>, tensor<2xf32>) {
  %w = sx.constant {value = dense<[[[1.5], [-2.0]], [[0.5], [3.0]]]> : tensor<2x2x1xf32>} : () -> tensor<2x2x1xf32>
  %s = sx.constant {value = dense<[1.5, 2.5]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = sx.conv %x, %w : (tensor<4x2x3xf32>, tensor<2x2x1xf32>) -> tensor<4x2x3xf32>
  %y, %m, %n = sx.batch_norm %0, %s, %s, %s, %s {training_mode = true} : (tensor<4x2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<4x2x3xf32>, tensor<2xf32>, tensor<2xf32>)
  func.return %y, %s : tensor<4x2x3xf32>, tensor<2xf32>
}

func.func @along_another_axis(%x: tensor<1x2x2xf32>) -> tensor<1x2x2xf32> {
  %w = sx.constant {value = dense<[[[1.5], [-2.0]], [[0.5], [3.0]]]> : tensor<2x2x1xf32>} : () -> tensor<2x2x1xf32>
  %c = sx.constant {value = dense<[3.0, -5.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = sx.conv %x, %w : (tensor<1x2x2xf32>, tensor<2x2x1xf32>) -> tensor<1x2x2xf32>
  %1 = sx.mul %0, %c : (tensor<1x2x2xf32>, tensor<2xf32>) -> tensor<1x2x2xf32>
  func.return %1 : tensor<1x2x2xf32>
}

func.func @where_broadcasts(%x: tensor<?xf32, #sx.dims<m>>, %y: tensor<?xf32, #sx.dims<n>>) -> tensor<?xf32> {
  %c = sx.constant {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %0 = sx.where %c, %x, %y : (tensor<i1>, tensor<?xf32, #sx.dims<m>>, tensor<?xf32, #sx.dims<n>>) -> tensor<?xf32>
  func.return %0 : tensor<?xf32>
}

func.func @neutral_broadcasts(%x: tensor<?xf32, #sx.dims<m>>, %y: tensor<?xf32, #sx.dims<n>>) -> (tensor<?x3xf32>, tensor<3xf32>) {
  %one = sx.constant {value = dense<1.0> : tensor<3xf32>} : () -> tensor<3xf32>
  %zero = sx.constant {value = dense<0.0> : tensor<3xf32>} : () -> tensor<3xf32>
  %k = sx.constant {value = dense<[-1, 1]> : tensor<2xi64>} : () -> tensor<2xi64>
  %a = sx.reshape %x, %k : (tensor<?xf32, #sx.dims<m>>, tensor<2xi64>) -> tensor<?x1xf32>
  %0 = sx.mul %a, %one : (tensor<?x1xf32>, tensor<3xf32>) -> tensor<?x3xf32>
  %1 = sx.sub %zero, %one : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return %0, %1 : tensor<?x3xf32>, tensor<3xf32>
}

func.func @parts_of_two_sizes(%x: tensor<6xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<2xf32>, tensor<2xf32>) {
  %0, %1 = sx.split %x {axis = 0 : i64, num_outputs = 2 : i64} : (tensor<6xf32>) -> (tensor<3xf32>, tensor<3xf32>)
  %2, %3, %4 = sx.split %x {axis = 0 : i64, num_outputs = 3 : i64} : (tensor<6xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
  func.return %0, %1, %3, %4 : tensor<3xf32>, tensor<3xf32>, tensor<2xf32>, tensor<2xf32>
}

func.func @unlike_attributes(%x: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>) {
  %0 = sx.softmax %x {axis = 0 : i64} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %1 = sx.softmax %x {axis = 1 : i64} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %2 = sx.softmax %x : (tensor<3x3xf32>) -> tensor<3x3xf32>
  func.return %0, %1, %2 : tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>
}

func.func @slices_with_unknown_ends(%x: tensor<4x4xf32>, %e: tensor<1xi64>, %a: tensor<1xi64>) -> (tensor<?x2xf32>, tensor<?x?xf32>) {
  %0 = sx.constant {value = dense<[0]> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.constant {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
  %3 = sx.constant {value = dense<[3]> : tensor<1xi64>} : () -> tensor<1xi64>
  %4 = sx.slice %x, %0, %e, %0 : (tensor<4x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x4xf32>
  %5 = sx.slice %4, %1, %3, %1 : (tensor<?x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2xf32>
  %6 = sx.slice %x, %0, %3, %a : (tensor<4x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x?xf32>
  %7 = sx.slice %6, %1, %3, %1 : (tensor<?x?xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x?xf32>
  func.return %5, %7 : tensor<?x2xf32>, tensor<?x?xf32>
}

func.func @first_and_last_elements(%x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<1xf32>, tensor<2x2xf32>) {
  %first = sx.constant {value = dense<-2> : tensor<i64>} : () -> tensor<i64>
  %last = sx.constant {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %0 = sx.sequence_construct %x, %y : (tensor<2xf32>, tensor<2xf32>) -> !sx.seq<tensor<2xf32>>
  %1 = sx.sequence_at %0, %first : (!sx.seq<tensor<2xf32>>, tensor<i64>) -> tensor<2xf32>
  %2 = sx.sequence_at %0, %last : (!sx.seq<tensor<2xf32>>, tensor<i64>) -> tensor<2xf32>
  %3 = sx.split_to_sequence %x {axis = 0 : i64} : (tensor<2xf32>) -> !sx.seq<tensor<1xf32>>
  %4 = sx.sequence_at %3, %first : (!sx.seq<tensor<1xf32>>, tensor<i64>) -> tensor<1xf32>
  %5 = sx.concat_from_sequence %0 {axis = 1 : i64, new_axis = true} : (!sx.seq<tensor<2xf32>>) -> tensor<2x2xf32>
  func.return %1, %2, %4, %5 : tensor<2xf32>, tensor<2xf32>, tensor<1xf32>, tensor<2x2xf32>
}

func.func @saturates_where_integers_wrap(%x: tensor<4xi32>, %y: tensor<4xf32>) -> (tensor<4xi8>, tensor<4xi8>, tensor<4xui8>) {
  %0 = sx.cast %x {to = f64} : (tensor<4xi32>) -> tensor<4xf64>
  %1 = sx.cast %0 {to = i8} : (tensor<4xf64>) -> tensor<4xi8>
  %2 = sx.cast %y {to = i32} : (tensor<4xf32>) -> tensor<4xi32>
  %3 = sx.cast %2 {to = i8} : (tensor<4xi32>) -> tensor<4xi8>
  %4 = sx.cast %x {to = i16} : (tensor<4xi32>) -> tensor<4xi16>
  %5 = sx.cast %4 {to = ui8} : (tensor<4xi16>) -> tensor<4xui8>
  func.return %1, %3, %5 : tensor<4xi8>, tensor<4xi8>, tensor<4xui8>
}

func.func @slices_with_steps(%x: tensor<6x8xf32>) -> tensor<2x3xf32> {
  %0 = sx.constant {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = sx.constant {value = dense<[5]> : tensor<1xi64>} : () -> tensor<1xi64>
  %2 = sx.constant {value = dense<[0]> : tensor<1xi64>} : () -> tensor<1xi64>
  %3 = sx.constant {value = dense<[2]> : tensor<1xi64>} : () -> tensor<1xi64>
  %4 = sx.constant {value = dense<[7]> : tensor<1xi64>} : () -> tensor<1xi64>
  %5 = sx.constant {value = dense<[3]> : tensor<1xi64>} : () -> tensor<1xi64>
  %6 = sx.slice %x, %0, %1, %2, %3 : (tensor<6x8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2x8xf32>
  %7 = sx.slice %6, %2, %4, %0, %5 : (tensor<2x8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2x3xf32>
  func.return %7 : tensor<2x3xf32>
}

func.func @groups(%x: tensor<1x4x3xf32>) -> tensor<1x6x3xf32> {
  %w = sx.constant {value = dense<[[[1.0], [2.0], [3.0]], [[4.0], [5.0], [6.0]], [[7.0], [8.0], [9.0]], [[1.5], [2.5], [3.5]]]> : tensor<4x3x1xf32>} : () -> tensor<4x3x1xf32>
  %c = sx.constant {value = dense<[[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]]> : tensor<6x1xf32>} : () -> tensor<6x1xf32>
  %0 = sx.conv_transpose %x, %w {group = 2 : i64} : (tensor<1x4x3xf32>, tensor<4x3x1xf32>) -> tensor<1x6x3xf32>
  %1 = sx.mul %0, %c : (tensor<1x6x3xf32>, tensor<6x1xf32>) -> tensor<1x6x3xf32>
  func.return %1 : tensor<1x6x3xf32>
}
