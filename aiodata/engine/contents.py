"""Checksums of the values that a stage was made with: pipelines whose labels look alike are told apart by them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any
from zlib import crc32

import numpy as np

__all__ = ["checksum"]

SAMPLE = 1 << 14
"""Of what has more than three times as many items, so many from the start, the middle and the end count."""
FEW = 8
"""As many from each place of what has structures as items, which take longer."""
_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None)})


def checksum(value: Any) -> str:
    """Give eight hexadecimal digits that are the same for equal values, in every process.

    Large arrays and lists are sampled, so that it takes little time. Of an object that is neither a number, text, an
    array, a path nor a structure of them, its class counts.

    >>> checksum({"x": np.arange(3)}), checksum({"y": np.arange(3)})
    ('403fda55', '3ff641c6')
    """
    found = 0
    for part in _parts(value):
        found = crc32(part, found)
    return f"{found:08x}"


def _parts(value: Any) -> Iterator[bytes]:
    """Write a value as bytes, in pieces."""
    kind = type(value)
    if kind in _PLAIN:
        yield f"{kind.__name__} {value!r};".encode("utf-8", "surrogatepass")
    elif isinstance(value, (tuple, list)):
        yield f"{kind.__name__} {getattr(value, '_fields', '')} {len(value)}:".encode()
        for piece in _pieces(value):
            yield from _item_parts(piece)
    elif isinstance(value, dict):
        yield f"dict {len(value)}:".encode()
        for pair in value.items():
            yield from _parts(pair)
    elif isinstance(value, (np.ndarray, np.generic)):
        yield f"{kind.__name__} {value.dtype} {value.shape}:".encode()
        yield from _array_parts(np.asarray(value))
    elif isinstance(value, os.PathLike):
        yield from _parts(os.fspath(value))
    else:
        yield f"{kind.__module__} {kind.__qualname__};".encode()


def _array_parts(array: np.ndarray[Any, Any]) -> Iterator[bytes]:
    items: Any = array.reshape(-1) if array.flags.c_contiguous else array.flat
    for piece in _pieces(items):
        if array.dtype.hasobject:
            yield from _item_parts(piece.tolist())
        else:
            yield piece.tobytes()


def _item_parts(items: Sequence[Any]) -> Iterator[bytes]:
    if set(map(type, items)) <= _PLAIN:
        yield repr(list(items)).encode("utf-8", "surrogatepass")
        return
    for item in items if len(items) <= 3 * FEW else [*items[:FEW], *items[len(items) // 2 :][:FEW], *items[-FEW:]]:
        yield from _parts(item)


def _pieces(items: Any) -> list[Any]:
    """Give all items, or some of many: what can be sliced, in slices."""
    if len(items) <= 3 * SAMPLE:
        return [items[:]]
    middle = (len(items) - SAMPLE) // 2
    return [items[:SAMPLE], items[middle : middle + SAMPLE], items[-SAMPLE:]]
