"""Record batches of one schema to rows: as columns where that can be, else as elements and failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiodata.columns import freeze, iterate
from aiodata.engine.block import Failure
from aiodata.errors import StructureError
from aiodata.formats.arrow import convert, fills, type_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa

__all__ = ["BLOCK_BYTES", "BLOCK_ROWS", "NUMBER_ROWS", "check_schema", "number_bytes", "portions", "rows_of"]

BLOCK_BYTES = 2 << 20
"""About how many bytes of rows are read at a time, so that it takes longer than calling a thread for it."""

BLOCK_ROWS = 8192
"""At most so many rows are read at a time."""

NUMBER_ROWS = 1 << 16
"""The same where all columns are numbers, so that what they take is known."""


def check_schema(
    schema: pa.Schema, null_values: Mapping[str, Any], label: str
) -> tuple[dict[str, str], dict[str, Any]]:
    """Look at the columns' types.

    Args:
        schema: The columns.
        null_values: What stands for nulls, by the component's name.
        label: What has the columns, for errors.

    Returns:
        What the columns are, by name, and the values that stand for nulls, for `rows_of`.

    Raises:
        StructureError: There is a column that cannot be read, or a value that does not fit.
    """
    if not schema.names or len(set(schema.names)) < len(schema.names):
        raise StructureError(f"{label}: its columns cannot be the keys of a dict: {', '.join(map(repr, schema.names))}")
    kinds: dict[str, str] = {}
    for name, kind in zip(schema.names, schema.types, strict=True):
        try:
            kinds[name] = type_text(kind)
        except StructureError as error:
            raise StructureError(
                f"{label}: column {name!r} cannot be read: {error}; leave it out by columns="
            ) from None
    try:
        return kinds, fills(schema, null_values)
    except StructureError as error:
        raise StructureError(f"{label}: {error}") from None


def rows_of(
    batch: pa.RecordBatch, filled: Mapping[str, Any], place: Callable[[int], str]
) -> tuple[Any, list[Any] | None]:
    """Give the rows of a record batch as columns, or else as a list in which `Failure`s stand for rows that cannot be.

    Args:
        batch: Valid data of columns that `check_schema` knows.
        filled: What it gave: the values that stand for nulls.
        place: Names the place of a row, for errors.
    """
    found = convert(batch, filled)
    columns = freeze(found.columns)
    if not found.loose and not found.missing:
        return columns, None
    elements: list[Any] = list(iterate(columns))
    for name, mask in found.missing:
        for row in mask.nonzero()[0].tolist():
            if type(elements[row]) is not Failure:
                elements[row] = Failure(
                    StructureError(
                        f"{place(row)}: {name!r} is null, which its dtype cannot tell; choose a value for it with "
                        f"null_values={{{name!r}: ...}}"
                    )
                )
    return None, elements


def portions(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a record batch, whose offsets and indices are checked before anything relies on them."""
    batch.validate(full=True)
    most = NUMBER_ROWS if number_bytes(batch.schema) else BLOCK_ROWS
    rows = max(1, min(most, BLOCK_BYTES * batch.num_rows // max(1, batch.nbytes)))
    for begin in range(0, batch.num_rows, rows):
        yield batch.slice(begin, rows)


def number_bytes(schema: pa.Schema) -> int | None:
    """Give the bytes of a row if all columns are numbers; None if rows may differ."""
    from pyarrow import types

    kinds = [field.type for field in schema]
    return sum(kind.bit_width for kind in kinds) // 8 if all(map(types.is_primitive, kinds)) else None
