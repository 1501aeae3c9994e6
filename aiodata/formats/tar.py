"""Tar archives, cut into the files in them; their headers are read by the standard library's `tarfile`.

An archive has a header of 512 bytes for each member, then its content, filled up to 512 bytes. Extended headers (pax,
GNU long names) stand before the header that they belong to. Blocks of zeros are the end. Source: POSIX.1, `pax`.
"""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING, Any

from aiodata.engine.block import Failure
from aiodata.errors import CorruptRecordError
from aiodata.formats.compression import compression_of
from aiodata.formats.cuts import Cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["TarSplitter", "split_name"]

BLOCK = tarfile.BLOCKSIZE
LARGEST_MEMBER = 1 << 40
"""No member is longer than a tebibyte; a size beyond it is not believed."""

LARGEST_HEADER = 1 << 20
"""Bytes that the headers of one member may take; names and attributes are far shorter."""

BLOCK_RECORDS = 64
"""Records that become one block at most: reading their headers takes some milliseconds."""

_ENCODING, _ERRORS = "utf-8", "surrogateescape"
_EXTENDED = {
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
}
_LEFT_OUT = {tarfile.DIRTYPE, tarfile.XGLTYPE, b"D", b"V"}
"""Folders, global headers, and GNU tar's folders of incremental archives and volume labels."""

_KINDS = {
    tarfile.LNKTYPE: "a hard link",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
}
_LOCAL_ONLY = {"path", "size", "hdrcharset"}
"""What a global header must not set, for who begins to read behind it would not know."""

_NOTHING = tarfile.TarInfo("nothing").tobuf()
"""The header of an empty file, which `tarfile` wants to see behind a global header."""


def split_name(name: str) -> tuple[str, str] | None:
    """Split a file's name into its key and its extension, at the first dot of the last part; as WebDataset does.

    Gives None for hidden files and for those without a dot. Extensions are in lower case.

    >>> split_name("a.b/0001.seg.PNG")
    ('a.b/0001', 'seg.png')
    """
    folder, slash, base = name.rpartition("/")
    stem, dot, extension = base.partition(".")
    return (folder + slash + stem, extension.lower()) if stem and dot else None


