"""Writing archives of elements: chunk after chunk, with memory for one chunk.

See `element_archive` for what they are.
"""

from __future__ import annotations

import io
import json
import zipfile
from sys import getsizeof
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from aiodata.columns import concat_columns, length, slice_columns
from aiodata.errors import StateError
from aiodata.formats.element_archive import COMPRESSIONS, FORMAT, INDEX, PIECE_BYTES, VERSION
from aiodata.formats.element_encoding import LARGEST_CHUNK, encode_columns, encode_rows
from aiodata.formats.element_layouts import layout_json, layout_spec, spec_json
from aiodata.spec import generalized
from aiodata.structure import PLAIN, flatten, paths, same_structure

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CHUNK_BYTES", "ElementArchiveWriter", "weight"]

CHUNK_BYTES = 1 << 20
"""About how many bytes of elements are written together; a larger element stands alone."""

_SMALL = PLAIN - {np.ndarray, str, bytes, int, np.str_, np.bytes_, np.void, np.object_}


class ElementArchiveWriter:
    """Writes elements to an archive, chunk after chunk; memory for one chunk is taken.

    Args:
        file: A new file. It is not closed.
        compression: "" or "GZIP", which deflates.
        owner: What the archive is to the reader of an error, such as `the saved dataset`.
    """

    def __init__(self, file: BinaryIO, compression: str, owner: str) -> None:
        self.count = 0
        """Elements written so far."""
        self.spec: Any = None
        """What the elements of all chunks have in common; None where that is nothing. Complete after `finish`."""
        self._compression = compression
        self._owner = owner
        self._zip = zipfile.ZipFile(file, "w")
        self._layouts: dict[str, int] = {}
        self._chunks: list[list[int]] = []
        self._rows: list[Any] = []
        self._columns: list[Any] = []
        self._waiting = 0
        self._bytes = 0

    def write(self, elements: Sequence[Any]) -> None:
        """Write elements; they must not change until they are in a chunk that is full.

        Raises:
            OSError: The file cannot be written to.
            TypeError: An element holds something that is not kept; names the component. The archive is of no use then.
        """
        if self._columns:
            self._flush()
        for element in elements:
            size = weight(element)
            if self._waiting == LARGEST_CHUNK or self._bytes + size > CHUNK_BYTES:
                self._flush()
            self._rows.append(element)
            self._waiting += 1
            self._bytes += size

    def write_columns(self, columns: Any) -> None:
        """Write the rows of columns, as `write` does."""
        rows = length(columns)
        if self._rows or (self._columns and not _alike(self._columns[0], columns)):
            self._flush()
        row_bytes = sum(map(weight, flatten(columns))) / max(1, rows)
        most = max(1, min(LARGEST_CHUNK, int(CHUNK_BYTES / max(1, row_bytes))))
        start = 0
        while start < rows:
            stop = min(rows, start + max(0, most - self._waiting))
            if stop > start:
                self._columns.append(slice_columns(columns, start, stop))
                self._waiting += stop - start
            if stop < rows or self._waiting >= most:
                self._flush()
            start = stop

    def finish(self, extra: dict[str, Any] | None = None) -> None:
        """Write what is left, and the index; the file is complete then.

        Args:
            extra: More for the index, as JSON.
        """
        self._flush()
        index = {
            "format": FORMAT,
            "version": VERSION,
            "compression": self._compression,
            "count": self.count,
            "chunks": self._chunks,
            "layouts": list(map(json.loads, self._layouts)),
            "spec": spec_json(self.spec),
            "extra": extra or {},
        }
        self._member(INDEX, [json.dumps(index).encode()], "")
        self._zip.close()

    def discard(self) -> None:
        """Write nothing more, if the archive is not finished; whoever opened the file removes it."""
        self._zip.fp = None  # else closing would write to it once more

    def _flush(self) -> None:
        if not self._waiting:
            return
        layout, arrays, text = self._encoded()
        found = layout_spec(layout)
        if self._chunks:
            try:
                found = generalized(self.spec, found)
            except TypeError:
                found = None
        self.spec = found
        folder = f"{len(self._chunks):08d}"
        self._chunks.append([self.count, self._layouts.setdefault(text, len(self._layouts))])
        self.count += self._waiting
        self._rows, self._columns, self._waiting, self._bytes = [], [], 0, 0
        for name, array in arrays.items():
            self._member(f"{folder}/{name}.npy", _npy(array), self._compression)

    def _encoded(self) -> tuple[Any, dict[str, Any], str]:
        if self._columns:
            layout, arrays = encode_columns(concat_columns(self._columns), self._owner)
            return layout, arrays, json.dumps(layout_json(layout))
        try:
            layout, arrays = encode_rows(self._rows, self._owner)
            return layout, arrays, json.dumps(layout_json(layout))
        except (TypeError, StateError):
            for number, element in enumerate(self._rows):  # only one of them will be the reason
                try:
                    layout_json(encode_rows([element], self._owner)[0])
                except (TypeError, StateError) as error:
                    raise TypeError(f"element {self.count + number}: {error}") from None
            raise

    def _member(self, name: str, parts: Sequence[Any], compression: str) -> None:
        info = zipfile.ZipInfo(name)
        info.compress_type = COMPRESSIONS[compression]
        info.file_size = sum(map(len, parts))
        with self._zip.open(info, "w") as member:
            for part in parts:
                for start in range(0, len(part), PIECE_BYTES):
                    member.write(part[start : start + PIECE_BYTES])


def _npy(array: Any) -> list[Any]:
    """Give the content of a `.npy` file in parts."""
    plain = np.ascontiguousarray(array)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(plain))
    return [header.getvalue(), plain.reshape(-1).view(np.uint8).data if plain.nbytes else b""]


def weight(x: Any) -> int:
    """Give about how many bytes an element takes, itself or in a file."""
    kind = type(x)
    if kind in _SMALL:
        return 16
    if kind is np.ndarray:
        return int(x.nbytes) if x.dtype != object else sum(map(weight, x.ravel().tolist()))
    if isinstance(x, (tuple, dict)):
        size = 64
        for part in x if isinstance(x, tuple) else x.values():
            size += 16 if type(part) in _SMALL else weight(part)
        return size
    return getsizeof(x)


def _alike(one: Any, other: Any) -> bool:
    """Tell whether columns can be joined without a change, the order of keys included."""
    if same_structure(one, other) is not None or paths(one) != paths(other):
        return False
    pairs = zip(flatten(one), flatten(other), strict=True)
    return all(a is None or (a.dtype == b.dtype and a.shape[1:] == b.shape[1:]) for a, b in pairs)
