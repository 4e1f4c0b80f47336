"""Bounds on numbers that are measured beside the objective."""

from __future__ import annotations

from typing import NamedTuple


class Constraint(NamedTuple):
    """A bound on a value that the objective reports by name."""

    name: str
    sign: float
    """1 for an upper bound, -1 for a lower one."""

    limit: float

    def excess(self, value: float) -> float:
        """Return by how much the value violates the bound; it holds where this is not positive."""
        return self.sign * (value - self.limit)

    def __str__(self) -> str:
        return f"{self.name} {'<=' if self.sign > 0 else '>='} {repr(self.limit).removesuffix('.0')}"
