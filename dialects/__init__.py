"""The IR: op definitions with their inference, semantics and ONNX form. Imports only `errors` of ours."""
