"""A figure that a notebook shows by itself."""

from __future__ import annotations

from io import BytesIO

from matplotlib.figure import Figure


class ShownFigure(Figure):
    """A figure that is drawn without pyplot and shown as the value of a notebook's cell.

    Notebooks know how to show a plain one only after ``%matplotlib inline``.
    """

    def _repr_png_(self) -> bytes:
        """The picture, as IPython asks for it; where it has a way of its own to show figures, it takes that."""
        picture = BytesIO()
        self.savefig(picture, format="png")
        return picture.getvalue()
