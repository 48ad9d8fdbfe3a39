"""Native execution: kernel dialect to LLVM text to machine code. The only room that imports llvmlite."""
