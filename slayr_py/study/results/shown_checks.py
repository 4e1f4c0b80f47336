"""Names, formats and limits with which the diagnostics of fits are shown."""

from __future__ import annotations

from typing import NamedTuple


class ShownCheck(NamedTuple):
    """How a number of `Diagnostics` is shown.

    Attributes
    ----------
    short : str
    form, limit_form : str
        Formats of the number and of its limit.
    side : {"<=", ">="}
    note : bool
        Whether a number outside its limit is only noted.
    """

    short: str
    form: str
    side: str
    limit_form: str
    note: bool = False

    def limit_text(self, limit: float) -> str:
        """Describe the limit: ``ess_bulk >= 50``."""
        return f"{self.short} {self.side} {limit:{self.limit_form}}{' (a note only)' if self.note else ''}"


CHECKS = {
    "rhat_max": ShownCheck("rhat", ".3f", "<=", ".3f"),
    "ess_bulk_min": ShownCheck("ess_bulk", ".0f", ">=", ".0f"),
    "ess_tail_min": ShownCheck("ess_tail", ".0f", ">=", ".0f"),
    "divergences": ShownCheck("div", "", "<=", ".1f"),
    "max_treedepth_hits": ShownCheck("treedepth", "", "<=", ".0f"),
    "ebfmi_min": ShownCheck("ebfmi", ".2f", ">=", "g"),
    "loo_pareto_k_max": ShownCheck("k_loo", ".2f", "<=", ".2f", note=True),
    "pareto_k": ShownCheck("pareto_k", ".2f", "<=", "g"),
}
"""By the names of the diagnostics."""
