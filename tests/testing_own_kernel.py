"""The kernel of ``docs/own-kernels.md``, a Stan function of a user."""

from __future__ import annotations

import functools
import importlib.util
import re
import sys
import tempfile
from pathlib import Path
from types import ModuleType

from testing_pages import DOCS

from slayr_py.kernels.base import KERNELS

PAGE = (DOCS / "own-kernels.md").read_text(encoding="utf-8")
STAN = re.search(r"^```stan\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1]
PYTHON = re.search(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1]


def laboratory(folder: Path) -> ModuleType:
    """Write the files of the page into a folder; import the module, which declares the kernel."""
    (folder / "bent.stan").write_text(STAN, encoding="utf-8")
    (folder / "laboratory.py").write_text(PYTHON, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("laboratory", folder / "laboratory.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["laboratory"] = module
    spec.loader.exec_module(module)
    return module


@functools.cache
def bent_program() -> str:
    """Return the program of the page's kernel, which does not depend on the folder of the page's files."""
    kernels = dict(KERNELS)
    modules = dict(sys.modules)
    with tempfile.TemporaryDirectory() as folder:
        text = laboratory(Path(folder)).Bent.own_program().text
    KERNELS.clear()
    KERNELS.update(kernels)
    del sys.modules["laboratory"]
    sys.modules.update(modules)
    return text.replace('#include "bent.stan"', STAN)
