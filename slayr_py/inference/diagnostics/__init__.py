"""Diagnostics of a fit: limits, convergence, importance ratios, and the bridge to the installed ArviZ."""
