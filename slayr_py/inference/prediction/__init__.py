"""Predict the latent function from hyperparameter draws: factors, moments, distributions, summands."""
