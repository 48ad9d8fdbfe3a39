"""Options that `verify`, `golden`, `export` and `report` share, and how they become arguments of `verify`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sardonyx.errors import InvalidArgumentError
from sardonyx.tools.arguments import amount, dim_size, dim_sizes, whole
from sardonyx.tools.objects import UserFiles, is_object

if TYPE_CHECKING:
    from sardonyx.frontend.verify.verify import Verification


def add_verify_options(parser: argparse.ArgumentParser) -> None:
    """Inputs, sizes, executions and limits."""
    parser.add_argument(
        "--inputs",
        metavar="FILE",
        help="inputs: FILE.npz or FILE.npy, or FILE.py:FUNCTION, called with each binding's sizes (default: generated)",
    )
    parser.add_argument(
        "--dim",
        action="append",
        default=[],
        type=dim_sizes,
        metavar="NAME=SIZES",
        help="sizes to try a dim at: batch=1,8,32",
    )
    parser.add_argument(
        "--ep",
        action="append",
        metavar="NAME",
        help="onnxruntime's execution provider: cpu (default), cuda, tensorrt, openvino, ...",
    )
    parser.add_argument(
        "--only",
        action="append",
        choices=("reference", "native", "onnxruntime"),
        help="try these executions alone",
    )
    parser.add_argument("--rtol", type=amount, help="relative limit for floats (float32: 1e-3)")
    parser.add_argument("--atol", type=amount, help="absolute limit for floats (float32: 1e-5)")
    parser.add_argument(
        "--metric",
        action="append",
        default=[],
        metavar="FILE.py:FUNCTION[>=X]",
        help="a task metric over expected and actual outputs; with a bound it must hold",
    )
    parser.add_argument("--seed", type=whole, default=0, help="of generated inputs (0)")


def add_run_inputs(parser: argparse.ArgumentParser) -> None:
    """The inputs of commands that run a model at one size."""
    parser.add_argument("--inputs", metavar="FILE", help="FILE.npz, FILE.npy or FILE.py:FUNCTION (default: generated)")
    parser.add_argument(
        "--dim", action="append", default=[], type=dim_size, metavar="NAME=SIZE", help="the size of a dim: batch=8"
    )
    parser.add_argument("--seed", type=whole, default=0, help="of generated inputs (0)")


def verify_arguments(options: argparse.Namespace, files: UserFiles) -> dict[str, Any]:
    """The keyword arguments of `verify`."""
    return {
        "inputs": files.inputs(options.inputs),
        "dims": options.dim,
        "providers": options.ep or ["cpu"],
        "only": options.only,
        "rtol": options.rtol,
        "atol": options.atol,
        "metrics": {name: function for name, (function, _) in metrics_of(options.metric, files).items()},
        "seed": options.seed,
    }


def asked_for(options: argparse.Namespace, inputs: str | None) -> dict[str, Any]:
    """What a certificate says that was asked for: the same arguments, as text."""
    return {
        "inputs": inputs,
        "dims": options.dim,
        "providers": options.ep or ["cpu"],
        "only": options.only,
        "seed": options.seed,
    }


Bound = Callable[[float], bool]


def metrics_of(texts: list[str], files: UserFiles) -> Mapping[str, tuple[Callable[..., Any], Bound | None]]:
    """Metrics by the texts that name them, with their bounds.

    Raises:
        InvalidArgumentError: A text is malformed.
    """
    found: dict[str, tuple[Callable[..., Any], Bound | None]] = {}
    for text in texts:
        source, bound = text, None
        for sign in (">=", "<="):
            if sign in text:
                source, _, limit = text.partition(sign)
                bound = _bound(text, sign, limit)
        if not is_object(source):
            raise InvalidArgumentError(f"'{source}' names no function", hint="write --metric FILE.py:FUNCTION")
        found[text] = files.load(source), bound
    return found


def missed_metrics(found: Verification, options: argparse.Namespace, files: UserFiles) -> list[str]:
    """Where a metric is not within its bound."""
    bounds = {name: bound for name, (_, bound) in metrics_of(options.metric, files).items() if bound is not None}
    return [
        f"{name}: {value:.6g} in {result.execution}"
        for result in found.results
        for name, value in result.metrics.items()
        if name in bounds and not bounds[name](value)
    ]


def _bound(text: str, sign: str, limit: str) -> Bound:
    try:
        value = float(limit)
    except ValueError:
        raise InvalidArgumentError(f"'{text}' has no number behind {sign}") from None
    return (lambda v: v >= value) if sign == ">=" else (lambda v: v <= value)
