"""The cache of executables: what the key depends on; every program is compiled once."""

from __future__ import annotations

import errno
import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from testing_processes import ends, started

from slayr_py.errors import CompileError, ToolchainError
from slayr_py.inference.sampling.programs import compiled
from slayr_py.toolchain import Build, compile_program, compile_together, ensure_cmdstan, prepare_build
from slayr_py.toolchain.building import _linked
from slayr_py.toolchain.tools import run_tool

ROOT = Path(__file__).parents[2]


def test_a_cached_program_is_not_compiled_again(scripted, source, compilations):
    first = compile_program(source)
    start = time.perf_counter()
    assert compile_program(source) == first
    assert time.perf_counter() - start < 0.1
    assert compilations() == 1
    assert first.exe.is_file() and first.name == "p" and first.cmdstan.version == "2.36.0"


def test_key_depends_on_the_text_and_not_on_the_time_of_the_file(scripted, source):
    first = compile_program(source)
    os.utime(source)
    assert compile_program(source).key == first.key
    source.write_text(source.read_text() + "generated quantities { }\n")
    assert compile_program(source).key != first.key


STAN_LAYOUTS = {
    "line comment": ('model { } // one "two\n', "model { }", True),
    "block comment": ('/* one\n * "two */ model { }\n', "model { }", True),
    "layout": ("\n model\t{\n }\n\n", "model { }", True),
    "comment in a string": ('model { print("// one"); }', 'model { print("// two"); }', False),
    "block comment in strings": ('model { print("/*", 1, "*/"); }', 'model { print("/*", 2, "*/"); }', False),
    "spaces in a string": ('model { print("a  b"); }', 'model { print("a b"); }', False),
    "code after a comment": ("model { /* one */ print(1); }", "model { /* one */ print(2); }", False),
}


@pytest.mark.parametrize("layout", STAN_LAYOUTS)
def test_key_does_not_depend_on_comments_and_layout_of_a_program(scripted, source, layout, compilations):
    first, second, is_equal = STAN_LAYOUTS[layout]
    source.write_text(first)
    key = compile_program(source).key
    source.write_text(second)
    assert (compile_program(source).key == key) == is_equal
    assert compilations() == 2 - is_equal


HEADER_LAYOUTS = {
    "comments": ('int a; // one \\\n int b;\n/* "two */ int c;\n', "int a;\n int c;\n", True),
    "layout": ("#define A  1\n\n\nint a = A;", "#define A 1\nint\ta = A;\n", True),
    "lines of the preprocessor": ("#define A 1\nint a;", "#define A 1 int a;", False),
    "strings": ('char* a = "// one";', 'char* a = "// two";', False),
    "quotation marks": ("char a = '\"'; // \"", "char a = '\"'; //", True),
    "raw strings": ('char* a = R"(" // one)";', 'char* a = R"(" // two)";', False),
    "digit separators": ("int a = 1'0; // '", "int a = 1'0;", False),
}


@pytest.mark.parametrize("layout", HEADER_LAYOUTS)
def test_key_does_not_depend_on_comments_and_layout_of_a_header(scripted, source, tmp_path, layout):
    header = tmp_path / "f.hpp"
    first, second, is_equal = HEADER_LAYOUTS[layout]
    header.write_text(first)
    key = compile_program(source, cpp_options={"USER_HEADER": header}).key
    header.write_text(second)
    assert (compile_program(source, cpp_options={"USER_HEADER": header}).key == key) == is_equal


def test_key_depends_on_the_text_of_nested_includes(scripted, source, tmp_path):
    functions = tmp_path / "functions"
    functions.mkdir()
    (functions / "a.stan").write_text("#include b.stan\n")
    (functions / "b.stan").write_text("real one() { return 1; }\n")
    source.write_text("#include <a.stan>\n" + source.read_text())
    first = compile_program(source, include_paths=[functions])
    (functions / "b.stan").write_text("real one() { return 2; }\n")
    second = compile_program(source, include_paths=[functions])
    assert first.source_hash != second.source_hash
    (functions / "b.stan").write_text("real one() { return 1; }\n")
    assert compile_program(source, include_paths=[functions]) == first


