"""`slayr example`, from a checkout and from an installed wheel; and no help names what a wheel lacks."""

from __future__ import annotations

import ast
import importlib.util
import itertools
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import slayr_py
from slayr_py.cli import example
from slayr_py.errors import StorageError

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
NAMES = sorted({path.stem for path in EXAMPLES.iterdir() if path.is_file()})
NEEDS = {"architecture_search": "torch", "tune_xgboost": "xgboost-cpu"}
REPOSITORY = re.compile(r"\b(examples|notebooks|benchmarks|docs|tests)/|README")


def test_the_examples_are_listed(slayr):
    code, out, _ = slayr("example")
    lines = out.splitlines()
    assert code == 0 and [line.split()[0] for line in lines] == NAMES
    assert all(len(line.split()) > 3 and len(line) <= 120 for line in lines)
    assert "nusvr_diabetes        Tune a nu support vector regression" in lines
    assert lines[-1].endswith("(needs xgboost-cpu)")


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_written_with_all_its_files(slayr, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    code, out, _ = slayr("example", name)
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert code == 0 and written == {path.name: path.read_text() for path in EXAMPLES.glob(f"{name}.*")}
    first = f"{name}.toml" if f"{name}.toml" in written else f"{name}.py"
    assert out.splitlines()[-1] == f"run it:  {'slayr optimize' if first.endswith('.toml') else 'python'} {first}"
    package = NEEDS.get(name)
    assert (f"it needs another package: pip install {package}" in out) if package else ("another package" not in out)


def test_no_file_is_overwritten(slayr, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mine = tmp_path / "nusvr_diabetes.py"
    mine.write_text("mine")
    code, _, err = slayr("example", "nusvr_diabetes")
    assert code == 2 and "nusvr_diabetes.py exists already and is not overwritten; rename it" in err
    assert mine.read_text() == "mine" and list(tmp_path.iterdir()) == [mine]


def test_errors(slayr, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = slayr("example", "nusvr_diabets")
    assert code == 2 and "no example 'nusvr_diabets'; did you mean 'nusvr_diabetes'?" in err
    with pytest.raises(StorageError, match="branin.py cannot be written: No such file or directory"):
        example.write("branin", tmp_path / "absent")
    monkeypatch.setattr(example, "_PACKAGE", tmp_path)
    assert slayr("example")[0] == 4


def test_what_an_example_imports_is_a_dependency_or_named():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    packages = {re.split(r"[<>=; ]", one)[0].replace("-", "_").lower() for one in declared} | {"sklearn", "slayr_py"}
    for name in NAMES:
        tree = ast.parse((EXAMPLES / f"{name}.py").read_text())
        imports = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        imports |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        others = {full.partition(".")[0].lower() for full in imports} - packages - set(sys.stdlib_module_names)
        assert others == ({NEEDS[name].removesuffix("-cpu")} if name in example.NEEDS else set())


def documentation(path: Path) -> list[str]:
    """Return the strings of a file except those after an assignment, which are comments for developers."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    blocks = [body for node in ast.walk(tree) if isinstance(body := getattr(node, "body", None), list)]
    pairs = [pair for body in blocks for pair in itertools.pairwise(body)]
    comments = {
        node.value
        for before, node in pairs
        if isinstance(before, ast.Assign | ast.AnnAssign) and isinstance(node, ast.Expr)
    }
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [str(node.value) for node in strings if node not in comments]


def test_help_docstrings_and_messages_name_nothing_that_a_wheel_lacks():
    """`stan/README.md` is in a wheel."""
    package = Path(slayr_py.__file__).parent
    found = {
        (str(path.relative_to(package)), match.group())
        for path in sorted(package.rglob("*.py"))
        for text in documentation(path)
        for match in REPOSITORY.finditer(text.replace("stan/README.md", ""))
    }
    assert not found


@pytest.mark.skipif(importlib.util.find_spec("hatchling") is None, reason="building a wheel needs hatchling")
def test_an_installed_wheel_has_the_examples_and_the_programs(tmp_path):
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path], cwd=ROOT, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    work = tmp_path / "work"
    work.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    script = "import slayr_py; assert 'site' in slayr_py.__file__; from slayr_py.cli import main; main()"
    environment = {**os.environ, "PYTHONPATH": str(site)}

    def call(*arguments: str) -> str:
        command = [sys.executable, "-c", script, *arguments]
        return subprocess.run(command, cwd=work, env=environment, check=True, capture_output=True, text=True).stdout

    assert [line.split()[0] for line in call("example").splitlines()] == NAMES
    assert "slayr optimize train_command.toml" in call("example", "train_command")
    assert {path.name for path in work.iterdir()} == {"train_command.toml", "train_command.py"}
    assert (site / "slayr_py" / "stan" / "README.md").is_file()
    assert not {path.name for path in site.iterdir() if "slayr_py" not in path.name}
