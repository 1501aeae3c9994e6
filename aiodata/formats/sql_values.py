"""What the values of a database's rows become, by rules that look at each value alone, never at its neighbours."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

import numpy as np

from aiodata.columns import freeze, iterate
from aiodata.engine.block import Failure
from aiodata.errors import StateError, StructureError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Rows", "key_from_json", "key_to_json", "rows_of"]

Array: TypeAlias = "np.ndarray[Any, Any]"

_DTYPES: dict[type, str] = {bool: "?", int: "i8", float: "f8", dt.date: "M8[D]", dt.timedelta: "m8[us]"}
"""Python's types of which an array is made at once."""

_OBJECTS = {str, bytes, Decimal}


@dataclass(slots=True)
class Rows:
    """Some rows: as columns, a dict of arrays (length,), or as elements with `Failure`s among them."""

    length: int
    columns: dict[str, Any] | None = None
    elements: list[Any] | None = None


def rows_of(
    names: Sequence[str], rows: Sequence[Sequence[Any]], null_values: Mapping[str, Any], place: Callable[[int], str]
) -> Rows:
    """Convert rows.

    Args:
        names: The columns' names.
        rows: At least one row, each with a value for every name.
        null_values: What stands for NULL, by name; None elsewhere.
        place: Names a row, for errors.
    """
    columns: dict[str, Any] = {}
    failures: dict[int, Failure] = {}
    loose = False
    for name, values in zip(names, zip(*rows, strict=True), strict=True):
        if name in null_values:
            fill = null_values[name]
            values = tuple([fill if value is None else value for value in values])
        array = _array(values)
        if array is None:
            loose = True
            array, faults = _objects(values)
            for row, fault in faults:
                failures.setdefault(row, Failure(StructureError(f"{place(row)}: {name!r} {fault}")))
        columns[name] = array
    freeze(columns)
    if not loose:
        return Rows(len(rows), columns=columns)
    return Rows(len(rows), elements=[failures.get(row, own) for row, own in enumerate(iterate(columns))])


def _array(values: Sequence[Any]) -> Array | None:
    """Give values as an array whose rows are what they become; None where they are not all of one type."""
    kinds = set(map(type, values))
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    if kind in _OBJECTS:
        array = np.empty(len(values), object)
        array[:] = values
        return array
    if kind is dt.datetime:
        return np.array([_moment(value) for value in values])
    if kind is dt.time and not any(value.tzinfo for value in values):
        return np.array([_time_of_day(value) for value in values])
    try:
        return np.array(values, _DTYPES[kind]) if kind in _DTYPES else None
    except OverflowError:  # an integer of more than 64 bits
        return None


def _objects(values: Sequence[Any]) -> tuple[Array, list[tuple[int, str]]]:
    """Convert values one by one; give them with the rows that have one which cannot be converted, and why."""
    array = np.empty(len(values), object)
    faults = []
    for row, value in enumerate(values):
        try:
            array[row] = _value(value)
        except OverflowError:
            faults.append((row, f"is {value}, which does not fit 64 bits"))
    return array, faults


def _value(value: Any) -> Any:
    kind = type(value)
    if kind in _DTYPES:
        return np.array(value, _DTYPES[kind])[()]
    if kind is dt.datetime:
        return _moment(value)
    if kind is dt.time and value.tzinfo is None:
        return _time_of_day(value)
    if kind is dict:
        return {name: _value(part) for name, part in value.items()}
    return _list(value) if kind is list else value


def _list(values: list[Any]) -> Array:
    """Give an array of a database as one of numpy's."""
    array = _array(values) if values else np.empty(0, object)
    if array is not None:
        return array
    parts = [_value(value) for value in values]
    if all(isinstance(part, np.ndarray) for part in parts) and len({(part.shape, part.dtype) for part in parts}) == 1:
        return np.stack(parts)
    array = np.empty(len(parts), object)
    for number, part in enumerate(parts):
        array[number] = part
    return array


def _moment(value: dt.datetime) -> np.datetime64:
    """Give a moment in microseconds, in UTC where it has a time zone."""
    if value.tzinfo is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    return np.datetime64(value, "us")


def _time_of_day(value: dt.time) -> np.timedelta64:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return np.timedelta64(seconds * 1_000_000 + value.microsecond, "us")


# Keys, which a state holds

_WRITE: list[tuple[str, type, Callable[[Any], str]]] = [
    ("datetime", dt.datetime, dt.datetime.isoformat),  # which is a date, too
    ("date", dt.date, dt.date.isoformat),
    ("decimal", Decimal, str),
    ("uuid", UUID, str),
    ("bytes", bytes, bytes.hex),
]
_READ: dict[str, Callable[[str], Any]] = {
    "datetime": dt.datetime.fromisoformat,
    "date": dt.date.fromisoformat,
    "decimal": Decimal,
    "uuid": UUID,
    "bytes": bytes.fromhex,
}


def key_to_json(value: Any) -> Any:
    """Give a key as JSON.

    Raises:
        StructureError: It is of a type that cannot be a key.

    >>> key_to_json(7), key_to_json(Decimal("1.50"))
    (7, ['decimal', '1.50'])
    """
    if value is None or type(value) in (int, str) or (type(value) is float and value == value):
        return value
    for name, kind, write in _WRITE:
        if isinstance(value, kind):
            return [name, write(value)]
    raise StructureError(f"a {type(value).__name__} cannot be a key")


def key_from_json(saved: Any) -> Any:
    """Give a key as it was.

    Raises:
        StateError: This is none that `key_to_json` gave.

    >>> key_from_json(["date", "2013-01-31"])
    datetime.date(2013, 1, 31)
    """
    try:
        return _READ[saved[0]](saved[1]) if isinstance(saved, list) else saved
    except (ArithmeticError, IndexError, KeyError, TypeError, ValueError) as error:
        raise StateError(f"this is not a saved state: its key is {saved!r:.80}") from error
