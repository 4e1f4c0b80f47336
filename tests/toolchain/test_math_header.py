"""The header with the parts of Stan Math that a program uses."""

from __future__ import annotations

import pytest

from slayr_py.toolchain import compile_program
from slayr_py.toolchain.math_header import math_header


def test_files_are_included_by_the_words_of_the_code(tmp_path):
    include = tmp_path / "include"
    for name in (
        "math.hpp", "math/prim.hpp", "math/prim/core.hpp", "math/prim/fun.hpp", "math/prim/fun/exp.hpp",
        "math/prim/fun/sin.hpp", "math/prim/fun/solve_low.hpp", "math/prim/fun/tan.hpp", "math/rev/fun.hpp",
        "math/rev/fun/exp.hpp", "math/rev/fun/solve.hpp", "math/prim/functor/apply_vector_unary.hpp",
        "math/prim/functor/ode_rk45.hpp", "io/serializer.hpp", "math/prim/fun/gp_periodic_cov.hpp",
        "math/rev/fun/squared_distance.hpp",
    ):  # fmt: skip
        file = include / "stan" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        guard = "STAN_" + name.upper().replace("/", "_").replace(".", "_")
        file.write_text(f"#ifndef {guard}\n#define {guard}\n#endif\n")
    (include / "Eigen").mkdir()
    (include / "Eigen" / "SparseLU").write_text("#ifndef EIGEN_SPARSELU\n#define EIGEN_SPARSELU\n#endif\n")
    (include / "stan" / "io" / "serializer.hpp").write_text("y = stan::math::sin(x);\n")
    (include / "stan" / "math" / "prim" / "fun" / "gp_periodic_cov.hpp").write_text("squared_distance(x, y);\n")
    (tmp_path / "solver.hpp").write_text("solve_low(x);  // not tan(x)\n")
    code = tmp_path / "p.hpp"
    code.write_text(
        '#include "solver.hpp"\nauto y = exp(solve(tangent)) + gp_periodic_cov(x); /* or tan */ throw "tan";\n'
    )
    lines = math_header(include, [code]).splitlines()
    assert lines[0] == "#pragma once"
    defined = {line.split()[1] for line in lines if line.startswith("#define")}
    replaced = {"STAN_MATH_HPP", "STAN_MATH_PRIM_HPP", "STAN_MATH_PRIM_FUN_HPP", "STAN_MATH_REV_FUN_HPP"}
    assert defined == replaced | {"EIGEN_SPARSELU", "SLAYR_NO_JACOBIAN"}
    assert [line for line in lines if line.startswith("#include")] == [
        "#include <stan/math/prim/core.hpp>",
        "#include <stan/math/prim/fun/exp.hpp>",
        "#include <stan/math/prim/fun/gp_periodic_cov.hpp>",
        "#include <stan/math/prim/fun/sin.hpp>",
        "#include <stan/math/prim/fun/solve_low.hpp>",
        "#include <stan/math/prim/functor/apply_vector_unary.hpp>",
        "#include <stan/math/rev/fun/exp.hpp>",
        "#include <stan/math/rev/fun/solve.hpp>",
        "#include <stan/math/rev/fun/squared_distance.hpp>",
    ]


@pytest.mark.parametrize(
    ("code", "used"),
    [
        (
            "template <bool propto__, bool jacobian__> T log_prob() { return log_prob_impl<propto__, jacobian__>(x); }",
            False,
        ),
        ("constexpr bool jacobian__ = false; (void) jacobian__;", False),
        ("in__.template read_constrain_lb<double, jacobian__>(0, lp__);", True),
        ("if (jacobian__) { lp_accum__.add(x); }", True),
    ],
)
def test_the_jacobian_is_omitted_only_if_no_constraint_uses_it(tmp_path, code, used):
    header = tmp_path / "program.hpp"
    header.write_text(code)
    (tmp_path / "programs.hpp").write_text('#include "program.hpp"\n')
    assert ("#define SLAYR_NO_JACOBIAN" in math_header(tmp_path, [tmp_path / "programs.hpp"])) != used


def test_a_program_that_needs_more_than_it_names_is_compiled_again_with_a_warning(
    no_cmdstan, own_cache, write_script, source, tmp_path, monkeypatch
):
    # This compiler refuses to compile with the selected parts and counts the compilations of the program.
    write_script(
        tmp_path / "compiler",
        f"""case "$*" in *' -c '*p.hpp*) echo "$*" >> {tmp_path}/log;; esac
case "$*" in *used_math.hpp*) echo "error: 'exp' was not declared"; exit 1;; esac
while [ $# -gt 0 ]; do [ "$1" != -o ] || echo '#!/bin/sh' > "$2"; shift; done
""",
    )
    monkeypatch.setenv("CXX", str(tmp_path / "compiler"))
    message = "(?s)p.stan does not compile with the parts of Stan Math that it names and .*'exp' was not declared"
    with pytest.warns(RuntimeWarning, match=message):
        exe = compile_program(source, cpp_options={"USED_MATH": True}).exe
    assert exe.is_file()
    assert ["used_math.hpp" in line for line in (tmp_path / "log").read_text().splitlines()] == [True, False]
