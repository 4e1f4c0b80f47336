"""Search for kernels: expressions of sums and products that explain the observations best."""
