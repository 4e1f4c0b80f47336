"""Check that the tables in ``stan/README.md`` follow ``slayr_py/kernels/contracts.py``; ``--write`` replaces them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from slayr_py.kernels.contracts import (
    COMMON_ENTRIES,
    COMMON_PARAMETERS,
    CONTRACTS,
    QUANTITIES,
    Entry,
    Parameter,
    Variable,
)
from slayr_py.kernels.priors import stan_names

README = Path(__file__).resolve().parents[1] / "stan" / "README.md"
BEGIN, END = "<!-- contract: begin -->", "<!-- contract: end -->"


def updated(text: str) -> str:
    """Replace the text between the markers."""
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n\n{tables()}\n{END}{after}"


def tables() -> str:
    """Return the tables of data, parameters and generated quantities."""
    priors = [
        f"Each hyperparameter has prior entries of its own shape: {suffixes('real')} of a normal and",
        f"{suffixes('positive')} of a log-normal distribution, {suffixes('unit interval')} of a beta and",
        f"{suffixes('simplex')} of a Dirichlet distribution.",
    ]
    parts = [
        "### Every program",
        table("data", COMMON_ENTRIES),
        table("hyperparameter", COMMON_PARAMETERS),
        "\n".join(priors),
    ]
    for contract in CONTRACTS.values():
        parts += [f"### `{contract.program}`", table("data", contract.own_entries)]
        parts += [table("hyperparameter", contract.own_parameters)]
    parts += ["### Generated quantities", table("output", QUANTITIES)]
    return "\n\n".join(parts) + "\n"


def suffixes(support: str) -> str:
    """Return the names of the prior entries for a support, such as "`*_a`, `*_b`"."""
    return ", ".join(f"`*_{name}`" for name in stan_names(support))


def table(title: str, variables: Iterable[Variable]) -> str:
    """Return a Markdown table."""
    rows = [f"| {title} | type | meaning |", "|---|---|---|"]
    rows += [f"| `{v.name}` | {stan_type(v)} | {meaning(v)} |" for v in variables]
    return "\n".join(rows)


def stan_type(variable: Variable) -> str:
    """Return the type as Stan declares it."""
    axes = ", ".join(variable.shape)
    if variable.type == "int":
        return f"array[{axes}] int" if variable.shape else "int"
    return {0: "real", 1: f"vector[{axes}]", 2: f"matrix[{axes}]"}[len(variable.shape)]


def meaning(variable: Variable) -> str:
    """Return the meaning with codes, support and conditions."""
    parts = [variable.meaning]
    if isinstance(variable, Entry) and variable.codes:
        parts[0] += ": " + ", ".join(f"{code} {name}" for name, code in variable.codes.items())
    if isinstance(variable, Parameter):
        parts.append(variable.support)
    if variable.when:
        conditions = " and ".join(f"`{name}` = {value}" for name, value in variable.when.items())
        parts.append(f"empty unless {conditions}")
    return "; ".join(parts)


def main() -> int:
    """Return 1 if the tables are not current, unless ``--write`` replaces them."""
    text = README.read_text(encoding="utf-8")
    if updated(text) == text:
        return 0
    print(f"stan/{README.name}: {'tables replaced' if '--write' in sys.argv else 'tables are not current'}")
    if "--write" not in sys.argv:
        return 1
    README.write_text(updated(text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
