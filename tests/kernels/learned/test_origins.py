from __future__ import annotations

import pytest
from testing_spaces import mixed_space

from slayr_py import DataError
from slayr_py.kernels.learned.origins import binary_of, origin_of, radius_of
from slayr_py.space import Encoder

COLUMNS = ("act[relu]", "act[tanh]", "act[gelu]", "layers", "lr", "size", "units")


@pytest.mark.parametrize(
    ("origin", "wanted", "binary"),
    [
        ("centre", [0, 0, 0, 0.5, 0.5, 0.5, 0.5], (0, 1, 2)),
        ("corner", [0, 0, 0, 0, 0, 0, 0], (0, 1, 2)),
        ({"lr": 0.1, "act[tanh]": 1.0}, [0, 1.0, 0, 0.5, 0.1, 0.5, 0.5], (0, 2)),
    ],
)
def test_levels_keep_the_origin_zero(origin, wanted, binary):
    encoder = Encoder(mixed_space())
    assert encoder.column_names == COLUMNS
    o = origin_of(origin, encoder)
    assert o.tolist() == wanted
    assert binary_of(o, encoder) == binary
    assert radius_of(o).tolist() == [max(one, 1 - one) for one in wanted]


def test_unknown_origins_are_named():
    encoder = Encoder(mixed_space())
    with pytest.raises(DataError, match="origin names the column 'act'"):
        origin_of({"act": 0.5}, encoder)
    with pytest.raises(DataError, match="unknown origin 0.5"):
        origin_of(0.5, encoder)
