"""The loop-level dialect: kernels with an iteration space, a scalar body and a schedule. Knows no tensors."""
