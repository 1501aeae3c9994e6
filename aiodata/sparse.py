"""Sparse arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["SparseTensor"]


class SparseTensor(NamedTuple):
    """A sparse array: the places and the values of what is there, in row-major order.

    Args:
        indices: int64 (n, rank), the place of each value.
        values: (n,), the values.
        dense_shape: int64 (rank,), the whole's shape.

    Source: `tf.sparse.SparseTensor`.
    """

    indices: Any
    values: Any
    dense_shape: Any
