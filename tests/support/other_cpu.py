"""Graphs compiled for another architecture, run by an emulator: a C program loads the library and passes arrays on."""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from sardonyx.backends.llvm.aot.library import compile_to

Array = np.ndarray[Any, Any]
CC, QEMU, ROOT = "aarch64-linux-gnu-gcc", "qemu-aarch64", "/usr/aarch64-linux-gnu"

HARNESS = r"""
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
typedef struct { void *data; int64_t *dims; } tensor;
static int64_t word(FILE *f) { int64_t v; if (fread(&v, 8, 1, f) != 1) exit(9); return v; }
int main(int argc, char **argv) {
    if (argc != 5) return 9;
    void *lib = dlopen(argv[1], RTLD_NOW);
    if (!lib) { fprintf(stderr, "%s\n", dlerror()); return 9; }
    void *(*create)(const char **) = (void *(*)(const char **))dlsym(lib, "net_create");
    int64_t (*run)(void *, const tensor *, tensor *) =
        (int64_t (*)(void *, const tensor *, tensor *))dlsym(lib, "net_run");
    const char *(*said)(void *) = (const char *(*)(void *))dlsym(lib, "net_error");
    void (*threads)(void *, int64_t) = (void (*)(void *, int64_t))dlsym(lib, "net_set_threads");
    const char *error = 0;
    void *context = create(&error);
    if (!context) { fprintf(stderr, "%s\n", error); return 8; }
    threads(context, atoll(argv[4]));
    FILE *f = fopen(argv[2], "rb");
    int64_t inputs = word(f), outputs = word(f);
    tensor *in = calloc(inputs + 1, sizeof(tensor)), *out = calloc(outputs + 1, sizeof(tensor));
    int64_t *ranks = calloc(outputs + 1, 8), *sizes = calloc(outputs + 1, 8);
    for (int64_t k = 0; k < inputs; k++) {
        int64_t rank = word(f);
        in[k].dims = calloc(rank + 1, 8);
        for (int64_t a = 0; a < rank; a++) in[k].dims[a] = word(f);
        int64_t bytes = word(f);
        in[k].data = malloc(bytes + 1);
        if (fread(in[k].data, 1, bytes, f) != (size_t)bytes) return 9;
    }
    for (int64_t k = 0; k < outputs; k++) {
        ranks[k] = word(f);
        sizes[k] = word(f);
        out[k].dims = calloc(ranks[k] + 1, 8);
    }
    if (run(context, in, out)) { fprintf(stderr, "%s\n", said(context)); return 7; }
    FILE *g = fopen(argv[3], "wb");
    for (int64_t k = 0; k < outputs; k++) {
        int64_t bytes = sizes[k];
        for (int64_t a = 0; a < ranks[k]; a++) bytes *= out[k].dims[a];
        fwrite(out[k].dims, 8, ranks[k], g);
        fwrite(out[k].data, 1, bytes, g);
    }
    return fclose(g) ? 9 : 0;
}
"""


def missing() -> str | None:
    """What is not here to build and run programs for aarch64; None where all is."""
    absent = [name for name in (CC, QEMU) if shutil.which(name) is None]
    return f"there is no {', no '.join(absent)}" if absent else None


@functools.cache
def _harness() -> tuple[tempfile.TemporaryDirectory[str], Path]:
    folder = tempfile.TemporaryDirectory(prefix="sardonyx-harness-")
    source, program = Path(folder.name, "harness.c"), Path(folder.name, "harness")
    source.write_text(HARNESS)
    subprocess.run([CC, "-O1", "-Wall", "-Werror", "-o", program, source, "-ldl"], check=True, capture_output=True)
    return folder, program


def run_aarch64(module: ModuleOp, arrays: Sequence[Any], threads: int = 1, **options: Any) -> list[Array]:
    """The outputs of the graph's library for aarch64, run by qemu.

    Raises:
        RuntimeError: The run failed: what it says.
        SardonyxError: The graph has no form in C.
    """
    with tempfile.TemporaryDirectory(prefix="sardonyx-aarch64-") as name:
        folder = Path(name)
        built = compile_to(module, folder / "net.so", ["aarch64"], name="net", **options)
        inputs = [np.ascontiguousarray(a).reshape(np.shape(a)) for a in arrays]
        parts = [np.array([len(inputs), len(built.outputs)], np.int64).tobytes()]
        for array in inputs:
            parts += [np.array([array.ndim, *array.shape, array.nbytes], np.int64).tobytes(), array.tobytes()]
        for port in built.outputs:
            parts.append(np.array([len(port.dims), port.dtype.numpy.itemsize], np.int64).tobytes())
        (folder / "in").write_bytes(b"".join(parts))
        command = [
            QEMU,
            "-L",
            ROOT,
            str(_harness()[1]),
            str(folder / "net.so"),
            str(folder / "in"),
            str(folder / "out"),
        ]
        found = subprocess.run([*command, str(threads)], capture_output=True, text=True, timeout=300, check=False)
        if found.returncode:
            raise RuntimeError(f"status {found.returncode}: {found.stderr.strip()}")
        data, at, out = (folder / "out").read_bytes(), 0, []
        for port in built.outputs:
            shape = np.frombuffer(data, np.int64, len(port.dims), at).tolist()
            at += 8 * len(shape)
            count = int(np.prod(shape, dtype=np.int64))
            out.append(np.frombuffer(data, port.dtype.numpy, count, at).reshape(shape).copy())
            at += count * port.dtype.numpy.itemsize
        return out
