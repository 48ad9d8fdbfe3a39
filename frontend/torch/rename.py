"""Other names for a graph's dims."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from sardonyx.dialects.attributes import tensor_type, type_dims
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.module import main_function, sync_signature
from sardonyx.dialects.types import OptionalType, SequenceType, stored, symbols_of
from sardonyx.frontend.graph import ModelGraph
from sardonyx.frontend.torch.errors import invalid


def rename_symbols(graph: ModelGraph, mapping: Mapping[str, str]) -> ModelGraph:
    """A copy of the graph in which symbols have other names.

    Raises:
        InvalidArgumentError: No dim has that name, or a new name is another dim's.
    """
    made = graph.clone()
    known = {name for argument in main_function(made.module).body.block.args for name in symbols_of(argument.type)}
    for old, new in mapping.items():
        if old not in known:
            raise invalid(f"no dim of the graph's inputs is called '{old}'", hint=f"there are {sorted(known)}")
        if not isinstance(new, str) or not new or (new in known and new not in mapping):
            raise invalid(f"'{old}' cannot become {new!r}: a dim is called so already, or it is no name")
    changed = {old: Dim.symbol(new) for old, new in mapping.items()}
    for op in made.module.walk():
        for result in op.results:
            result._type = _renamed(result.type, changed)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.args:
                    argument._type = _renamed(argument.type, changed)
    sync_signature(main_function(made.module))
    return made


def _renamed(ty: Attribute, changed: Mapping[str, Dim]) -> Attribute:
    if isinstance(ty, SequenceType | OptionalType):
        if not isinstance(ty.element, TensorType):
            return type(ty)(_renamed(ty.element, changed))
        dims = [d.substitute(changed) for d in type_dims(ty.element)]
        return type(ty)(stored(ty.element, dims)) if symbols_of(ty) & set(changed) else ty
    if not isinstance(ty, TensorType) or not symbols_of(ty) & set(changed):
        return ty
    return tensor_type(ty.element_type, [d.substitute(changed) for d in type_dims(ty)])
