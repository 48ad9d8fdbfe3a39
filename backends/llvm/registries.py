"""Who emits and lowers which op: the tables that `@emits`, `@lowers` and `@scalar` fill.

They stand by themselves so that one can look who has registered without loading the code generator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.ir import Operation, SSAValue

Emitter = Callable[[Any, Any], None]
"""`emit(emitter, op)`: the emitter is a `KernelEmitter`, that of a plan for ops of plans."""
EMITTERS: dict[type[Operation], Emitter] = {}

Lowering = Callable[[Any, Any], None]
"""`lower(plan, op)`: makes kernels and gives each result its buffer."""
LOWERINGS: dict[type[Operation], Lowering] = {}

ScalarBody = Callable[..., SSAValue]
"""`body(b, op, *operand scalars) -> SSAValue`: operands come in `compute_dtype` of their dtype, None where absent; the
result is in the compute dtype of the op's result and is rounded to the result's dtype by the caller."""
SCALARS: dict[type[Operation], ScalarBody] = {}
