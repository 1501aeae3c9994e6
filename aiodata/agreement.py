"""Agreement of a batch's rows: the one dtype of a component, and errors that name the component and the row."""

from __future__ import annotations

import cmath
from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np

from aiodata.errors import StructureError
from aiodata.structure import array_of, same_structure, unsigned_or_objects

__all__ = ["Path", "component_name", "fail_structure", "fits", "number_array", "settle_dtype", "shapes_of"]

Array: TypeAlias = "np.ndarray[Any, Any]"
# Where a component stands: (the path of what holds it, how to write the step, the key). Text is made only in errors.
Path: TypeAlias = "tuple[Any, str, Any] | None"

_OBJECT = np.dtype(object)


def settle_dtype(rows: Sequence[Any], path: Path) -> tuple[Sequence[Any], np.dtype[Any]] | None:
    """Find the one dtype of a component's rows; lists among them become arrays. None where all rows are None."""
    if list(map(type, rows)).count(np.ndarray) == len(rows):
        common = rows[0].dtype
        if common.kind not in "SUT" and [row.dtype for row in rows].count(common) == len(rows):
            return rows, common
    if any(row is None or isinstance(row, (tuple, dict)) for row in rows):
        if all(row is None for row in rows):
            return None
        fail_structure(rows, path)
    values = [array_of(row) if isinstance(row, list) else row for row in rows]
    loose = [row for row in values if isinstance(row, (int, float, complex)) and not isinstance(row, np.generic)]
    if len(loose) == len(values):
        return values, number_array(values).dtype
    strict = [(row, dtype) for row, value in enumerate(values) if (dtype := _dtype(value)) is not None]
    seen, dtype = strict[0]
    for row, found in strict:
        if found != dtype:
            _fail_dtype(path, row, found, seen, dtype)
    for row, value in enumerate(values):
        if _dtype(value) is None and not fits(value, dtype):
            if dtype.kind not in "biufc":
                _fail_dtype(path, row, np.dtype(type(value)), seen, dtype)
            # As numpy promotes: an int beside int8 that it cannot hold makes int64, a float makes float64.
            dtype = np.result_type(dtype, np.asarray(value).dtype)
    return values, dtype


def _dtype(value: Any) -> np.dtype[Any] | None:
    """Tell the dtype a value insists on: object for text and objects, None for a Python number, which may adapt."""
    if isinstance(value, (np.ndarray, np.generic)):
        return _OBJECT if value.dtype.kind in "SUT" else value.dtype
    return None if isinstance(value, (int, float, complex)) else _OBJECT


def fits(value: Any, dtype: np.dtype[Any]) -> bool:
    """Tell whether a Python number keeps its meaning in a dtype; floats may round, but not overflow."""
    if isinstance(value, bool) and dtype.kind == "b":
        return True
    if isinstance(value, int):
        if dtype.kind in "iu":
            return int(np.iinfo(dtype).min) <= value <= int(np.iinfo(dtype).max)
        try:
            with np.errstate(over="ignore"):
                return dtype.kind in "fc" and int(dtype.type(value).real) == value
        except OverflowError:
            return False
    if dtype.kind not in ("fc" if isinstance(value, float) else "c"):
        return False
    with np.errstate(over="ignore"):
        return bool(np.isfinite(dtype.type(value))) or not cmath.isfinite(value)


def number_array(values: Sequence[Any]) -> Array:
    """Put Python numbers into an array, exactly: numpy makes floats of integers past int64 beside smaller ones."""
    array = np.array(values)
    if array.dtype.kind == "f" and all(isinstance(value, int) for value in values):
        return unsigned_or_objects(np.fromiter(values, _OBJECT, len(values)))
    return array


def shapes_of(values: Sequence[Any]) -> list[tuple[int, ...]]:
    """List the shapes of values: () for all but arrays."""
    return [value.shape if isinstance(value, np.ndarray) else () for value in values]


def component_name(path: Path) -> str:
    """Write a path as an error message names it: `component ['x'][0]`, or `element` for a bare leaf."""
    if path is None:
        return "element"
    text = ""
    while path is not None:
        path, step, key = path
        text = step % (key,) + text
    return f"component {text}"


def fail_structure(rows: Sequence[Any], path: Path) -> NoReturn:
    """Raise the error that names the first row whose structure is not that of row 0."""
    for row, other in enumerate(rows):
        if difference := same_structure(rows[0], other):
            where = f"in {component_name(path)}: " if path else ""
            raise StructureError(f"row {row} of the batch does not fit row 0: {where}{difference}")
    raise StructureError(f"{component_name(path)}: the rows of the batch differ in structure")


def _fail_dtype(path: Path, row: int, found: np.dtype[Any], seen: int, dtype: np.dtype[Any]) -> NoReturn:
    raise StructureError(
        f"{component_name(path)}: row {row} of the batch has dtype {found}, row {seen} has dtype {dtype}"
    )
