"""The recommendation of a noisy study, as ``slayr optimize`` and ``slayr inspect`` print it."""

from __future__ import annotations

from slayr_py.display import config_lines
from slayr_py.errors import SlayrError
from slayr_py.study import Result, fixed_values_text


def recommendation_text(result: Result) -> str:
    """Return the recommended configuration and its prediction, or the reason why there is none."""
    try:
        recommended = result.recommended
    except SlayrError as error:
        return f"no configuration is recommended: {error}"
    fixed = fixed_values_text(result.study)
    return f"recommended{fixed} (posterior mean and sd): {recommended}\n{config_lines(recommended.config)}"
