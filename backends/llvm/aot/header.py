"""The C header of a compiled graph, and a program that shows how it is used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sardonyx.backends.llvm.interface import Port
from sardonyx.dialects.dtypes import DType


def c_type(dtype: DType) -> str:
    """The C type that holds an element."""
    if dtype.name in ("float32", "float64"):
        return {"float32": "float", "float64": "double"}[dtype.name]
    if dtype.kind in "iu" and dtype.bits >= 8:
        return f"{'u' if dtype.kind == 'u' else ''}int{dtype.bits}_t"
    return f"uint{max(8, dtype.itemsize * 8)}_t"


def _described(port: Port) -> str:
    dims = "][".join(map(str, port.dims))
    note = "" if c_type(port.dtype)[:-2].replace("t_", "") == port.dtype.name else f" ({port.dtype})"
    return f"{c_type(port.dtype)}{note} {port.name}{f'[{dims}]' if port.dims else ''}".replace("*/", "* /")


def c_header(library: str, inputs: Sequence[Port], outputs: Sequence[Port], weights: Path | None) -> str:
    """The header's text."""
    listed = [f" *   inputs[{k}]:  {_described(p)}" for k, p in enumerate(inputs)]
    listed += [f" *   outputs[{k}]: {_described(p)}" for k, p in enumerate(outputs)]
    guard = f"SARDONYX_{library.upper()}_H"
    beside = ""
    if weights is not None:
        beside = f"\n * The weights are in '{weights.name}', which has to lie beside the library (or the program).\n *"
    nl = "\n"
    return f"""/* Made by Sardonyx. Needs the C library and its threads alone.
 *{beside}
{nl.join(listed)}
 *
 * Tensors lie row by row without gaps, aligned to their elements. A name in brackets is an extent of the run's: it is
 * the same wherever it stands.
 */
#ifndef {guard}
#define {guard}

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

#define {library.upper()}_INPUTS {len(inputs)}
#define {library.upper()}_OUTPUTS {len(outputs)}

/* A tensor: where its elements are, and one extent for each axis. */
typedef struct {{
    void *data;
    int64_t *dims;
}} {library}_tensor;

/* The workspace of one run at a time; runs side by side have one each. */
typedef struct {library}_context {library}_context;

/* A context, or NULL: then *error (if error is not NULL) says why, such as a CPU that lacks what the code needs. */
{library}_context *{library}_create(const char **error);

void {library}_destroy({library}_context *context);

/* How many threads a run may use (1 at first); the results are the same for any number. A process that forks uses one
 * thread in its children. */
void {library}_set_threads({library}_context *context, int64_t threads);

/* Runs the model; 0 is success. Every input and output needs its `dims`; those of the outputs are filled in. An output
 * whose `data` is NULL gets memory, which {library}_free releases; else the elements are written to `data`, which must
 * have room for them. After a failure nothing has to be released. */
int64_t {library}_run({library}_context *context, const {library}_tensor *inputs, {library}_tensor *outputs);

/* What was wrong with the last run of a context; valid until its next run. */
const char *{library}_error({library}_context *context);

void {library}_free(void *data);

#ifdef __cplusplus
}}
#endif

#endif
"""


def c_example(library: str, inputs: Sequence[Port], outputs: Sequence[Port], header: str) -> str:
    """A program that runs the model on ones: `program [SIZE OF EACH DYNAMIC DIM IN ORDER …]`."""
    symbols: list[str] = []
    for port in inputs:
        for dim in port.dims:
            if dim.static_value is None and str(dim) not in symbols:
                symbols.append(str(dim))
    lines: list[str] = []
    for k, port in enumerate(inputs):
        extents = [str(d.static_value) if d.is_static else f"size[{symbols.index(str(d))}]" for d in port.dims]
        rank, element = max(1, len(extents)), c_type(port.dtype)
        lines += [
            f"    int64_t input{k}_dims[{rank}] = {{{', '.join(extents) or '0'}}};",
            f"    int64_t input{k}_count = {' * '.join(extents) or '1'};",
            f"    {element} *input{k} = malloc((size_t)(input{k}_count ? input{k}_count : 1) * sizeof({element}));",
            f"    if (!input{k}) return 1;",
            f"    for (int64_t i = 0; i < input{k}_count; i++) input{k}[i] = ({element})1;",
        ]
    for k, port in enumerate(outputs):
        lines.append(f"    int64_t output{k}_dims[{max(1, len(port.dims))}] = {{0}};")
    given = ", ".join(f"{{input{k}, input{k}_dims}}" for k in range(len(inputs))) or "{NULL, NULL}"
    made = ", ".join(f"{{NULL, output{k}_dims}}" for k in range(len(outputs)))
    shown: list[str] = []
    for k, port in enumerate(outputs):
        count = " * ".join(f"output{k}_dims[{a}]" for a in range(len(port.dims))) or "1"
        form, cast = ("%g", "double") if port.dtype.name in ("float32", "float64") else ("%lld", "long long")
        shown += [
            f"    int64_t output{k}_count = {count};",
            f'    printf("output {k}, %lld elements:", (long long)output{k}_count);',
            f"    for (int64_t i = 0; i < output{k}_count && i < 8; i++)",
            f'        printf(" {form}", ({cast})(({c_type(port.dtype)} *)outputs[{k}].data)[i]);',
            '    printf("\\n");',
            f"    {library}_free(outputs[{k}].data);",
        ]
    sizes = f"    int64_t size[{max(1, len(symbols))}];\n"
    sizes += f"    for (int k = 0; k < {max(1, len(symbols))}; k++) size[k] = k + 1 < argc ? atoll(argv[k + 1]) : 1;\n"
    note = f" The arguments are the sizes of {', '.join(symbols)} (1)." if symbols else ""
    nl = "\n"
    return f"""/* Runs the model on ones.{note} */
#include <stdio.h>
#include <stdlib.h>
#include "{header}"

int main(int argc, char **argv) {{
{sizes}    (void)size;
    const char *error = NULL;
    {library}_context *context = {library}_create(&error);
    if (!context) {{
        fprintf(stderr, "error: %s\\n", error);
        return 1;
    }}
    {library}_set_threads(context, 2);
{nl.join(lines)}
    {library}_tensor inputs[] = {{{given}}};
    {library}_tensor outputs[] = {{{made}}};
    if ({library}_run(context, inputs, outputs)) {{
        fprintf(stderr, "error: %s\\n", {library}_error(context));
        {library}_destroy(context);
        return 1;
    }}
{nl.join(shown)}
{nl.join(f"    free(input{k});" for k in range(len(inputs)))}
    {library}_destroy(context);
    return 0;
}}
"""
