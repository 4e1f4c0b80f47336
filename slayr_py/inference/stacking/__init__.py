"""Stacking: weights of models from their leave-one-out densities, and reasons to leave a model out."""
