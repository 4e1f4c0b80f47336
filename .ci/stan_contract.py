"""Check that the tables in ``stan/README.md`` follow the contracts of the kernels; ``--write`` replaces them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from slayr_py.kernels.contracts import (
    COMMON_ENTRIES,
    COMMON_PARAMETERS,
    QUANTITIES,
    Entry,
    Parameter,
    Variable,
)
from slayr_py.kernels.registry import program_contracts

README = Path(__file__).resolve().parents[1] / "stan" / "README.md"
BEGIN = "<!-- contract: begin -->"
END = "<!-- contract: end -->"
PRIORS = """\
For each hyperparameter the program samples a coordinate of the same shape, such as `z_lengthscale` for `lengthscale`.
Priors are normal for real hyperparameters, log-normal for positive ones, beta on the unit interval and Dirichlet on the
simplex. The parameters of a prior are data of the hyperparameter's shape: changing them needs no compilation."""


def updated(text: str) -> str:
    """Replace the text between the markers."""
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n\n{tables()}\n{END}{after}"


def tables() -> str:
    """Return the sections on data, hyperparameters and output."""
    parts = ["## Data", "All programs:", entries(COMMON_ENTRIES)]
    for contract in program_contracts().values():
        parts += [f"Only `{contract.program}`:", entries(contract.own_entries)]
    parts += ["## Hyperparameters and their priors", PRIORS, "All programs:", parameters(COMMON_PARAMETERS)]
    for contract in program_contracts().values():
        parts += [f"Only `{contract.program}`:", parameters(contract.own_parameters)]
    parts += ["## Generated quantities", entries(QUANTITIES)]
    return "\n\n".join(parts) + "\n"


def entries(variables: Iterable[Variable]) -> str:
    """Return a table of data or generated quantities."""
    return table(("name", "type", "meaning"), [(f"`{v.name}`", stan_type(v), meaning(v)) for v in variables])


def parameters(declared: Iterable[Parameter]) -> str:
    """Return a table of hyperparameters."""
    rows = [
        (f"`{p.name}`", stan_type(p), meaning(p), p.support, ", ".join(f"`{name}`" for name in p.prior_entries))
        for p in declared
    ]
    return table(("name", "type", "meaning", "support", "prior"), rows)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(row)} |" for row in (header, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]])


def stan_type(variable: Variable) -> str:
    """Return the type as Stan declares it."""
    axes = ", ".join(variable.shape)
    if variable.type == "int":
        return f"array[{axes}] int" if variable.shape else "int"
    return {0: "real", 1: f"vector[{axes}]", 2: f"matrix[{axes}]"}[len(variable.shape)]


def meaning(variable: Variable) -> str:
    """Return the meaning with codes and conditions."""
    text = variable.meaning
    if isinstance(variable, Entry) and variable.codes:
        text += ": " + ", ".join(f"{number} {name}" for name, number in variable.codes.items())
    if variable.when:
        text += "; empty unless " + " and ".join(f"`{name}` is {value}" for name, value in variable.when.items())
    return text


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
