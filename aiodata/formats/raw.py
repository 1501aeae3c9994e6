"""Raw bytes to numbers: tf.io.decode_raw on numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from aiodata.checks import check_integer
from aiodata.errors import DataError

__all__ = ["checked_dtype", "decode_raw"]

_METHOD = "decode_raw"
_PLAIN_KINDS = "biufcmMV"


def decode_raw(
    input_bytes: Any,
    out_type: npt.DTypeLike,
    little_endian: bool = True,
    fixed_length: int | None = None,
    name: str | None = None,
) -> npt.NDArray[Any]:
    r"""Take bytes for the numbers that they are.

    Many records at once take one pass for all of them; so map it over batches, not over records.

    Args:
        input_bytes: One record as `bytes`, or a list, tuple or array (any shape) of them, all of one length unless
            `fixed_length` is given. Rows of numpy's own bytes type (`S4`) count with the zeros at their end.
        out_type: A dtype of numbers, booleans or times, or a structured one of those, in the machine's byte order.
        little_endian: The byte order of the data.
        fixed_length: Take so many bytes of each record, a multiple of the dtype's size: a longer one is cut off, a
            shorter one is filled up with zeros.
        name: Ignored; there because tf has it.

    Returns:
        A new array of `out_type` with the shape of `input_bytes` and one more axis, `(..., n)`. Any byte but 0 is
        True. Without any records n is what `fixed_length` says, else 0.

    Raises:
        TypeError: `out_type` has no fixed size, or a record is not bytes.
        ValueError: `out_type` is not in the machine's byte order, or `fixed_length` is not a multiple of its size.
        DataError: A record's length is no multiple of the dtype's size, or records differ in length; names the first
            that does not fit.

    >>> decode_raw(b"\x01\x00\x02\x00", np.int16)
    array([1, 2], dtype=int16)
    >>> decode_raw([b"\x00\x01", b"\x00"], np.int16, little_endian=False, fixed_length=2)
    array([[1],
           [0]], dtype=int16)

    Source: `tf.io.decode_raw`.
    """
    dtype = checked_dtype(out_type, f"{_METHOD}: out_type", "; little_endian tells that of the data")
    if fixed_length is not None:
        check_integer(fixed_length, _METHOD, "fixed_length", 1)
        if fixed_length % dtype.itemsize:
            raise ValueError(
                f"{_METHOD}: fixed_length must be a multiple of the {dtype.itemsize} bytes of {dtype}, "
                f"not {fixed_length}"
            )
    records, shape = _records_and_shape(input_bytes)
    try:
        lengths = set(map(len, records))
        if fixed_length is not None and lengths != {fixed_length}:
            records = [record[:fixed_length].ljust(fixed_length, b"\0") for record in records]
            lengths = {fixed_length}
        joined = bytearray().join(records)  # not bytes, so that the array is writable
    except (TypeError, AttributeError):
        row = next(row for row, record in enumerate(records) if not isinstance(record, (bytes, bytearray)))
        found = type(records[row]).__name__
        raise TypeError(f"{_METHOD}: a record must be bytes, not {found}{_row(row, shape)}") from None
    if len(lengths) > 1 or any(length % dtype.itemsize for length in lengths):
        _refuse(records, shape, dtype)
    return _array(joined, dtype, little_endian).reshape(*shape, (lengths.pop() if lengths else 0) // dtype.itemsize)


def checked_dtype(given: npt.DTypeLike, owner: str, hint: str) -> np.dtype[Any]:
    """Give the dtype of numbers that bytes may be taken for.

    Raises:
        TypeError: It has no fixed size; names the owner.
        ValueError: It is not in the machine's byte order; ends with the hint.
    """
    dtype = np.dtype(given)
    if dtype.kind not in _PLAIN_KINDS or dtype.hasobject or not dtype.itemsize or dtype.subdtype is not None:
        raise TypeError(f"{owner} must be a dtype of numbers, not {given!r}")
    if not dtype.isnative:
        raise ValueError(f"{owner} must be in the machine's byte order, which {dtype.str} is not{hint}")
    return dtype


def _records_and_shape(given: Any) -> tuple[list[Any], tuple[int, ...]]:
    """List the records, and give the shape in which they stand."""
    if isinstance(given, (bytes, bytearray, memoryview)):
        return [bytes(given)], ()
    if isinstance(given, (list, tuple)):
        if not any(isinstance(part, (list, tuple, np.ndarray)) for part in given):
            return list(given), (len(given),)
        given = np.array(given, dtype=object)
    if not isinstance(given, np.ndarray):
        raise TypeError(f"{_METHOD}: input_bytes must be bytes, or a list or array of them, not {type(given).__name__}")
    if given.dtype.kind == "S":
        # As plain memory: as elements they would lose the zeros at their end.
        return np.ascontiguousarray(given).ravel().view(f"V{given.dtype.itemsize}").tolist(), given.shape
    return given.ravel().tolist(), given.shape


def _array(data: bytearray, dtype: np.dtype[Any], little_endian: bool) -> npt.NDArray[Any]:
    if dtype.kind == "b":
        return np.frombuffer(data, np.uint8).astype(bool)  # a byte of 2 in a bool array would be no bool
    stored = dtype.newbyteorder("<" if little_endian else ">")
    return np.frombuffer(data, stored).astype(dtype, copy=False)


def _refuse(records: list[Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Say which is the first record whose length does not fit."""
    first = len(records[0])
    for row, record in enumerate(records):
        if len(record) % dtype.itemsize:
            raise DataError(
                f"{_METHOD}: {len(record)} bytes are no whole number of {dtype} of {dtype.itemsize} bytes"
                f"{_row(row, shape)}"
            )
        if len(record) != first:
            raise DataError(f"{_METHOD}: {len(record)} bytes{_row(row, shape)} where the first record has {first}")


def _row(row: int, shape: tuple[int, ...]) -> str:
    """Name a record of many by its place in the input."""
    if not shape:
        return ""
    place = np.unravel_index(row, shape)
    return f" in row {place[0] if len(place) == 1 else tuple(map(int, place))}"
