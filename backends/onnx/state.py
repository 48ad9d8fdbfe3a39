"""State in ONNX, which has none: refused, or made inputs and outputs."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from sardonyx.dialects import locations
from sardonyx.dialects.module import output_names, output_values
from sardonyx.dialects.sx.state import CacheAppendOp, StateOp, StateWriteOp
from sardonyx.errors import UnsupportedError
from sardonyx.passes.explicit_state import ExplicitStatePass


def state_as_io(module: ModuleOp, explicit: bool) -> None:
    """Make the graph's buffers inputs and outputs where that is asked for.

    Raises:
        UnsupportedError: It is not, and the graph has buffers.
    """
    found = [op for op in module.walk() if isinstance(op, StateOp)]
    if not found:
        return
    if explicit:
        ExplicitStatePass().execute(module)
        return
    op = next((op for op in found if isinstance(op, StateWriteOp | CacheAppendOp)), found[0])
    what = f"the buffer '{op.buffer_name}'"
    if isinstance(op, StateWriteOp):
        places = [k for k, v in enumerate(output_values(module)) if v is op.value]
        if places:  # the last is the one that the trace made
            what = f"the output '{output_names(module)[places[-1]]}'"
    raise UnsupportedError(
        f"export_onnx: the graph rewrites a state buffer (its update is {what}) in place, which ONNX cannot state; "
        "export the graph before attach_kv_cache, or trace the step with the cache as an input and its update as an "
        "output",
        code_name="NOT_IMPLEMENTED_FOR_PARAM",
        hint=f"explicit_state=True makes such buffers inputs and outputs of the model "
        f"(written at {locations.describe(op.location)})",
        op=op.name,
    )
