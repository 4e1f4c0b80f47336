"""Search for kernels: expressions of sums and products that explain the observations best."""

from slayr_py.search.expressions import base_leaves
from slayr_py.search.kernel_search import SCALARS, KernelSearch
from slayr_py.search.result import MOST_EXACT, SearchResult
from slayr_py.search.saved import load
from slayr_py.search.strategies import STRATEGIES

__all__ = ["KernelSearch", "SearchResult", "load"]
