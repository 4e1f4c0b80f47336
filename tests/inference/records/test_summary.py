"""Means, standard deviations and Monte Carlo errors in a record."""

from __future__ import annotations

import numpy as np
import pytest
from testing_fits import recorded_fit

from slayr_py.inference.diagnostics.arviz_bridge import arviz

pytestmark = [pytest.mark.stan, pytest.mark.usefixtures("accepted_fits")]


def test_the_summary_is_that_of_the_draws(rounds):
    posterior = rounds.idata["posterior"].to_dataset()
    summary = rounds.record["summary"]
    assert list(summary) == ["mu", "sigma_f", "sigma_n", "lengthscale[x]", "lengthscale[z]"]
    for name, entry in summary.items():
        draws = posterior["lengthscale"].sel(encoded_column=name[-2]) if "[" in name else posterior[name]
        assert entry["mean"] == pytest.approx(float(draws.mean()), rel=1e-9)
        assert entry["sd"] == pytest.approx(float(draws.values.std(ddof=1)), rel=1e-9)
        assert entry["mcse_mean"] == pytest.approx(float(arviz().mcse(draws.values, method="mean")), rel=1e-9)
        # ArviZ divides by n - 1 in its error, by n here.
        wanted = float(arviz().ess(draws.values, method="mean"))
        assert entry["ess_mean"] == pytest.approx(wanted, rel=2 / draws.size)


@pytest.mark.slow
def test_errors_of_the_summary_are_those_of_repeated_fits():
    """Compare the spread of 20 means and standard deviations, known up to 16%, with the error that the fits report.

    Only the mean has light tails; the error of the standard deviation of the others is uncertain itself.
    """
    records = [recorded_fit(seed=seed, draws=150, warmup=150).record["summary"]["mu"] for seed in range(20)]
    for moment in ("mean", "sd"):
        spread = np.std([record[moment] for record in records], ddof=1)
        reported = np.median([record[f"mcse_{moment}"] for record in records])
        assert 0.55 < reported / spread < 1.6, moment


def test_one_draw_has_a_mean_only():
    for entry in recorded_fit("map").record["summary"].values():
        assert np.isfinite(entry.pop("mean")) and set(entry.values()) <= {None, 0.0}
