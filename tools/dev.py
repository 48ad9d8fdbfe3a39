"""One command each for what a developer does: `python3 tools/dev.py COMMAND`.

It needs a bare Python 3.11+ with `venv` and nothing else: it makes the virtual environment, installs the checkout
into it, editable, with what the command needs, and runs the command there. So it must import neither `sardonyx` nor
anything but the standard library, and it must parse on older Pythons, to tell them why they don't do.
"""

from __future__ import annotations

import sys

# Run as a script, this folder is first on the path, and a module of ours that bears a standard one's name would win.
if __name__ == "__main__" and not getattr(sys.flags, "safe_path", False):
    del sys.path[0]

import argparse
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
STAMP = "sardonyx-dev.json"
EXTRAS = ("ort", "test", "dev")  # of pyproject.toml, each with what the one before has

# Command -> (help, extra to install, command lines in the environment). "{bin}" is the environment's folder of
# executables; the first word of each line is looked up there. Further arguments go to the last line.
COMMANDS: dict[str, tuple[str, str, list[list[str]]]] = {
    "demo": ("trace, rewrite, run and export the digits example", "ort", [["sardonyx", "demo"]]),
    "test": ("run the tests", "test", [["pytest", "--numprocesses", "auto", "--dist", "worksteal"]]),
    "test-torch": (
        "install PyTorch into .venv-torch and run the tests that need it",
        "torch-test",
        # The first line, so that a PyTorch that doesn't work is a failure and not skipped tests.
        [
            ["python", "-c", "import torch, transformers; print('torch', torch.__version__)"],
            ["pytest", "--numprocesses", "auto", "--dist", "loadfile", "tests/frontend/torch"],
        ],
    ),
    "setup": ("make the environment with all development tools", "dev", []),
    "format": ("format the code", "dev", [["ruff", "check", "--select", "I", "--fix", "."], ["ruff", "format", "."]]),
    "lint": ("check format and lint", "dev", [["ruff", "format", "--check", "."], ["ruff", "check", "."]]),
    "docs": ("make the documents that follow from the code", "dev", [["python", "-m", "sardonyx.tools.tables"]]),
    "types": ("check the types", "dev", [["pyright", "-p", ".typing", "--pythonpath", "{bin}/python"]]),
}


class DevError(Exception):
    """Something that the user has to mend; printed without a traceback."""


