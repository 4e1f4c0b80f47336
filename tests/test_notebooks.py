"""Notebooks run from top to bottom, with few evaluations and draws."""

from __future__ import annotations

from pathlib import Path

import jupytext
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.stan

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("*.py"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the notebook machinery, in this process; the notebook has its own
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.setenv("SLAYR_QUICK", "1")
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook = jupytext.read(path)
    NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in cells)
    for cell in cells:
        said = [output.text for output in cell.outputs if output.get("name") == "stderr"]
        assert not said, said
        drawn = any("image/png" in output.get("data", {}) for output in cell.outputs)
        assert drawn == ("plt.show()" in cell.source or "plot_convergence" in cell.source), cell.source
