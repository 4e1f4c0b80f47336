"""Quick settings and checks of `notebooks/02_inspecting_a_posterior.py`."""

# ruff: noqa: F821

QUICK = {
    "sampling": '{"chains": 2, "warmup": 150, "draws": 100}',
    "long_chains": '{"chains": 2}',
}

assert share.idxmax() == "humidity"
assert table["length-scale"].idxmin() == "temperature" and table["length-scale"].idxmax() == "humidity"
assert 20 < swing["stirring"] < 30 and swing["humidity"] < 5
assert outside < 0.1
assert np.quantile(of_posterior, 0.05) > 1
assert gain.sum() > 3 * gain_se
assert width["log"] < width["none"] / 3
assert diverged.check().divergences > 20 and not diverged.check().ok
assert careful.check().divergences < diverged.check().divergences / 10
assert sensible.check().ok and sensible.check().divergences < 10
assert costs.loc["default, 0.8", "ESS for 1000 steps"] > 3 * costs.loc["vague, 0.99", "ESS for 1000 steps"]
assert uncertainty["vague, 0.99"] > uncertainty["default, 0.8"]
