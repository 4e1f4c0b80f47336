"""``slayr doctor``: check the compiler and CmdStan."""

from __future__ import annotations

from typing import Annotated

import typer

from slayr_py.cli.exit_codes import TOOLCHAIN
from slayr_py.inference import likelihood_in_use
from slayr_py.toolchain import Check, doctor as examine


def doctor(
    build: Annotated[
        bool, typer.Option("--build", help="Also install CmdStan if it is missing, and compile a program.")
    ] = False,
) -> None:
    """Check the compiler, CmdStan and the cache, and list what to install.

    Exit code 3 if something that Stan needs is missing.

    For example:
      slayr doctor
      slayr doctor --build    (once, a minute or two)
    """
    checks = examine(build=build)
    if all(check.ok for check in checks):
        checks.append(Check("likelihood", True, likelihood_in_use(build)))
    width = max((len(check.name) for check in checks), default=0)
    for check in checks:
        typer.echo(f"{'ok     ' if check.ok else 'MISSING'}  {check.name:<{width}}  {check.detail}")
        if not check.ok and check.remedy:
            typer.echo("\n".join(f"         {line}" for line in str(check.remedy).splitlines()))
    if not all(check.ok for check in checks):
        raise typer.Exit(TOOLCHAIN)