def main(argv: list[str] | None = None) -> int:
    arguments, rest = _parser().parse_known_args(argv)
    if rest[:1] == ["--"]:
        rest = rest[1:]
    _, extra, lines = COMMANDS[arguments.command]
    if rest and not lines:
        print(f"dev.py {arguments.command}: unexpected arguments: {' '.join(rest)}", file=sys.stderr)
        return 2
    try:
        if sys.version_info < OLDEST:
            raise DevError(
                f"Sardonyx needs Python {OLDEST[0]}.{OLDEST[1]} or newer, and {sys.executable} is "
                f"{sys.version.split()[0]}; call this script with a newer one, such as python3.12"
            )
        # PyTorch is large: it has an environment of its own.
        default = os.environ.get("SARDONYX_VENV") or ROOT / ".venv"
        if extra not in EXTRAS:
            default = ROOT / ".venv-torch"
        folder = Path(arguments.venv or default).absolute()
        ensure_environment(folder, extra)
        return run_lines(folder, lines, rest)
    except (DevError, OSError) as error:
        print(f"dev.py: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 tools/dev.py",
        description="Sets up a virtual environment where needed, and runs a command in it.",
        epilog="Further arguments go to the command: dev.py test tests/passes -k transpose",
    )
    parser.add_argument(
        "--venv", metavar="DIR", help="the environment to use (default: $SARDONYX_VENV, else .venv in the checkout)"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (text, _, _) in COMMANDS.items():
        # Without help of its own, `dev.py test --help` reaches pytest.
        commands.add_parser(name, help=text, add_help=False, prefix_chars="\0")
    return parser


def ensure_environment(folder: Path, extra: str) -> None:
    """Make the environment, or bring it up to date: after a change of pyproject.toml, or when `extra` is new."""
    stamp = _read_stamp(folder)
    usable = _runs(folder) and stamp.get("folder", str(folder)) == str(folder)
    if usable and stamp.get("extra") in EXTRAS and extra in EXTRAS:
        extra = max(extra, stamp["extra"], key=EXTRAS.index)
    wanted = {
        "made": stamp.get("made") is True,
        "folder": str(folder),
        "checkout": str(ROOT),
        "pyproject": hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest(),
        "extra": extra,
    }
    if usable and stamp == wanted:
        return
    if not usable:
        _make_environment(folder, ours=stamp.get("made") is True)
        wanted["made"] = True
    _write_stamp(folder, {"made": wanted["made"], "folder": str(folder)})  # until pip is done
    _install(extra, folder)
    _write_stamp(folder, wanted)


def _read_stamp(folder: Path) -> dict:
    """What this script last did there: made it or not, and what it installed. Empty where it never was."""
    try:
        found = json.loads((folder / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write_stamp(folder: Path, stamp: dict) -> None:
    (folder / STAMP).write_text(json.dumps(stamp, indent=2) + "\n", encoding="utf-8")


def _make_environment(folder: Path, *, ours: bool) -> None:
    # Only what this script made may go: a folder that the user names could hold anything.
    if not ours and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DevError(
            f"{folder} is no virtual environment that works here (Python {OLDEST[0]}.{OLDEST[1]} or newer, with pip); "
            "remove it, or name another with --venv"
        )
    print(f"dev.py: making the virtual environment {folder}", file=sys.stderr)
    try:
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        _write_stamp(folder, {"made": True, "folder": str(folder)})  # ours, whatever becomes of the next step
    except OSError as error:
        raise DevError(f"{folder} can't be written ({error.strerror}); name another folder with --venv") from error
    status, output = _captured([sys.executable, "-m", "venv", str(folder)])
    if status != 0:
        raise DevError(
            f"the virtual environment could not be made:\n{output.rstrip()}\n"
            "Where the system splits Python up, its venv and pip are packages of their own (Debian: python3-venv)."
        )


def _install(extra: str, folder: Path) -> None:
    print(f"dev.py: installing Sardonyx and what it needs [{extra}] (minutes, the first time)", file=sys.stderr)
    pip = [_executable(folder, "python"), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    status, output = _captured([*pip, "install", "--quiet", "--editable", f".[{extra}]"])
    if status != 0:
        raise DevError(f"pip could not install it:\n{output.rstrip()}")


def _captured(line: list[str]) -> tuple[int, str]:
    done = subprocess.run(
        line,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=_environment(),
        check=False,
    )
    return done.returncode, done.stdout


def _environment() -> dict[str, str]:
    # A PYTHONHOME of the calling Python would break the environment's own; pip's warning about root is noise here.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONHOME"}
    return {**env, "PIP_ROOT_USER_ACTION": "ignore", "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}


def _bin(folder: Path) -> Path:
    return folder / ("Scripts" if os.name == "nt" else "bin")


def _executable(folder: Path, name: str) -> str:
    return str(_bin(folder) / (f"{name}.exe" if os.name == "nt" else name))


def _runs(folder: Path) -> bool:
    """Whether the environment's Python starts, is new enough and has pip; the one it was made from may be gone."""
    code = f"import sys, pip; raise SystemExit(sys.version_info < {OLDEST} or sys.prefix == sys.base_prefix)"
    try:
        done = subprocess.run([_executable(folder, "python"), "-c", code], check=False, capture_output=True)
    except OSError:
        return False
    return done.returncode == 0


def run_lines(folder: Path, lines: list[list[str]], rest: list[str]) -> int:
    """Run every line, so that one failure doesn't hide the next; returns the first status that isn't 0."""
    first = 0
    for number, (name, *line) in enumerate(lines, start=1):
        line = [word.replace("{bin}", str(_bin(folder))) for word in line]
        if number == len(lines):
            line += rest
        try:
            # The demo's files belong where the user stands; everything else is about the checkout.
            where = None if name == "sardonyx" else ROOT
            status = subprocess.run(
                [_executable(folder, name), *line], cwd=where, env=_environment(), check=False
            ).returncode
        except OSError as error:
            raise DevError(
                f"{name} could not be started in {folder}: {error}; remove {folder} and try again"
            ) from error
        first = first or (status if status >= 0 else 128 - status)
    return first


if __name__ == "__main__":
    sys.exit(main())
