"""The IR's type of a string: an element of tensors, like `f32`."""

from __future__ import annotations

from xdsl.ir import ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition


@irdl_attr_definition
class StringType(ParametrizedAttribute, TypeAttribute):
    """A text of any length; `tensor<2x!sx.string>` holds two."""

    name = "sx.string"
