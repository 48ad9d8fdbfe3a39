"""`export_onnx_network`: a layer network as an ONNX file, deterministic to the byte."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Sequence
from typing import Any

from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.layers.layer import given_options
from sardonyx.frontend.layers.network import Network

OPSETS = range(13, 21)
DEFAULT_OPSET = 17
_OPTIONS = ("opset_version", "batch_size", "input_names", "output_names", "verbose")


def export_onnx_network(net: Network, filename: str | os.PathLike[str], **options: Any) -> None:
    """Write a network as ONNX: `Gemm` with the initializers `<layer>_Weights` and `<layer>_Bias`, `Relu`, `Elu`,
    `Softmax`. float64 stays float64. The same network gives the same bytes.

    Args:
        net: A `SeriesNetwork`, a `DAGNetwork` or a `dlnetwork`.
        filename: The file.
        options: `opset_version` (13 to 20; 17), `batch_size` (the number of rows; None: a dim named `batch`),
            `input_names`, `output_names` (a name each, or a list of one), `verbose` (say what was written, on
            standard error); also in the spelling `OpsetVersion`, `BatchSize`, ….

    Raises:
        InvalidArgumentError: An option is unknown or malformed, the network is, or its learnables are.
        UnsupportedError: A layer cannot be exported, or the layers are no sequence.
        FailedPreconditionError: Learnables are missing. In all cases nothing is written.
    """
    call = "export_onnx_network"
    if not isinstance(net, Network):
        raise InvalidArgumentError(f"{call}(): net is a network, not {type(net).__name__}")
    if not isinstance(filename, str | os.PathLike):
        raise InvalidArgumentError(f"{call}(): filename is a str or an os.PathLike, not {type(filename).__name__}")
    found = given_options(call, options, _OPTIONS)
    opset = _integer(call, "opset_version", found.get("opset_version", DEFAULT_OPSET))
    if opset not in OPSETS:
        raise InvalidArgumentError(f"{call}(): opset_version is {OPSETS[0]} to {OPSETS[-1]}, not {opset}")
    batch = found.get("batch_size")
    if batch is not None:
        batch = _integer(call, "batch_size", batch)
        if batch < 1:
            raise InvalidArgumentError(f"{call}(): batch_size is at least 1, not {batch}")
    verbose = found.get("verbose", False)
    if not isinstance(verbose, bool | int):
        raise InvalidArgumentError(f"{call}(): verbose is a bool, not {type(verbose).__name__}")
    graph = net.graph(
        batch,
        _one_name(call, "input_names", found.get("input_names")),
        _one_name(call, "output_names", found.get("output_names")),
    )
    graph.export_onnx(filename, opset_version=opset, optimize=False)
    if verbose:
        names = ", ".join(layer.name for layer in net.order)
        sys.stderr.write(f"{os.fspath(filename)}: opset {opset}, layers {names}\n")


def _integer(call: str, what: str, value: object) -> int:
    if isinstance(value, float) and value.is_integer():
        return int(value)  # such networks come from tools in which all numbers are doubles
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)  # pyright: ignore[reportArgumentType]
    except TypeError:
        raise InvalidArgumentError(f"{call}(): {what} is a whole number, not {value!r}") from None


def _one_name(call: str, what: str, given: object) -> str:
    """The name of the only input or output."""
    if given is None:
        return ""
    names = [given] if isinstance(given, str) else list(given) if isinstance(given, Sequence) else None
    if names is None or not all(isinstance(n, str) and n for n in names):
        raise InvalidArgumentError(f"{call}(): {what} is a name, or a list of one")
    if len(names) != 1:
        raise InvalidArgumentError(f"{call}(): {what} has {len(names)} names, but the network has one")
    return str(names[0])
