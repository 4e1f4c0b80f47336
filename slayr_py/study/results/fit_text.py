"""Describe a fit in words: discarded attempts, failed diagnostics and the limits of the diagnostics.

The records come from a new posterior or from a study file, which may have any origin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from slayr_py.inference import CHECKS, INFLUENTIAL, AbandonedAttempt, reason
from slayr_py.study.results.tables import abandoned_attempts, entry, stack_parts
from slayr_py.study.storage.suggestion import SuggestionRecord


def attempts_text(abandoned: Sequence[AbandonedAttempt], diagnostics: Mapping[str, Any]) -> str | None:
    """Describe the attempts of a fit: the reason for each discarded attempt, what followed, and the result.

    ``warm start: bulk ESS 31 < 50 (0.4 s), so a cold start with warm-up 300: ok``

    Returns
    -------
    str or None
        None if the first attempt passed its diagnostics.
    """
    text = f"{_name(abandoned[0])}: " if abandoned else ""
    for attempt in abandoned:
        seconds = attempt.get("seconds")
        then = attempt.get("then")
        text += "; ".join(_texts(attempt.get("why"))) or "discarded"
        text += f" ({seconds:.1f} s)" if _is_number(seconds) else ""
        text += f", so {then}: " if then else ", then: "
    if diagnostics.get("ok") is True:
        return f"{text}ok" if text else None
    failed = "; ".join(reason(message) for message in _texts(diagnostics.get("messages")))
    return f"{text}{failed or 'diagnostics failed'}, not to be trusted"


def stack_lines(record: SuggestionRecord) -> list[str]:
    """Describe the stack of a suggestion record: weights and methods, then the attempts of each part and messages."""
    if not (parts := stack_parts(record)):
        return []
    shares = [f"{part['weight']:.2f} {part.get('kernel')} ({part.get('method')})" for part in parts]
    lines = [f"stack: {', '.join(shares)}"]
    for part in parts:
        if text := attempts_text(abandoned_attempts(part), entry(part.get("diagnostics"))):
            lines.append(f"{part.get('kernel')}: {text}")
    return [*lines, *_texts(entry(record.get("stack")).get("messages"))]


def fit_notes(record: SuggestionRecord) -> list[str]:
    """Describe the failures of the fits behind a suggestion record and their remedies, and a replaced acquisition."""
    if error := record.get("error"):
        return [f"no fit: {error}"]
    text = attempts_text(abandoned_attempts(record), entry(record.get("diagnostics")))
    notes = [*([text] if text else []), *stack_lines(record)]
    notes += _texts([record["note"]] if "note" in record else [])
    for name, model in entry(record.get("conditions")).items():
        if messages := _texts(entry(entry(model).get("diagnostics")).get("messages")):
            notes.append(f"model of {name}: {'; '.join(messages)}")
    return notes


def limits_text(diagnostics: Mapping[str, Any]) -> str | None:
    """List the limits of a fit's diagnostics; None if they were not stored."""
    limits = entry(diagnostics.get("limits"))
    known = [(check, limits.get(name)) for name, check in CHECKS.items()]
    return ", ".join(check.limit_text(limit) for check, limit in known if _is_number(limit)) or None


def fits_remarks(records: Mapping[int, SuggestionRecord]) -> list[str]:
    """Describe several fits together: kernel and limits of the last one, and influential observations.

    Parameters
    ----------
    records : mapping of int to SuggestionRecord
        Suggestion records by the numbers of their trials.
    """
    diagnostics = {number: entry(record.get("diagnostics")) for number, record in records.items()}
    kernel = [(n, "; ".join(texts)) for n, known in diagnostics.items() if (texts := _texts(known.get("kernel_notes")))]
    limits = [(n, text) for n, known in diagnostics.items() if (text := limits_text(known))]
    remarks = [f"model, as of trial {number}: {text}" for number, text in kernel[-1:]]
    remarks += [f"limits, as of trial {number}: {text}" for number, text in limits[-1:]]
    if influential := [str(number) for number, known in diagnostics.items() if known.get("loo_influential")]:
        short = CHECKS["loo_pareto_k_max"].short
        trials = ", ".join(influential)
        remarks.append(f"influential observations ({short} above its limit) in trial {trials}: {INFLUENTIAL}")
    return remarks


def _name(attempt: AbandonedAttempt) -> str:
    start = attempt.get("start")
    if start == "carried":
        return "posterior carried from an earlier fit"
    return f"{start} start" if start in ("warm", "cold") else f"{attempt.get('method')} approximation"


def _is_number(value: Any) -> TypeGuard[float]:
    """Whether a value can be formatted as a float; JSON allows integers that are too large."""
    return isinstance(value, int | float) and abs(value) < 1e300


def _texts(value: Any) -> list[str]:
    return [str(text) for text in value] if isinstance(value, list | tuple) else []
