"""The Stan program around a covariance function that a user has written.

The function is called on pairs of points. Everything else is the same as in the programs of the package, from the same
files: priors, coordinates, marginal likelihood, generated quantities.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import NamedTuple

from slayr_py.kernels.contracts import Parameter

_HAS_BLOCKS = re.compile(r"^\s*(functions|data|parameters|model)\s*\{", re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)

_PROGRAM = Template("""\
// Gaussian process with the covariance function $function of $file.
functions {
  #include functions/distances.stan
  #include functions/warp.stan
  #include functions/probit.stan
  #include functions/gp_posterior.stan
  #include functions/priors.stan
  #include functions/coordinates.stan
  #include "$file"
}
data {
  #include blocks/data.stan
  matrix[N, D] X;
  matrix[M, D] X_new;
$data
}
transformed data {
  #include blocks/transformed_data.stan
  array[2, n_pairs] int pairs = lower_triangle(N);
  array[2, N * M] int pairs_cross = rectangle(N, M);
  array[2, n_pairs_new] int pairs_new = lower_triangle(M_cov);
$transformed_data
}
parameters {
  real z_mu;
  real z_sigma_f;
  real z_sigma_n;
  vector[n_warp] z_warp;
$parameters
}
transformed parameters {
  #include blocks/transformed_parameters.stan
$transformed_parameters
}
model {
  #include blocks/model.stan
$model
  if (!prior_only) {
    vector[n_pairs] k = square(sigma_f) * $function(X[pairs[1]], X[pairs[2]]$arguments);
    vector[N] variance = square(sigma_f) * $function(X, X$arguments);
    target += gp_log_marginal(observed, append_row(warp, warp_pivot), mu, k, variance, sigma_n);
  }
}
generated quantities {
  vector[3 + n_warp + $size] theta = append_row(append_row([mu, sigma_f, sigma_n]', warp), $theta);
  #include blocks/generated_quantities.stan
  if (want_pointwise || M || want_density) {
    vector[n_pairs] k = square(sigma_f) * $function(X[pairs[1]], X[pairs[2]]$arguments);
    vector[N * M] cross = square(sigma_f) * $function(X[pairs_cross[1]], X_new[pairs_cross[2]]$arguments);
    vector[n_pairs_new] k_new = square(sigma_f) * $function(X_new[pairs_new[1]], X_new[pairs_new[2]]$arguments);
    vector[N] variance = square(sigma_f) * $function(X, X$arguments);
    vector[M] variance_new = square(sigma_f) * $function(X_new, X_new$arguments);
    if (want_density) {
$no_lengthscale      #include blocks/prior.stan
$density
      log_density[1] = log_prior;
      if (!prior_only) {
        log_density[1] += gp_log_marginal(observed, append_row(warp, warp_pivot), mu, k, variance, sigma_n);
      }
    }
    if (want_pointwise || M || density_by_ep) {
      #include blocks/predictions.stan
    }
  }
}
""")

# Blocks name the length-scales, which are fast to sample in coordinates of their own.
_WITHOUT_LENGTHSCALE = """\
  vector[0] lengthscale_location;
  vector[0] lengthscale_scale;
  matrix[0, 3] lengthscale_gamma;"""


class OwnProgram(NamedTuple):
    """The Stan program of a kernel that is not one of the package's.

    Attributes
    ----------
    file
        The user's file.
    text
        The program, which includes the file or is its content.
    """

    file: Path
    text: str

    @property
    def sha256(self) -> str:
        """SHA-256 of the program and the user's file, without comments and layout."""
        code = _COMMENT.sub(" ", self.text + self.file.read_text(encoding="utf-8"))
        return hashlib.sha256(" ".join(code.split()).encode()).hexdigest()


class _Family(NamedTuple):
    """Stan statements of hyperparameters with one support; NAME and LENGTH are replaced."""

    data: tuple[str, ...]
    transformed: str
    density: str


_POSITIVE_DATA = (
    "vector[LENGTH] NAME_location;",
    "vector<lower=0>[LENGTH] NAME_scale;",
    "matrix[LENGTH, 3] NAME_gamma;",
)
_LENGTHSCALE = _Family(
    _POSITIVE_DATA,
    "vector<lower=0>[LENGTH] NAME = log_normal(lengthscale_score(z_NAME, NAME_location, NAME_scale, N), "
    "NAME_location, NAME_scale);",
    "lengthscale_coordinate_lpdf(z_NAME | NAME_location, NAME_scale, NAME_gamma, N, omit_jacobian)",
)
_FAMILIES = {
    "positive": _Family(
        _POSITIVE_DATA,
        "vector<lower=0>[LENGTH] NAME = log_normal(z_NAME, NAME_location, NAME_scale);",
        "score_lpdf(z_NAME | NAME_location, NAME_scale, NAME_gamma)",
    ),
    "real": _Family(
        ("vector[LENGTH] NAME_location;", "vector<lower=0>[LENGTH] NAME_scale;"),
        "vector[LENGTH] NAME = NAME_location + NAME_scale .* z_NAME;",
        "std_normal_lpdf(z_NAME)",
    ),
    "unit interval": _Family(
        ("vector<lower=0>[LENGTH] NAME_a;", "vector<lower=0>[LENGTH] NAME_b;"),
        "vector<lower=0, upper=1>[LENGTH] NAME = inv_logit(z_NAME);",
        "logit_beta_lpdf(z_NAME | NAME_a, NAME_b)",
    ),
}

SUPPORTS = tuple(_FAMILIES)
"""Supports that hyperparameters of such a function can have."""


def own_program(name: str, file: Path, parameters: Sequence[Parameter], scalars: frozenset[str]) -> OwnProgram:
    """Return the program of a user's file, which has the covariance function ``name`` or is a whole program.

    Parameters
    ----------
    parameters : sequence of Parameter
        The function's arguments after the two points; a scalar is a vector of length 1 in the program.
    scalars : frozenset of str
        Names of the scalars among them.
    """
    content = file.read_text(encoding="utf-8")
    if _HAS_BLOCKS.search(_COMMENT.sub("", content)):
        return OwnProgram(file, content)
    places = {parameter.name: f"{parameter.name}{'[1]' * (parameter.name in scalars)}" for parameter in parameters}
    theta = "rep_vector(0, 0)"
    for parameter in parameters:
        theta = f"append_row({theta}, {parameter.name})"
    has_lengthscale = "lengthscale" in places
    statements = [_statements(parameter) for parameter in parameters]
    densities = [own.density for parameter, own in zip(parameters, statements, strict=True)]
    further = [d for parameter, d in zip(parameters, densities, strict=True) if parameter.name != "lengthscale"]
    text = _PROGRAM.substitute(
        function=name,
        file=file.name,
        arguments="".join(f", {place}" for place in places.values()),
        data=_lines([entry for own in statements for entry in own.data]),
        transformed_data="" if has_lengthscale else _WITHOUT_LENGTHSCALE,
        parameters=_lines([f"vector[{parameter.shape[0]}] {parameter.coordinate};" for parameter in parameters]),
        transformed_parameters=_lines([own.transformed for own in statements]),
        model=_lines([f"target += {density};" for density in densities]),
        size=" + ".join(["0", *(parameter.shape[0] for parameter in parameters)]),
        theta=theta,
        no_lengthscale="" if has_lengthscale else "      vector[0] z_lengthscale;\n",
        density=_lines([f"    log_prior += {density};" for density in further]),
    )
    return OwnProgram(file, text)


def _statements(parameter: Parameter) -> _Family:
    """Return the statements of a hyperparameter."""
    family = _LENGTHSCALE if parameter.name == "lengthscale" else _FAMILIES[parameter.support]

    def filled(statement: str) -> str:
        return statement.replace("NAME", parameter.name).replace("LENGTH", parameter.shape[0])

    return _Family(tuple(map(filled, family.data)), filled(family.transformed), filled(family.density))


def _lines(statements: Sequence[str]) -> str:
    return "\n".join(f"  {statement}" for statement in statements)
