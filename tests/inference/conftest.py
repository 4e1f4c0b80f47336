"""Fits whose diagnostics always pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

import slayr_py as sl


@pytest.fixture(scope="module")
def accepted_fits() -> Iterator[None]:
    """Let every check pass, so that the record of a fit describes the method that was requested."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sl.Posterior, "check", lambda posterior: replace(posterior._diagnostics, ok=True))
        yield
