"""Elements to columns and back: stack, pad, split and join structures of numpy values.

Columns are a structure of arrays with one common leading axis; each row is an element.
"""

from __future__ import annotations

from aiodata.columns import (
    concat_columns,
    freeze,
    iterate,
    length,
    merge_batches,
    reshape_batches,
    slice_columns,
    take_columns,
)
from aiodata.conversion import as_columns, as_element
from aiodata.padding import check_padding, pad_stack
from aiodata.stacking import stack

__all__ = [
    "as_columns",
    "as_element",
    "check_padding",
    "concat_columns",
    "freeze",
    "iterate",
    "length",
    "merge_batches",
    "pad_stack",
    "reshape_batches",
    "slice_columns",
    "stack",
    "take_columns",
]
