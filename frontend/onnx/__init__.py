"""ONNX models into the tensor dialect. Imports `onnx`, lazily."""
