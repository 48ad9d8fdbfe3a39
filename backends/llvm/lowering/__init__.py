"""The tensor level to the kernel dialect, as passes: decomposition, fusion regions, kernels, the plan."""
