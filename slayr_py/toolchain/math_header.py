"""Write a C++ header with the parts of Stan Math that a program uses.

Stan's own header of a program includes all of Stan Math, whose parsing and overloads take a third of the time of a
compilation. Functions are in files of their own name, so the words in the C++ code of a program determine the files. A
function may call the one with the start of its name: ``mdivide_left_tri_low`` needs all of ``mdivide_left_tri``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from slayr_py.toolchain.source import cpp_code

_STRING_OR_WORD = re.compile(r'"(?:\\.|[^"\\\n])*"|([A-Za-z_]\w*)')
_GUARD = re.compile(r"^#ifndef\s+(\w+)", re.M)
# Headers of Stan that use functions of Stan Math without including their files.
_STAN = (
    "io/deserializer.hpp", "io/serializer.hpp", "model/model_base.hpp", "model/prob_grad.hpp",
    "model/rethrow_located.hpp", "model/indexing.hpp", "model/indexing/*.hpp", "math/prim/fun/*_constrain.hpp",
    "math/prim/fun/*_free.hpp", "math/prim/constraint/*.hpp",
)  # fmt: skip
# Modules of Eigen that Stan Math includes without using them.
_EIGEN = ("SparseLU", "SparseCholesky", "SparseQR", "IterativeLinearSolvers", "OrderingMethods", "Geometry")
_SCOPES = ("prim", "rev")
_FOLDERS = ("constraint", "fun", "functor", "prob")
_ALWAYS = ("core", "meta", "err")
# Functions of Stan Math use them without including every specialisation.
_FUNCTORS = ("apply_", "operands_", "partials_")
# Where stanc writes the name without using it.
_JACOBIAN_UNUSED = re.compile(r"bool jacobian__|\(void\) ?jacobian__|log_prob_impl<propto__, jacobian__>")
# They call functions such as squared_distance without including the files for gradients.
_COVARIANCES = "gp_*_cov.hpp"


def math_header(include: Path, sources: Sequence[Path]) -> str:
    """Return a header to be included before the code of programs, in place of ``stan/math.hpp``.

    It defines ``SLAYR_NO_JACOBIAN`` if no parameter has constraints: the densities with and without the Jacobian are
    then the same.

    Parameters
    ----------
    include
        The folder with Stan's headers.
    sources
        The C++ code of the programs and the headers that define their functions, which may include others.
    """
    math = include / "stan" / "math"
    stan = [file for pattern in _STAN for file in sorted((include / "stan").glob(pattern))]
    codes = [cpp_code(source) for source in sources]
    words = set().union(*map(_words, codes), *(_words(cpp_code(file)) for file in stan))
    stems = {file.stem for scope in _SCOPES for name in _FOLDERS for file in (math / scope / name).glob("*.hpp")}
    covariances = [file for file in sorted((math / "prim" / "fun").glob(_COVARIANCES)) if file.stem in words]
    words |= stems & set().union(*(_words(cpp_code(file)) for file in covariances))
    words |= {start for word in words & stems for start in _starts(word)}
    replaced = [math.with_suffix(".hpp"), *(math / f"{scope}.hpp" for scope in (*_SCOPES, "mix"))]
    replaced += [include / "Eigen" / module for module in _EIGEN]
    included = [math / scope / f"{name}.hpp" for scope in _SCOPES for name in _ALWAYS]
    for scope in _SCOPES:
        for name in _FOLDERS:
            folder = math / scope / name
            replaced.append(folder.with_suffix(".hpp"))
            included += [
                file for file in sorted(folder.glob("*.hpp")) if file.stem in words or file.stem.startswith(_FUNCTORS)
            ]
    guards = [match[1] for file in replaced if file.is_file() and (match := _GUARD.search(file.read_text("utf-8")))]
    lines = ["#pragma once"]
    lines += [f"#define {guard}" for guard in guards]
    if not any("jacobian__" in _JACOBIAN_UNUSED.sub("", code) for code in codes):
        lines.append("#define SLAYR_NO_JACOBIAN")
    lines += [f"#include <{file.relative_to(include).as_posix()}>" for file in included if file.is_file()]
    return "\n".join(lines) + "\n"


def _words(code: str) -> set[str]:
    """Return the words of code outside of strings; like comments, they may name functions that it does not use."""
    return set(_STRING_OR_WORD.findall(code))


def _starts(word: str) -> set[str]:
    """Return the names with which a name starts: ``{"a", "a_b", "a_b_c"}`` of ``a_b_c``."""
    parts = word.split("_")
    return {"_".join(parts[:n]) for n in range(1, len(parts) + 1)}
