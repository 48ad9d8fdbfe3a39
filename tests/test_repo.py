"""The repository itself: packaging, layout, and what the README and tools/dev.py promise."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DEV = ROOT / "tools" / "dev.py"
LONGEST_FILE = 700
NOT_OURS = {".git", ".venv", ".venv-torch", "build", "dist", "__pycache__", "sardonyx.egg-info"}


def files_of_the_repo() -> list[Path]:
    """What is, or could be, committed; relative. Without git: all files outside well-known folders."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode == 0:
        found = (Path(name) for name in listing.stdout.split("\0") if name)
    else:
        found = (path.relative_to(ROOT) for path in ROOT.rglob("*"))
        found = (
            path
            for path in found
            if not NOT_OURS.intersection(path.parts) and path.parts[:2] != (".typing", "sardonyx")
        )
    return sorted(path for path in found if (ROOT / path).is_file())


FILES = files_of_the_repo()


def package_folders() -> dict[str, Path]:
    """Package name -> its folder, relative, as pyproject.toml lists them."""
    names = PYPROJECT["tool"]["setuptools"]["packages"]
    return {name: Path(*name.split(".")[1:]) for name in names}


def test_the_packages_list_has_every_package():
    folders = {path.parent for path in FILES if path.name == "__init__.py"}
    assert sorted(map(str, package_folders().values())) == sorted(map(str, folders))


def test_every_module_is_in_a_package():
    rooms = {folder.parts[0] for folder in package_folders().values() if folder.parts}
    modules = (path for path in FILES if path.suffix == ".py" and path.parts[0] in rooms)
    strays = [str(path) for path in modules if path.parent not in package_folders().values()]
    assert not strays, "these have no __init__.py beside them and would be missing from the wheel"


def test_the_root_has_no_other_python_files():
    # The root is the package: whatever lies here is installed.
    assert {path.name for path in FILES if path.suffix == ".py" and len(path.parts) == 1} <= {
        "__init__.py",
        "errors.py",
        "universe.py",
    }


def test_tests_are_no_package():
    # With an `__init__.py` there, pytest imports the face a second time.
    assert not [path for path in FILES if path.parts[0] == "tests" and path.name == "__init__.py"]


def test_the_link_for_type_checkers():
    assert (ROOT / ".typing" / "sardonyx").resolve() == ROOT


def test_files_are_short():
    lengths = {path: len((ROOT / path).read_text("utf-8").splitlines()) for path in FILES if path.suffix == ".py"}
    assert not {str(path): length for path, length in lengths.items() if length > LONGEST_FILE}


def test_no_path_of_one_machine():
    machines = re.compile(
        rb"/(?:work|farm|tmp)/(?:main|steering|shared|\.library|w|venv|notes)\b|/(?:home|Users|root)/\w"
    )
    hits = []
    for path in FILES:
        data = (ROOT / path).read_bytes()
        if b"\0" not in data[:8192] and path != Path(__file__).relative_to(ROOT):
            hits += [f"{path}:{n}" for n, line in enumerate(data.splitlines(), start=1) if machines.search(line)]
    assert not hits


def test_entry_points_are_there():
    project = PYPROJECT["project"]
    targets = [*project["scripts"].values(), *project["entry-points"]["xdsl.universe"].values()]
    for target in targets:
        module, _, name = target.partition(":")
        assert importlib.util.find_spec(module), module
        assert getattr(importlib.import_module(module), name) is not None


def test_python_versions_agree():
    project, tools = PYPROJECT["project"], PYPROJECT["tool"]
    oldest = project["requires-python"].removeprefix(">=")
    assert tools["pyright"]["pythonVersion"] == oldest
    assert tools["ruff"]["target-version"] == "py" + oldest.replace(".", "")
    assert f"Programming Language :: Python :: {oldest}" in project["classifiers"]
    assert load_dev().OLDEST == tuple(map(int, oldest.split(".")))


# --- the wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of what is committed: a build folder left in the checkout would leak into it."""
    folder = tmp_path_factory.mktemp("wheel")
    for path in FILES:
        (folder / "source" / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, folder / "source" / path)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        "out",
        "./source",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = (folder / "out").glob("*.whl")
    return built


@pytest.mark.slow
def test_the_wheel_has_the_package_and_nothing_else(wheel: Path):
    contents = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    root = {path for path in FILES if len(path.parts) == 1 and (path.suffix == ".py" or path.name == "py.typed")}
    inner = {path for path in FILES if path.parent != Path() and path.parent in package_folders().values()}
    assert contents == {f"sardonyx/{path.as_posix()}" for path in root | inner}


