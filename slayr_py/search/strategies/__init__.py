"""Strategies of the search: each proposes expressions and learns from their scores."""

from __future__ import annotations

from collections.abc import Callable

from slayr_py.search.strategies.generative import generative
from slayr_py.search.strategies.greedy import greedy
from slayr_py.search.strategies.model import model
from slayr_py.search.strategies.random_search import random_search
from slayr_py.search.task import Rounds

STRATEGIES: dict[str, Callable[..., Rounds]] = {
    "greedy": greedy,
    "random": random_search,
    "model": model,
    "generative": generative,
}
"""Strategies by name. A strategy takes a `Task`; its further arguments are options of `KernelSearch`."""
