"""The commands that prove things of models (`verify`, `golden`, `diff`, `ops`, `report`, ...), as one runs them."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import onnx
import pytest
from planted_faults import numpy_net, small_net

from sardonyx.tools import cli
from sardonyx.tools.diagnostics import EXIT_CHECK, EXIT_FAILURE, EXIT_USAGE

SMALL = ("--dim", "batch=2", "--dim", "seq=3")


def call(*args: str | Path) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return cli.run([str(a) for a in args], out, err), out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("proof")
    onnx.save(small_net(), path / "net.onnx")
    onnx.save(small_net("wrong axis"), path / "bad.onnx")
    np.savez(path / "in.npz", x=np.ones((2, 3, 8), np.float32))
    (path / "net.py").write_text(
        "import numpy as np\n"
        "from planted_faults import numpy_net as forward\n"
        "def make(batch, seq):\n"
        "    return {'x': np.ones((batch, seq, 8), np.float32)}\n"
        "def top1(expected, actual):\n"
        "    return (expected['y'].argmax(-1) == actual['y'].argmax(-1)).mean()\n"
        "print('a word of the file itself')\n"
    )
    return path


def test_verify_says_what_passed_and_exits_zero(folder: Path) -> None:
    status, out, err = call("verify", f"{folder}/net.py:forward", folder / "net.onnx", *SMALL)
    assert (status, err) == (0, "a word of the file itself\n")  # beside the result, and executed once
    assert "verified: 3 passed" in out and "a word of" not in out
    assert re.search(r"batch=2, seq=3\s+native\s+passed", out)


def test_verify_names_the_node_and_exits_with_the_code_of_checks(folder: Path, tmp_path: Path) -> None:
    worst = tmp_path / "worst.npz"
    arguments = ("--only", "reference", "--save-worst", worst, *SMALL)
    status, out, _ = call("verify", folder / "net.onnx", folder / "bad.onnx", *arguments)
    assert status == EXIT_CHECK
    assert "NOT verified" in out and "first difference: node 'softmax'" in out
    with np.load(worst) as arrays:
        assert {"inputs/x", "expected/y", "actual/y"} <= set(arrays.files)


def test_verify_prints_json(folder: Path) -> None:
    status, out, _ = call("verify", folder / "net.onnx", "--json", "--only", "reference", *SMALL)
    data = json.loads(out)
    assert status == 0 and data["ok"] and data["dims"] == ["batch", "seq"]
    assert data["results"][0]["outputs"][0]["output"] == "y"


def test_verify_takes_inputs_metrics_and_what_is_untested_strictly(folder: Path) -> None:
    arguments = ("--inputs", f"{folder}/net.py:make", "--metric", f"{folder}/net.py:top1>=1", "--only", "reference")
    assert call("verify", f"{folder}/net.py:forward", folder / "net.onnx", *arguments, *SMALL)[0] == 0
    status, out, _ = call("verify", folder / "net.onnx", folder / "bad.onnx", *arguments[2:], *SMALL)
    assert status == EXIT_CHECK and "metric: " in out
    status, out, _ = call("verify", folder / "net.onnx", "--ep", "cuda", "--strict", *SMALL)
    assert status == EXIT_CHECK and "untested: onnxruntime:cuda" in out


@pytest.mark.parametrize(
    "arguments, status, text",
    [
        (["verify"], EXIT_USAGE, "verify takes MODEL, or SOURCE and MODEL"),
        (["verify", "nowhere.onnx"], EXIT_FAILURE, "cannot read nowhere.onnx"),
        (["verify", "{}/net.py", "{}/net.onnx"], EXIT_FAILURE, "names no function"),
        (["verify", "{}/net.py:forwrd", "{}/net.onnx"], EXIT_FAILURE, "did you mean 'forward'?"),
        (["verify", "{}/net.onnx", "--dim", "batch"], EXIT_USAGE, "write batch=1,8,32"),
        (["verify", "{}/net.onnx", "--ep", "gpu"], EXIT_FAILURE, "'gpu' is no execution provider"),
        (["verify", "{}/net.onnx", "--frobnicate"], EXIT_USAGE, "unrecognized arguments: --frobnicate"),
        (["golden", "check", "{}/net.onnx", "{}/net.onnx"], EXIT_FAILURE, "is no golden file"),
        (["ops", "{}/net.onnx", "--target", "abacus"], EXIT_FAILURE, "there is no target 'abacus'"),
        (["ops", "{}/net.onnx", "--fix"], EXIT_USAGE, "--fix takes one --target, and -o FILE.onnx"),
        (["run", "{}/net.onnx", "--dim", "tokens=3"], EXIT_FAILURE, "its dims are: batch, seq"),
        (["view", "{}/net.onnx", "-o", "x.png"], EXIT_USAGE, "neither .html nor .svg"),
        (["report", "{}/net.onnx", "-o", "x.pdf"], EXIT_USAGE, "does not end in .html"),
        (["verify", "{}/net.onnx", "--save-worst", "{}/no/x.npz"], EXIT_FAILURE, "there is no folder"),
        (["export", "{}/net.onnx", "-o", "{}"], EXIT_FAILURE, "it is a folder"),
        (["export", "{}/net.onnx", "-o", "x.onnx", "--dynamic", "x=n"], EXIT_USAGE, "--dynamic is for a torch module"),
        (["export", "{}/net.py:forward", "-o", "x.onnx", "--dynamic", "x=n"], EXIT_USAGE, "is for a torch module"),
        (["golden", "check", "{}/in.npz", "{}/net.onnx"], EXIT_FAILURE, "it holds arrays alone"),
        (["optimize", "{}/net.onnx", "-o", "x.onnx", "-p", "no"], EXIT_FAILURE, "see sardonyx-opt --list-passes"),
    ],
)
def test_a_wrong_call_is_one_clear_message(arguments: list[str], status: int, text: str, folder: Path) -> None:
    found, out, err = call(*(a.replace("{}", str(folder)) for a in arguments))
    assert (found, out) == (status, "") and text in err and "Traceback" not in err


def test_a_certificate_is_written_checked_and_refused_when_the_model_changes(folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "net.onnx"
    shutil.copy(folder / "net.onnx", model)
    shutil.copy(folder / "net.py", tmp_path)
    arguments = ("--only", "reference", "--certify", *SMALL)
    assert call("verify", f"{tmp_path}/net.py:forward", model, *arguments)[0] == 0
    status, out, _ = call("verify", "--certificate", tmp_path / "net.certificate.json")
    assert status == 0 and "the certificate holds" in out
    shutil.copy(folder / "bad.onnx", model)
    status, out, _ = call("verify", "--certificate", tmp_path / "net.certificate.json")
    assert status == EXIT_CHECK and "does not agree: the sha256 of" in out and "does NOT hold" in out


def test_golden_outputs_are_frozen_hold_and_drift(folder: Path, tmp_path: Path) -> None:
    golden = tmp_path / "net.golden.npz"
    arguments = ("-o", golden, "--only", "reference", *SMALL)
    status, out, _ = call("golden", "freeze", folder / "net.onnx", *arguments)
    assert status == 0 and "1 case of" in out
    status, out, _ = call("golden", "check", golden, folder / "net.onnx")
    assert status == 0 and "the golden outputs hold" in out and "the frozen file" in out
    status, out, _ = call("golden", "check", golden, folder / "bad.onnx", "--only", "reference")
    assert status == EXIT_CHECK and "first difference: node 'softmax'" in out


def test_diff_ignores_names_and_finds_what_changed(folder: Path, tmp_path: Path) -> None:
    renamed = small_net()
    for node in renamed.graph.node:
        node.name += "_again"
    onnx.save(renamed, tmp_path / "renamed.onnx")
    status, out, _ = call("diff", folder / "net.onnx", tmp_path / "renamed.onnx")
    assert status == 0 and out == "equal but for names: 9 nodes\n"
    status, out, _ = call("diff", folder / "net.onnx", folder / "bad.onnx", "--only", "reference", *SMALL)
    assert status == EXIT_CHECK
    assert "changed: Softmax 'softmax'\n" in out and "-> Softmax 'softmax' axis=1" in out and "do NOT agree" in out
    onnx.save(small_net("shifted weight"), tmp_path / "shifted.onnx")
    status, out, _ = call("diff", folder / "net.onnx", tmp_path / "shifted.onnx", "--structure")
    assert status == EXIT_CHECK and "its constants differ by up to" in out and "MatMul 'project'" in out


def test_inspect_optimize_and_run(folder: Path, tmp_path: Path) -> None:
    status, out, _ = call("inspect", folder / "net.onnx", "--nodes")
    assert status == 0 and "x: float32[batch, seq, 8]" in out and re.search(r"normalise\s+LayerNormalization", out)
    assert json.loads(call("inspect", folder / "net.onnx", "--json")[1])["nodes"] == 9
    small = tmp_path / "small.onnx"
    status, out, _ = call("optimize", folder / "net.onnx", "-o", small, "--verify")
    assert status == 0 and small.is_file() and "9 nodes" in out
    status, out, _ = call("run", folder / "net.onnx", *SMALL, "-o", tmp_path / "out.npz")
    assert status == 0 and "y: float32[2, 3, 16]" in out
    with np.load(tmp_path / "out.npz") as arrays:
        assert sorted(arrays.files) == ["y", "z"] and arrays["y"].sum() == pytest.approx(6.0, rel=1e-5)
    x = np.random.default_rng(0).standard_normal((1, 2, 8), np.float32)
    np.savez(tmp_path / "in.npz", x=x)
    call("run", folder / "net.onnx", "--inputs", tmp_path / "in.npz", "-o", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as arrays:
        np.testing.assert_allclose(arrays["y"], numpy_net(x)[0], rtol=1e-4)


def test_bench_measures_both(folder: Path) -> None:
    status, out, _ = call("bench", folder / "net.onnx", "--seconds", "0.02", "--rounds", "2", "--json", *SMALL)
    data = json.loads(out)
    assert status == 0 and {t["execution"] for t in data["timings"]} == {"native", "onnxruntime"}
    assert all(len(t["run_seconds"]) == 2 for t in data["timings"])


class _Tags(HTMLParser):
    """Whether the tags of a page are closed in order, and what it fetches."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [v for k, v in attrs if k in ("src", "href") and v and not v.startswith("#")]
        if tag not in ("meta", "link", "br", "input", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "td":
            self.cells.append(data)


def test_a_report_is_one_page_and_one_text(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "net.html"
    arguments = ("-o", page, "--only", "reference", "--seconds", "0", "--target", "tensorrt", *SMALL)
    status, out, _ = call("report", f"{folder}/net.py:forward", folder / "net.onnx", *arguments)
    assert status == 0 and out == f"{page}\n{tmp_path}/net.md\n"
    tags = _Tags()
    tags.feed(page.read_text())
    assert tags.open == [] and tags.fetched == []
    assert {"passed", "TensorRT 10.15", "LayerNormalization", "batch, seq, 8"} <= set(tags.cells)
    text = (tmp_path / "net.md").read_text()
    assert "- parity: **verified**" in text and "| input | x | float32 | batch, seq, 8 |" in text


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium to look at the page with")
@pytest.mark.parametrize("width", [1280, 390])
def test_the_report_fits_the_window_of_a_real_browser(width: int, folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "net.html"
    call("report", folder / "net.onnx", "-o", page, "--only", "reference", "--seconds", "0", *SMALL)
    probe = "<script>document.title=document.documentElement.scrollWidth+' '+innerWidth</script>"
    page.write_text(page.read_text().replace("</body>", probe + "</body>"))
    found = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900", "--dump-dom", f"file://{page}"],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    title = re.search(r"<title>(\d+) (\d+)</title>", found.stdout)
    assert title is not None and int(title[1]) <= int(title[2])


def test_the_example_pipeline_runs(tmp_path: Path) -> None:
    """Each step of docs/verify.md, as the script of the example has them."""
    root = Path(__file__).parents[2]
    script = (root / "examples" / "export_pipeline" / "run.sh").read_text()
    net = root / "examples" / "export_pipeline" / "net.py"
    values = {"$net": str(net), "$model": str(tmp_path / "net.onnx"), "$out": str(tmp_path)}
    values["$sizes"] = "--dim batch=1,8 --dim seq=1,16"
    assert values["$sizes"] in script
    ran = []
    for line in re.findall(r"^sardonyx (.*)$", script, re.MULTILINE):
        for name, value in values.items():
            line = line.replace(name, value)
        arguments = shlex.split(line)
        status, out, err = call(*arguments)
        # OpenVINO and TensorRT are tables, and have no gap here; onnxruntime is asked.
        assert (status, err) == (0, ""), f"{line}\n{out}{err}"
        ran.append(arguments[0])
    assert ran == ["export", "ops", "verify", "verify", "golden", "golden", "verify", "report"]
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "net.certificate.json", "net.golden.npz", "net.onnx", "net.report.html", "net.report.md"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [
        "verify",
        "verify net.onnx net.onnx net.onnx",
        "verify net.onnx --dim batch",
        "verify net.onnx --dim batch=1,-2",
        "verify net.onnx --rtol nan",
        "verify net.onnx --certificate net.certificate.json",
        "golden check net.golden.npz",
        "golden freeze net.onnx net.onnx net.onnx",
        "ops net.onnx --fix",
        "report a.onnx b.onnx c.onnx",
        "bench net.onnx --rounds 0",
        "bench net.onnx --dim batch=1,2",
        "profile net.onnx --runs 0",
        "run net.onnx --seed -1",
        "export net.py:f -o net.onnx --opset -1",
    ],
)
def test_a_wrong_command_line_is_told_before_anything_is_read(line: str) -> None:
    status, out, err = call(*line.split())
    assert (status, out) == (EXIT_USAGE, "") and "error:" in err and "Traceback" not in err


def test_models_with_other_inputs_are_told_apart_without_numbers(folder: Path, tmp_path: Path) -> None:
    other = small_net()
    for value in other.graph.input:
        value.name = "other"
    for node in other.graph.node:
        node.input[:] = ["other" if i == "x" else i for i in node.input]
    other.graph.input.append(onnx.helper.make_tensor_value_info("spare", onnx.TensorProto.FLOAT, [1]))
    onnx.save(other, tmp_path / "other.onnx")
    status, out, _ = call("diff", folder / "net.onnx", tmp_path / "other.onnx")
    assert status == EXIT_CHECK and "the numbers cannot be compared: the source takes x" in out
    assert "NOT agree" not in out
