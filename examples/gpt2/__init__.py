"""A GPT-2-like model: written with `sardonyx.nn`, run natively with a cache, exported to ONNX."""
