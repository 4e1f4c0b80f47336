"""A user's belief about the location of the optimum, as a factor of the acquisition and in the initial design.

The acquisition is multiplied by pi(x)^(beta / n) in trial n, so that the belief counts less as data arrive
(Hvarfner, Stoll, Souza, Lindauer, Hutter & Nardi 2022, "piBO: Augmenting acquisition functions with user beliefs for
Bayesian optimization", ICLR). The search adds (beta / n) log pi(x) to the logarithm of the acquisition.

The belief may be wrong. pi is therefore a defensive mixture, pi(x) = (1 - e) b(x) + e with e = `SHARE_OF_SPACE`
(Hesterberg 1995, "Weighted average importance sampling and defensive mixture distributions", Technometrics 37). b is
the product of the beliefs about the active parameters, each a density relative to the space's own distribution: see
`slayr_py.acquisition.marginals`. An inactive parameter has the factor 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from ConfigSpace import Configuration

from slayr_py.acquisition.marginals import ParameterBelief, has_belief, marginal_of, marginal_of_space
from slayr_py.errors import DataError, SpaceError, did_you_mean
from slayr_py.kernels import Prior, prior_from_dict
from slayr_py.space import Encoded, Encoder, Fixed, FloatArray, spread

Beliefs = Mapping[str, Prior | Mapping[Any, float]] | str
"""A distribution or weights for each parameter by name, or "space"."""

SHARE_OF_SPACE = 0.1
"""Share of the space's own distribution in the density of all parameters: log pi is at least its logarithm."""

_OF_SPACE = "space"
_POOL = 512  # configurations from which a design inside constraints is chosen
_LARGEST_DESIGN = 2**14  # Sobol points after which a design may have fewer configurations than wanted
_PEDESTAL = 1e-6  # keeps weights positive
_STREAM = 1  # of random numbers, apart from the stream of the design without a belief
_LISTED = 8  # weights in a text


