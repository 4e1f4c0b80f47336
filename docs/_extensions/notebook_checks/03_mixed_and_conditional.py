"""Quick settings and checks of `notebooks/03_mixed_and_conditional.py`."""

# ruff: noqa: F821

QUICK = {
    "sampling": '{"chains": 2, "warmup": 100, "draws": 60}',
    "budget": '{"budget": 9, "n_initial": 8, "chains": 2, "warmup": 150}',
}

assert error["circle"] < error["path"] < error["complete"]
assert guesses["sd"].idxmin() == "circle" and (error < 3 * guesses["sd"]).all()
assert alike["facing"] < alike["cleaning"] < alike["frame"]
assert table.loc["frequency-modulated, circle", "elpd"] > table.loc["frequency-modulated, complete", "elpd"]
assert np.isclose(matrix.loc["linear", "linear again"], 1)
assert matrix.loc["rbf 0.02", "rbf 0.05"] > matrix.loc["rbf 0.02", "rbf 1"]
