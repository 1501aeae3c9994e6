"""CSV records to numpy columns: tf.io.decode_csv on numpy."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import count, pairwise
from operator import index, is_
from typing import Any

import numpy as np
import numpy.typing as npt

from aiodata.formats.csv_blocks import decode_records
from aiodata.formats.csv_columns import CsvColumns
from aiodata.formats.csv_fields import TEXT, Column, FloatColumn, IntColumn

__all__ = ["compile_columns", "decode_csv"]

_DTYPES = [np.dtype(code) for code in "efdbhilqBHILQ"]
_NUMBER_NAMES = {"float", "int"} | {dtype.name for dtype in _DTYPES}
_PLAIN = {int, str, bytes, type}
_SCALARS = {dtype.type for dtype in _DTYPES}
_FIXED = _PLAIN | _SCALARS | {float, np.str_, np.bytes_} | set(map(type, _DTYPES))
_WRAPS = {list, tuple}
_KEPT = _FIXED | _WRAPS
_SAME: tuple[set[type], ...] = ({bytes}, {str})
_MOST_COMPILED = 256
_MOST_RECENT = 4
_FEWEST = 100
"""Numbers from which on converting them together takes less; each column of others calls for as many more."""


def decode_csv(
    records: bytes | str | Sequence[bytes | str] | npt.NDArray[Any],
    record_defaults: Sequence[Any],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
    name: str | None = None,
) -> tuple[Any, ...]:
    r"""Decode CSV records into one numpy value per column.

    Args:
        records: One record as `bytes` or `str` (read as UTF-8), or a list or array of them (any shape). Line ends
            after a record are ignored; an empty record is one empty field.
        record_defaults: One entry per decoded column. A dtype (`np.float32`, `"int64"`, `float`, `bytes`) or an empty
            array makes the column required. A value, alone or as a list or array of one (`[0.0]`, `np.float32(0)`,
            `b""`), gives the default and the dtype. Python numbers mean `float64` and `int64`, as in numpy. Dtypes are
            float16, 32 and 64, every integer dtype, and text (`str`, `bytes` or `object`). A string that names a
            number dtype (`"int64"`, `"float"`) is that dtype; write `["int64"]` for the text.
        field_delim: The one character between fields.
        use_quote_delim: Whether `"` quotes a field; if not, it is an ordinary character.
        na_value: Text of a field that counts as missing, beside the empty field.
        select_cols: Indexes of the columns to decode, strictly increasing; all of them by default. With it, what
            follows the last selected column is not counted.
        name: Ignored; there because tf has it.

    Returns:
        A tuple with one entry per decoded column: for one record a numpy scalar or `bytes`, for many an array of the
        shape of `records` (text: an object array of `bytes`). Floats beyond a dtype's range become infinite.

    Raises:
        ValueError: If an argument is out of its range.
        TypeError: If an argument has a type that cannot work.
        DataError: If a record has a wrong number of fields or bad quoting, a required field is missing, or a field is
            no number of its dtype. Records and columns are counted from 0.

    Example:
        >>> from aiodata.formats.csv import decode_csv
        >>> decode_csv(b'UA,-3,"Newark, NJ"\r\n', [bytes, [0.0], b""])
        (b'UA', np.float64(-3.0), b'Newark, NJ')
        >>> decode_csv(["1,x", ",y"], [np.array([7], np.int16), bytes])
        (array([1, 7], dtype=int16), array([b'x', b'y'], dtype=object))

    Source: tf.io.decode_csv, RFC 4180.
    """
    columns = _compiled(record_defaults, field_delim, use_quote_delim, na_value, select_cols)
    if isinstance(records, bytes):
        return columns.decode_line(records.decode("utf-8", "surrogateescape"))
    if isinstance(records, str):
        return columns.decode_line(records)
    if isinstance(records, np.ndarray):
        if records.ndim == 0:
            return columns.decode_line(_text(records.item()))
        decoded = _decoded(columns, records.ravel().tolist())
        return decoded if records.ndim == 1 else tuple([values.reshape(records.shape) for values in decoded])
    if isinstance(records, (list, tuple)):
        return _decoded(columns, records)
    raise TypeError(f"records must be bytes, str, or a list or array of them, not {type(records).__name__}")


_compiled_columns: dict[Any, CsvColumns] = {}
_recent: tuple[tuple[Any, ...], ...] = ()  # what `_compiled` was given last and returned; replaced, never changed


def _compiled(
    record_defaults: Sequence[Any],
    field_delim: str,
    use_quote_delim: bool,
    na_value: str,
    select_cols: Sequence[int] | None,
) -> CsvColumns:
    """Check the arguments of `decode_csv`, once for each set of them: a map calls it for every element."""
    global _recent
    for kept, wraps, kept_cols, delim, quoting, missing, found in _recent:
        if (
            (field_delim is delim and use_quote_delim is quoting and na_value is missing)
            and (_same_wrapped(record_defaults, kept, wraps) if wraps else _same(record_defaults, kept))
            and (select_cols is kept_cols if kept_cols is None else _same(select_cols, kept_cols))
        ):
            columns: CsvColumns = found
            return columns
    if isinstance(record_defaults, (str, bytes)):
        raise TypeError("record_defaults must be a list with one entry per column, not one text")
    # Copies: another thread may change the lists while the columns are made, which must not be kept for other entries.
    entries = list(record_defaults)
    kinds = set(map(type, entries))
    if list in kinds:
        entries = [list(entry) if type(entry) is list else entry for entry in entries]
    selected = select_cols if select_cols is None else tuple(select_cols)
    found = _looked_up(entries, field_delim, use_quote_delim, na_value, selected)
    if kinds <= _KEPT and (selected is None or {int}.issuperset(map(type, selected))):
        wraps = []
        if not kinds.isdisjoint(_WRAPS):
            wraps = [type(entry) if type(entry) in _WRAPS and len(entry) == 1 else None for entry in entries]
            entries = [entry[0] if wrap else entry for entry, wrap in zip(entries, wraps, strict=True)]
        if _FIXED.issuperset(map(type, entries)):  # nothing in them can change
            memo = (entries, wraps, selected, field_delim, use_quote_delim, na_value, found)
            others = [other for other in _recent if other[-1] is not found]
            _recent = (memo, *others[: _MOST_RECENT - 1])
    return found


def _same(given: Any, kept: Sequence[Any]) -> bool:
    """Tell whether a list or tuple holds the very objects that were kept; equal ones may mean something else."""
    return (type(given) is list or type(given) is tuple) and len(given) == len(kept) and all(map(is_, given, kept))


def _same_wrapped(given: Any, kept: Sequence[Any], wraps: Sequence[type | None]) -> bool:
    """Tell the same of entries of which some were kept as what was alone in a list or tuple, of the type in `wraps`."""
    if type(given) not in _WRAPS or len(given) != len(kept):
        return False
    for entry, value, wrap in zip(given, kept, wraps, strict=False):
        kind: Any = type(entry)
        if wrap is None:
            if entry is not value:
                return False
        elif kind is not wrap or len(entry) != 1 or entry[0] is not value:
            return False
    return True


def _looked_up(
    record_defaults: Sequence[Any], field_delim: str, use_quote_delim: bool, na_value: str, select_cols: Any
) -> CsvColumns:
    """Return the columns that were compiled for equal arguments before, or compile them."""
    arguments = (field_delim, use_quote_delim, na_value, select_cols)
    key = (_defaults_key(record_defaults), *arguments)
    try:
        found = _compiled_columns.get(key)
    except TypeError:  # something unhashable, such as a dict: no default that anyone should write
        return compile_columns(record_defaults, *arguments)
    if found is None:
        found = compile_columns(record_defaults, *arguments)
        if len(_compiled_columns) >= _MOST_COMPILED:
            _compiled_columns.clear()
        _compiled_columns[key] = found
    return found


def _defaults_key(record_defaults: Iterable[Any]) -> tuple[Any, ...]:
    """Return what only equal defaults of equal types share, bit for bit: -0.0 is not 0.0, and nan is found again."""
    key: list[Any] = []
    floats = array("d")
    for entry in record_defaults:
        kind = type(entry)
        value = entry
        if (kind is list or kind is tuple) and len(entry) == 1:
            key.append(list)
            value = entry[0]
            kind = type(value)
        key.append(kind)
        if kind is float:
            floats.append(value)
        elif kind in _PLAIN:
            key.append(value)
        elif kind in _SCALARS:
            key.append(value.tobytes())
        elif isinstance(value, (np.ndarray, np.generic)):
            dtype = value.dtype
            texts = tuple(value.ravel().tolist()) if dtype.kind in "OSTU" else None
            key += (dtype, value.shape, texts or value.tobytes())
        else:
            key.append(repr(value) if kind is list or kind is tuple else value)
    key.append(floats.tobytes())
    return tuple(key)


def compile_columns(
    record_defaults: Sequence[Any],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
    exclude_cols: Sequence[int] | None = None,
) -> CsvColumns:
    """Check `decode_csv`'s arguments and make them ready; see there for their meaning and for what is raised.

    With `exclude_cols`, which are checked likewise, the columns are all the others.
    """
    texts: dict[str, Any] = {"field_delim": field_delim, "na_value": na_value}
    for argument, given in texts.items():
        if not isinstance(given, str):
            raise TypeError(f"{argument} must be str, not {given!r}")
    if len(field_delim) != 1 or field_delim in "\r\n\0" or (use_quote_delim and field_delim == '"'):
        raise ValueError(f"field_delim must be one character that ends no line and quotes nothing, not {field_delim!r}")
    if len(record_defaults) == 0:
        raise ValueError("record_defaults must have an entry for at least one column")
    width = len(record_defaults)
    indexes = tuple(range(width) if select_cols is None else map(index, select_cols))
    if exclude_cols is not None:
        if select_cols is not None:
            raise ValueError("give select_cols or exclude_cols, not both")
        excluded = tuple(map(index, exclude_cols))
        width += len(excluded)
        if any(left >= right for left, right in pairwise((-1, *excluded, width))):
            raise ValueError(
                f"exclude_cols must be strictly increasing column indexes from 0 to {width - 1}, not {list(excluded)}; "
                f"there are {width} columns with those of record_defaults"
            )
        indexes = tuple([at for at in range(width) if at not in excluded])
    if len(indexes) != len(record_defaults):
        raise ValueError(f"select_cols selects {len(indexes)} columns, but record_defaults has {len(record_defaults)}")
    if indexes[0] < 0 or any(left >= right for left, right in pairwise(indexes)):
        raise ValueError(f"select_cols must be strictly increasing column indexes from 0, not {list(indexes)}")
    entries = zip(count(), indexes, record_defaults, strict=False)
    columns = tuple([_column(at, position, default, na_value) for position, at, default in entries])
    if select_cols is not None:
        width = indexes[-1] + 1
    return CsvColumns(columns, width, select_cols is None, field_delim, bool(use_quote_delim))


def _column(at: int, position: int, default: Any, na_value: str) -> Column:
    """Make the column at index `at` from entry number `position` of `record_defaults`."""
    dtype, value = _dtype_and_default(default, f"record_defaults[{position}]")
    if dtype == TEXT:
        text = _text(value) if value is not None else None
        return Column(at, dtype, dict.fromkeys(("", na_value), text))
    missing = dict.fromkeys(("", na_value), repr(value) if value is not None else None)
    if dtype.kind == "f":
        return FloatColumn(at, dtype, missing, dtype.type(1))
    return IntColumn(at, dtype, missing, dtype.type(1))


def _dtype_and_default(default: Any, where: str) -> tuple[np.dtype[Any], Any]:
    """Return a column's dtype and its default as a Python value; the default is `None` if the column is required."""
    if isinstance(default, (type, np.dtype)) or (isinstance(default, str) and default in _NUMBER_NAMES):
        dtype, values = np.dtype(default), []
        known = dtype != TEXT or isinstance(default, np.dtype) or default in (object, np.object_)  # not any class
    else:
        given = default if isinstance(default, (list, tuple, np.ndarray)) else [default]
        if isinstance(given, (list, tuple)) and len(given) == 1 and isinstance(given[0], (bytes, str)):
            return TEXT, given[0]  # as an array it would lose zero bytes from its end
        held = np.asarray(given)
        dtype, values, known = held.dtype, held.ravel().tolist(), True
    if len(values) > 1:
        raise ValueError(f"{where} must hold one default or none, not {len(values)}")
    if known and dtype.kind in "OSTU" and (not values or isinstance(values[0], (bytes, str))):
        return TEXT, values[0] if values else None
    if dtype.name not in _NUMBER_NAMES:
        raise TypeError(f"{where} must be a float, integer or text dtype, or a value of one, not {default!r}")
    return np.dtype(dtype.name), values[0] if values else None  # native, and one class for each name


def _text(record: Any) -> str:
    """Return one record as `str`, from which its bytes can be had again."""
    if isinstance(record, str):
        return record
    if isinstance(record, bytes):
        return record.decode("utf-8", "surrogateescape")
    raise TypeError(f"a record must be bytes or str, not {type(record).__name__}")


def _decoded(columns: CsvColumns, records: Sequence[Any]) -> tuple[npt.NDArray[Any], ...]:
    """Decode many records, quickly where all of them are `bytes`, or `str`."""
    kinds = set(map(type, records))
    numbers = len(columns.numbers.columns)
    if kinds in _SAME and len(records) * numbers >= _FEWEST * (1 + len(columns.columns) - numbers):
        with suppress(ValueError, OverflowError):
            arrays = decode_records(columns, records if kinds == {bytes} else list(map(str.encode, records)))
            if arrays is not None:
                return arrays
    if kinds == {bytes}:
        return columns.decode_lines([record.decode("utf-8", "surrogateescape") for record in records])
    return columns.decode_lines([_text(record) for record in records])