@dataclass(frozen=True, eq=False)
class OptimumPrior:
    """A belief about the location of the optimum of one space.

    Attributes
    ----------
    encoder : Encoder
    marginals : dict of int to ParameterBelief
        By column of the genotype.
    record : dict
        The belief as plain JSON: for each parameter the distribution, {"weights": {...}}, or the type of a parameter
        of ConfigSpace.
    exponent : float
        beta / n.
    """

    encoder: Encoder
    marginals: Mapping[int, ParameterBelief]
    record: Mapping[str, Any]
    exponent: float = 1.0

    @classmethod
    def of(cls, beliefs: Beliefs, encoder: Encoder) -> OptimumPrior:
        """Read and check a belief.

        Parameters
        ----------
        beliefs : mapping or "space"
            A distribution or a mapping of weights for some of the parameters. "space" takes the distributions of
            ConfigSpace's own parameters, such as ``NormalFloatHyperparameter``, and the weights of its categories.
        encoder : Encoder

        Raises
        ------
        SpaceError
            For an unknown parameter or level, or a level without a weight.
        DataError
            For an illegal belief, or "space" if its parameters have none.
        """
        if isinstance(beliefs, str) and beliefs == _OF_SPACE:
            return cls._of_space(encoder)
        if not isinstance(beliefs, Mapping) or not beliefs:
            raise DataError(
                f"prior is {beliefs!r:.100}; give beliefs by parameter, as in prior={{'lr': sl.LogNormal(-7, 1)}}, or "
                "'space'"
            )
        marginals = {}
        record = {}
        for name, belief in beliefs.items():
            if name not in encoder.names:
                if name in encoder.space:
                    raise SpaceError(f"prior: {name!r} is a constant; leave it out")
                raise SpaceError(f"prior: unknown parameter {name!r}{did_you_mean(name, encoder.names)}")
            column = encoder.names.index(name)
            marginals[column], record[name] = marginal_of(belief, encoder.dimensions[column])
        return cls(encoder, marginals, record)

    @classmethod
    def _of_space(cls, encoder: Encoder) -> OptimumPrior:
        marginals = {}
        record = {}
        for column, dimension in enumerate(encoder.dimensions):
            found = marginal_of_space(encoder.space[dimension.name], dimension)
            if found is not None:
                marginals[column] = found[0]
                record[dimension.name] = found[1]
        if not marginals:
            raise DataError(
                "prior='space', but no parameter of the space has a distribution; use NormalFloatHyperparameter, "
                "BetaFloatHyperparameter or weights= of ConfigSpace, or give beliefs by parameter"
            )
        return cls(encoder, marginals, record)

    def tempered(self, exponent: float) -> OptimumPrior:
        """Return the factor pi^exponent."""
        return replace(self, exponent=exponent)

    def values(self, encoded: Encoded) -> FloatArray:
        """Return the logarithm of the factor (m,) at configurations."""
        return self.values_and_gradients(encoded)[0]

    def values_and_gradients(self, encoded: Encoded) -> tuple[FloatArray, FloatArray]:
        """Return the logarithm of the factor (m,), and its derivatives by the real inputs (m, D_real)."""
        values, gradients = self._product(encoded)
        believed = np.log1p(-SHARE_OF_SPACE) + values
        mixed = np.logaddexp(believed, np.log(SHARE_OF_SPACE))
        share = np.exp(believed - mixed)
        return self.exponent * mixed, self.exponent * share[:, None] * gradients

    def _product(self, encoded: Encoded) -> tuple[FloatArray, FloatArray]:
        """Return the logarithm of the product of the beliefs (m,), and its derivatives by the real inputs."""
        values = np.zeros(len(encoded))
        gradients = np.zeros(encoded.unit_values.shape)
        for column, marginal in self.marginals.items():
            active = encoded.active[:, column]
            log_p, slope = marginal.log_density(encoded.unit_values[:, column])
            values += np.where(active, log_p, 0.0)
            gradients[:, column] = np.where(active, slope, 0.0)
        real = [d.is_real for d in self.encoder.dimensions]
        return values, gradients[:, real]

    def genotypes(self, u: FloatArray) -> FloatArray:
        """Map uniform variates (n, D) to genotypes with the belief."""
        v = u.copy()
        for column, marginal in self.marginals.items():
            v[:, column] = marginal.quantile(u[:, column])
        return self.encoder.from_uniform(v)

    def design(self, n: int, seed: int, fixed: Fixed | None = None) -> list[Configuration]:
        """Return at most ``n`` configurations with the belief: points of a Sobol sequence mapped by the quantiles.

        Inside constraints on inputs, the points represent configurations drawn from the belief there. Points that a
        forbidden clause excludes are left out.
        """
        rng = np.random.default_rng([seed, _STREAM])
        if self.encoder.region is not None:
            return self._design_inside(n, rng, fixed)
        return self.encoder.allowed_sobol(n, rng, fixed, self.genotypes, _LARGEST_DESIGN)

    def _design_inside(self, n: int, rng: np.random.Generator, fixed: Fixed | None) -> list[Configuration]:
        """Return points that represent a pool drawn inside the constraints and resampled with the belief."""
        encoded, allowed = self.encoder.resolve(self.encoder.uniform(_POOL, rng, fixed), fixed)
        pool = encoded[np.flatnonzero(allowed)]
        if not len(pool):
            return []
        density = np.exp(self._product(pool)[0])
        weights = density - (1 - _PEDESTAL) * density.min()  # without the uniform share of the densities
        chosen = np.unique(rng.choice(len(pool), size=4 * n, p=weights / weights.sum()))
        drawn = pool[chosen]
        return self.encoder.decode(drawn[spread(drawn, min(n, len(drawn)))])


def prior_text(record: Mapping[str, Any]) -> str:
    """Describe the belief of a record in one line."""
    parts = []
    for name, belief in record.items():
        if isinstance(belief, str):
            text = f"{belief} of the space"
        elif "weights" in belief:
            shown = [f"{level} {weight:.3g}" for level, weight in belief["weights"].items()]
            text = ", ".join(shown[:_LISTED]) + ", ..." * (len(shown) > _LISTED)
        else:
            text = str(prior_from_dict(dict(belief)))
        parts.append(f"{name}: {text}")
    return "; ".join(parts)


def ignored_beliefs(encoder: Encoder) -> list[str]:
    """Return the parameters of the space with a distribution of their own, which counts only with prior="space"."""
    return [name for name in encoder.names if has_belief(encoder.space[name])]
