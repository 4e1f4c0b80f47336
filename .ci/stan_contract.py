"""Check that the tables and the example of ``stan/README.md`` follow the contracts; ``--write`` replaces them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from ConfigSpace import ConfigurationSpace

import slayr_py as sl
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
EXAMPLE = README.with_name("example.data.json")
BEGIN = "<!-- contract: begin -->"
END = "<!-- contract: end -->"
PRIORS = """\
For each hyperparameter the program samples a coordinate of the same shape, such as `z_lengthscale` for `lengthscale`.
Priors are normal for real hyperparameters, log-normal for positive ones, beta on the unit interval and Dirichlet on the
simplex. The parameters of a prior are data of the hyperparameter's shape: changing them needs no compilation.

A positive hyperparameter can have a prior of another family. Its entry that ends in `_gamma` has power, shape and rate
in each row: `row_vector[3]` for a number, `matrix[n, 3]` for a vector of length n. A power other than 0 selects the
prior quantity^power ~ Gamma(shape, rate): half-normal with power 2 and shape 1/2, gamma with power 1, inverse gamma
with power -1. Location and scale are then those of the coordinate alone, and should be close to the prior's. Power 0 is
the log-normal prior.

Scale 0, with power 0, fixes a hyperparameter: a positive one at exp(location), a real one at location."""


def updated(text: str) -> str:
    """Replace the text between the markers."""
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n\n{tables()}\n{END}{after}"


def example_data() -> str:
    """Return the data of ``matern_gp`` for a function of two inputs, with one entry on a line."""
    gp = sl.GaussianProcess(ConfigurationSpace({"a": (0.0, 1.0), "b": (0.0, 1.0)}), "matern")
    points = np.array(gp.encoder.encode(gp.encoder.sobol(12, 0)).columns).round(3)
    values = np.sin(5 * points[:, 0]) + (points[:, 1] - 0.3) ** 2
    new = np.array([[0.1, 0.1], [0.5, 0.5], [0.9, 0.9]])
    y = ((values - values.mean()) / values.std(ddof=1)).round(4)
    data = gp.model.stan_data(gp.encoder.encode(points), y, gp.encoder.encode(new))
    lines = [f'  "{name}": {json.dumps(rounded(np.asarray(value).tolist()))}' for name, value in data.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def rounded(value: object) -> object:
    """Return numbers with 6 digits, because logarithms differ in the last one between processors."""
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


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
    """Return the number of files that are not current, unless ``--write`` replaces them."""
    wanted = {README: updated(README.read_text(encoding="utf-8")), EXAMPLE: example_data()}
    stale = [path for path, text in wanted.items() if path.read_text(encoding="utf-8") != text]
    for path in stale:
        print(f"stan/{path.name}: {'replaced' if '--write' in sys.argv else 'not current'}")
        if "--write" in sys.argv:
            path.write_text(wanted[path], encoding="utf-8")
    return 0 if "--write" in sys.argv else len(stale)


if __name__ == "__main__":
    sys.exit(main())