def test_names_of_folders_of_includes_may_have_commas(tmp_path):
    (tmp_path / "a,b").mkdir()
    with _linked([tmp_path / "a,b", tmp_path / "a_b"], tmp_path) as links:
        assert links == ["include/a_b", "include/a_b-1"]


def test_key_depends_on_options_and_header(scripted, source, tmp_path):
    header = tmp_path / "f.hpp"
    header.write_text("// one\n")
    keys = {compile_program(source).key}
    keys.add(compile_program(source, stanc_options={"O1": True}).key)
    keys.add(compile_program(source, cpp_options={"STAN_THREADS": True}).key)
    with_header = compile_program(source, cpp_options={"USER_HEADER": header})
    assert "--allow-undefined" in with_header.stanc_options
    keys.add(with_header.key)
    header.write_text("int two;\n")
    keys.add(compile_program(source, cpp_options={"USER_HEADER": header}).key)
    assert len(keys) == 5
    assert compile_program(source, cpp_options={"STAN_THREADS": False}).key in keys


def test_key_does_not_depend_on_the_folder(scripted, source, tmp_path):
    other = tmp_path / "elsewhere" / "p.stan"
    other.parent.mkdir()
    other.write_text(source.read_text())
    header = tmp_path / "f.hpp"
    same = other.with_name("f.hpp")
    header.write_text("// one\n")
    same.write_text("// one\n")
    assert compile_program(other).exe == compile_program(source).exe
    first, second = (compile_program(source, cpp_options={"USER_HEADER": path}) for path in (header, same))
    assert first.exe == second.exe and second.header == same


def test_simultaneous_processes_compile_once(scripted, source, compilations):
    script = "import sys; from slayr_py.toolchain import compile_program; compile_program(sys.argv[1])"
    with started(script, str(source)) as one, started(script, str(source)) as other:
        assert one.wait() == other.wait() == 0
    assert compilations() == 1
    assert compile_program(source).exe.is_file() and compilations() == 1


def test_only_the_program_remains(scripted, source, own_cache):
    program = compile_program(source)
    assert sorted(path.name for path in source.parent.iterdir() if path.suffix in {".hpp", ""} and path.is_file()) == []
    assert not list((own_cache / ".staging").iterdir())
    assert {path.name for path in program.exe.parent.iterdir()} == {"p", "p.hpp", "program.json"}


NOEXEC = r"programs in .*cache cannot be run: its disk is mounted noexec\. Set SLAYR_CACHE_DIR"


def test_a_cache_on_a_disk_from_which_no_program_runs_is_an_error(scripted, source, compilations, monkeypatch):
    def mounted_noexec(path):
        return SimpleNamespace(f_flag=os.ST_NOEXEC if Path(path).name == "p" else 0)

    with monkeypatch.context() as mount:
        mount.setattr(os, "statvfs", mounted_noexec)
        with pytest.raises(ToolchainError, match=NOEXEC):
            compile_program(source)
    program = compile_program(source)
    monkeypatch.setattr(os, "statvfs", mounted_noexec)
    with pytest.raises(ToolchainError, match=NOEXEC):
        compile_program(source)
    assert program.exe.is_file() and compilations() == 2


def test_a_tool_in_a_cache_on_such_a_disk_is_the_same_error(own_cache, write_script, monkeypatch):
    def refuse(command, **options):
        raise PermissionError(errno.EACCES, "Permission denied")

    write_script(own_cache / "stanc", "")
    monkeypatch.setattr(subprocess, "Popen", refuse)
    for message in ("cannot run .*stanc: Permission denied", NOEXEC):
        with pytest.raises(ToolchainError, match=message):
            run_tool([str(own_cache / "stanc")], own_cache, "failed")
        monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_flag=os.ST_NOEXEC))


def test_unreadable_sources_raise(scripted, tmp_path):
    with pytest.raises(CompileError, match="cannot read"):
        compile_program(tmp_path / "none.stan")
    with pytest.raises(CompileError, match=r"must end in \.stan"):
        compile_program(tmp_path / "none.txt")
    (tmp_path / "bytes.stan").write_bytes(b"model { // \xff\n}")
    with pytest.raises(CompileError, match=r"cannot read .*bytes\.stan: .*utf-8"):
        compile_program(tmp_path / "bytes.stan")
    lonely = tmp_path / "lonely.stan"
    lonely.write_text("#include nowhere.stan\n")
    with pytest.raises(CompileError, match=r"nowhere\.stan, which is in none of the include paths"):
        compile_program(lonely)
    lonely.write_text("#include lonely.stan\n")
    with pytest.raises(CompileError, match="includes itself"):
        compile_program(lonely)


