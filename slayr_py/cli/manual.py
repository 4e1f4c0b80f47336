"""The manual of ``slayr optimize``: a configuration file with all keys, and the kernels."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from slayr_py.cli.keys import GP, OBJECTIVE, PRETRAIN, STUDY, Key

_COLUMN = 32  # where comments start
_WIDTH = 78  # the help has an indent of two


def manual() -> str:
    """Return the help of the command after its first line."""
    return _TEXT.format(
        study=_section("[study]", "Every key is optional.", STUDY),
        objective=_section("[objective]", "A function or a command.", OBJECTIVE),
        gp=_section("[gp]", "Every key is optional.", GP),
        pretrain=_section("[pretrain]", "Instead of kernel in [gp]: a kernel learned from related data.", PRETRAIN),
    )


def _section(title: str, comment: str, keys: Mapping[str, Key]) -> str:
    entries = [_with_comment(f"{name} = {key.example}", key.help) for name, key in keys.items()]
    return "\n".join([_with_comment(title, comment), *entries])


def _with_comment(text: str, comment: str) -> str:
    """Append a comment, which continues on the next lines; after a long text it starts on the next line."""
    first = f"  {text:<{_COLUMN}}"
    lines = textwrap.wrap(comment, _WIDTH - _COLUMN - 2, break_on_hyphens=False)
    indent = " " * (_COLUMN + 2)
    if len(first) > len(indent):
        lines = [first, *(f"{indent}# {line}" for line in lines)]
    else:
        lines = [f"{start}# {line}" for start, line in zip([first, *[indent] * len(lines)], lines, strict=False)]
    return "\n".join(lines)


_TEXT = """\
The study is stored in SQLite. Running the same command again resumes it, or does nothing if the budget is used up.
Options given here override the file.

A configuration file:
{study}

{objective}

  [space]                         # Or file = "space.json" (ConfigSpace JSON).
  lr = {{ type = "float", lower = 1e-4, upper = 0.1, log = true }}
  layers = {{ type = "integer", lower = 1, upper = 5 }}
  act = {{ type = "categorical", choices = ["relu", "leaky", "tanh"] }}
  size = {{ type = "ordinal", sequence = ["small", "medium", "large"] }}
  slope = {{ type = "float", lower = 0, upper = 1, when = {{ act = "leaky" }} }}
  width = [16, 256]               # Bounds; any other list has levels.
  epochs = {{ type = "constant", value = 20 }}

  [graphs]                        # Optional: similarity of levels.
  layers = "path"                 # Or "complete"; makes levels of an integer.
  act = [["relu", "leaky"], ["leaky", "tanh", 0.5]]
                                  # A list of edges; the optional third entry
                                  # is the weight.

{gp}

{pretrain}

  [acquisition]
  name = "lcb"                    # Or "ei" (the default), "log_ei", "pi".
  delta = 0.1                     # Of "lcb".

Kernels, with their options as in  kernel = {{ name = "matern", p = 2 }}:
  auto          hierarchical if the space has conditions, else fm if it has
                ordinal or categorical parameters, else matern
  matern        p = 2             order, nu = p + 1/2
  additive      p = 2             matern of all parameters, plus one of each
  hierarchical  base = "se"       or "rq", "matern" (with p)
                combine = "product"   or "sum"
  fm            modulator = "laplacian"   or "neural", "diffusion",
                "power" (with orders = 3, tau = 2.0),
                {{ name = "hierarchical", base = "se" }}
  separable     graph = "laplacian"     or "diffusion"
                combine = "product"     or "sum"
                base = "se"             or "matern" (with p = 2)
  search        budget = 20       fits of each search for expressions, while the
                max_leaves = 4    study runs; base, strategy and other options
                                  as of slayr search
Sums and products of SE, RQ, PER, LIN, MAT12, MAT32, MAT52 and C, of all
parameters or of those in brackets, are kernels too, without options.

The method "carried" is importance sampling from the posterior of the last fit, with NUTS as a fallback. The number of
warm-up iterations holds for the first fit; later fits start warm.

The space file, the history, the related data, the module and the working directory of a command are relative to the
folder of the configuration file; storage and output are relative to the working directory.

For example:
  slayr example nusvr_diabetes
  slayr optimize nusvr_diabetes.toml
  slayr optimize net.toml --budget 100 --output results
  slayr optimize net.toml --history runs.csv
"""
