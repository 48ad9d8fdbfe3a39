"""Rewrites of the tensor level, one pass a file, and the registry and driver that run them. Imports dialects."""
