"""PyTorch: capture by torch.export, translation of ATen graphs to the `sx` dialect, and what surrounds an export."""
