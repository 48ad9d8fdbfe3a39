// What fails leaves a file that fails again; it names the files that were loaded, and does not load them.
// RUN: not sardonyx-opt %s --load %S/Inputs/crash.py -p 'cse,test-crash{why=fun},cse' --crash-reproducer %t 2>&1 | filecheck %s
// RUN: filecheck %s --check-prefix FILE < %t
// RUN: not sardonyx-opt --run-reproducer %t --load %S/Inputs/crash.py 2>&1 | filecheck %s
// RUN: not sardonyx-opt --run-reproducer %t 2>&1 | filecheck %s --check-prefix REFUSED

// CHECK: error: pass 'test-crash' failed: ValueError: fun [INTERNAL]

// FILE:      // sardonyx-opt reproducer; run it with: sardonyx-opt --run-reproducer
// FILE-NEXT: // sardonyx-opt: -p 'test-crash{why=fun},cse'
// FILE-NEXT: // loaded: {{.*}}crash.py
// FILE-NEXT: builtin.module

// REFUSED: hint: if you trust it, add --load
func.func @main() {
  func.return
}
