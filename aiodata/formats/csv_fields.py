"""The columns of a CSV file: what a field becomes, and what a missing one is read as.

Fields become numbers by Python's `float` and `int`, held to ASCII and to no underscores; text stays the bytes it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Column", "FloatColumn", "IntColumn", "NumberColumns", "TEXT"]

TEXT = np.dtype(object)
_SAMPLE = 64
_PLAIN = frozenset("0123456789.-")


class Column:
    """A text column, and what all columns have: a place, a dtype, and the text that a missing field is read as.

    Args:
        index: Index of the column's field in a record.
        dtype: What the fields become: a float or integer dtype, or `object` for text (`bytes`).
        missing: What a missing field is read as, by the field's text; `None` if the column is required.
        one: The dtype's 1, if it is a number's.
    """

    __slots__ = ("dtype", "index", "missing", "one")

    def __init__(
        self, index: int, dtype: np.dtype[Any], missing: Mapping[str, str | None], one: np.number[Any] | None = None
    ) -> None:
        self.index = index
        self.dtype = dtype
        self.missing = missing
        self.one: Any = one

    def scalar(self, field: str) -> Any:
        """Convert one field; raise `ValueError` or `OverflowError` if it cannot be."""
        return _encoded(field)

    def decode(self, given: Sequence[str], count: int) -> npt.NDArray[Any]:
        """Convert `count` fields, of which some may be missing; raise as `scalar` does, saying nothing."""
        fields: Any = given
        for text in self.missing:
            if text in given:
                fields = list(map(self.missing.get, given, given))
                if self.missing[text] is None:
                    raise ValueError
                break
        if self.dtype != TEXT:
            joined = "".join(fields)
            if "_" in joined or not joined.isascii():
                raise ValueError
        return self.array(fields, count)

    def array(self, fields: Sequence[Any], count: int) -> npt.NDArray[Any]:
        """Convert `count` fields, none of them missing; raise as `scalar` does. Numbers may be `bytes` too."""
        array = np.empty(count, object)
        try:
            array[:] = list(map(str.encode, fields))
        except UnicodeEncodeError:
            array[:] = list(map(_encoded, fields))
        return array


class FloatColumn(Column):
    """A column of floats; what is beyond the dtype's range becomes infinite."""

    __slots__ = ()

    def scalar(self, field: str) -> Any:
        """Convert one field; raise as `Column.scalar` does."""
        value = float(field)
        try:
            if -60000.0 < value < 60000.0:  # in range for every float dtype: no overflow warning to silence
                return self.one * value  # as exact as `dtype.type(value)`, and 5 times as fast
        except FloatingPointError:  # the caller told numpy to raise on underflow
            pass
        with np.errstate(over="ignore", under="ignore"):
            return self.one * value

    def array(self, fields: Sequence[Any], count: int) -> npt.NDArray[Any]:
        """Convert `count` fields; raise as `Column.scalar` does."""
        convert: Any = float
        if count > 2 * _SAMPLE and 4 * len(set(fields[:_SAMPLE])) <= 3 * _SAMPLE:
            texts = dict.fromkeys(fields)
            if 2 * len(texts) <= count:  # a look-up takes less than `float` does
                convert = dict(zip(texts, map(float, texts), strict=True)).__getitem__
        values = np.fromiter(map(convert, fields), np.float64, count)
        with np.errstate(over="ignore", under="ignore"):
            return values.astype(self.dtype, copy=False)


class IntColumn(Column):
    """A column of integers."""

    __slots__ = ()

    def scalar(self, field: str) -> Any:
        """Convert one field; raise as `Column.scalar` does."""
        return self.one * int(field)  # numpy raises `OverflowError` for a Python integer that the dtype cannot hold

    def array(self, fields: Sequence[Any], count: int) -> npt.NDArray[Any]:
        """Convert `count` fields; raise as `Column.scalar` does."""
        return np.fromiter(map(int, fields), self.dtype, count)


class NumberColumns:
    """Those of a file's columns that hold numbers which are converted together.

    Args:
        columns: All columns.
    """

    __slots__ = (
        *("are_floats", "at", "columns", "defaults", "dtype", "errors", "has_defaults", "has_integers", "has_narrow"),
        *("highs", "lows", "missing", "missing_word"),
    )

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = [column for column in columns if column.dtype != TEXT and not _is_odd(column)]
        dtypes = [column.dtype for column in self.columns]
        self.dtype = dtypes[0] if len(set(dtypes)) == 1 else None
        """The dtype of all of them, if it is one."""
        self.at = np.array([column.index for column in self.columns], np.intp)
        self.are_floats = np.array([dtype.kind == "f" for dtype in dtypes], bool)
        self.has_integers = not self.are_floats.all()
        self.errors: Callable[[], AbstractContextManager[Any]] = nullcontext
        if self.has_integers or np.float16 in dtypes:  # what is not plain, or beyond the range, may be cast
            self.errors = partial(np.errstate, over="ignore", under="ignore", invalid="ignore")
        defaults = [_default(column) for column in self.columns]
        self.has_defaults = np.array([default is not None for default in defaults], bool)
        self.defaults = np.array([0 if default is None else default for default in defaults], np.float64)
        self.missing = b""
        """What a missing field is written as, beside the empty one, if it is of at most 8 ASCII characters."""
        self.missing_word = (0, 0)
        """A mask of the last 8 bytes of such a field, and what they are in it."""
        texts = {text for column in self.columns for text in column.missing if text}
        if len(texts) == 1 and len(text := texts.pop()) <= 8 and text.isascii():
            self.missing = text.encode()
            kept = b"\xff" * len(text)
            mask, word = np.frombuffer(kept.rjust(8, b"\0") + self.missing.rjust(8, b"\0"), "<i8").tolist()
            self.missing_word = (mask, word)
        limits = [_limits(dtype) for dtype in dtypes]
        self.lows, self.highs = np.array(limits, np.float64).reshape(-1, 2).T
        """The limits of each; those that are not exact as floats are beyond what is converted together."""
        self.has_narrow = any(low > -(10**8) or high < 10**8 for low, high in limits)


def _is_odd(column: Column) -> bool:
    """Tell whether what looks like a number may be a missing one."""
    return any(text and _PLAIN.issuperset(text) for text in column.missing)


def _limits(dtype: np.dtype[Any]) -> tuple[float, float]:
    if dtype.kind == "f":
        return -np.inf, np.inf
    limits = np.iinfo(dtype)
    return limits.min, limits.max


def _default(column: Column) -> float | None:
    """Give a column's default, unless it is an integer that no float is."""
    default = column.missing[""]
    if default is None:
        return None
    value = column.scalar(default).item()
    return value if value != value or float(value) == value else None


def _encoded(text: str) -> bytes:
    """Return the bytes that a field was read from."""
    return text.encode("utf-8", "surrogateescape")
