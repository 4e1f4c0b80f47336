"""The processor of this machine, and the options with which the package compiles its programs."""

from __future__ import annotations

import platform
import re
from pathlib import Path

from slayr_py.toolchain.cmdstan import CmdStan

_ARITHMETIC = re.compile(r"s?sse.*|avx.*|fma.*|f16c|amx.*|asimd.*|neon|sve.*")


def processor_options(cmdstan: CmdStan) -> dict[str, str | bool]:
    """Return the options of make with which the package compiles its programs; none unless CmdStan is assembled.

    One compiles for this processor, which doubles the speed of double-precision loops; the front end of another CmdStan
    was compiled without it, and both must agree. Apple's compilers for ARM do not have this flag and do not need it.
    The other omits the parts of Stan Math that a program does not use.
    """
    if cmdstan.origin != "assembled":
        return {}
    options: dict[str, str | bool] = {"USED_MATH": True}
    if (platform.system(), platform.machine()) != ("Darwin", "arm64"):
        options["CXXFLAGS_OPTIM"] = "-march=native"
    return options


def processor_name() -> str:
    """Return the model name of the processor."""
    names = [line.partition(":")[2].strip() for line in processor_text().splitlines() if line.startswith("model name")]
    return names[0] if names else f"{platform.machine()} {platform.processor()}".strip()


def processor_features() -> tuple[str, ...]:
    """Return this processor's floating-point instruction sets (on Linux), which affect the last bits of results."""
    return tuple(sorted(flag for flag in processor_flags() if _ARITHMETIC.fullmatch(flag)))


def processor_flags() -> frozenset[str]:
    """Return the names of this processor's instruction sets on Linux, as ``/proc/cpuinfo`` has them."""
    return frozenset(word for line in processor_text().splitlines() for word in line.partition(":")[2].split())


def processor_text() -> str:
    """Return a text that identifies this processor's instructions, for code compiled with -march=native."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    return "\n".join(
        sorted({line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))})
    )
