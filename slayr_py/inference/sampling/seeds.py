"""Seeds for CmdStan, distinct where ours are."""

from __future__ import annotations

import numpy as np

from slayr_py.errors import DataError

_LARGEST = 2_147_483_398
_RETRIES = 1000  # a run has fewer parts than that, so that no retry shares the seed of one


def stan_seed(seed: int, part: int = 0) -> int:
    """Seed for CmdStan, distinct for distinct seeds below 2,147,483,398.

    CmdStan's generator reduces a seed modulo 2,147,483,563 and 2,147,483,399 and takes 0 for 1, so seeds are shifted
    by one; larger ones are hashed, and so are those of further parts of a run.

    Raises
    ------
    DataError
        If the seed is not a non-negative integer.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise DataError(f"seed must be an integer >= 0, got {seed!r}")
    if seed < _LARGEST and not part:
        return int(seed) + 1
    return int(np.random.SeedSequence([int(seed), part] if part else int(seed)).generate_state(1)[0] % _LARGEST) + 1


def retry_seed(seed: int, retry: int) -> int:
    """Seed of a run that is made again for the ``retry``-th time: another run, with seeds of its own."""
    return stan_seed(seed, part=_RETRIES + retry)
