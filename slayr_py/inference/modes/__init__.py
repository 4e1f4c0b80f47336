"""Densities of hyperparameters in NumPy: normal coordinates, marginal likelihoods, modes."""
