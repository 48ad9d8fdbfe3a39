"""Products of small integers that a contraction adds several at a time: pairs of int16, quads of bytes.

The instructions are those of AVX-512 VNNI and AVX-VNNI (`vpdpwssd`, `vpdpbusd`: unsigned bytes times signed ones), for
pairs also SSE2's `pmaddwd`; where there is none, the products are made one by one. Sums wrap around.
"""

from __future__ import annotations

from sardonyx.backends.llvm.codegen.text import FunctionBuilder, LType, Target


def dot_lanes(target: Target) -> int:
    """The lanes of int32 for which the target multiplies and adds in one instruction; 0 where it has none."""
    features = set(target.features.split(","))
    if target.vector_bits == 512 and "+avx512vnni" in features:
        return 16
    if target.vector_bits == 256 and features & {"+avxvnni", "+avx512vnni"}:
        return 8 if "+avxvnni" in features or "+avx512vl" in features else 0
    return 0


def add_pairs(b: FunctionBuilder, ty: LType, x: str, y: str, total: str) -> str:
    """total + x0 * y0 + x1 * y1 per lane, for i32 lanes that hold two int16."""
    target = b.target
    on = set(target.features.split(","))
    if ty.lanes and ty.lanes == dot_lanes(target):
        return _dot(b, "vpdpwssd", ty, x, y, total)
    names = {4: "llvm.x86.sse2.pmadd.wd", 8: "llvm.x86.avx2.pmadd.wd", 16: "llvm.x86.avx512.pmaddw.d.512"}
    if target.triple.startswith("x86_64") and ty.lanes in names and (ty.lanes < 16 or "+avx512bw" in on):
        halves = LType("i16", 2 * ty.lanes)
        operands = [(halves, b.bitcast(ty, v, halves)) for v in (x, y)]
        return b.binary("add", ty, total, b.intrinsic(names[ty.lanes], ty, operands, suffix=""))
    for part in range(2):
        product = b.binary("mul", ty, _part(b, ty, x, part, 16, True), _part(b, ty, y, part, 16, True))
        total = b.binary("add", ty, total, product)
    return total


def add_quads(b: FunctionBuilder, ty: LType, x: str, y: str, total: str) -> str:
    """total + the products of the four unsigned bytes of x and the signed ones of y, per i32 lane."""
    if ty.lanes and ty.lanes == dot_lanes(b.target):
        return _dot(b, "vpdpbusd", ty, x, y, total)
    for part in range(4):
        product = b.binary("mul", ty, _part(b, ty, x, part, 8, False), _part(b, ty, y, part, 8, True))
        total = b.binary("add", ty, total, product)
    return total


def _dot(b: FunctionBuilder, name: str, ty: LType, x: str, y: str, total: str) -> str:
    operands = [(ty, total), (ty, x), (ty, y)]
    return b.intrinsic(f"llvm.x86.avx512.{name}.{32 * ty.lanes}", ty, operands, suffix="")


def _part(b: FunctionBuilder, ty: LType, value: str, part: int, bits: int, signed: bool) -> str:
    """Part number `part` of the i32 lanes, as i32."""
    left = 32 - bits * (part + 1)
    if left:
        value = b.binary("shl", ty, value, b.const(ty, left))
    return b.binary("ashr" if signed else "lshr", ty, value, b.const(ty, 32 - bits))