class TarSplitter:
    """Cuts the content of a tar archive into its files: `(name, content)`.

    Folders are left out. A link, a device or a pipe is a failure in its place. Archives one behind the other are read
    as one. Anything else behind the end, and an archive without an end, are errors.

    Args:
        path: The archive, for errors.
        offset: Byte of the content where a header begins.
        number: Number of the next record.
        select: Extensions of the files to give, None for all files; what others hold is dropped as it comes.
        size: Gives the number of bytes of the content, None where it is not known.
    """

    def __init__(
        self,
        path: str,
        offset: int,
        number: int,
        *,
        select: frozenset[str] | None = None,
        size: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._content_size = size
        self._path = path
        self._number = number
        self._select = select
        self._base = offset
        """Byte of the content where what is held begins; while a member is read, where that begins."""
        self._held: list[bytes] = []
        self._size = 0
        self._wanted = BLOCK
        """Bytes that must be held before another member can be complete."""
        self._skip = 0
        """Bytes to drop before anything is held."""
        self._ended = False
        """The last that was read is a block of zeros, so the archive may end here."""
        self._begin = self._end = offset
        """Bytes of the content where the next cut begins, and where it ends with the records found so far."""
        self._found: list[Any] = []
        self._clean = True

    def feed(self, piece: bytes) -> Iterator[Cut]:
        """Take the next piece of content and give the records that it completes.

        Raises:
            CorruptRecordError: A header is damaged; all records before it have been given.
        """
        if self._skip:
            skipped = min(self._skip, len(piece))
            self._skip -= skipped
            self._base += skipped
            piece = piece[skipped:]
            if not piece:
                return
        self._held.append(piece)
        self._size += len(piece)
        if self._size < self._wanted:
            return
        data = self._held[0] if len(self._held) == 1 else b"".join(self._held)
        start, at, self._wanted = self._base, 0, BLOCK
        try:
            while len(data) - at >= self._wanted:
                at += self._read(data, at)
                self._base = start + min(at, len(data))
                if len(self._found) >= BLOCK_RECORDS:
                    yield self._cut()
        except CorruptRecordError:
            if self._found:
                yield self._cut()
            raise
        self._skip = max(0, at - len(data))
        self._held = [data[at:]] if at < len(data) else []
        self._size = max(0, len(data) - at)
        if self._found:
            yield self._cut()

    def _cut(self) -> Cut:
        cut = Cut(self._end - self._begin, self._found, clean=self._clean)
        self._number += cut.length
        self._begin, self._found, self._clean = self._end, [], True
        return cut

    def _read(self, data: bytes, at: int) -> int:
        """Read one member, or a block of zeros; give its length, 0 with `_wanted` set when it is not all there."""
        if data.count(0, at, at + BLOCK) == BLOCK:
            self._end_archive()
            self._ended = True
            return BLOCK
        info, begin = self._header(data, at)
        if info is None:
            self._wanted = begin
            return 0
        length = begin + _blocks(info.size if info.isreg() or info.type not in tarfile.SUPPORTED_TYPES else 0)
        if info.type not in _LEFT_OUT and self._wants(info.name):
            if len(data) - at < length:
                self._check_there(info, begin + info.size)
                self._wanted = length
                return 0
            if info.isreg():
                self._take(info.name, data[at + begin : at + begin + info.size], length)
            else:
                kind = _KINDS.get(info.type, f"of the unknown type {info.type!r}")
                self._take(info.name, f"{info.name!r} is {kind}: only files can be read", length)
        self._ended = False
        return length

    def _header(self, data: bytes, at: int) -> tuple[tarfile.TarInfo | None, int]:
        """Give a member's header, and its length with the extended ones; None and the bytes to have if some miss."""
        end = at
        while True:
            if len(data) < end + BLOCK:
                return None, end + BLOCK - at
            try:
                info = tarfile.TarInfo.frombuf(data[end : end + BLOCK], _ENCODING, _ERRORS)
            except tarfile.HeaderError as error:
                raise self._error(self._no_header(data, str(error)), end - at) from error
            end += BLOCK
            if info.type not in _EXTENDED:
                break
            if not 0 <= info.size <= LARGEST_HEADER or end - at > LARGEST_HEADER:
                raise self._error("the extended header is too long to be one", end - at - BLOCK)
            is_first = end - at == BLOCK
            end += _blocks(info.size)
            if info.type == tarfile.XGLTYPE and is_first and end <= len(data):
                self._extended(data[at:end] + _NOTHING)
                info.size = 0
                return info, end - at
        if info.type == tarfile.GNUTYPE_SPARSE:
            raise self._error("the member is a sparse file, which cannot be read")
        if end - at > BLOCK:
            info = self._extended(data[at:end])
        if not 0 <= info.size <= LARGEST_MEMBER:
            raise self._error(f"the header says that {info.name!r} has {info.size} bytes")
        return info, end - at

    def _extended(self, headers: bytes) -> tarfile.TarInfo:
        """Have `tarfile` put a member's headers together."""
        try:
            with tarfile.TarFile(fileobj=io.BytesIO(headers), encoding=_ENCODING, errors=_ERRORS) as archive:
                info = archive.next()
        except Exception as error:  # whatever: the headers may hold anything
            is_sparse = b" GNU.sparse." in headers
            what = "the member is a sparse file, which" if is_sparse else f"the extended header ({error})"
            raise self._error(f"{what} cannot be read") from error
        if info is None or info.issparse():
            raise self._error("the member is a sparse file, which cannot be read")
        for key in archive.pax_headers:
            if key in _LOCAL_ONLY or key.startswith("GNU.sparse."):
                raise self._error(f"a global header sets {key!r} for all members, which is not supported")
        return info

    def _check_there(self, info: tarfile.TarInfo, length: int) -> None:
        """Make sure that the content has the whole of a member, before any of it is waited for and held."""
        size = self._content_size()
        if size is not None and self._base + length > size:
            raise self._error(
                f"{info.name!r} has {info.size} bytes, which go beyond the end of the file: it is cut short, or damaged"
            )

    def _no_header(self, data: bytes, reason: str) -> str:
        if self._base == 0 and (looks_like := compression_of(data[:2])):
            return f"this is no tar archive; it looks {looks_like}-compressed: pass compression_type={looks_like!r}"
        if self._ended:
            return "there is something behind the end of the archive that is no other archive"
        return f"the header is damaged, or the file is no tar archive ({reason}); what follows in it cannot be read"

    def _error(self, message: str, behind: int = 0) -> CorruptRecordError:
        return CorruptRecordError(message, self._path, self._number + len(self._found), self._base + behind)

    def finish(self) -> Iterator[Cut]:
        """Check that the content ends where an archive may end.

        Raises:
            CorruptRecordError: It does not.
        """
        rest = b"".join(self._held)
        if self._ended and not rest.strip(b"\0"):
            return iter(())
        if self._base == 0 and not rest:
            raise self._error("the file is empty, which no tar archive is")
        if self._ended or (self._base == 0 and len(rest) < BLOCK):
            raise self._error(self._no_header(rest, "it is too short for one"))
        where = "in the middle of a member" if rest or self._skip else "without the zeros at the end of an archive"
        raise self._error(f"the file ends {where}: it is cut short")

    # What is done with the members; here each is a record.

    def _wants(self, name: str) -> bool:
        """Tell whether a file is to be given."""
        return self._select is None or ((parts := split_name(name)) is not None and parts[1] in self._select)

    def _take(self, name: str, content: bytes | str, length: int) -> None:
        """Take a file, or what is wrong with it in words, that begins at `_base` and takes `length` bytes."""
        self._add((name, content) if isinstance(content, bytes) else self._error(content), self._base + length)

    def _end_archive(self) -> None:
        """Take the end of an archive, a block of zeros that begins at `_base`."""

    def _add(self, record: Any, end: int) -> None:
        """Add a record, or the error in its place, that ends before a byte of the content."""
        if isinstance(record, CorruptRecordError):
            record, self._clean = Failure(record), False
        self._found.append(record)
        self._end = end


def _blocks(size: int) -> int:
    """Give the bytes that a content takes up in the archive."""
    return (size + BLOCK - 1) // BLOCK * BLOCK
