"""Expressions of kernels: their language, their leaves, and the composite kernels that they describe."""

from slayr_py.kernels.expressions.language import (
    CONSTANT,
    Leaf,
    Node,
    Product,
    Sum,
    add,
    canonical,
    leaves,
    multiply,
    spell,
)
from slayr_py.kernels.expressions.leaf_kernels import LEAVES, STATIONARY
from slayr_py.kernels.expressions.parser import parse

__all__ = [
    "CONSTANT",
    "LEAVES",
    "STATIONARY",
    "Leaf",
    "Node",
    "Product",
    "Sum",
    "add",
    "canonical",
    "leaves",
    "multiply",
    "parse",
    "spell",
]
