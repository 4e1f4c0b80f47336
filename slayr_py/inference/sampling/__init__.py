"""Run Stan programs: fit options, NUTS, approximations, warm starts, attempts and retries."""

from slayr_py.inference.sampling import cmdstanpy_import as cmdstanpy_import  # before any module imports cmdstanpy
