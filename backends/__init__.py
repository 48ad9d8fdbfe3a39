"""Ways to execute or emit a module: `reference`, `llvm`, `onnx`. Imports passes and dialects, never a frontend or a tool."""
