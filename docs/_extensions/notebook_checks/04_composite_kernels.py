"""Quick settings and checks of `notebooks/04_composite_kernels.py`."""

# ruff: noqa: F821

QUICK = {
    "first": "1980",
    "draws": "25",
}

assert abs(period.mean() - 1) < 0.005
assert np.allclose(parts.offset + parts.mean.sum(axis=0), total.mean)
assert 5 < np.ptp(season) < 7
assert table["leave-one-out"].iloc[0] > table["leave-one-out"].iloc[1] + 50
assert 0.15 < span * np.median(plain.draws["lengthscale"]) < 0.4
assert table["error ahead, ppm"].iloc[0] < 0.5 * table["error ahead, ppm"].iloc[1]
