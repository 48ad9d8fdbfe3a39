"""The machines that code is generated for, by name or by triple, CPU and features.

Named: `x86-64-v2`, `x86-64-v3` (AVX2 and FMA), `x86-64-v4` (AVX-512), `aarch64`, and `host`, this machine. Any other
name is a CPU as LLVM knows it; what it has is then told by features (`+avx2,+fma`), since LLVM doesn't say.
"""

from __future__ import annotations

import subprocess
import sys
from functools import cache

from sardonyx.backends.llvm.codegen.text import Target, describe_target, host_target
from sardonyx.errors import InvalidArgumentError

_V2 = "+cx16,+sahf,+popcnt,+sse3,+ssse3,+sse4.1,+sse4.2"
_V3 = _V2 + ",+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave"
_V4 = _V3 + ",+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl"
NAMED: dict[str, tuple[str, str, str]] = {
    "x86-64-v2": ("x86_64-unknown-linux-gnu", "x86-64-v2", _V2),
    "x86-64-v3": ("x86_64-unknown-linux-gnu", "x86-64-v3", _V3),
    "x86-64-v4": ("x86_64-unknown-linux-gnu", "x86-64-v4", _V4),
    "aarch64": ("aarch64-unknown-linux-gnu", "generic", "+neon"),
}
"""Triple, CPU and features."""


def resolve_target(cpu: str | None = None, features: str | None = None, triple: str | None = None) -> Target:
    """The target of a name of `NAMED`, or of `host` (the default), or of a CPU of LLVM's.

    `features` are added to the name's; `triple` stands in for it.

    Raises:
        InvalidArgumentError: LLVM knows no such triple or CPU, or the features are no list of `+name` and `-name`.
    """
    for feature in (features or "").split(",") if features else ():
        if feature[:1] not in ("+", "-") or len(feature) < 2:
            raise InvalidArgumentError(f"'{feature}' is no feature of a CPU; write them as '+avx2,+fma,-avx512f'")
    if cpu in (None, "host") and triple is None:
        if features is None:
            return host_target()
        host = host_target()
        return describe_target(host.triple, host.cpu, _joined(host.features, features))
    known = NAMED.get(cpu or "")
    if known is not None:
        return _checked(describe_target(triple or known[0], known[1], _joined(known[2], features or "")))
    named = "" if cpu in (None, "host") else str(cpu)
    target = _checked(describe_target(triple or host_target().triple, named, features or ""))
    trouble = _trouble(target.triple, named) if named else ""
    if trouble:
        raise InvalidArgumentError(
            f"LLVM makes no code for the CPU '{named}' of {target.triple}: {trouble}",
            hint=f"known by name are {', '.join(NAMED)} and host",
        )
    return target


_PROBE = """
import sys, llvmlite.binding as llvm
llvm.initialize_all_targets(), llvm.initialize_all_asmprinters()
module = llvm.parse_assembly('define i64 @f(i64 %x) { ret i64 %x }')
llvm.Target.from_triple(sys.argv[1]).create_target_machine(cpu=sys.argv[2]).emit_object(module)
"""


@cache
def _trouble(triple: str, cpu: str) -> str:
    """Why LLVM makes no code for a CPU; nothing if it does. A process of its own asks: LLVM ends the one that asks."""
    try:
        done = subprocess.run([sys.executable, "-c", _PROBE, triple, cpu], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""  # Python is embedded: LLVM's own words have to do
    said = done.stderr.strip().splitlines()
    if any("is not a recognized processor" in line for line in said):
        return "it knows none of that name"
    return said[-1].removeprefix("LLVM ERROR: ") if done.returncode and said else ""


def _joined(first: str, second: str) -> str:
    """Both lists; what the second takes away is gone from the first."""
    gone = {f[1:] for f in second.split(",") if f.startswith("-")}
    kept = [f for f in first.split(",") if f and f[1:] not in gone]
    return ",".join([*kept, *(f for f in second.split(",") if f)])


def _checked(target: Target) -> Target:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        llvm.Target.from_triple(target.triple)
    except RuntimeError as error:
        raise InvalidArgumentError(f"LLVM knows no target '{target.triple}': {error}") from error
    return target
