"""The kernel dialect to LLVM text: a table of emitters, one per op, and vector math. Knows no tensors and no graphs."""
