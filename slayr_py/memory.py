"""Memory of arrays that are allocated again and again."""

from __future__ import annotations

from functools import cache

import numpy as np

_MIB = 2**20
_BLOCK = 31 * _MIB  # bytes; glibc adapts to blocks of at most 32 MiB


@cache
def keep_freed_memory() -> None:
    """Let glibc reuse the memory of freed arrays instead of returning it to the system; once per process.

    A new process gives arrays above 128 KiB pages of their own, or returns them when they are freed, so that the system
    has to clear new pages for every intermediate result: a quarter to a half of the time of a density of half a
    megabyte. Freeing one larger block adapts glibc's thresholds, as described in ``mallopt(3)`` under
    ``M_MMAP_THRESHOLD``: arrays below 31 MiB are then reused, and at most 62 MiB of free memory are kept. Settings of
    the user in ``MALLOC_MMAP_THRESHOLD_`` and other variables take precedence, and other C libraries are not affected.
    """
    np.empty(_BLOCK, dtype=np.uint8)  # freed at once, and never touched
