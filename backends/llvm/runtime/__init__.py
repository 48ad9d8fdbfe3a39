"""Compiles, caches, loads and calls native entries: the JIT, the arena, the pool, the status codes."""
