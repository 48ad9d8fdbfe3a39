"""Products of small integers that a contraction adds several at a time: pairs of int16, quads of bytes.

The instructions are those of AVX-512 VNNI and AVX-VNNI (`vpdpwssd`, `vpdpbusd`: unsigned bytes times signed ones), for
pairs also SSE2's `pmaddwd`; where there is none, the products are made one by one. Sums wrap around. SSSE3's
`pmaddubsw` adds two products of bytes to an int16, and is exact where these are known to fit.
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


BOUND = 128
"""What two signed bytes of one sign may add up to, so that 255 times as much is an int16."""


def has_bounded_quads(target: Target) -> bool:
    """Whether the target multiplies bytes that are bounded faster than pairs of int16."""
    on = set(target.features.split(","))
    needed = {128: "+ssse3", 256: "+avx2", 512: "+avx512bw"}[target.vector_bits]
    return target.triple.startswith("x86_64") and needed in on


def add_bounded_quads(b: FunctionBuilder, ty: LType, x: str, y: str, total: str) -> str:
    """As `add_quads`, where the first two products add up to an int16, and the last two."""
    names = {4: "ssse3.pmadd.ub.sw.128", 8: "avx2.pmadd.ub.sw", 16: "avx512.pmaddubs.w.512"}
    if not has_bounded_quads(b.target) or ty.lanes not in names or ty.lanes == dot_lanes(b.target):
        return add_quads(b, ty, x, y, total)
    octets, halves = LType("i8", 4 * ty.lanes), LType("i16", 2 * ty.lanes)
    operands = [(octets, b.bitcast(ty, v, octets)) for v in (x, y)]
    sums = b.intrinsic(f"llvm.x86.{names[ty.lanes]}", halves, operands, suffix="")
    return add_pairs(b, ty, b.bitcast(halves, sums, ty), b.bitcast(halves, b.const(halves, 1), ty), total)


def _dot(b: FunctionBuilder, name: str, ty: LType, x: str, y: str, total: str) -> str:
    operands = [(ty, total), (ty, x), (ty, y)]
    return b.intrinsic(f"llvm.x86.avx512.{name}.{32 * ty.lanes}", ty, operands, suffix="")


def _part(b: FunctionBuilder, ty: LType, value: str, part: int, bits: int, signed: bool) -> str:
    """Part number `part` of the i32 lanes, as i32."""
    left = 32 - bits * (part + 1)
    if left:
        value = b.binary("shl", ty, value, b.const(ty, left))
    return b.binary("ashr" if signed else "lshr", ty, value, b.const(ty, 32 - bits))
