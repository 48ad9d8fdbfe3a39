# For lit itself (`lit tests/lit`, with the environment's executables on PATH); pytest collects the same files faster.
# ruff: noqa: F821
# pyright: reportUndefinedVariable=false
import os
import tempfile

import lit.formats

config.name = "sardonyx"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.excludes = ["Inputs"]
config.test_exec_root = os.path.join(tempfile.gettempdir(), f"sardonyx-lit-{os.getuid()}")
config.environment["PATH"] = os.environ["PATH"]
