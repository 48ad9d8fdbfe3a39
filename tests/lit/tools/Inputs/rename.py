"""A pass that a user adds with --load."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass


@dataclass(frozen=True)
class RenameGraphPass(ModulePass):
    """Rename the graph."""

    name = "test-rename-graph"

    to: str = "renamed"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        op.attributes["sx.graph"] = StringAttr(self.to)
