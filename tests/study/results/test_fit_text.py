from __future__ import annotations

from slayr_py.study.results.fit_text import fit_notes

FAILED = {"ok": False, "messages": ["R-hat 1.25 > 1.11: the chains disagree"]}


def test_notes_have_the_error_or_the_attempts_parts_and_conditions():
    assert fit_notes({"error": "Stan died", "diagnostics": FAILED}) == ["no fit: Stan died"]
    record = {
        "diagnostics": FAILED,
        "stack": {"parts": [{"kernel": "SE", "weight": 1.0, "method": "nuts", "diagnostics": {"ok": True}}]},
        "conditions": {"success": {"diagnostics": FAILED}, "constraint memory": {"diagnostics": {"ok": True}}},
    }
    assert fit_notes(record) == [
        "R-hat 1.25 > 1.11, not to be trusted",
        "stack: 1.00 SE (nuts)",
        "model of success: R-hat 1.25 > 1.11: the chains disagree",
    ]
