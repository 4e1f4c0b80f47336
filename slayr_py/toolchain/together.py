"""Compile several programs as one executable.

Most of the time of a compiler goes into the headers of Stan and into templates that all programs instantiate alike. One
executable for all programs therefore takes about half of the time of one for each. It selects the program by the name
with which it is called; the cache has a hard link to it under the name of each program, or a copy where links are
impossible.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from slayr_py.toolchain.building import Build
from slayr_py.toolchain.cache import check_owner, locked, staging
from slayr_py.toolchain.executables import is_intact

_NAME = "together"
_SOURCE = "parameters { real unused; }\n"
_PROGRAM = """
#define stan_model {name}_of_stan
#include "{name}.hpp"
#undef stan_model
"""
_DISPATCH = """
#if defined(_WIN32)
#include <stdlib.h>
inline std::string executable() {
  const std::string path = _pgmptr, file = path.substr(path.find_last_of("/\\\\") + 1);
  return file.substr(0, file.rfind('.'));
}
#elif defined(__APPLE__)
#include <stdlib.h>
inline const char* executable() { return getprogname(); }
#else
#include <errno.h>
inline const char* executable() { return program_invocation_short_name; }
#endif

stan::model::model_base& new_model(stan::io::var_context& data, unsigned int seed, std::ostream* messages) {
  const std::string name = executable();
BRANCHES
  throw std::invalid_argument("no program " + name);
}

stan::math::profile_map& get_stan_profile_data() {
  static stan::math::profile_map none;
  return none;
}
"""
_BRANCH = '  if (name == "{name}") return *new {name}_of_stan(data, seed, messages);'


def compile_together(builds: Sequence[Build], on_progress: Callable[[str], None] | None = None) -> bool:
    """Compile programs as one executable; return False without compiling if one of them is in the cache.

    `compile_build` finds the programs in the cache afterwards. Only sources and headers may differ between them.

    Raises
    ------
    CompileError, ToolchainError
    """
    programs = [build.program() for build in builds]
    with ExitStack() as locks:
        for name in (_NAME, *sorted(program.key for program in programs)):
            locks.enter_context(locked(name))
        for program in programs:
            check_owner(program.exe.parent)
        if any(is_intact(program.exe) for program in programs):
            return False
        with staging(_NAME) as folder:
            if on_progress is not None:
                on_progress(f"compiling {len(builds)} programs (a few minutes, once)")
            exe = compile_executable(builds, folder)
            for build, program in zip(builds, programs, strict=True):
                work = folder / program.key
                work.mkdir()
                _duplicate(exe, work / program.name)
                build.publish(program, work, together=True)
    return True


def _duplicate(exe: Path, other: Path) -> None:
    """Make another file of an executable: a link, or a copy on a file system without links between folders."""
    try:
        os.link(exe, other)
    except OSError:
        shutil.copy2(exe, other)


def compile_executable(builds: Sequence[Build], folder: Path) -> Path:
    """Compile programs as one executable in a folder; return its path."""
    for build in builds:
        build.translate(folder)
    header = folder / "programs.hpp"
    flags = [flag for flag in builds[0].flags if not flag.startswith("USER_HEADER=")]
    own = [flag.partition("=")[2] for build in builds for flag in build.flags if flag.startswith("USER_HEADER=")]
    names = [build.program().name for build in builds]
    header.write_text(combined_header(names, list(dict.fromkeys(own))), encoding="utf-8")
    source = folder / f"{_NAME}.stan"
    source.write_text(_SOURCE, encoding="utf-8")
    together = replace(builds[0], source=source, flags=(*flags, f"USER_HEADER={header}"))
    together.translate(folder)
    together.make(folder / _NAME)
    return folder / _NAME


def combined_header(names: Sequence[str], headers: Sequence[str]) -> str:
    """Return the C++ code that includes programs and selects one of them.

    USING_R omits the functions ``new_model`` and ``get_stan_profile_data`` of each program.
    """
    includes = "".join(f'#include "{header}"\n' for header in headers)
    programs = "".join(_PROGRAM.format(name=name) for name in names)
    branches = "\n".join(_BRANCH.format(name=name) for name in names)
    return (
        f"#include <stan/model/model_header.hpp>\n{includes}#define USING_R\n"
        f"{programs}{_DISPATCH.replace('BRANCHES', branches)}"
    )
