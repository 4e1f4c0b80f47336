"""Freed arrays are reused by glibc."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

_PAGE_FAULTS = """
import resource
import numpy as np
from slayr_py.memory import keep_freed_memory

def allocate():
    arrays = [np.ones(2**16) for _ in range(6)]
    return sum(float(array[0]) for array in arrays)

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

keep_freed_memory()
allocate()
before = faults()
for _ in range(20):
    allocate()
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no thresholds to adapt")
def test_arrays_get_memory_that_was_freed_before() -> None:
    """In a new process, 120 arrays of half a megabyte do not get the 128 pages of a single one."""
    command = [sys.executable, "-c", _PAGE_FAULTS]
    assert int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) < 128
