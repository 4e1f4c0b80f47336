"""The httpstan wheel: Stan's compiler, headers and libraries from PyPI."""

from __future__ import annotations

import importlib.metadata
import re
from dataclasses import dataclass
from pathlib import Path

from slayr_py.errors import ToolchainError

STAN_VERSIONS = {"2.35.0": "4.13", "2.39.0": "4.17"}
"""Versions of Stan whose services the front end uses, and the releases of httpstan that contain them."""

INSTALL_CMDSTAN = """Install CmdStan; it is then found and used:
  python -m cmdstanpy.install_cmdstan     (or the command install_cmdstan), or
  conda install -c conda-forge cmdstan"""


@dataclass(frozen=True)
class Wheel:
    """An installed httpstan: its folder, its version, the platforms it was built for, and its version of Stan."""

    folder: Path
    version: str
    tags: str
    stan_version: str


def find_wheel() -> Wheel:
    """Find the installed httpstan without importing it.

    Raises
    ------
    ToolchainError
        If it is not installed (there are no wheels for Windows) or contains another version of Stan.
    """
    try:
        distribution = importlib.metadata.distribution("httpstan")
    except importlib.metadata.PackageNotFoundError:
        raise ToolchainError(
            "no CmdStan found, and httpstan, from which one could be assembled, is not installed "
            '(it has wheels for Linux and macOS, Python 3.11 to 3.14): pip install "slayr-py[stan]", or '
            f'"slayr-py[compile]" to have a compiler too. {INSTALL_CMDSTAN}'
        ) from None
    folder = Path(str(distribution.locate_file("httpstan"))).resolve()
    version = _stan_version(folder)
    if version not in STAN_VERSIONS:
        releases = " or ".join(f"'httpstan=={release}.*'" for release in STAN_VERSIONS.values())
        raise ToolchainError(
            f"httpstan {distribution.version} in {folder} contains Stan {version or 'of unknown version'}, "
            f"{' or '.join(STAN_VERSIONS)} is needed: pip install {releases}, whichever has a wheel for this Python. "
            f"{INSTALL_CMDSTAN}"
        )
    tags = re.findall(r"^Tag: (.+)$", distribution.read_text("WHEEL") or "", flags=re.MULTILINE)
    return Wheel(folder, distribution.version, ",".join(sorted(tags)), version)


def _stan_version(folder: Path) -> str:
    try:
        header = (folder / "include" / "stan" / "version.hpp").read_text(encoding="utf-8")
    except OSError:
        return ""
    numbers = dict(re.findall(r"#define STAN_(MAJOR|MINOR|PATCH) (\d+)", header))
    return ".".join(numbers.get(part, "?") for part in ("MAJOR", "MINOR", "PATCH"))
