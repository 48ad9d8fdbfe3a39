"""Emits ONNX models from the ops' ONNX forms. Imports `onnx`, lazily; decides nothing that a dialect pass could."""
