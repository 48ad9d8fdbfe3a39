"""Tensor values that are a part of a larger buffer: read where they lie, by strides, or copied by who cannot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.plan import Plan
from sardonyx.backends.llvm.lowering.region import axis, copy_region, row_major
from sardonyx.dialects.attributes import dims_of
from sardonyx.dialects.dims import Dim, Proof, equal


@dataclass(frozen=True)
class Strided:
    """The elements of a value lie in a plan-level buffer, each axis by its stride."""

    buffer: SSAValue
    strides: tuple[Dim, ...]

    def permuted(self, perm: Sequence[int]) -> Strided:
        return Strided(self.buffer, tuple(self.strides[p] for p in perm))


def give(plan: Plan, value: SSAValue, there: Strided) -> None:
    """Say where the elements of a value are. One that is contiguous shares the buffer; an output is copied at once."""
    dims = dims_of(value)
    plan.strided[value] = there
    if value in plan._output_numbers:
        copied(plan, value)
    elif _is_contiguous(dims, there.strides):
        plan._buffers[value] = there.buffer


def find(plan: Plan, value: SSAValue) -> Strided | None:
    """Where the elements of a value are, if they are not contiguous; None for any other."""
    return None if value in plan._buffers else plan.strided.get(value)


def copied(plan: Plan, value: SSAValue) -> SSAValue:
    """A buffer with the elements of a value in order."""
    there, dims = plan.strided[value], dims_of(value)
    target = plan.new_buffer(value)
    axes = [axis(d, s, t) for d, s, t in zip(dims, there.strides, row_major(dims), strict=True)]
    copy_region(plan, "gather_rows", axes, there.buffer, target)
    return target


def _is_contiguous(dims: Sequence[Dim], strides: Sequence[Dim]) -> bool:
    return all(
        d.static_value == 1 or equal(s, t) is Proof.PROVED
        for d, s, t in zip(dims, strides, row_major(dims), strict=True)
    )