def test_programs_that_are_compiled_together_are_one_executable_with_a_name_each(scripted, source, compilations):
    other = source.with_name("q.stan")
    other.write_text("generated quantities { real x = 1; }\n")
    messages = []
    headers = [source.with_name(name) for name in ("p.hpp", "q.hpp")]
    for header in headers:
        header.write_text(f"// {header.name}\n")
    own = [{"USER_HEADER": header} for header in headers]
    builds = [prepare_build(source, (), None, own[0], None), prepare_build(other, (), None, own[1], None)]
    assert compile_together(builds, on_progress=messages.append)
    code = (scripted / "header.hpp").read_text()
    assert all(code.count(f'#include "{header}"') == 1 for header in headers)
    programs = [compile_program(source, cpp_options=own[0]), compile_program(other, cpp_options=own[1])]
    assert compilations() == 1 and "compiling 2 programs (a few minutes, once)" in messages
    assert [program.exe.name for program in programs] == ["p", "q"] and all(program.together for program in programs)
    assert programs[0].exe.samefile(programs[1].exe) and programs[0].key != programs[1].key
    # A program in the cache is not replaced.
    third = source.with_name("r.stan")
    third.write_text("generated quantities { real x = 2; }\n")
    assert not compile_together([builds[0], prepare_build(third, (), None, None, None)])
    assert not compile_program(third).together and compilations() == 2


def test_programs_that_are_compiled_together_are_copies_where_links_are_impossible(
    scripted, source, compilations, monkeypatch
):
    def refuse(*arguments):
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    assert compile_together([prepare_build(source, (), None, None, None)])
    program = compile_program(source)
    assert compilations() == 1 and program.together and os.access(program.exe, os.X_OK)


@pytest.mark.usefixtures("own_cache", "no_cmdstan")
def test_the_code_does_not_depend_on_the_place_of_the_sources(tmp_path):
    """Two builds of a wheel have the same bytes."""
    texts = []
    for place in (tmp_path / "here", tmp_path / "there"):
        functions = place / "stan" / "functions"
        functions.mkdir(parents=True)
        (functions / "one.stan").write_text("real one() { return 1; }\n")
        source = place / "stan" / "p.stan"
        source.write_text("functions {\n#include one.stan\n}\nmodel { print(one()); }\n")
        work = place / "work"
        work.mkdir()
        Build(source, (functions, source.parent), (), (), ensure_cmdstan()).translate(work)
        assert sorted(path.name for path in work.iterdir()) == ["p.hpp", "p.stan"]
        texts.append((work / "p.hpp").read_text())
    assert texts[0] == texts[1] and "'include/functions/one.stan'" in texts[0]


def test_the_compiler_ends_with_a_killed_process(scripted, source, tmp_path, write_script):
    # The compiler is watched from a moment after its start on.
    words = f"sleep 1; echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; sleep 60\n"
    write_script(scripted / "bin" / "stanc", words)
    script = "import sys; from slayr_py.toolchain import compile_program; compile_program(sys.argv[1])"
    with started(script, str(source)) as process:
        deadline = time.monotonic() + 60
        while not (tmp_path / "pid").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        compiler = int((tmp_path / "pid").read_text())
        process.send_signal(signal.SIGKILL)
        assert ends(compiler)


def test_a_program_of_the_package_compiles_before_its_requirements_are_installed(scripted, own_cache, tmp_path):
    """As ``make example`` does while the others are installed: with the packages of the toolchain only."""
    packages = tmp_path / "packages"
    packages.mkdir()
    for name in ("filelock", "platformdirs"):
        (packages / name).symlink_to(Path(importlib.util.find_spec(name).origin).parent)
    done = subprocess.run(
        [sys.executable, "-S", "-m", "slayr_py.toolchain", "fm_gp"],
        env=os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{packages}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (exe,) = own_cache.glob("programs/fm_gp-*/fm_gp")
    assert compiled("fm_gp").exe == exe
