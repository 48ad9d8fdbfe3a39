"""Where a library's weights are: in a section of its own, or in a file beside it; and the text of LLVM modules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class WeightsFile:
    """A file beside the library that has the weights: its name, its bytes, and what it begins with."""

    name: str
    size: int
    head: bytes


def escaped(data: bytes) -> str:
    """The contents of an LLVM string."""
    return "".join(chr(c) if 32 <= c < 127 and c not in (34, 92) else f"\\{c:02X}" for c in data)


class RuntimeText:
    """Globals and functions under construction."""

    def __init__(self) -> None:
        self.globals: list[str] = []
        self.functions: list[str] = []
        self._strings: dict[bytes, str] = {}

    def string(self, data: bytes) -> str:
        if data not in self._strings:
            name = f"@text.{len(self._strings)}"
            self._strings[data] = name
            kind = "private unnamed_addr constant"
            self.globals.append(f'{name} = {kind} [{len(data)} x i8] c"{escaped(data)}", align 16')
        return self._strings[data]

    def words(self, name: str, words: Sequence[str]) -> str:
        """A constant of 8-byte words, each `i64 n` or `ptr @x`."""
        listed = [w if w.startswith("i64") else f"i64 ptrtoint ({w} to i64)" for w in words] or ["i64 0"]
        self.globals.append(f"{name} = internal constant [{len(listed)} x i64] [{', '.join(listed)}], align 16")
        return name


def unmapped(weights: str | WeightsFile | None) -> bytes:
    name = weights.name if isinstance(weights, WeightsFile) else "the weights"
    return f"the file '{name}' is not beside the library, or is not its own\0".encode()


def weights_assembly(library: str, path: str) -> str:
    """Assembly of a section that holds the bytes of a file, at the symbol that the runtime reads them by."""
    quoted = path.replace("\\", "\\\\").replace('"', '\\"')
    return "\n".join(
        (
            '.section .rodata.sardonyx,"a",%progbits', ".balign 64", f".hidden {library}.bytes",
            f".globl {library}.bytes", f"{library}.bytes:", f'.incbin "{quoted}"', ".byte 0", ".text",
            '.section .note.GNU-stack,"",%progbits', ".text", "",
        )
    )  # fmt: skip


def weights_function(text: RuntimeText, library: str, weights: str | WeightsFile | None) -> str:
    """`ptr NAME.weights()`: where the constants lie."""
    head = f"define internal ptr @{library}.weights() nounwind {{\nentry:\n"
    if weights is None:  # constants without elements are somewhere
        text.globals.append(f"@{library}.nothing = internal constant i64 0, align 64")
        return f"{head}  ret ptr @{library}.nothing\n}}"
    if isinstance(weights, str):
        if weights:
            lines = weights_assembly(library, weights).splitlines()
            text.globals[:0] = [f'module asm "{escaped(line.encode())}"' for line in lines]
        text.globals.append(f"@{library}.bytes = external hidden constant i8")
        return f"{head}  ret ptr @{library}.bytes\n}}"
    name = text.string(weights.name.encode() + b"\0")
    form, mode = text.string(b"%.*s/%s\0"), text.string(b".\0")
    first, second = (int.from_bytes(weights.head[k : k + 8], "little", signed=True) for k in (0, 8))
    text.globals.append(f"@{library}.mapped = internal global ptr null, align 8")
    text.globals += [
        "declare i32 @dladdr(ptr, ptr)", "declare ptr @strrchr(ptr, i32)", "declare i32 @open(ptr, i32, ...)",
        "declare i64 @lseek(i32, i64, i32)", "declare ptr @mmap(ptr, i64, i32, i32, i32, i64)",
        "declare i32 @close(i32)", "declare i32 @munmap(ptr, i64)",
    ]  # fmt: skip
    return f"""{head}  %known = load atomic ptr, ptr @{library}.mapped acquire, align 8
  %there = icmp ne ptr %known, null
  br i1 %there, label %have, label %find
have:
  ret ptr %known
find:
  %info = alloca [4 x ptr], align 8
  %path = alloca [4096 x i8], align 16
  %found = call i32 @dladdr(ptr @{library}_create, ptr %info)
  %own = load ptr, ptr %info, align 8
  %slash = call ptr @strrchr(ptr %own, i32 47)
  %bare = icmp eq ptr %slash, null
  %slash.n = ptrtoint ptr %slash to i64
  %own.n = ptrtoint ptr %own to i64
  %length.64 = sub i64 %slash.n, %own.n
  %length.32 = trunc i64 %length.64 to i32
  %length = select i1 %bare, i32 1, i32 %length.32
  %folder = select i1 %bare, ptr {mode}, ptr %own
  call i32 (ptr, i64, ptr, ...) @snprintf(ptr %path, i64 4096, ptr {form}, i32 %length, ptr %folder, ptr {name})
  %file = call i32 (ptr, i32, ...) @open(ptr %path, i32 0)
  %missing = icmp slt i32 %file, 0
  br i1 %missing, label %none, label %measure
measure:
  %size = call i64 @lseek(i32 %file, i64 0, i32 2)
  %whole = icmp eq i64 %size, {weights.size}
  br i1 %whole, label %map, label %shut
shut:
  call i32 @close(i32 %file)
  br label %none
map:
  %made = call ptr @mmap(ptr null, i64 {weights.size}, i32 1, i32 2, i32 %file, i64 0)
  call i32 @close(i32 %file)
  %made.n = ptrtoint ptr %made to i64
  %failed = icmp eq i64 %made.n, -1
  br i1 %failed, label %none, label %compare
compare:
  %second.at = getelementptr inbounds i64, ptr %made, i64 1
  %first = load i64, ptr %made, align 8
  %second = load i64, ptr %second.at, align 8
  %same.1 = icmp eq i64 %first, {first}
  %same.2 = icmp eq i64 %second, {second}
  %same = and i1 %same.1, %same.2
  br i1 %same, label %keep, label %drop
drop:
  call i32 @munmap(ptr %made, i64 {weights.size})
  br label %none
keep:
  store atomic ptr %made, ptr @{library}.mapped release, align 8
  ret ptr %made
none:
  ret ptr null
}}"""
