"""Machines without a usable compiler or cache: an error with a remedy, before any evaluation."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import optuna
import pytest
from ConfigSpace import ConfigurationSpace
from testing_hostility import NOBODY, disk_with_room_for, ordinary_user, stored_values

from slayr_py.errors import CompileError, ToolchainError
from slayr_py.study import StanGPSampler
from slayr_py.toolchain import compile_program, doctor, ensure_cmdstan, find_cmdstan
from slayr_py.toolchain.cache import check_owner, locked
from slayr_py.toolchain.compiler import find_compiler
from slayr_py.toolchain.installation import is_complete

pytest.importorskip("httpstan", reason="no wheel of httpstan for this Python")


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch) -> Path:
    """Hide all CmdStans; assemble into the test's own cache."""
    for name in ("CMDSTAN", "CONDA_PREFIX", "CXX", "MAKE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SLAYR_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def script(tmp_path) -> Callable[[str], str]:
    """Make a program from shell commands."""

    def write(text: str) -> str:
        path = tmp_path / "bin" / "tool"
        path.parent.mkdir()
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return str(path)

    return write


COMPILERS = [
    ("fails", "echo 'license expired' >&2; exit 1", "--version ended with status 1: license expired. Install a C"),
    ("is not a program", None, "the C.. compiler .*/tool does not run: .*Exec format error.* Install a C"),
]


@pytest.mark.parametrize(("text", "words"), [row[1:] for row in COMPILERS], ids=[row[0] for row in COMPILERS])
def test_a_compiler_that_does_not_run_is_named(script, monkeypatch, text, words):
    tool = script(text or "")
    if text is None:
        Path(tool).write_bytes(b"\x7fELF nonsense")
    monkeypatch.setenv("CXX", tool)
    with pytest.raises(ToolchainError, match=words) as caught:
        ensure_cmdstan()
    assert type(caught.value) is ToolchainError
    assert tool in str(caught.value) and "apt-get install g++" in str(caught.value)


NAMES = [
    ("CXX", "g++ '", "CXX=g.. ' is not a command: No closing quotation. Unset CXX, or correct it"),
    ("PATH", "", "no C.. compiler found: neither g.. nor clang.. is on the PATH. Install a C"),
    ("CMDSTAN", "/", "CMDSTAN=/ cannot be used: it has no makefile, so it is not a CmdStan. Correct it, or unset"),
]


@pytest.mark.parametrize(("variable", "value", "words"), NAMES, ids=[f"{row[0]}={row[1]}" for row in NAMES])
def test_an_unusable_environment_variable_is_named(monkeypatch, variable, value, words):
    monkeypatch.setenv(variable, value)
    with pytest.raises(ToolchainError, match=words) as caught:
        ensure_cmdstan()
    assert type(caught.value) is ToolchainError


def test_folders_without_permission_are_skipped_or_reported(open_folder, monkeypatch):
    closed = open_folder / "closed"
    closed.mkdir(mode=0)
    monkeypatch.setenv("HOME", str(closed))
    monkeypatch.setenv("SLAYR_CACHE_DIR", str(closed / "cache"))
    with ordinary_user(), pytest.raises(ToolchainError, match="cannot write the cache folder .*Permission denied"):
        ensure_cmdstan()
    monkeypatch.setenv("CMDSTAN", str(closed / "cmdstan"))
    with ordinary_user(), pytest.raises(ToolchainError, match="CMDSTAN=.* cannot be used: .*Permission denied"):
        ensure_cmdstan()


@pytest.mark.parametrize("content", [b"CMDSTAN_VERSION := \xff\xfe", b"", b"CMDSTAN_VERSION := 2.34.9"], ids=repr)
def test_a_cmdstan_of_an_unsupported_version_is_reported(tmp_path, monkeypatch, content):
    (tmp_path / "makefile").write_bytes(content)
    monkeypatch.setenv("CMDSTAN", str(tmp_path))
    with pytest.raises(ToolchainError, match=r"its version is .*, 2\.35 or newer is needed. Correct it") as caught:
        ensure_cmdstan()
    assert type(caught.value) is ToolchainError


def test_a_compiler_with_an_undecodable_version_is_used(script, monkeypatch):
    monkeypatch.setenv("CXX", script(r"printf '\377\376 1.0\n'"))
    assert "1.0" in find_compiler().version


VERSION_CACHES = [b'{"a": 3}', b"\xff\xfe", b"[" * 100_000]


@pytest.mark.parametrize("content", VERSION_CACHES, ids=[ascii(content)[:12] for content in VERSION_CACHES])
def test_a_damaged_cache_of_compiler_versions_is_replaced(alone, script, monkeypatch, content):
    alone.mkdir()
    (alone / "compilers.json").write_bytes(content)
    monkeypatch.setenv("CXX", script("echo my++ 1.0"))
    assert find_compiler().version == "my++ 1.0"
    assert "my++ 1.0" in (alone / "compilers.json").read_text()


PIECES = ["bin/stanc", "makefile", "make/local", "frontend/main.cpp", "assembled_by_slayr"]


@pytest.mark.parametrize(("piece", "left"), [*((piece, None) for piece in PIECES), (PIECES[0], b"")])
def test_a_damaged_installation_is_assembled_again(piece, left):
    installation = ensure_cmdstan().path
    path = installation / piece if (installation / piece).exists() else next((installation / "frontend").iterdir())
    whole = path.read_bytes()
    path.unlink()
    if left is not None:
        path.write_bytes(left)
    assert not is_complete(installation) and find_cmdstan() is None
    assert ensure_cmdstan().path == installation and is_complete(installation)
    assert path.read_bytes() == whole


def test_a_full_disk_leaves_no_partial_installation(alone):
    with (
        disk_with_room_for(100_000),
        pytest.raises(ToolchainError, match="Free disk space .* or set SLAYR_CACHE_DIR") as full,
    ):
        ensure_cmdstan()
    assert type(full.value) is ToolchainError
    assert not list(alone.glob("cmdstan-*")) and not list((alone / ".staging").iterdir())
    assert is_complete(ensure_cmdstan().path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_cache_of_another_user_is_not_used(open_folder, monkeypatch):
    monkeypatch.setenv("SLAYR_CACHE_DIR", str(open_folder))
    os.chown(open_folder, NOBODY, NOBODY)
    with pytest.raises(
        ToolchainError, match=rf"belongs to user {NOBODY}, and you are user 0, so .*Set SLAYR_CACHE_DIR"
    ) as caught:
        ensure_cmdstan()
    assert type(caught.value) is ToolchainError
    os.chown(open_folder, 12345, 12345)
    with (
        ordinary_user(),
        pytest.raises(ToolchainError, match=f"belongs to user 12345, and you are user {NOBODY}, so .*Set SLAYR_C"),
    ):
        ensure_cmdstan()
    # Everybody may use a cache of root, but only root can add to it.
    os.chown(open_folder, 0, 0)
    with ordinary_user(), pytest.raises(ToolchainError, match="cannot write the cache folder .*Permission denied"):
        ensure_cmdstan()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a cache that another user cannot read")
def test_a_closed_folder_in_a_cache_of_root_is_an_error_of_the_cache(open_folder, monkeypatch):
    monkeypatch.setenv("SLAYR_CACHE_DIR", str(open_folder))
    programs = open_folder / "programs"
    (programs / "matern_gp-1").mkdir(parents=True)
    programs.chmod(0o700)
    with ordinary_user(), pytest.raises(ToolchainError, match="cannot write the cache folder .*Permission denied"):
        check_owner(programs / "matern_gp-1")
        with locked("matern_gp-1"):  # Python 3.13 skips what it cannot read
            pass


def test_a_cache_that_everybody_may_write_is_not_used(tmp_path, monkeypatch):
    tmp_path.chmod(0o777)
    monkeypatch.setenv("SLAYR_CACHE_DIR", str(tmp_path))
    with pytest.raises(ToolchainError, match=r"is writable by everybody \(mode 777\), so .*chmod go-w") as caught:
        ensure_cmdstan()
    assert type(caught.value) is ToolchainError


def test_only_the_owner_can_write_to_a_new_cache(alone):
    before = os.umask(0)
    try:
        ensure_cmdstan()
    finally:
        os.umask(before)
    assert not [path for path in (alone, *alone.rglob("*")) if path.lstat().st_mode & 0o022 and not path.is_symlink()]


PARTS = ["bin/stanc", "bin", "lib", "makefile", "."]


@pytest.mark.parametrize("part", PARTS)
def test_a_cmdstan_that_others_can_change_is_not_used(part):
    path = ensure_cmdstan().path / part
    path.chmod(path.stat().st_mode | 0o002)
    words = rf"{path} in the cache is writable by everybody \(mode 7[57]7|{path} .*\(mode 646\)"
    with pytest.raises(ToolchainError, match=rf"({words}).*Remove it \(rm -r {path}\)"):
        ensure_cmdstan()
    for name in ("CmdStan", "cache"):
        check = next(check for check in doctor() if check.name == name)
        assert not check.ok and str(path) in check.detail and check.remedy.startswith(f"Remove it (rm -r {path})")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_cmdstan_with_a_file_of_another_user_is_not_used():
    stanc = ensure_cmdstan().path / "bin" / "stanc"
    os.chown(stanc, NOBODY, NOBODY)
    with pytest.raises(ToolchainError, match=f"{stanc} in the cache belongs to user {NOBODY}, and you are user 0"):
        ensure_cmdstan()


@pytest.fixture
def cmdstan(tmp_path, monkeypatch) -> Path:
    """A CmdStan with scripts for stanc and make."""
    cmdstan = tmp_path / "cmdstan"
    (cmdstan / "bin").mkdir(parents=True)
    (cmdstan / "makefile").write_text("CMDSTAN_VERSION := 2.36.0\n%: %.hpp\n\t@sh compile\n")
    monkeypatch.setenv("CMDSTAN", str(cmdstan))
    return cmdstan


TOOLS = [
    ("stanc is missing", None, "", ToolchainError, "bin/stanc|not built"),
    ("stanc is not a program", "\x7fELF", "", ToolchainError, "cannot run .*bin/stanc: Exec format error"),
    (
        "stanc refuses",
        "#!/bin/sh\necho 'Syntax error in line 1'; exit 1",
        "",
        CompileError,
        "stanc refused .*p.stan:\nSyn",
    ),
    (
        "the compiler fails",
        "#!/bin/sh\ntouch ../*/p*/p.hpp",
        "echo 'ice: out of memory'; exit 4",
        CompileError,
        "out of mem",
    ),
]


@pytest.mark.parametrize(
    ("stanc", "compiler", "error", "words"), [row[1:] for row in TOOLS], ids=[row[0] for row in TOOLS]
)
def test_tools_that_fail_are_quoted(tmp_path, alone, cmdstan, stanc, compiler, error, words):
    if stanc is not None:
        (cmdstan / "bin" / "stanc").write_text(stanc.replace("touch ../*/p*/p.hpp", "touch p.hpp"))
        (cmdstan / "bin" / "stanc").chmod(0o755)
    (cmdstan / "compile").write_text(compiler)
    (tmp_path / "p.stan").write_text("parameters { real z; }\nmodel { z ~ std_normal(); }\n")
    with pytest.raises(error, match=words) as caught:
        compile_program(tmp_path / "p.stan")
    assert type(caught.value) is error
    assert not list(alone.glob("programs/*")) and not list(alone.glob(".staging/*"))


def compile_with(cmdstan, folder, mode):
    """Compile p.stan of a folder with shell scripts that write an executable of a mode."""
    (cmdstan / "bin" / "stanc").write_text("#!/bin/sh\ntouch p.hpp")
    (cmdstan / "bin" / "stanc").chmod(0o755)
    (cmdstan / "makefile").write_text(f"CMDSTAN_VERSION := 2.36.0\n%: %.hpp\n\t@echo run > $@; chmod {mode} $@\n")
    (folder / "p.stan").write_text("parameters { real z; }\nmodel { z ~ std_normal(); }\n")
    return compile_program(folder / "p.stan")


DAMAGES = {
    "empty": lambda exe: exe.write_bytes(b""),
    "cut": lambda exe: exe.write_bytes(exe.read_bytes()[:-1]),
    "a flipped byte": lambda exe: exe.write_bytes(b"R" + exe.read_bytes()[1:]),
    "not executable": lambda exe: exe.chmod(0o644),
    "no record": lambda exe: (exe.parent / "program.json").unlink(),
    "a damaged record": lambda exe: (exe.parent / "program.json").write_text("[]"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_program_is_compiled_again(tmp_path, cmdstan, damage):
    exe = compile_with(cmdstan, tmp_path, "+x").exe
    DAMAGES[damage](exe)
    with pytest.warns(RuntimeWarning, match=f"the executable {exe} is damaged; it is compiled again"):
        assert compile_program(tmp_path / "p.stan").exe == exe
    assert exe.read_text() == "run\n" and os.access(exe, os.X_OK)


@pytest.mark.parametrize("above", [0, 1, 2], ids=["executable", "its folder", "programs"])
def test_a_program_that_others_can_change_is_not_used(tmp_path, cmdstan, above):
    exe = compile_with(cmdstan, tmp_path, "777").exe
    path = [exe, *exe.parents][above]
    assert path.stat().st_mode & 0o022 == 0
    path.chmod(0o777)
    with pytest.raises(ToolchainError, match=rf"{path} in the cache is writable by everybody \(mode 777\), so others"):
        compile_program(tmp_path / "p.stan")


def test_a_cmdstan_of_the_user_needs_make(cmdstan, monkeypatch):
    (cmdstan / "bin" / "stanc").write_text("")
    monkeypatch.setenv("MAKE", "no-such-make")
    with pytest.raises(ToolchainError, match="no make found: no-such-make is not on the PATH. Install a C"):
        ensure_cmdstan()


def test_a_study_without_a_compiler_raises_before_any_evaluation(study_file, go_on, monkeypatch):
    before = stored_values(study_file)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolchainError, match="no C.. compiler found: .*Install a C") as caught:
        go_on(study_file, 9, lambda config: pytest.fail("evaluated"), n_initial=3)
    assert type(caught.value) is ToolchainError and stored_values(study_file) == before


def test_a_study_with_a_failing_compiler_raises_before_any_evaluation(study_file, go_on, script, monkeypatch):
    before = stored_values(study_file)
    monkeypatch.setenv("CXX", script("case $1 in --version) echo c 1;; *) echo out of luck >&2; exit 1;; esac"))
    monkeypatch.setattr("slayr_py.inference.sampling.programs._refused", {})
    with (
        pytest.warns(RuntimeWarning, match="the accelerated likelihood of matern_gp does not compile here"),
        pytest.raises(CompileError, match="(?s)the C.. compiler failed on .*matern_gp.stan:.*out of luck") as caught,
    ):
        go_on(study_file, 9, lambda config: pytest.fail("evaluated"), n_initial=3)
    assert type(caught.value) is CompileError and stored_values(study_file) == before


@pytest.mark.parametrize("space", [None, {"x": (0.0, 1.0)}], ids=["inferred", "declared"])
def test_a_sampler_without_a_compiler_raises_before_the_first_evaluation(monkeypatch, space):
    sampler = StanGPSampler(space and ConfigurationSpace(space), seed=1)
    study = optuna.create_study(sampler=sampler)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolchainError, match="no C.. compiler found: .*Install a C"):
        study.optimize(lambda trial: pytest.fail("evaluated"), 1)
