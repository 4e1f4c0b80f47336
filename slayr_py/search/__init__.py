"""Search for kernels: expressions of sums and products that explain the observations best."""

from slayr_py.search.kernel_search import KernelSearch, load
from slayr_py.search.result import SearchResult

__all__ = ["KernelSearch", "SearchResult", "load"]
