"""What `sardonyx-reduce` looks for: a crash, invalid IR, wrong numbers of a pass or of native code, a difference to
onnxruntime, or whatever a script says.

An oracle gives a *finding*: a text that stays the same while the module shrinks, so that one defect is not exchanged
for another on the way. None means that there is nothing to see.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import traceback
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from sardonyx.dialects.evaluate import Value
from sardonyx.dialects.module import input_names, main_function
from sardonyx.dialects.weights import WeightStore
from sardonyx.errors import InvalidArgumentError, SardonyxError, UnsupportedError
from sardonyx.passes import check_inputs
from sardonyx.passes.base import reassociates
from sardonyx.passes.check_inputs import Inputs
from sardonyx.passes.check_values import compare, run_function
from sardonyx.passes.checked import CheckOptions, Fuel, MismatchError
from sardonyx.passes.pipeline import PassManager, format
from sardonyx.passes.reproducer import reproducer_text

SECONDS = 120
"""How long one look may take in a process of its own."""
PEER_PROMISE = reassociates(8)
"""By how much a peer's sums may differ from ours."""


@dataclass
class Oracle:
    """Looks at a module with a pipeline.

    Attributes:
        ctx: The dialects.
        inputs: With how many inputs functions run.
        store: The weights.
        seed: Of the inputs.
    """

    ctx: Context
    inputs: int = 1
    store: WeightStore = field(default_factory=WeightStore)
    seed: int = 0
    isolated = False

    @abstractmethod
    def look(self, module: ModuleOp, passes: Sequence[ModulePass], fuel: int | None) -> str | None:
        """The finding, or None. The module may be changed."""

    @abstractmethod
    def arguments(self) -> str:
        """What `sardonyx-opt` needs beyond the pipeline to show the finding again."""

    def prepare(self) -> None:
        """Import what the looks need, once for all child processes."""

    def find(self, module: ModuleOp, passes: Sequence[ModulePass], fuel: int | None = None) -> str | None:
        """The finding on a copy of the module; `fuel` limits how many rewrites are done."""
        copy = module.clone()
        if not self.isolated:
            return self.look(copy, passes, fuel)
        return in_child(lambda: self.look(copy, passes, fuel))

    def _run(self, module: ModuleOp, passes: Sequence[ModulePass], fuel: int | None, **options: object) -> None:
        listener = None if fuel is None else Fuel(fuel)
        PassManager(passes, listener=listener, check=0, **options).run(module, self.ctx)  # pyright: ignore[reportArgumentType]


@dataclass
class Crash(Oracle):
    """A pass raises, or a target does, or the process dies."""

    target: str | None = None
    isolated = True

    def look(self, module: ModuleOp, passes: Sequence[ModulePass], fuel: int | None) -> str | None:
        try:
            self._run(module, passes, fuel)
            if self.target is not None:
                from sardonyx.tools.opt_print import PrintOptions
                from sardonyx.tools.opt_targets import find_target

                find_target(self.target).emit(module, self.store, PrintOptions())
        except Exception as error:  # noqa: BLE001 -- what is looked for
            return signature(error)
        return None

    def arguments(self) -> str:
        return "" if self.target is None else f"-t {self.target}"


@dataclass
class Invalid(Oracle):
    """A pass leaves invalid IR."""

    def look(self, module: ModuleOp, passes: Sequence[ModulePass], fuel: int | None) -> str | None:
        try:
            self._run(module, passes, fuel, verify_each=True)
        except SardonyxError as error:
            return signature(error) if "invalid" in error.message else None
        return None

    def arguments(self) -> str:
        return "--verify-each"


@dataclass
class Numeric(Oracle):
    """A pass changes values by more than it promises."""

    def look(self, module: ModuleOp, passes: Sequence[ModulePass], fuel: int | None) -> str | None:
        options = CheckOptions(self.inputs, self.seed, reduce=False, blame=False)
        listener = None if fuel is None else Fuel(fuel)
        try:
            PassManager(passes, listener=listener, check=options).run(module, self.ctx)
        except MismatchError as error:
            return f"pass '{error.pass_name}' changes values"
        return None

    def arguments(self) -> str:
        return f"--check-passes={self.inputs}"


class _Compared(Oracle):
    """Two executions differ after the passes."""

    isolated = True

    def look(self, module: ModuleOp, passes: Sequence[ModulePass], fuel: int | None) -> str | None:
        self._run(module, passes, fuel)
        other = self.other(module)
        function = main_function(module)
        for kind in check_inputs.kinds(self.inputs):
            inputs, want, _ = check_inputs.evaluable_inputs(
                function, kind, lambda made: run_function(function, made), self.seed
            )
            if want is None:
                continue
            try:
                got = other(inputs)
            except SardonyxError as error:
                return f"{self.title} refuses: {normalized(error.message)}"
            found = compare(want, got, PEER_PROMISE, lambda rng, inputs=inputs: run_function(function, inputs, rng))
            if found is not None:
                return f"{self.title} gives other values"
        return None

    title = ""

    @abstractmethod
    def other(self, module: ModuleOp) -> Callable[[Inputs], Sequence[Value]]:
        """The other execution of the module."""


