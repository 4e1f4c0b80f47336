"""Bounds on numbers that are measured beside the objective."""

from __future__ import annotations

from typing import NamedTuple


class Constraint(NamedTuple):
    """A bound on a value that the objective reports by name."""

    name: str
    sign: float
    """1 for an upper bound, -1 for a lower one."""

    limit: float
    is_side: bool = False
    """Whether the value has another bound on its other side."""

    @property
    def key(self) -> str:
        """Name of the excess in trials: that of the value, with the relation if it has two bounds."""
        return f"{self.name} {self._relation}" if self.is_side else self.name

    @property
    def limit_text(self) -> str:
        """The limit as it is written."""
        return repr(self.limit).removesuffix(".0")

    @property
    def _relation(self) -> str:
        return "<=" if self.sign > 0 else ">="

    def excess(self, value: float) -> float:
        """Return by how much the value violates the bound; it holds where this is not positive."""
        return self.sign * (value - self.limit)

    def __str__(self) -> str:
        return f"{self.name} {self._relation} {self.limit_text}"
