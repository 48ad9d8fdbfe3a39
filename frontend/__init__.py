"""What users call: tensors, tracing, functions, graphs, ONNX import. Imports everything below, never a tool."""
