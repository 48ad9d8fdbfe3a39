"""A pass that talks, and a target."""

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from sardonyx.passes.base import PassRun, SxPass
from sardonyx.tools.extensions import Target


@dataclass(frozen=True)
class RemarkPass(SxPass):
    """Remark on each exponential."""

    name = "test-remark"
    warn: bool = False

    def run(self, module: ModuleOp, run: PassRun) -> None:
        """Talk; nothing changes."""
        for op in module.walk():
            if op.name == "sx.exp":
                run.remark("found", f"an {op.name}", op)
                if self.warn:
                    run.warn("looks expensive", op)


COUNT = Target("op-count", "the number of ops", lambda module: f"{sum(1 for _ in module.walk())}\n")
