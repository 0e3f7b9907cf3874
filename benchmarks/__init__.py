"""Measurements of pqadmin on this machine; each prints its result as markdown. `python -m benchmarks` runs them."""
