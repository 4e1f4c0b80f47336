"""The processor of this machine, and the options that compile for it."""

from __future__ import annotations

import platform
import re
from pathlib import Path

from slayr_py.toolchain.cmdstan import CmdStan

_ARITHMETIC = re.compile(r"s?sse.*|avx.*|fma.*|f16c|amx.*|asimd.*|neon|sve.*")


def processor_options(cmdstan: CmdStan) -> dict[str, str]:
    """Return the options of make that compile for this processor; they double the speed of double-precision loops.

    They are used with an assembled CmdStan only, because another CmdStan has compiled its front end without them, and
    both must agree. Apple's compilers for ARM do not have this flag and do not need it.
    """
    apple = platform.system() == "Darwin" and platform.machine() == "arm64"
    return {} if apple or cmdstan.origin != "assembled" else {"CXXFLAGS_OPTIM": "-march=native"}


def processor_name() -> str:
    """Return the model name of the processor."""
    names = [line.partition(":")[2].strip() for line in processor_text().splitlines() if line.startswith("model name")]
    return names[0] if names else f"{platform.machine()} {platform.processor()}".strip()


def processor_features() -> tuple[str, ...]:
    """Return this processor's floating-point instruction sets (on Linux), which affect the last bits of results."""
    words = {word for line in processor_text().splitlines() for word in line.partition(":")[2].split()}
    return tuple(sorted(word for word in words if _ARITHMETIC.fullmatch(word)))


def processor_text() -> str:
    """Return a text that identifies this processor's instructions, for code compiled with -march=native."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    return "\n".join(
        sorted({line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))})
    )
