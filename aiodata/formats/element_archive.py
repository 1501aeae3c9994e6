"""Archives of elements: a ZIP file of `.npy` members, a folder of them for each chunk, and an index.

`numpy.load` and every unzip read it. A checksum guards each member.
"""

from __future__ import annotations

import errno
import json
import os
import struct
import zipfile
from bisect import bisect_right
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.errors import CorruptRecordError, StateError
from aiodata.formats.element_decoding import Chunk, decode_chunk
from aiodata.formats.element_encoding import LARGEST_CHUNK
from aiodata.formats.element_layouts import layout_of, spec_of_json
from aiodata.formats.npy import DAMAGE, read_header
from aiodata.storage.masking import masked
from aiodata.storage.transfer.expected import forward

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiodata.storage.transfer.seekable import SeekableFile

__all__ = ["COMPRESSIONS", "ElementArchive", "FORMAT", "INDEX", "PIECE_BYTES", "VERSION"]

COMPRESSIONS = {"": zipfile.ZIP_STORED, "GZIP": zipfile.ZIP_DEFLATED}
FORMAT, VERSION = "aiodata elements", 1
INDEX = "index.json"
PIECE_BYTES = 1 << 20
_MOST_DEFLATED = 1032
"""How many bytes one byte of deflated data gives at most."""
_BROKEN = (*DAMAGE, LookupError, TypeError, AttributeError, OverflowError, StateError, struct.error)


class ElementArchive:
    """Reads an archive of elements, a chunk at a time, in any order. It is synchronous; one thread uses it at a time.

    Args:
        path: The file, a path or a URL.
    """

    def __init__(self, path: str) -> None:
        self.url = path
        self.path = masked(path)
        """Its name, for errors."""
        self.count = 0
        """Number of elements."""
        self.starts: list[int] = []
        """The number of the first element of each chunk."""
        self.spec: Any = None
        """What all elements have in common; None where that is nothing."""
        self.compression = ""
        self.extra: dict[str, Any] = {}
        """What `finish` was given."""
        self._zip: zipfile.ZipFile | None = None
        self._layouts: list[Any] = []
        self._size = 0
        self._remote: SeekableFile | None = None
        self._next = -1

    def open(self, remote: SeekableFile | None = None) -> None:
        """Open the file and read its index.

        Args:
            remote: The file if it is a remote one; whoever opened it closes it.

        Raises:
            OSError: It cannot be read.
            CorruptRecordError: It is no archive of elements, is damaged, or of another version.
        """
        with self._naming(None, None):
            self._remote = remote
            self._zip = zipfile.ZipFile(self.url if remote is None else remote)
            self._size = os.path.getsize(self.url) if remote is None else remote.size
            with self._member(INDEX) as (member, size):
                if size > self._size:
                    raise ValueError(f"the index of {size} bytes is larger than the file")
                index = json.loads(member.read(size))
                member.read(1)
            if index["format"] != FORMAT:
                raise ValueError("this is no archive of elements")
            if index["version"] != VERSION:
                raise ValueError(f"the version {index['version']} of the format is not known; {VERSION} is")
            self.count, self.compression, self.extra = index["count"], index["compression"], {**index["extra"]}
            self.spec = spec_of_json(index["spec"])
            layouts = list(map(layout_of, index["layouts"]))
            self._layouts = [layouts[number] for _, number in index["chunks"]]
            self.starts = [start for start, _ in index["chunks"]]
            lengths = np.diff([*self.starts, self.count])
            if self.starts[:1] != [0][: self.count] or (lengths < 1).any() or (lengths > LARGEST_CHUNK).any():
                raise ValueError("the chunks do not follow each other")

    def find(self, element: int) -> tuple[int, int]:
        """Give the number of the chunk that an element is in, and the element's number within it."""
        chunk = bisect_right(self.starts, element) - 1
        return chunk, element - self.starts[chunk]

    def read(self, chunk: int) -> Chunk:
        """Give the elements of a chunk.

        Raises:
            OSError: The file cannot be read.
            CorruptRecordError: It is damaged; names the member.
        """
        first = self.starts[chunk]
        end = self.starts[chunk + 1] if chunk + 1 < len(self.starts) else self.count
        if self._remote is not None and chunk != self._next:
            self._expect(self._remote, chunk)
        self._next = chunk + 1
        with self._naming(None, first):
            return decode_chunk(self._layouts[chunk], end - first, lambda name: self._array(chunk, name, first))

    def close(self) -> None:
        """Close the file."""
        if self._zip is not None:
            self._zip.close()

    def _expect(self, remote: SeekableFile, chunk: int) -> None:
        """Say that all chunks from one on will be read."""
        assert self._zip is not None
        folder = f"{chunk:08d}/"
        begins = [info.header_offset for info in self._zip.infolist() if info.filename.startswith(folder)]
        end = self._zip.NameToInfo[INDEX].header_offset
        remote.expect(forward(min(begins, default=end), end))

    def _array(self, chunk: int, name: str, first: int) -> np.ndarray[Any, Any]:
        path = f"{chunk:08d}/{name}.npy"
        with self._naming(path, first), self._member(path) as (member, size):
            shape, fortran, dtype = read_header(member)
            head = member.tell()
            count = 1
            for axis in shape:
                count *= axis
            if dtype.hasobject or fortran or not shape or min(shape) < 0 or head + count * dtype.itemsize != size:
                raise ValueError(f"an array of dtype {dtype} and shape {shape} cannot be in {size - head} bytes")
            if shape[0] > max(LARGEST_CHUNK, size):
                raise ValueError(f"an array without content is said to have {shape[0]} rows")
            content = np.empty(size - head, np.uint8)
            done = 0
            while done < len(content):
                piece = member.read(min(PIECE_BYTES, len(content) - done))
                if not piece:
                    raise ValueError(f"it is cut short: {len(content) - done} bytes are missing")
                content[done : done + len(piece)] = np.frombuffer(piece, np.uint8)
                done += len(piece)
            member.read(1)  # at the end the checksum is compared
            return np.ndarray(shape, dtype, content)

    @contextmanager
    def _member(self, name: str) -> Iterator[tuple[Any, int]]:
        """Open a member whose size has been found credible."""
        assert self._zip is not None
        if name not in self._zip.NameToInfo:
            raise ValueError(f"the member {name!r} is missing")
        info = self._zip.getinfo(name)
        most = info.compress_size * (_MOST_DEFLATED if info.compress_type == zipfile.ZIP_DEFLATED else 1)
        if info.compress_type not in COMPRESSIONS.values():
            raise ValueError(f"the compression method {info.compress_type} is none of this format")
        if info.file_size > most or info.compress_size > self._size:
            raise ValueError(
                f"it is said to have {info.file_size} bytes, in {info.compress_size} of the file's {self._size}"
            )
        with self._zip.open(info) as member:
            yield member, info.file_size

    @contextmanager
    def _naming(self, member: str | None, element: int | None) -> Iterator[None]:
        """Turn what damaged data raises into an error that names the file, the element and the member."""
        try:
            yield
        except CorruptRecordError:
            raise
        except _BROKEN as error:
            if self._remote is not None:
                self._remote.raise_failure()
            if isinstance(error, OSError) and error.errno is not None and error.errno != errno.EINVAL:
                raise
            where = "" if member is None else f"member {member!r}: "
            raise CorruptRecordError(f"{where}{str(error) or type(error).__name__}", self.path, element) from error
