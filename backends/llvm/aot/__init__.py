"""Ahead of time: a graph as a shared library, an object file, assembly or LLVM IR that needs no Python."""
