"""Seeds for CmdStan."""

from __future__ import annotations

import numpy as np

from slayr_py.arguments import check_integer

_LARGEST = 2_147_483_398  # the smaller modulus of the generator minus 1
_STARTS = 999  # part number of the search for initial values; a run has fewer rounds
_RETRIES = 1000  # first part number of retries


def stan_seed(seed: int, part: int = 0) -> int:
    """Return a seed for CmdStan; distinct seeds below 2,147,483,398 give distinct results.

    CmdStan's generator reduces a seed modulo 2,147,483,563 and 2,147,483,399 and treats 0 as 1, so seeds are shifted by
    one. Larger seeds and the seeds of further parts of a run are hashed.

    Raises
    ------
    DataError
        If the seed is not a non-negative integer.
    """
    seed = check_integer("seed", seed, minimum=0)
    if seed < _LARGEST and not part:
        return seed + 1
    return int(np.random.SeedSequence([seed, part] if part else seed).generate_state(1)[0] % _LARGEST) + 1


def starts_seed(seed: int) -> int:
    """Return a seed for CmdStan's search for initial values of chains, other than those of the chains."""
    return stan_seed(seed, part=_STARTS)


def retry_seed(seed: int, retry: int) -> int:
    """Return the seed of a fit's retry number ``retry``, from 1."""
    return stan_seed(seed, part=_RETRIES + retry)


def as_stan_seed(stream: np.random.SeedSequence) -> int:
    """Draw a seed for CmdStan: a positive 31-bit integer."""
    return 1 + int(stream.generate_state(1)[0]) % (2**31 - 2)
