"""Memory of arrays that are allocated again and again."""

from __future__ import annotations

from functools import cache

import numpy as np

_MIB = 2**20  # bytes
_BLOCK = 31 * _MIB  # bytes; glibc adapts to blocks of at most 32 MiB


@cache
def keep_freed_memory() -> None:
    """Let glibc reuse the memory of freed arrays instead of returning it to the system; once per process.

    In a new process an array above 128 KiB has pages of its own, which the system takes back when it is freed and
    clears for the next one: a fifth to a third of the time of a density with intermediate results of half a megabyte.
    Freeing one larger block adapts glibc's thresholds (``mallopt(3)``, ``M_MMAP_THRESHOLD``): arrays below 31 MiB are
    then reused, and at most 62 MiB of free memory are kept. Settings of the user in ``MALLOC_MMAP_THRESHOLD_`` and
    other variables take precedence, and other C libraries are not affected.
    """
    np.empty(_BLOCK, dtype=np.uint8)  # freed at once, and never touched
