"""``slayr stan``: export the accelerated log densities for Stan programs of the user."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slayr_py.inference import export_stan
from slayr_py.toolchain import program_folder


def stan(
    *,
    export: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the files; without it, print where the programs are.")
    ] = None,
) -> None:
    """Export accelerated log densities for Stan programs of your own.

    Writes the functions slayr_matern, slayr_exp_quad and slayr_composite: log densities of Gaussian processes with
    analytic gradients in C++, for any program that is compiled with cmdstanpy or CmdStan 2.35 or newer; and a
    description of their arguments and of the compilation. A file with another content is not overwritten.

    For example:
      slayr stan --export slayr_stan
    """
    if export is None:
        typer.echo(f"programs  {program_folder()}  (slayr stan --export DIR writes functions for your own)")
        return
    stan_file, header, description = export_stan(export)
    typer.echo(f"functions    {stan_file}  (to include)")
    typer.echo(f"header       {header}  (user_header of cmdstanpy, USER_HEADER of make)")
    typer.echo(f"description  {description}")
