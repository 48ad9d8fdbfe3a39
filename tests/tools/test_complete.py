"""`sardonyx --complete`: what the scripts offer, in the shells that are here."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path

import pytest

from sardonyx.tools import cli


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("complete")
    for shell in ("bash", "zsh", "fish"):
        out, err = io.StringIO(), io.StringIO()
        assert cli.run(["--complete", shell], out, err) == 0 and not err.getvalue()
        (folder / f"sardonyx.{shell}").write_text(out.getvalue(), "utf-8")
    (folder / "net.onnx").touch()
    (folder / "notes.txt").touch()
    return folder


def shell_of(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


CASES = [
    ("v", {"verify", "view"}),
    ("verify --on", {"--only"}),
    ("verify --only ", {"reference", "native", "onnxruntime"}),
    ("--debug golden ", {"freeze", "check", "net.onnx"}),
    ("inspect ", {"net.onnx"}),
    ("ops net.onnx --target tens", {"tensorrt"}),
    ("verify --ep = cu", {"cuda"}),
    ("optimize -p fold-c", {"fold-constants"}),
    ("export --opset ", set()),
    ("--comp", {"--complete"}),
]


def test_bash_offers_commands_options_values_and_files(scripts: Path) -> None:
    lines = ["source sardonyx.bash"]
    for line, _ in CASES:
        words = ["sardonyx", *line.split(" ")]
        quoted = " ".join(f"'{w}'" for w in words)
        lines.append(f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; COMPREPLY=(); _sardonyx")
        lines.append('echo "${COMPREPLY[*]}"')
    done = subprocess.run(
        [shell_of("bash"), "-c", "\n".join(lines)], cwd=scripts, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = [set(line.split()) for line in done.stdout.splitlines()]
    assert found == [wanted for _, wanted in CASES]


def test_fish_offers_the_same(scripts: Path) -> None:
    fish = shell_of("fish")
    for line, wanted in CASES:
        if "=" in line or "net.onnx" in wanted or not wanted:
            continue  # files and nothing are fish's own
        command = f"source sardonyx.fish; complete -C 'sardonyx {line}'"
        done = subprocess.run([fish, "-c", command], cwd=scripts, capture_output=True, text=True, check=False)
        assert {entry.split("\t")[0] for entry in done.stdout.splitlines()} == wanted, line


def test_every_command_has_its_options_in_every_script(scripts: Path) -> None:
    for shell in ("bash", "zsh", "fish"):
        text = (scripts / f"sardonyx.{shell}").read_text("utf-8")
        assert all(name in text for name in cli.COMMANDS)
        assert "certificate" in text and "save-worst" in text and "debug-info" in text
    assert (scripts / "sardonyx.zsh").read_text("utf-8").startswith("autoload -U +X bashcompinit")
