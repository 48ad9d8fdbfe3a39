"""Proof that a model computes what its source does: comparison, bindings, executions, the first node that differs."""
