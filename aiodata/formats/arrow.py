"""Arrow arrays to columns of numpy arrays, by rules that look at types only, never at the values of a block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from aiodata.columns import slice_columns
from aiodata.errors import StructureError
from aiodata.structure import map_structure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa

__all__ = ["Converted", "convert", "fills", "type_text"]

Array: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(slots=True)
class Converted:
    """What became of a record batch.

    Args:
        columns: A dict of arrays (rows, ...), of which structs are dicts of their own.
        loose: Rows of a component may differ in shape, or be None, so that the rows are no slices of arrays.
        missing: A mask (rows,) and the name of a component, for each whose dtype has nothing to stand for a null.
    """

    columns: dict[str, Any]
    loose: bool
    missing: list[tuple[str, Array]]


def convert(batch: pa.RecordBatch, filled: Mapping[str, Any]) -> Converted:
    """Convert a record batch.

    Args:
        batch: Valid data of types that `type_text` knows.
        filled: What `fills` gave: the values that stand for nulls.

    Raises:
        UnicodeDecodeError: Text is not UTF-8.
    """
    conversion = _Conversion(filled)
    names = enumerate(batch.schema.names)
    columns = {name: conversion.column(batch.column(number), name) for number, name in names}
    return Converted(columns, conversion.loose, conversion.missing)


class _Conversion:
    """The conversion of one record batch."""

    def __init__(self, filled: Mapping[str, Any]) -> None:
        self.filled = filled
        self.loose = False
        self.missing: list[tuple[str, Array]] = []

    def column(self, array: Any, path: str) -> Any:
        """Convert an array; `path` is its name, with dots between the names of nested fields."""
        import pyarrow as pa
        from pyarrow import compute, types

        kind = array.type
        if isinstance(kind, pa.BaseExtensionType):
            inner = self.column(array.storage, path)
            return inner if not _is_tensor(kind) else inner.reshape(len(array), *kind.shape)
        if types.is_dictionary(kind):
            return self.column(array.dictionary_decode(), path)
        if types.is_run_end_encoded(kind):
            return self.column(compute.run_end_decode(array), path)
        if types.is_struct(kind):  # flatten makes the fields of a struct that is null null
            fields = zip(kind, array.flatten(), strict=True)
            return {field.name: self.column(part, f"{path}.{field.name}") for field, part in fields}
        if types.is_fixed_size_list(kind):
            return self._fixed_lists(array, path)
        return self._lists(array, path) if types.is_nested(kind) else self._leaf(array, path)

    def _fixed_lists(self, array: Any, path: str) -> Any:
        import pyarrow as pa

        rows, size = len(array), array.type.list_size
        items = array.flatten()
        if array.null_count:  # flatten leaves out the items of a list that is null
            items = array.values.slice(array.offset * size, rows * size)
            items = items.take(pa.array(np.arange(rows * size), mask=np.repeat(_nulls(array), size)))
        value = self._items(items, path, lambda mask: np.logical_or.reduce(mask.reshape(rows, size), axis=1))
        return map_structure(lambda leaf: leaf.reshape(rows, size, *leaf.shape[1:]), value)

    def _lists(self, array: Any, path: str) -> Array:
        rows = len(array)
        offsets = array.offsets.to_numpy()
        is_view = hasattr(array, "sizes")
        starts, stops = (offsets, offsets + array.sizes.to_numpy()) if is_view else (offsets[:-1], offsets[1:])
        begin, end = (int(starts.min()), int(stops.max())) if rows else (0, 0)
        valid = ~_nulls(array)
        spans = list(zip((starts - begin).tolist(), (stops - begin).tolist(), valid.tolist(), strict=True))

        def over(mask: Array) -> Array:
            return np.array([there and bool(mask[start:stop].any()) for start, stop, there in spans], bool)

        # Only what these rows refer to: `values` is that of the array that this one is a slice of.
        value = self._items(array.values.slice(begin, end - begin), path, over)
        out = np.empty(rows, object)
        for row, (start, stop, there) in enumerate(spans):
            out[row] = slice_columns(value, start, stop) if there else None
        self.loose = True
        return out

    def _items(self, items: Any, path: str, over: Callable[[Array], Array]) -> Any:
        """Convert the items of lists; `over` tells of each list whether one of its items is missing."""
        before = len(self.missing)
        value = self.column(items, path)
        self.missing[before:] = [(name, over(mask)) for name, mask in self.missing[before:]]
        return value

    def _leaf(self, array: Any, path: str) -> Array:
        import pyarrow as pa
        from pyarrow import types

        if array.null_count and path in self.filled:
            array = array.fill_null(self.filled[path])
        kind = array.type
        if array.null_count and (types.is_integer(kind) or types.is_boolean(kind)):
            self.missing.append((path, _nulls(array)))
            array = array.fill_null(pa.scalar(0).cast(kind))
        if types.is_time(kind):
            ticks = array.view(pa.int32() if types.is_time32(kind) else pa.int64()).cast(pa.int64())
            times: Array = ticks.fill_null(np.iinfo(np.int64).min).to_numpy().view(f"m8[{kind.unit}]")
            return times
        if types.is_decimal(kind):
            found = np.empty(len(array), object)
            found[:] = array.to_pylist()
        else:
            found = array.to_numpy(zero_copy_only=False)
        self.loose |= found.dtype == object and array.null_count > 0
        return found


def _nulls(array: Any) -> Array:
    nulls: Array = array.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _is_tensor(kind: Any) -> bool:
    """Tell whether a type is Arrow's fixed-shape tensor, with its axes in their order."""
    import pyarrow as pa

    return isinstance(kind, pa.FixedShapeTensorType) and kind.permutation in (None, sorted(kind.permutation or ()))


