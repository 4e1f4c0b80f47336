"""The header with the parts of Stan Math that a program uses."""

from __future__ import annotations

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
    (include / "stan" / "io" / "serializer.hpp").write_text("y = stan::math::sin(x);\n")
    (include / "stan" / "math" / "prim" / "fun" / "gp_periodic_cov.hpp").write_text("squared_distance(x, y);\n")
    code = tmp_path / "p.hpp"
    code.write_text("using stan::math; auto y = exp(solve_low(tangent)) + gp_periodic_cov(x);\n")
    lines = math_header(include, [code]).splitlines()
    assert lines[0] == "#pragma once"
    defined = {line.split()[1] for line in lines if line.startswith("#define")}
    assert defined == {"STAN_MATH_HPP", "STAN_MATH_PRIM_HPP", "STAN_MATH_PRIM_FUN_HPP", "STAN_MATH_REV_FUN_HPP"}
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
