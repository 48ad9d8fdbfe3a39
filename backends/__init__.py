"""Ways to execute or emit a module: `reference`, `llvm`, `onnx`. Imports passes and dialects, no frontend or tool."""
