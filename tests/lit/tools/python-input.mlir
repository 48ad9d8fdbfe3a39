// A function of a Python file, by the signature that it carries or by one that is given.
// RUN: sardonyx-opt %S/Inputs/functions.py:dense | filecheck %s --check-prefix DENSE
// RUN: sardonyx-opt %S/Inputs/functions.py:twice --signature 'x: f32[n,3], y: f32[3]' --locations | filecheck %s --check-prefix TWICE
// RUN: not sardonyx-opt %S/Inputs/functions.py:twice 2>&1 | filecheck %s --check-prefix NONE
// RUN: not sardonyx-opt %S/Inputs/functions.py:thrice 2>&1 | filecheck %s --check-prefix NAME

// DENSE:      builtin.module attributes {sx.graph = "dense"} {
// DENSE-NEXT:   func.func @main(%x: tensor<?x37xf32, #sx.dims<batch, _>> {sx.name = "x"})
// DENSE-NEXT:     sx.constant {value = #sx.weight<"w">}
// DENSE-NEXT:     sx.matmul
// DENSE-NEXT:     sx.relu
// DENSE:      // The bytes of the weights
// DENSE-NEXT: //   "w": float32[37, 16], captured by {{.*}}functions.py:dense

// TWICE:      sx.mul %x, %y {{.*}} loc(callsite("{{.*}}functions.py":16:16 at "twice"))
// TWICE-NEXT: sx.add %x, %0 {{.*}} loc(callsite("{{.*}}functions.py":16:12 at "twice"))

// NONE: functions.py:twice: error: the signature of 'twice' is not known [INVALID_ARGUMENT]
// NONE-NEXT: hint: give one with --signature

// NAME: there is no function in '{{.*}}functions.py' called 'thrice'
// NAME-NEXT: hint: did you mean 'twice'?