@pytest.mark.slow
def test_the_wheel_works_where_the_checkout_is_not(wheel: Path, tmp_path: Path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = "import sardonyx, sardonyx.examples.digits; print(sardonyx.__file__, sardonyx.SardonyxError.__name__)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=tmp_path.parent,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == [str(tmp_path / "sardonyx" / "__init__.py"), "SardonyxError"], done.stderr


# --- tools/dev.py and the README


def load_dev() -> Any:
    spec = importlib.util.spec_from_file_location("dev_under_test", DEV)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def dev(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(DEV), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, **options)


def test_every_dev_command_in_the_documents_is_there():
    commands = set(load_dev().COMMANDS)
    for document in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / document).read_text(encoding="utf-8")
        used = set(re.findall(r"python3 tools/dev\.py (?:--venv \S+ )?(\w+)", text))
        assert used, document
        assert used <= commands, document
    assert {"demo", "test"} <= set(re.findall(r"^python3 tools/dev\.py (\w+)$", readme_code(), flags=re.MULTILINE))


def readme_code() -> str:
    return "\n".join(re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S))


def test_links_in_documents_lead_somewhere():
    broken = []
    for path in (path for path in FILES if path.suffix == ".md"):
        for target in re.findall(r"\]\(([^)#\s]+)", (ROOT / path).read_text(encoding="utf-8")):
            if "://" not in target and not (ROOT / path.parent / target).exists():
                broken.append(f"{path}: {target}")
    assert not broken


def test_dev_parses_on_old_pythons_and_tells_them_why_not():
    ast.parse(DEV.read_text(encoding="utf-8"), feature_version=(3, 7))
    module = load_dev()
    module.OLDEST = (99, 0)
    assert module.main(["test"]) == 1


def test_dev_is_not_led_astray_by_a_neighbour(tmp_path: Path):
    shutil.copy(DEV, tmp_path / "dev.py")
    (tmp_path / "argparse.py").write_text("raise SystemExit('the wrong argparse')\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "dev.py", "--help"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "demo" in done.stdout


def test_dev_spares_a_folder_that_is_no_environment(tmp_path: Path):
    (tmp_path / "thesis.txt").write_text("years of work\n", encoding="utf-8")
    done = dev("--venv", str(tmp_path), "test")
    assert done.returncode == 1
    assert "is no virtual environment that works here" in done.stderr
    assert (tmp_path / "thesis.txt").exists()


def test_dev_makes_installs_and_keeps_an_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With a stand-in for pip: made once, and installed again only when there is a reason to."""
    module = load_dev()
    installed: list[str] = []
    captured = module._captured
    monkeypatch.setattr(module, "_captured", lambda line: captured([*line[:3], "--without-pip", *line[3:]]))  # faster
    monkeypatch.setattr(module, "_install", lambda extra, folder: installed.append(extra))
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "_runs", lambda folder: (folder / "pyvenv.cfg").exists())
    (tmp_path / "pyproject.toml").write_text("one", encoding="utf-8")
    folder = tmp_path / "venv"
    for extra in ("test", "test", "ort", "dev", "test"):
        module.ensure_environment(folder, extra)
    assert installed == ["test", "dev"]
    (tmp_path / "pyproject.toml").write_text("two", encoding="utf-8")
    module.ensure_environment(folder, "test")
    assert installed == ["test", "dev", "dev"]

    moved = folder.rename(tmp_path / "moved")  # its scripts name the old place
    (moved / "old").touch()
    module.ensure_environment(moved, "test")
    assert installed[3:] == ["test"]
    assert not (moved / "old").exists()

    def interrupted(extra: str, folder: Path):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_install", interrupted)
    with pytest.raises(KeyboardInterrupt):
        module.ensure_environment(moved, "dev")
    monkeypatch.setattr(module, "_install", lambda extra, folder: installed.append(extra))
    module.ensure_environment(moved, "test")
    assert installed[4:] == ["test"]


def test_dev_passes_arguments_and_status_on(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    module = load_dev()
    monkeypatch.setattr(module, "ensure_environment", lambda folder, extra: None)
    lines = [["python", "-c", "raise SystemExit(3)"], ["python", "-c", "import sys; print(sys.argv[1:])"]]
    monkeypatch.setattr(module, "COMMANDS", {"test": ("", "test", lines), "setup": ("", "dev", [])})
    folder = str(Path(sys.executable).parent.parent)
    assert module.main(["--venv", folder, "test", "-k", "x y", "--flag", "tests/a"]) == 3
    assert capfd.readouterr().out == "['-k', 'x y', '--flag', 'tests/a']\n"
    assert module.main(["--venv", folder, "setup", "x"]) == 2
