"""A figure with a notebook representation."""

from __future__ import annotations

from io import BytesIO

from matplotlib.figure import Figure


class ShownFigure(Figure):
    """A figure drawn without pyplot that a notebook shows as the value of a cell.

    Notebooks show a plain figure only after ``%matplotlib inline``.
    """

    def _repr_png_(self) -> bytes:
        """Return the PNG picture; IPython calls this method unless it has its own formatter of figures."""
        picture = BytesIO()
        self.savefig(picture, format="png")
        return picture.getvalue()
