"""What a node computes, as a hash: its operator, attributes, regions and constants, and where it reads what.

Names play no part. Two nodes with equal digests that read equal values compute the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from io import StringIO

import numpy as np
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.printer import Printer

from sardonyx.dialects.sx.constant import ConstantOp


def node_digest(op: Operation, describe: Callable[[SSAValue], str]) -> str:
    """The hash of a node; `describe` says what a value is that comes from outside it."""
    digest = hashlib.sha256()
    local: dict[SSAValue, str] = {}

    def feed(inner: Operation) -> None:
        digest.update(inner.name.encode())
        if isinstance(inner, ConstantOp):
            digest.update(constant_digest(inner).encode())
        else:
            digest.update(", ".join(attributes_of(inner)).encode())
        for operand in inner.operands:
            known = local.get(operand)
            digest.update(f" {describe(operand) if known is None else known}".encode())
        for region in inner.regions:
            digest.update(b"{")
            for block in region.blocks:
                local.update({argument: f"%{len(local) + i}" for i, argument in enumerate(block.args)})
                for nested in block.ops:
                    feed(nested)
                    local.update({result: f"%{len(local) + i}" for i, result in enumerate(nested.results)})
            digest.update(b"}")

    feed(op)
    return digest.hexdigest()


def constant_digest(op: ConstantOp) -> str:
    """The hash of a constant's dtype, shape and contents."""
    array = np.ascontiguousarray(op.array())
    if array.dtype.kind in "OSU":
        return hashlib.sha256(f"{array.shape} {array.tolist()}".encode()).hexdigest()
    content = hashlib.blake2b(array.reshape(-1).view(np.uint8).data if array.size else b"", digest_size=16)
    return f"{array.dtype} {op.array().shape} {content.hexdigest()}"


def attributes_of(op: Operation) -> list[str]:
    """The attributes of a node as `name=value` texts, in a fixed order."""
    found = {k: _text(v) for k, v in op.properties.items() if k != "operandSegmentSizes"}
    return [f"{k}={v}" for k, v in sorted(found.items())]


def _text(attribute: Attribute) -> str:
    out = StringIO()
    Printer(out).print_attribute(attribute)
    return out.getvalue()