# Types


def type_text(kind: Any) -> str:
    """Name a type by what it becomes: types that differ only in how Arrow holds the values have one name.

    Raises:
        StructureError: It cannot be converted.
    """
    import pyarrow as pa
    from pyarrow import types

    if isinstance(kind, pa.BaseExtensionType):
        return type_text(kind.storage_type) + (f" as {list(kind.shape)}" if _is_tensor(kind) else "")
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return type_text(kind.value_type)
    if types.is_struct(kind):
        if not kind.num_fields or len({field.name for field in kind}) < kind.num_fields:
            raise StructureError(f"it is a {kind}, whose fields cannot be the keys of a dict")
        return "{" + ", ".join(f"{field.name}: {type_text(field.type)}" for field in kind) + "}"
    if types.is_fixed_size_list(kind):
        return f"{kind.list_size} x {type_text(kind.value_type)}"
    if types.is_map(kind):
        return f"map of {type_text(kind.key_type)} to {type_text(kind.item_type)}"
    if _is_list(kind):
        return f"list of {type_text(kind.value_type)}"
    if _is_text(kind):
        return "str"
    if types.is_decimal(kind):
        return "decimal"
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind) or _is_fixed_binary(kind):
        return "bytes"
    if types.is_null(kind) or (types.is_primitive(kind) and not types.is_interval(kind)):
        return str(kind)
    raise StructureError(f"it is of type {kind}, which numpy has nothing for")


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    tests = (types.is_list, types.is_large_list, types.is_list_view, types.is_large_list_view)
    return any(test(kind) for test in tests)


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return any(test(kind) for test in (types.is_string, types.is_large_string, types.is_string_view))


def _is_fixed_binary(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_fixed_size_binary(kind))


def fills(schema: pa.Schema, null_values: Mapping[str, Any]) -> dict[str, Any]:
    """Give the values that stand for nulls as Arrow scalars of the components' types.

    Raises:
        StructureError: There is no such component, or it cannot hold the value.
    """
    import pyarrow as pa
    from pyarrow import types

    leaves = dict(_leaves(schema, ""))
    found: dict[str, Any] = {}
    for name, value in null_values.items():
        if name not in leaves:
            raise StructureError(f"null_values names {name!r}, which is none of {', '.join(map(repr, leaves))}")
        kind = leaves[name]
        try:
            found[name] = pa.scalar(value, kind)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise StructureError(f"null_values: {value!r} does not fit {name!r} of type {kind}: {error}") from None
        if types.is_integer(kind) and found[name].as_py() != value:
            raise StructureError(f"null_values: {value!r} does not fit {name!r} of type {kind}")
    return found


def _leaves(fields: Sequence[pa.Field], prefix: str) -> Iterator[tuple[str, Any]]:
    """Name the leaves of fields, with the types of their values; an item of a list has the name of the list."""
    from pyarrow import types

    for field in fields:
        kind = field.type
        name = prefix + field.name
        while (inner := _within(kind)) is not None:
            kind = inner
        yield from _leaves(list(kind), f"{name}.") if types.is_struct(kind) else [(name, kind)]


def _within(kind: Any) -> Any:
    """Give the type of what a type wraps: an encoding or a list; None for any other."""
    import pyarrow as pa
    from pyarrow import types

    if isinstance(kind, pa.BaseExtensionType):
        return kind.storage_type
    if types.is_map(kind):
        return pa.struct([kind.key_field, kind.item_field])
    tests = (types.is_dictionary, types.is_run_end_encoded, types.is_fixed_size_list, _is_list)
    return kind.value_type if any(test(kind) for test in tests) else None
