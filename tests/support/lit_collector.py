"""The repo's own use of the lit runner: each `.mlir` file under tests/lit is one item of pytest's."""

from __future__ import annotations

import sys

from sardonyx.testing.lit import PROGRAMS, LitFailure, Stage, parse_pipeline, run_file
from sardonyx.testing.plugin import collect

__all__ = ["PROGRAMS", "LitFailure", "Stage", "collect", "parse_pipeline", "run_file", "sys"]
