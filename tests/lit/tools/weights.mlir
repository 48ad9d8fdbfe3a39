// Weights go beside the text and are found again; without them, what doesn't need the bytes works.
// RUN: sardonyx-opt %S/Inputs/functions.py:dense -o %t.mlir
// RUN: sardonyx-opt %t.mlir | filecheck %s --check-prefix FILE
// RUN: sardonyx-opt %t.mlir -t llvm-ir | filecheck %s --check-prefix LLVM
// RUN: sardonyx-opt - -p cse < %t.mlir | filecheck %s --check-prefix BARE
// RUN: not sardonyx-opt - -t onnx < %t.mlir 2>&1 | filecheck %s --check-prefix MISSING
// RUN: sardonyx-opt - --weights %t.weights.safetensors -t llvm-ir < %t.mlir | filecheck %s --check-prefix LLVM

// FILE: sx.constant {value = #sx.weight<"w">}
// FILE: //   "w": float32[37, 16], 2368 bytes at {{[0-9]+}} of {{.*}}.weights.safetensors
// LLVM: define {{.*}}i64 @entry(
// BARE: //   "w": not here; --weights FILE gives them
// MISSING: error: the store holds no weight 'w' [FAILED_PRECONDITION]
// MISSING-NEXT: hint: give the weights' file (--weights)
