"""Options, errors and exit codes of all commands; `slayr doctor` and `slayr toolchain build`."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

import slayr_py
from slayr_py.errors import DataError


def words_of(text):
    return " ".join(text.split())


def test_help_of_the_commands(slayr):
    code, out, _ = slayr("--help")
    listed = out.partition("Commands:\n")[2]
    names = re.findall(r"^  (\w+)", listed, re.MULTILINE)
    assert names == "doctor toolchain example optimize suggest inspect report fit search replay stan".split()
    for name in set(names) - {"toolchain"}:
        code, text, _ = slayr(name, "--help")
        assert code == 0 and f"  slayr {name}" in text and "\b" not in text
        summary = re.search(r"\n\n  (\S.*?)\n\n", text, re.DOTALL)
        assert words_of(summary[1]) in words_of(listed)
    assert slayr("toolchain", "build", "--help")[0] == 0
    assert "Exit codes:\n" in out and "  3    no usable compiler" in out  # line breaks are kept
    assert slayr("--version") == (0, f"slayr {slayr_py.__version__}\n", "")


@pytest.mark.stan
def test_toolchain_build_reports_compiled_programs(slayr, monkeypatch):
    from slayr_py.inference.sampling import programs

    asked = []
    monkeypatch.setattr(programs, "compiled", asked.append)
    code, out, _ = slayr("toolchain", "build", "--jobs", "2")
    assert code == 0 and sorted(asked) == ["composite_gp", "fm_gp", "hierarchical_gp", "matern_gp"]
    assert all(f"{name:<16}  already compiled" in out for name in asked)


@pytest.mark.stan
def test_toolchain_build_reports_compile_errors(slayr, monkeypatch):
    from slayr_py.errors import CompileError
    from slayr_py.inference.sampling import programs

    def fails(name):
        raise CompileError(f"{name}: no such instruction")

    monkeypatch.setattr(programs, "compiled", fails)
    code, _, err = slayr("toolchain", "build")
    assert code == 3 and "no such instruction" in err


@pytest.mark.parametrize(
    "arguments", [[], ["frobnicate"], ["optimize"], ["fit", "x.csv"], ["inspect", "a", "--trials", "-1"]]
)
def test_wrong_usage_is_exit_code_2(slayr, folder, arguments):
    assert slayr(*arguments)[0] == 2


def test_a_misspelt_command_has_a_suggestion(slayr):
    assert "No such command 'optimise'. Did you mean 'optimize'?" in slayr("optimise")[2]


def test_each_kind_of_error_has_its_code_and_one_message(slayr, folder):
    for arguments, wanted, words in (
        (("optimize", "absent.toml"), 2, "no configuration file absent.toml"),
        (("optimize", "bowl.toml", "--budget", "0"), 2, "budget"),
        (("optimize", "bowl.toml", "--storage", "study"), 4, "sqlite:///study.db"),
    ):
        code, out, err = slayr(*arguments)
        assert code == wanted and words in err and out == ""
        assert err.count("\n") == 1 and err.startswith("slayr: ")
    with pytest.raises(DataError):
        slayr("--traceback", "optimize", "absent.toml")


def test_the_notes_of_an_error_are_shown(slayr, folder, monkeypatch):
    def fails(*_, **__):
        error = DataError("of the sampler")
        error.add_note("The next run tries again")
        raise error

    monkeypatch.setattr("slayr_py.cli.optimize.minimize", fails)
    assert slayr("optimize", "bowl.toml")[2].endswith("slayr: of the sampler. The next run tries again\n")


def test_doctor_names_what_is_missing(slayr, monkeypatch):
    checks = [
        SimpleNamespace(name="compiler", ok=True, detail="g++ 12", remedy=""),
        SimpleNamespace(name="make", ok=False, detail="not found", remedy="apt install make"),
    ]
    monkeypatch.setattr("slayr_py.cli.doctor.examine", lambda build: checks)
    code, out, _ = slayr("doctor")
    assert code == 3 and "MISSING  make" in out and "apt install make" in out
    checks.pop()
    code, out, _ = slayr("doctor")
    assert code == 0 and "likelihood  accelerated" in out
    checks.pop()
    monkeypatch.setenv("SLAYR_LIKELIHOOD", "readable")
    assert "likelihood  readable" in slayr("doctor")[1]
