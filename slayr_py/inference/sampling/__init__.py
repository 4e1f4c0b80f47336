"""Run Stan programs: fit options, fit methods, warm starts, the ladder of attempts."""

from slayr_py.inference.sampling import cmdstanpy_import  # before any module imports cmdstanpy
