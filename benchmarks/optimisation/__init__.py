"""Best values found by slayr_py and by other optimisers at equal budgets."""
