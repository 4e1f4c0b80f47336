"""Check executed notebooks: every cell was run, and shows a figure exactly where it draws one.

Errors of cells and output on stderr are warnings of myst-nb, see ``docs/conf.py``. With several processes, the
notebooks are spread over them: Sphinx gives each process a run of pages, and the notebooks would be one run.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

FOLDER = "notebooks/"
DRAWING = ("plt.show()", "plot_convergence")
logger = logging.getLogger(__name__)


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
    app.connect("env-before-read-docs", spread)
    app.connect("doctree-read", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
