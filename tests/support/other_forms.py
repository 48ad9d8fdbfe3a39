"""Runs on this machine what the generator writes for another one.

A target's features decide which vectors, masks, tiles and instructions a kernel is made of. Inside of `other_forms`
graphs are compiled in the forms of another machine, by LLVM for this one: it splits vectors that are wider than its
registers, and what an instruction of the other machine does is a function in plain LLVM IR (`INSTRUCTIONS`). Where the
IR says that a vector is aligned, that is checked. What this cannot show is which instructions LLVM selects for the
other machine; tests look at its assembly for that.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterator
from typing import Any

from sardonyx.backends.llvm import compile as compiling
from sardonyx.backends.llvm.codegen.targets import resolve_target
from sardonyx.backends.llvm.codegen.text import Target
from sardonyx.backends.llvm.interface import AS_USUAL, EntryOptions
from sardonyx.backends.llvm.runtime import jit, objects

FORMS = {
    "avx512": ("x86-64-v4", ""), "avx512-vnni": ("x86-64-v4", "+avx512vnni"), "avx2": ("x86-64-v3", ""),
    "avx2-vnni": ("x86-64-v3", "+avxvnni"), "baseline": ("x86-64-v2", ""), "neon": ("aarch64", ""),
}  # fmt: skip
"""A target's name and further features, by the name of its forms."""
_CPU = "forms of "


def forms_target(name: str) -> Target:
    """The target whose forms are meant; its code is for this machine, so it is never that of the target itself."""
    target = resolve_target(*FORMS[name])
    return dataclasses.replace(target, cpu=_CPU + name)


@contextlib.contextmanager
def other_forms(name: str) -> Iterator[Target]:
    """Inside, graphs are compiled in these forms; yields the target, for what takes one."""
    target = forms_target(name)
    compile_native, emit_object = compiling.compile_native, objects.emit_object

    def compile_in_forms(
        module: Any, chosen: Target | None = None, options: EntryOptions = AS_USUAL, fast_conv: bool = False
    ) -> Any:
        return compile_native(module, chosen or target, options, fast_conv)

    def emit_here(chosen: Target, text: str, level: int = 2) -> bytes:
        if chosen.cpu.startswith(_CPU):
            chosen, text, level = jit.native_target(), for_this_machine(text), 0  # the generator's work, not LLVM's
        return emit_object(chosen, text, level)

    compiling.compile_native, objects.emit_object = compile_in_forms, emit_here
    try:
        yield target
    finally:
        compiling.compile_native, objects.emit_object = compile_native, emit_object


def for_this_machine(text: str) -> str:
    """LLVM IR for another machine as IR for this one: the triple, and functions for the other's instructions."""
    text = re.sub(r"^target triple = .*$", f'target triple = "{jit.native_target().triple}"', text, flags=re.MULTILINE)
    for declaration, name in re.findall(r"^(declare [^\n]*@llvm\.(x86\.[\w.]+)\([^\n]*\n)", text, re.MULTILINE):
        body = {**INSTRUCTIONS, **FENCES}.get(name)
        if body is not None:
            text = text.replace(declaration, "").replace(f"@llvm.{name}(", f"@{name}(") + body
    return _with_checked_alignment(text)


_ALIGNED = re.compile(r"^  (?:%\S+ = load <[^>]*>|store <[^>]*> .*?), ptr (%\S+), align (\d+).*$", re.MULTILINE)
_WIDEST_ELEMENT = 8


def _with_checked_alignment(text: str) -> str:
    """Vectors that are said to be aligned are, or the run ends in a trap: this machine may not mind what others do."""
    count = 0

    def check(found: re.Match[str]) -> str:
        nonlocal count
        pointer, alignment = found[1], int(found[2])
        if alignment <= _WIDEST_ELEMENT:
            return found[0]
        count += 1
        lines = [
            f"  %at.{count} = ptrtoint ptr {pointer} to i64",
            f"  call void @forms.aligned(i64 %at.{count}, i64 {alignment - 1})",
        ]
        return "\n".join([*lines, found[0]])

    text = _ALIGNED.sub(check, text)
    return text + _CHECK if count else text


_CHECK = """
declare void @llvm.trap()
define internal void @forms.aligned(i64 %at, i64 %mask) {
  %beside = and i64 %at, %mask
  %ok = icmp eq i64 %beside, 0
  br i1 %ok, label %yes, label %no
no:
  call void @llvm.trap()
  unreachable
yes:
  ret void
}
"""


# ---- instructions as functions


