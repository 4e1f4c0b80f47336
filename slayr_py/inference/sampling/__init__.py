"""Run Stan programs: fit options, NUTS, approximations, warm starts, attempts and retries."""
