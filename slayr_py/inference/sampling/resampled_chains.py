"""Chains of a binary model, resampled from the density that they follow to a more accurate one.

The chains follow Laplace's approximation of the likelihood, whose derivatives are cheap. The program's ``log_density``
has expectation propagation's, which is far more accurate for binary observations (Kuss & Rasmussen 2005, "Assessing
approximate inference for binary Gaussian process classification").
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slayr_py.inference.diagnostics.arviz_bridge import pareto_smooth
from slayr_py.inference.diagnostics.importance import systematic_rows
from slayr_py.inference.sampling.output import Run

_STREAM = 1  # of the random numbers of a seed; the others belong to proposals and approximations


def resampled_chains(run: Run, seed: int) -> Run:
    """Return the run with the draws of every chain resampled by Pareto-smoothed ratios of ``log_density`` to ``lp__``.

    The draws of a chain keep their order, so that R-hat and the effective sample sizes of the result count a repeated
    draw once. The statistics of the sampler remain those of the chains.

    Raises
    ------
    ValueError
        If fewer than five ratios of a chain are finite.
    """
    log_ratio = run.variables["log_density"][..., 0] - run.sampler["lp"]
    finite = np.isfinite(log_ratio)
    if finite.sum(axis=1).min() < 5:
        raise ValueError("a chain has fewer than five draws with a finite log_density")
    weights = np.zeros(log_ratio.shape)
    weights[finite], pareto_k = pareto_smooth(log_ratio[finite])
    rng = np.random.default_rng([seed, _STREAM])
    rows = np.stack([systematic_rows(of_chain, len(of_chain), rng) for of_chain in weights])
    chains = np.arange(run.chains)[:, None]
    variables = {name: values[chains, rows] for name, values in run.variables.items()}
    ess = float(1 / np.sum(np.square(weights)))
    return replace(run, variables=variables, pareto_k=pareto_k, importance_ess=ess)
