"""Quick settings and checks of `notebooks/08_several_objectives.py`."""

# ruff: noqa: F821

QUICK = {
    "options": '{"budget": 11, "n_initial": 8, "method": "map"}',
}

assert len(result.front) > 3 and (result.front["params_height"] <= 5 * result.front["params_width"]).all()
assert 0.7 * largest < found < 1.01 * largest
assert table["mean"].iloc[-1] < table["mean"].iloc[0]