def _parts(value: str, ty: str, lanes: int, groups: int) -> tuple[list[str], list[str]]:
    """Lines that take a vector apart, and the names of its parts: part k has lanes k, groups + k, ..."""
    names = [f"%{value}{k}" for k in range(groups)]
    lines: list[str] = []
    for k, name in enumerate(names):
        chosen = ", ".join(f"i32 {groups * lane + k}" for lane in range(lanes))
        lines.append(
            f"  {name} = shufflevector <{groups * lanes} x {ty}> %{value}, <{groups * lanes} x {ty}> poison, "
            f"<{lanes} x i32> <{chosen}>"
        )
    return lines, names


def _products(bits: int, count: int, unsigned_first: bool) -> list[str]:
    """Lines for `%p`, the products of `%x` and `%y`, `count` integers of `bits` bits, as i32."""
    narrow, wide = f"<{count} x i{bits}>", f"<{count} x i32>"
    return [
        f"  %a = {'zext' if unsigned_first else 'sext'} {narrow} %x to {wide}",
        f"  %b = sext {narrow} %y to {wide}",
        f"  %p = mul {wide} %a, %b",
    ]


def _sum(ty: str, terms: list[str]) -> tuple[list[str], str]:
    """Lines that add values up, and the name of the sum."""
    lines, total = [], terms[0]
    for k, term in enumerate(terms[1:]):
        lines.append(f"  %sum{k} = add {ty} {total}, {term}")
        total = f"%sum{k}"
    return lines, total


def _function(name: str, result: str, arguments: str, lines: list[str], value: str) -> str:
    body = "\n".join(lines)
    return f"\ndefine internal {result} @{name}({arguments}) {{\n{body}\n  ret {result} {value}\n}}\n"


def _pmaddwd(name: str, lanes: int) -> str:
    """Pairs of products of int16, added."""
    ty, narrow = f"<{lanes} x i32>", f"<{2 * lanes} x i16>"
    apart, parts = _parts("p", "i32", lanes, 2)
    lines, total = _sum(ty, parts)
    return _function(name, ty, f"{narrow} %x, {narrow} %y", [*_products(16, 2 * lanes, False), *apart, *lines], total)


def _pmaddubsw(name: str, lanes: int) -> str:
    """Pairs of products of unsigned bytes and signed ones, added to int16 that saturate."""
    ty, narrow, count = f"<{2 * lanes} x i32>", f"<{4 * lanes} x i8>", 2 * lanes
    apart, parts = _parts("p", "i32", count, 2)
    lines, total = _sum(ty, parts)
    lines += [
        f"  %low = icmp slt {ty} {total}, splat (i32 -32768)",
        f"  %above = select <{count} x i1> %low, {ty} splat (i32 -32768), {ty} {total}",
        f"  %high = icmp sgt {ty} %above, splat (i32 32767)",
        f"  %clamped = select <{count} x i1> %high, {ty} splat (i32 32767), {ty} %above",
        f"  %short = trunc {ty} %clamped to <{count} x i16>",
    ]
    arguments = f"{narrow} %x, {narrow} %y"
    return _function(name, f"<{count} x i16>", arguments, [*_products(8, 4 * lanes, True), *apart, *lines], "%short")


def _dot(bits: int) -> Callable[[str, int], str]:
    """A sum plus the products of the integers of `bits` bits in each lane; of bytes, the first are unsigned."""

    def define(name: str, lanes: int) -> str:
        groups, ty = 32 // bits, f"<{lanes} x i32>"
        narrow = f"<{groups * lanes} x i{bits}>"
        cast = [f"  %{v} = bitcast {ty} %{v}.whole to {narrow}" for v in "xy"]
        apart, parts = _parts("p", "i32", lanes, groups)
        lines, total = _sum(ty, ["%total", *parts])
        body = [*cast, *_products(bits, groups * lanes, bits == 8), *apart, *lines]
        return _function(name, ty, f"{ty} %total, {ty} %x.whole, {ty} %y.whole", body, total)

    return define


_NAMED: list[tuple[Callable[[str, int], str], dict[int, str]]] = [
    (_pmaddwd, {4: "x86.sse2.pmadd.wd", 8: "x86.avx2.pmadd.wd", 16: "x86.avx512.pmaddw.d.512"}),
    (_pmaddubsw, {4: "x86.ssse3.pmadd.ub.sw.128", 8: "x86.avx2.pmadd.ub.sw", 16: "x86.avx512.pmaddubs.w.512"}),
    (_dot(16), {lanes: f"x86.avx512.vpdpwssd.{32 * lanes}" for lanes in (4, 8, 16)}),
    (_dot(8), {lanes: f"x86.avx512.vpdpbusd.{32 * lanes}" for lanes in (4, 8, 16)}),
]
FENCES = {"x86.sse.sfence": "\ndefine internal void @x86.sse.sfence() {\n  fence seq_cst\n  ret void\n}\n"}
INSTRUCTIONS = {name: define(name, lanes) for define, names in _NAMED for lanes, name in names.items()}
"""Definitions by the intrinsics' names, without `llvm.`."""
