"""Sources of the documentation site: its tables agree with the package, and its extensions read Stan files rightly.

`make docs` builds the site, executes the notebooks and checks all links.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

import pytest
from testing_kernels import CASES, own_names

import slayr_py as sl

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs" / "_extensions"))

import plain_formulas  # noqa: E402
import public_names  # noqa: E402
import stan_source  # noqa: E402

FILES = [stan_source.read(path) for path in sorted((ROOT / "stan").rglob("*.stan"))]
FUNCTIONS = [function for file in FILES for function in file.functions]


def rows(page: str) -> dict[str, list[str]]:
    """Return the cells of the first table of a page by the name in its first column."""
    table = re.search(r"^\|(?:.*\n\|)+.*$", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.MULTILINE)
    cells = [line.strip("|").split("|") for line in table[0].splitlines()[2:]]
    return {first.strip(' `"'): [cell.strip() for cell in rest] for first, *rest in cells}


def names(cell: str) -> set[str]:
    """Return the names in backticks."""
    return set(re.findall(r"`(\w+)`", cell))


def test_the_table_of_kernels_has_every_registered_kernel():
    table = rows("kernels.md")
    assert set(table) == own_names()
    classes = {kernel.name: type(kernel).__name__ for kernel, _ in CASES.values()}
    assert {name: cells[0].strip("`") for name, cells in table.items()} == classes


@pytest.mark.parametrize("name", sorted(own_names()))
def test_the_table_of_kernels_has_their_hyperparameters(name):
    common = {"mu", "sigma_f", "sigma_n"}
    found = set()
    for kernel, space in CASES.values():
        if kernel.name == name:
            found |= {h.name for h in sl.GaussianProcess(space, kernel).hyperparameters} - common
    assert names(rows("kernels.md")[name][2]) == found


def test_the_table_of_acquisitions_has_every_criterion():
    table = rows("acquisition.md")
    assert set(table) == set(sl.acquisition.names())
    for name, cells in table.items():
        assert cells[0].strip("`").partition("(")[0] == type(sl.acquisition.from_name(name)).__name__


def test_the_reference_has_every_public_name_once():
    pages = public_names.pages()
    assert set(sl.__all__) == set(pages["slayr_py"]) | {n for n in sl.__all__ if inspect.ismodule(getattr(sl, n))}
    for module, homes in pages.items():
        for name, home in homes.items():
            assert public_names._get(f"{module}.{name}") is public_names._get(home)
            assert home == f"{module}.{name}" or home.count(".") <= module.count(".") + 1
    assert pages["slayr_py.kernels"]["LogNormal"] == "slayr_py.LogNormal"
    assert pages["slayr_py.svm"]["Matern"] == "slayr_py.svm.Matern"
    assert set(pages["slayr_py.kernels.free"]) == set(sl.kernels.free.__all__)
    assert all(issubclass(getattr(sl.errors, name), sl.SlayrError) for name in pages["slayr_py.errors"])


def test_the_reference_lacks_no_function_of_a_stan_file():
    for file in FILES:
        text = file.path.read_text(encoding="utf-8")
        if file.path.parent.name != "functions":
            continue
        defined = re.findall(r"^\w[^*/\n]*?\b(\w+)\((?=[^;{}]*\) ?[{;])", text, re.MULTILINE)
        assert sorted(function.name for function in file.functions) == sorted(defined), file.path


def test_every_stan_function_but_constants_has_a_comment():
    assert [function.name for function in FUNCTIONS if function.comment is None and function.constant is None] == []


def test_every_stan_function_but_constants_has_a_displayed_formula():
    described = [function for function in FUNCTIONS if function.comment is not None and function.constant is None]
    assert [function.name for function in described if not function.comment.formulas] == []


def test_formulas_of_stan_files_have_balanced_braces_and_no_double_index():
    comments = [part.comment for file in FILES for part in (file, *file.functions) if part.comment is not None]
    for formula in (block for comment in comments for block in comment.formulas):
        latex = plain_formulas.to_latex(formula.lines)
        assert latex.replace(r"\{", "").count("{") == latex.replace(r"\}", "").count("}"), formula
        assert not re.search(r"_\{\w*\}\s*_|\^\{\w*\}\s*\^", latex), f"two indices: {formula}"


@pytest.mark.parametrize(
    ("plain", "latex"),
    [
        ("omega_i^2", r"\omega _{i}^{2}"),
        ("exp(-(d + 1) / 2)", r"\exp (-(d + 1) / 2)"),
        ("sum_{k=0}^p (p + k)!", r"\sum _{k=0}^{p} (p + k)!"),
        ("sum(log T'(y))", r"\text{sum}(\log \,T'(y))"),
        ("sqrt((1 + 2 c'S c~) h)", r"\sqrt{(1 + 2 c'S \tilde{c}) h}"),
        ("[K^-1]_ii <= 1", r"[K^{-1}]_{ii} \le  1"),
        ("0 < y", "0 < y"),
        ("mu + sum_{i in g} c~_i^2", r"\mu + \sum _{i \in g} \tilde{c}_{i}^{2}"),
        ("exp(-t beta lambda)", r"\exp (-t \beta \lambda )"),
        ("active in exactly one.", r"\text{active in exactly one}."),
        ("max(r^tau, log Gamma(a))", r"\max (r^{\tau }, \log \,\Gamma (a))"),
    ],
)
def test_formulas_of_comments_are_converted(plain, latex):
    assert re.sub(r" +", " ", plain_formulas.formula(plain)) == re.sub(r" +", " ", latex)


def test_columns_of_a_formula_are_aligned():
    latex = plain_formulas.to_latex(["  0        inactive in both", "  a_i^2    active"])
    assert latex == r"\begin{array}{ll} 0 & \text{inactive in both} \\ a_{i}^{2} & \text{active} \end{array}"
