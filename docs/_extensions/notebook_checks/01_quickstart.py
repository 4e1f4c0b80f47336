"""Quick settings and checks of `notebooks/01_quickstart.py`."""

# ruff: noqa: F821

QUICK = {
    "budget": "12",
    "sampling": '{"chains": 2, "warmup": 100, "draws": 50}',
    "n_grid": "15",
}
