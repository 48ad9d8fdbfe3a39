// Passes of the user's own.
// RUN: sardonyx-opt %s --load %S/Inputs/rename.py -p 'test-rename-graph{to=other},cse' --verify-each | filecheck %s
// RUN: sardonyx-opt --load %S/Inputs/rename.py --list-passes | filecheck %s --check-prefix LIST

// CHECK: builtin.module attributes {sx.graph = "other"}
// LIST:      {{^}}test-rename-graph
// LIST-NEXT:     Rename the graph
// LIST-NEXT:     from: {{.*}}rename.py
// LIST-NEXT:     options: to: str = renamed
func.func @main() {
  func.return
}
