"""Rows of numpy's own files: `.npy`, one array, and `.npz`, a ZIP file of arrays.

Source: numpy's `numpy.lib.format`, which parses the headers.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import zipfile
import zlib
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from aiodata.errors import CorruptRecordError
from aiodata.spec import TensorSpec, spec_text
from aiodata.storage.masking import masked
from aiodata.storage.transfer.expected import forward

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from aiodata.storage.transfer.expected import Range
    from aiodata.storage.transfer.seekable import SeekableFile

__all__ = ["DAMAGE", "RowFile", "read_header"]

BLOCK_BYTES = 2 << 20
"""About how many bytes of rows are read at a time, so that the read takes longer than calling a thread for it; a larger
row is read by itself."""

BLOCK_ROWS = 8192
LONGEST_HEADER = 10_000
"""As `numpy.load` has it: longer headers may not be safe to parse."""

DAMAGE = (ValueError, EOFError, NotImplementedError, RuntimeError, OSError, zipfile.BadZipFile, zlib.error)
_ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
_DESCRIPTOR_BYTES = 24
"""How much may lie between the content of a member and the next one."""
_SEEKS = sys.version_info >= (3, 12)
"""Whether `zipfile` seeks within a member that is not compressed, instead of reading all before."""


class RowFile:
    """One file, opened to read rows from anywhere in it. It is synchronous; one thread uses it at a time.

    Args:
        path: The file, a path or a URL.
        members: The arrays of a `.npz` file to read; None means all.
    """

    def __init__(self, path: str, members: Sequence[str] | None = None) -> None:
        self.url = path
        self.path = masked(path)
        """Its name, for errors."""
        self._members = members
        self._archive: zipfile.ZipFile | None = None
        self._arrays: dict[str | None, _Rows] = {}
        self.types: dict[str, str] = {}
        """The dtype and shape of each array's rows."""
        self.length = 0
        """Number of rows."""
        self.portion = 1
        """How many rows to read at a time."""
        self._remote: SeekableFile | None = None
        self._next = -1

    def open(self, remote: SeekableFile | None = None) -> None:
        """Open the file and read the headers.

        Args:
            remote: The file if it is a remote one, which is closed with this.

        Raises:
            OSError: It cannot be read.
            CorruptRecordError: It is no such file, cut short, or holds what has no rows.
        """
        with self._naming(None, 0):
            self._remote = remote
            file: Any = open(self.url, "rb") if remote is None else remote  # noqa: SIM115
            self._arrays[None] = _Rows(file)  # to be closed whatever follows
            magic = file.read(4)
            file.seek(0)
            if magic in _ZIP_MAGIC:
                self._archive = zipfile.ZipFile(file)
            elif self._members is not None:
                raise ValueError("this is no .npz file, so it has no members")
            else:
                size = os.fstat(file.fileno()).st_size if remote is None else remote.size
                self._arrays[None].begin(size, self.url if remote is None else remote)
        if self._archive is not None:
            self._open_members(self._archive)
        arrays = [rows for rows in self._arrays.values() if rows.shape]
        self.types = {member or "rows": spec_text(rows.spec) for member, rows in self._arrays.items() if rows.shape}
        self.length = arrays[0].shape[0] if arrays else 0
        row_bytes = sum(rows.row_bytes for rows in arrays)
        self.portion = max(1, min(BLOCK_ROWS, BLOCK_BYTES // max(1, row_bytes)))

    def _open_members(self, archive: zipfile.ZipFile) -> None:
        names = {name.removesuffix(".npy"): name for name in archive.namelist() if name.endswith(".npy")}
        wanted = list(names) if self._members is None else self._members
        self._places = _places(archive, [names[member] for member in wanted if member in names])
        if self._remote is not None:
            self._remote.expect([self._places])
            self._next = 0
        for member in wanted:
            with self._naming(member, 0):
                if member not in names:
                    raise ValueError(f"there is no such member; there are {', '.join(map(repr, names)) or 'none'}")
                info = archive.getinfo(names[member])
                stored = info.compress_type == zipfile.ZIP_STORED
                rows = self._arrays[member] = _Rows(archive.open(info), stored)
                rows.begin(info.file_size)
                first = self._arrays[wanted[0]]
                if rows.shape[0] != first.shape[0]:
                    raise ValueError(f"it has {rows.shape[0]} rows, {wanted[0]!r} has {first.shape[0]}")

    def read(self, start: int, stop: int) -> Any:
        """Give the rows from `start` up to `stop`: an array, or for a `.npz` file a dict of them.

        Raises:
            OSError, CorruptRecordError: They cannot be read.
        """
        found: dict[str | None, Any] = {}
        if self._remote is not None and start != self._next:
            self._expect(self._remote, start)
        self._next = stop
        for member, rows in self._arrays.items():
            if rows.shape:
                with self._naming(member, start):
                    found[member] = rows.read(start, stop)
        return found if self._archive is not None else found[None]

    def _expect(self, remote: SeekableFile, row: int) -> None:
        """Say that all rows from one on will be read."""
        if self._archive is None:
            (rows,) = self._arrays.values()
            remote.expect(forward(rows.start + row * rows.row_bytes, rows.start + self.length * rows.row_bytes))
            return
        ranges: list[Range] = []
        members = [rows for rows in self._arrays.values() if rows.shape]
        for rows, (begin, end) in zip(members, self._places, strict=True):
            if _SEEKS and rows.is_stored:
                begin = max(begin, end - (self.length - row) * rows.row_bytes - _DESCRIPTOR_BYTES)
            ranges.append((begin, end))
        remote.expect([ranges])

    @contextmanager
    def _naming(self, member: str | None, row: int) -> Iterator[None]:
        """Turn what numpy and `zipfile` raise into an error that names the file, the member and the row."""
        try:
            yield
        except DAMAGE as error:
            if self._remote is not None:
                self._remote.raise_failure()
            if isinstance(error, OSError) and error.errno != errno.EINVAL:
                raise  # all but a place outside of the file, to which a damaged directory of an archive sends
            where = "" if member is None else f"member {member!r}: "
            raise CorruptRecordError(f"{where}{error}", self.path, row) from error

    def close(self) -> None:
        """Close everything."""
        for rows in self._arrays.values():
            rows.close()
        if self._archive is not None:
            self._archive.close()


def _places(archive: zipfile.ZipFile, names: Sequence[str]) -> list[Range]:
    """Give where members are, with their headers."""
    begins = sorted({info.header_offset for info in archive.infolist()})
    ends = dict(zip(begins, [*begins[1:], archive.start_dir], strict=False))
    found = [archive.getinfo(name).header_offset for name in names]
    return [(begin, ends[begin]) for begin in found]


class _Rows:
    """The rows of one array in an open file."""

    def __init__(self, file: IO[bytes], is_stored: bool = True) -> None:
        self.file = file
        self.is_stored = is_stored
        """Whether they are there as they are, not compressed."""
        self.shape: tuple[int, ...] = ()
        self._whole: np.ndarray[Any, Any] | None = None

    def begin(self, size: int, whole: str | SeekableFile | None = None) -> None:
        """Read the header.

        Args:
            size: Number of bytes in the file.
            whole: The file's name, or a remote file, if it is no member of another.
        """
        shape, fortran, self.dtype = read_header(self.file)
        if self.dtype.hasobject:
            raise ValueError("the array holds Python objects, which are not read: that would run code from the file")
        if not shape:
            raise ValueError("the array is a single value, which has no rows")
        if min(shape) < 0:
            raise ValueError(f"an array cannot have the shape {shape}")
        self.start = self.file.tell()
        self.row_bytes = self.dtype.itemsize
        for axis in shape[1:]:
            self.row_bytes *= axis
        if self.start + shape[0] * self.row_bytes > size:
            raise ValueError(
                f"the file is cut short: it has {size} bytes, and {shape[0]} rows of {self.row_bytes} bytes need "
                f"{self.start + shape[0] * self.row_bytes}"
            )
        self.spec = TensorSpec(shape[1:], self.dtype)
        self.shape = shape
        if fortran and len(shape) > 1 and shape[0] * self.row_bytes:
            if whole is not None:
                # The parts of a row are all over the file.
                mapped: Any = whole if isinstance(whole, str) else whole.spooled()
                self._whole = np.memmap(mapped, self.dtype, "r", self.start, shape, "F")
            else:
                flat = np.frombuffer(self._bytes(shape[0] * self.row_bytes), self.dtype)
                self._whole = flat.reshape(shape, order="F")

    def read(self, start: int, stop: int) -> Any:
        """Give rows as a new array; text as objects."""
        if self._whole is not None:
            found = np.array(self._whole[start:stop], order="C")
        else:
            at = self.start + start * self.row_bytes
            if self.file.tell() != at:
                self.file.seek(at)
            data = self._bytes((stop - start) * self.row_bytes)
            found = np.frombuffer(data, self.dtype, len(data) // max(1, self.dtype.itemsize))
            found = found.reshape(stop - start, *self.shape[1:])
        return found.astype(object) if self.dtype.kind in "SU" else found

    def close(self) -> None:
        """Close the file."""
        self._whole = None
        self.file.close()

    def _bytes(self, count: int) -> Any:
        """Read so many bytes, into memory of their own that can be written to."""
        file: Any = self.file
        if not isinstance(file, zipfile.ZipExtFile):
            data: Any = np.empty(count, np.uint8)
            missing = count - (file.readinto(data) if count else 0)
        else:  # what an archive says of a member's size may be wrong, so memory is taken for what there is
            data = bytearray(file.read(count) if count else b"")
            missing = count - len(data)
        if missing:
            raise ValueError(f"the file is cut short: {missing} bytes are missing")
        return data


def read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read a header of any version by numpy's own parser, once its length has been found credible."""
    magic = file.read(8)
    if len(magic) < 8 or not magic.startswith(b"\x93NUMPY"):
        raise ValueError("this is no .npy data")
    version = (magic[6], magic[7])
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"the .npy version {version[0]}.{version[1]} is not known")
    prefix = file.read(2 if version == (1, 0) else 4)
    length = int.from_bytes(prefix, "little")
    if length > LONGEST_HEADER:
        raise ValueError(f"the header is said to have {length} bytes, which is not credible")
    header = file.read(length)
    if len(prefix) < 2 or len(header) < length:
        raise ValueError("the file is cut short within its header")
    if version == (3, 0):
        # The same as version 2.0 but for names in UTF-8, which that one writes with escapes.
        header = header.decode().encode("ascii", "backslashreplace")
        prefix = len(header).to_bytes(4, "little")
    parse = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    try:
        shape, fortran, dtype = parse(io.BytesIO(prefix + header))
    except Exception as error:  # whatever Python's parser and numpy's dtypes say to any text
        raise ValueError(f"the header is damaged: {error}") from error
    return shape, fortran, dtype
