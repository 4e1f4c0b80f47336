"""Kill a process group when this process exits, also if this process is killed.

A helper shell reads from a pipe that only this process can write to. The system closes the pipe when this process ends
for any reason, and the shell then kills the group. Linux has ``PR_SET_PDEATHSIG`` for the same
purpose, but it ends only the child itself, not the processes that the child has started, and it needs Python code
between fork and exec, which is unsafe in a process with threads.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator

_SCRIPT = 'read group && { read done || kill -s KILL -- "-$group"; }'


@contextlib.contextmanager
def process_watcher() -> Iterator[Callable[[int], None]]:
    """Start a watcher; yield a function that takes the number of the group to kill if this process dies in the block.

    Without a shell at ``/bin/sh`` there is no watcher, and the group survives this process.
    """
    try:
        # A new session, so that Ctrl-C in the terminal does not reach the watcher.
        shell = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT],
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
    except OSError:
        yield lambda group: None
        return
    with shell:
        try:
            yield lambda group: _tell(shell, f"{group}\n")
        finally:
            _tell(shell, "done\n")


def _tell(shell: subprocess.Popen[bytes], line: str) -> None:
    assert shell.stdin is not None
    with contextlib.suppress(OSError):  # the watcher has already ended
        shell.stdin.write(line.encode())
