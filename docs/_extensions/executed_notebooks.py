"""Check executed notebooks: every cell was run, and shows a figure exactly where it draws one.

The file of the same name in ``notebook_checks`` has assertions about the results, which run after the last cell and are
not shown, and values for some of the notebook's assignments with SLAYR_QUICK=1.

Results are kept until a notebook or the package changes. Errors of cells and output on stderr are warnings of myst-nb,
see ``docs/conf.py``. With several processes, the notebooks are spread over them: Sphinx gives each process a run of
pages, and the notebooks would be one run.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import shutil
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

FOLDER = "notebooks/"
DRAWING = ("plt.show()", "plot_convergence", "plot_front", "curves_figure")
logger = logging.getLogger(__name__)


def keep_results(app: Sphinx, config: Config) -> None:
    """Set the folder of the results, named by what they depend on besides the notebooks; remove earlier ones."""
    root = Path(app.srcdir)
    digest = hashlib.sha256()
    for folder in ("slayr_py", "stan"):
        for path in sorted(p for p in (root / folder).rglob("*") if p.suffix in {".py", ".stan", ".hpp"}):
            digest.update(path.read_bytes())
    results = root / "build" / "docs" / ("results-quick" if os.environ.get("SLAYR_QUICK") else "results")
    folder_now = results / digest.hexdigest()[:16]
    for old in results.glob("*"):
        if old != folder_now:
            shutil.rmtree(old)
    config["nb_execution_cache_path"] = str(folder_now)


def complete(app: Sphinx, name: str, source: list[str]) -> None:
    """Set the quick values in the source of a notebook, and append its assertions as a cell that the page omits."""
    if not name.startswith(FOLDER):
        return
    path = Path(__file__).with_name("notebook_checks") / f"{name.removeprefix(FOLDER)}.py"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    text = source[0]
    for node in tree.body:
        if isinstance(node, ast.Assign) and os.environ.get("SLAYR_QUICK"):
            for variable, value in ast.literal_eval(node.value).items():
                text, count = re.subn(rf"^{variable} = .*$", f"{variable} = {value}", text, flags=re.M)
                if count != 1:
                    logger.warning("%s assigns %s in %d lines, expected 1", name, variable, count, location=name)
    assertions = "\n".join(ast.unparse(node) for node in tree.body if isinstance(node, ast.Assert))
    source[0] = f'{text}\n# %% tags=["remove-cell"]\n{assertions}\n' if assertions else text


def prepare_kernels(app: Sphinx, config: Config) -> None:
    """Give the notebooks a configuration of their own: figures in the page, none of the user's settings."""
    folder = Path(app.srcdir) / "build" / "docs" / "ipython"
    settings = folder / "profile_default" / "ipython_kernel_config.py"
    settings.parent.mkdir(parents=True, exist_ok=True)
    # The kernel warns that it talks to Sphinx over an unencrypted socket of this machine.
    lines = ["c.IPKernelApp.log_level = 40"]
    if os.environ.get("SLAYR_QUICK"):
        # A tight bounding box would draw each figure twice.
        lines.append('c.InlineBackend.print_figure_kwargs = {"bbox_inches": None}')
    settings.write_text("\n".join(lines) + "\n", encoding="utf-8")
    os.environ |= {
        "IPYTHONDIR": str(folder),
        "OMP_NUM_THREADS": "1",  # notebooks run side by side
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "PYTHONWARNINGS": "ignore:IProgress not found",  # widgets that no notebook uses
    }


def check(app: Sphinx, document: nodes.document) -> None:
    """Warn of each cell that was not run, lacks a figure, or shows one unasked."""
    if not app.env.docname.startswith(FOLDER):
        return
    cells = [node for node in document.findall(nodes.container) if node.get("nb_element") == "cell_code"]
    if not cells:
        logger.warning("the notebook has no executed cells", location=app.env.docname)
    for cell in cells:
        source = next(iter(cell.findall(nodes.literal_block))).astext()
        first = source.partition("\n")[0]
        if not cell["exec_count"]:
            logger.warning("cell was not executed: %s", first, location=cell)
        drawn = any(node.get("mime_type") == "image/png" for node in cell.findall(nodes.container))
        draws = any(call in source for call in DRAWING)
        if draws != drawn:
            logger.warning("cell %s: %s", "lacks a figure" if draws else "shows a figure unasked", first, location=cell)


def spread(app: Sphinx, env: BuildEnvironment, names: list[str]) -> None:
    """Put the notebooks at equal distances among the pages to read."""
    notebooks = [name for name in names if name.startswith(FOLDER)]
    others = [name for name in names if not name.startswith(FOLDER)]
    step = len(others) // max(len(notebooks), 1) + 1
    for i, name in enumerate(notebooks):
        others.insert(i * step, name)
    names[:] = others


def setup(app: Sphinx) -> dict[str, bool]:
    """Spread the notebooks before reading, and check each after it is read."""
    app.connect("config-inited", keep_results)
    app.connect("config-inited", prepare_kernels)
    app.connect("env-before-read-docs", spread)
    app.connect("source-read", complete)
    app.connect("doctree-read", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