class Native(_Compared):
    """Native code gives other values than the reference."""

    title = "native code"

    def prepare(self) -> None:
        import sardonyx.backends.llvm.compile  # noqa: F401

    def other(self, module: ModuleOp) -> Callable[[Inputs], Sequence[Value]]:
        from sardonyx.backends.llvm.compile import compile_module

        compiled = compile_module(module)
        return lambda inputs: compiled.run(list(inputs.values))

    def arguments(self) -> str:
        return ""


class OnnxRuntime(_Compared):
    """onnxruntime gives other values than the reference for the exported model, or refuses it."""

    title = "onnxruntime"

    def prepare(self) -> None:
        import importlib.util

        import sardonyx.frontend.onnx.model  # noqa: F401

        if importlib.util.find_spec("onnxruntime") is None:
            raise UnsupportedError("onnxruntime is not installed", hint="pip install 'sardonyx[ort]'")
        import onnxruntime  # noqa: F401

    def other(self, module: ModuleOp) -> Callable[[Inputs], Sequence[Value]]:
        from sardonyx.backends.onnx.parity import ort_session
        from sardonyx.tools.opt_print import PrintOptions
        from sardonyx.tools.opt_targets import find_target

        content = find_target("onnx").emit(module, self.store, PrintOptions())
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
            session = ort_session(path)
        names = input_names(module)
        return lambda inputs: session(dict(zip(names, inputs.values, strict=True)))

    def arguments(self) -> str:
        return "-t onnx -o %t.onnx"


@dataclass
class Script(Oracle):
    """A program that gets the module's file as its only argument, and ends with status 0 where that is interesting.

    The environment variable `SARDONYX_PIPELINE` holds the pipeline.
    """

    path: str = ""

    def look(self, module: ModuleOp, passes: Sequence[ModulePass], fuel: int | None) -> str | None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "case.mlir"
            file.write_text(reproducer_text(module, f"-p '{format(passes)}'", expect_failure=False), encoding="utf-8")
            environment = {**os.environ, "SARDONYX_PIPELINE": format(passes)}
            if fuel is not None:
                environment["SARDONYX_FUEL"] = str(fuel)
            try:
                done = subprocess.run(
                    [os.path.abspath(self.path), str(file)], env=environment, capture_output=True, timeout=SECONDS,
                    check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return None
            except OSError as error:
                raise InvalidArgumentError(f"'{self.path}' cannot be run: {error.strerror}") from error
        return f"'{self.path}' ends with 0" if done.returncode == 0 else None

    def arguments(self) -> str:
        return ""


def signature(error: Exception) -> str:
    """What stays of an error when names, numbers and shapes change."""
    message = error.message if isinstance(error, SardonyxError) else str(error).partition("\n")[0]
    return f"{type(error).__name__}: {normalized(message)}"


def normalized(message: str) -> str:
    text = re.sub(r"(, )?#sx\.dims<[^>]*>", "", message)
    text = re.sub(r"tensor<[^>]*>|%\w+|\[[^\]]*\]|\([0-9, ]*\)", "_", text)
    return re.sub(r"[-+]?\b[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?\b", "_", text)[:160]


def in_child(look: Callable[[], str | None]) -> str | None:
    """Look in a child process, so that one that dies is a finding, too."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(reader)
        status = 1
        try:
            import signal

            signal.alarm(SECONDS)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            try:
                answer = {"finding": look()}
            except SardonyxError as error:
                answer = {"error": str(error)}
            except Exception:  # noqa: BLE001 -- told to the parent, which raises it
                answer = {"error": traceback.format_exc(limit=3)}
            with os.fdopen(writer, "w") as out:
                json.dump(answer, out)
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as source:
        content = source.read()
    _, status = os.waitpid(child, 0)
    if not content:
        code = os.waitstatus_to_exitcode(status)
        return f"the process dies of signal {-code}" if code < 0 else f"the process ends with status {code}"
    answer = json.loads(content)
    return answer.get("finding")


def find_oracle(name: str, ctx: Context, inputs: int, store: WeightStore, target: str | None, seed: int) -> Oracle:
    """The oracle of that name; a path is a script.

    Raises:
        InvalidArgumentError: There is none, and no such file.
    """
    if name == "crash":
        return Crash(ctx, inputs, store, seed, target)
    plain = {"verify": Invalid, "numeric": Numeric, "native": Native, "ort": OnnxRuntime}
    if name in plain:
        return plain[name](ctx, inputs, store, seed)
    if not Path(name).is_file():
        from sardonyx.passes.registry import unknown

        raise unknown(
            "oracle", name, ["crash", *plain], "crash, verify, numeric, native, ort, or the path of a program"
        )
    return Script(ctx, inputs, store, seed, name)
