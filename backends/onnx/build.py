"""A graph as a model in memory: optimise a copy, choose the opset, legalise, emit, check."""

from __future__ import annotations

from functools import cache
from importlib import metadata

from xdsl.dialects.builtin import ModuleOp

from sardonyx.backends.onnx import metadata as metadata_of_model
from sardonyx.backends.onnx.check import check_model
from sardonyx.backends.onnx.custom import state_custom
from sardonyx.backends.onnx.emit import emit
from sardonyx.backends.onnx.inputs import weights_as_inputs
from sardonyx.backends.onnx.legalize import LegalizeForOpsetPass, OpsetError
from sardonyx.backends.onnx.messages import all_nodes
from sardonyx.backends.onnx.options import DEFAULT_OPSET, MAX_OPSET, MIN_OPSET, ExportOptions
from sardonyx.backends.onnx.skeleton import Skeleton, without_collector
from sardonyx.backends.onnx.state import state_as_io
from sardonyx.dialects.module import get_opset
from sardonyx.dialects.weights import WeightStore
from sardonyx.errors import UnsupportedError
from sardonyx.passes import registry
from sardonyx.passes.base import SxPass
from sardonyx.passes.pipeline import PassManager

CONTRIB = "com.microsoft"
OPTIMIZE = ("compose-transposes", "remove-dead-nodes")
"""The passes of `optimize=True`."""


def build(module: ModuleOp, store: WeightStore, options: ExportOptions) -> Skeleton:
    """The model of a graph, without its weights' contents; the graph is left as it is.

    Raises:
        UnsupportedError: An op has no form in the opset; names node, op, opset and the lowest opset that has one.
        ModelCheckError: ONNX's tools refuse the result.
    """
    with without_collector():
        work = module.clone()
        state_as_io(work, options.explicit_state)
        state_custom(work)
        if options.optimize:
            _optimize(work)
        if options.custom_opsets:
            metadata_of_model.set_domain_versions(work, options.custom_opsets)
        work, opset = _legalized(work, options.opset_version, get_opset(module))
        skeleton = emit(work, store, opset, options.producer_name or "sardonyx", _version())
    if not options.contrib_ops:
        _refuse_contrib(skeleton)
    if options.keep_initializers_as_inputs or not options.export_params:
        weights_as_inputs(skeleton, options.export_params)
    if options.check:
        check_model(skeleton.proto, skeleton.contents)
    return skeleton


def _refuse_contrib(skeleton: Skeleton) -> None:
    for node in all_nodes(skeleton.proto.graph):
        if node.domain == CONTRIB:
            raise UnsupportedError(
                f"{node.op_type} is an operator of {CONTRIB}, which contrib_ops=False rules out",
                location=f"node '{node.name}'",
            )


@cache
def _version() -> str:
    return metadata.version("sardonyx")


def _optimize(module: ModuleOp) -> None:
    for name in OPTIMIZE:
        optimization = registry.create(name)
        if not isinstance(optimization, SxPass):
            raise TypeError(f"{name} is not a pass of ours")
        PassManager([optimization]).run(module)


def _legalized(module: ModuleOp, named: int, own: int | None) -> tuple[ModuleOp, int]:
    """The module in the form of an opset, and the opset: the named one, else the lowest from the default up."""
    if named:
        PassManager([LegalizeForOpsetPass(named)]).run(module)
        return module, named
    opset = own if own is not None and MIN_OPSET <= own <= MAX_OPSET else DEFAULT_OPSET
    while True:
        work = module.clone()
        try:
            PassManager([LegalizeForOpsetPass(opset)]).run(work)
        except OpsetError as error:
            if error.lowest is None:
                raise
            opset = error.lowest
        else:
            return work, opset
