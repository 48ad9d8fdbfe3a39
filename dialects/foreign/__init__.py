"""Reference semantics of ops of upstream's dialects: arith, func, scf, tensor, and named and generic ops of linalg.

Integers are signless: they are held as signed ones and wrap around. What MLIR leaves undefined (a division by zero, a
shift by the width or more) ends the run with an error.
"""
