"""Quick settings and checks of `notebooks/06_kernel_search.py`."""

# ruff: noqa: F821

QUICK = {
    "first": "1980",
    "options": '{"budget": 30, "base": ["SE", "PER", "LIN"]}',
}

assert "PER" in best["expression"]
assert best["laplace"] > scores["laplace"].iloc[:4].max() + 50  # better than all base kernels
assert summary.loc["stack", "error ahead, ppm"] < 0.5 * summary.loc["Matérn kernel (p = 2)", "error ahead, ppm"]
