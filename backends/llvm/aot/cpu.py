"""What a CPU must have for a target's code, as tests that native code makes of itself before it runs.

On x86 CPUID says what there is, and XGETBV whether the operating system saves the registers of AVX and AVX-512. The
other targets' code needs no more than their baseline.
"""

from __future__ import annotations

from sardonyx.backends.llvm.codegen.text import Target

LEAF1_C, LEAF7_B, LEAF7_C, EXTENDED_C = (1, 0, "c"), (7, 0, "b"), (7, 0, "c"), (0x80000001, 0, "c")
FEATURE_BITS: dict[str, tuple[tuple[int, int, str], int]] = {
    "sse3": (LEAF1_C, 0), "ssse3": (LEAF1_C, 9), "fma": (LEAF1_C, 12), "cx16": (LEAF1_C, 13), "sse4.1": (LEAF1_C, 19),
    "sse4.2": (LEAF1_C, 20), "movbe": (LEAF1_C, 22), "popcnt": (LEAF1_C, 23), "xsave": (LEAF1_C, 26),
    "avx": (LEAF1_C, 28), "f16c": (LEAF1_C, 29),
    "bmi": (LEAF7_B, 3), "avx2": (LEAF7_B, 5), "bmi2": (LEAF7_B, 8), "avx512f": (LEAF7_B, 16),
    "avx512dq": (LEAF7_B, 17), "avx512cd": (LEAF7_B, 28), "avx512bw": (LEAF7_B, 30), "avx512vl": (LEAF7_B, 31),
    "avx512vbmi": (LEAF7_C, 1), "avx512vnni": (LEAF7_C, 11), "avx512vpopcntdq": (LEAF7_C, 14),
    "sahf": (EXTENDED_C, 0), "lzcnt": (EXTENDED_C, 5),
}  # fmt: skip
"""Feature → where CPUID has it: (leaf, sub-leaf, register) and bit. Intel 64 and IA-32 Architectures Software
Developer's Manual, volume 2A, CPUID."""
_YMM, _ZMM = 0x6, 0xE6
"""The parts of XCR0 that hold the state of AVX, and of AVX-512."""


def wanted_features(target: Target) -> list[str]:
    """The features of a target that can be missing."""
    listed = [f[1:] for f in target.features.split(",") if f.startswith("+")]
    return [f for f in listed if f in FEATURE_BITS]


def is_x86(target: Target) -> bool:
    return target.triple.split("-")[0] in ("x86_64", "amd64")


def supported(target: Target, name: str) -> str:
    """LLVM IR of `i1 name()`: whether this CPU runs the target's code."""
    lines = [f"define internal i1 @{name}() nounwind {{", "entry:"]
    if not is_x86(target):
        return "\n".join([*lines, "  ret i1 true", "}"])
    masks: dict[tuple[int, int, str], int] = {}
    features = wanted_features(target)
    for feature in features:
        place, bit = FEATURE_BITS[feature]
        masks[place] = masks.get(place, 0) | 1 << bit
    state = _ZMM if any(f.startswith("avx512") for f in features) else _YMM if "avx" in features else 0
    if state:
        masks[LEAF1_C] = masks.get(LEAF1_C, 0) | 1 << 27  # OSXSAVE, without which there is no XGETBV
    asm = '"={ax},={bx},={cx},={dx},{ax},{cx},~{dirflag},~{fpsr},~{flags}"'
    ok = "true"
    for number, ((leaf, sub, register), mask) in enumerate(sorted(masks.items())):
        signed, limit = (v - (1 << 32) if v >= 1 << 31 else v for v in (leaf, leaf & 0x80000000))
        wanted = mask - (1 << 32) if mask >= 1 << 31 else mask
        k = f"%l{number}"
        part = {"b": 1, "c": 2, "d": 3}[register]
        lines += [
            f'  {k}.top = call {{ i32, i32, i32, i32 }} asm sideeffect "cpuid", {asm}(i32 {limit}, i32 0)',
            f"  {k}.most = extractvalue {{ i32, i32, i32, i32 }} {k}.top, 0",
            f"  {k}.there = icmp uge i32 {k}.most, {signed}",
            f'  {k}.all = call {{ i32, i32, i32, i32 }} asm sideeffect "cpuid", {asm}(i32 {signed}, i32 {sub})',
            f"  {k}.word = extractvalue {{ i32, i32, i32, i32 }} {k}.all, {part}",
            f"  {k}.bits = and i32 {k}.word, {wanted}",
            f"  {k}.same = icmp eq i32 {k}.bits, {wanted}",
            f"  {k}.both = and i1 {k}.there, {k}.same",
            f"  {k}.ok = and i1 {ok}, {k}.both",
        ]
        ok = f"{k}.ok"
    if state:
        lines += [
            f"  br i1 {ok}, label %system, label %missing",
            "system:",
            '  %xcr = call { i32, i32 } asm sideeffect "xgetbv", "={ax},={dx},{cx},~{dirflag},~{fpsr},~{flags}"(i32 0)',
            "  %xcr.low = extractvalue { i32, i32 } %xcr, 0",
            f"  %xcr.bits = and i32 %xcr.low, {state}",
            f"  %xcr.ok = icmp eq i32 %xcr.bits, {state}",
            "  ret i1 %xcr.ok",
            "missing:",
            "  ret i1 false",
            "}",
        ]
        return "\n".join(lines)
    return "\n".join([*lines, f"  ret i1 {ok}", "}"])
