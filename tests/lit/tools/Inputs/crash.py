"""A pass that fails."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass


@dataclass(frozen=True)
class CrashPass(ModulePass):
    """Fail."""

    name = "test-crash"
    why: str = "no reason"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Fail."""
        raise ValueError(self.why)
