"""Settings of the search: how many configurations it evaluates, under how many draws, and when it stops."""

from __future__ import annotations

from typing import NamedTuple


class Effort(NamedTuple):
    """Numbers of configurations and of draws in each step of a search.

    All draws are thinned evenly, so that a step uses some of the draws of the last one and no factor is computed twice.

    Attributes
    ----------
    candidates : int
        Valid configurations wanted from the whole space.
    screens : tuple of (int, int)
        For each screen the number of draws, and the number of candidates kept after it.
    climbs : (int, int)
        Number of draws under which the landscape is maximised first, and number of starting candidates.
    finals : (int, int)
        Number of draws under which the landscape is maximised again, and number of starting maxima.
    draws : int
        Most draws under which maxima are compared.
    gains : (float, float)
        Least gain of a logarithm (log EI, log PI) in a step to continue, of a start and of a maximum.
    gains_of_bound : (float, float)
        The same for a criterion in standard deviations of y times `State.scale`, which become small beside the data's
        near an optimum.
    """

    candidates: int = 2048
    screens: tuple[tuple[int, int], ...] = ((4, 200), (16, 50))
    climbs: tuple[int, int] = (16, 10)
    finals: tuple[int, int] = (64, 3)
    draws: int = 256
    gains: tuple[float, float] = (1e-1, 1e-3)
    gains_of_bound: tuple[float, float] = (1e-2, 1e-4)


DEFAULT = Effort()
"""Settings of the optimisation loop; `benchmarks/speed/search.py` compares them with a thorough search."""
