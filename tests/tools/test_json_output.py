"""`--json` of every command: one document on standard output, with the keys that docs/verify.md lists."""

from __future__ import annotations

import io
import json
import re
import shutil
from pathlib import Path

import onnx
import pytest
from planted_faults import small_net

from sardonyx.tools import cli

DOCUMENT = (Path(__file__).parents[2] / "docs" / "verify.md").read_text("utf-8")
CALLS = {
    "export": "export net.onnx -o out.onnx --only reference",
    "verify": "verify net.onnx --only reference --certify net.certificate.json",
    "verify --certificate": "verify --certificate net.certificate.json",
    "golden freeze": "golden freeze net.onnx -o net.golden.npz --only reference",
    "golden check": "golden check net.golden.npz net.onnx --only reference",
    "diff": "diff net.onnx bad.onnx --only reference",
    "inspect": "inspect net.onnx --nodes",
    "optimize": "optimize net.onnx -o out.onnx",
    "ops": "ops net.onnx --target tensorrt",
    "report": "report net.onnx -o net.html --only reference --seconds 0 --target tensorrt",
    "view": "view net.onnx -o view.html",
    "bench": "bench net.onnx --seconds 0.01 --rounds 1",
    "profile": "profile net.onnx --runs 1",
    "run": "run net.onnx",
    "blame": "blame net.onnx sx.softmax",
    "compile": "compile net.onnx -o net.so",
}
"""By what the document calls it, a call of each command, in an order in which files are there when they are read."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("json")
    onnx.save(small_net(), path / "net.onnx")
    onnx.save(small_net("wrong axis"), path / "bad.onnx")
    return path


def documented() -> dict[str, set[str]]:
    """The keys by command, as the document's table has them."""
    table = DOCUMENT.partition("| command | keys |\n")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `([^`]+)` \| (.*) \|$", table, re.MULTILINE)
    keys = {command: set(re.findall(r"`([^`-]+)`", text.partition(";")[0])) for command, text in rows}
    keys["verify --certificate"] = keys["verify"] - {"missed_metrics"} | {"disagreements", "other_versions"}
    keys["inspect"] |= {"node_list"}
    return keys


def test_json_is_documented_and_alone_on_standard_output(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = documented()
    assert sorted(keys) == sorted(CALLS)
    monkeypatch.chdir(folder)
    for command, line in CALLS.items():
        if command == "compile" and shutil.which("cc") is None:
            continue
        out, err = io.StringIO(), io.StringIO()
        status = cli.run([*line.split(), "--json"], out, err)
        assert (status, err.getvalue()) == (6 if command == "diff" else 0, ""), (line, out.getvalue())
        assert set(json.loads(out.getvalue())) == keys[command], line
    out, err = io.StringIO(), io.StringIO()
    assert cli.run(["inspect", "no.onnx", "--json"], out, err) == 1 and out.getvalue() == ""


def test_every_command_that_makes_something_has_json() -> None:
    for name in sorted(set(cli.COMMANDS) - {"demo", "new-pass"}):
        out = io.StringIO()
        assert cli.run([name, "--help"], out, io.StringIO()) == 0
        assert "--json" in out.getvalue(), name
