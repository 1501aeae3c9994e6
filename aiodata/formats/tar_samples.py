"""Samples of a tar archive, as WebDataset lays them out: the files that stand together and share a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiodata.formats.tar import TarSplitter, split_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiodata.errors import CorruptRecordError

__all__ = ["SampleSplitter"]


class SampleSplitter(TarSplitter):
    """Cuts the content of a tar archive into samples: `{"__key__": key, extension: content, ...}`.

    A sample ends where a file with another key follows, or the archive ends. One that has an extension twice is a
    failure in its place.

    Args:
        path: The archive, for errors.
        offset: Byte of the content where a sample begins.
        number: Number of the next sample.
        select: As for `TarSplitter`; a sample without any of them is left out.
        size: As for `TarSplitter`.
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
        super().__init__(path, offset, number, select=select, size=size)
        self._sample: dict[str, Any] | None = None
        self._wrong: CorruptRecordError | None = None
        """What is wrong with the sample."""

    def _wants(self, name: str) -> bool:
        parts = split_name(name)
        return parts is not None and (self._select is None or parts[1] in self._select)

    def _take(self, name: str, content: bytes | str, length: int) -> None:
        parts = split_name(name)
        assert parts is not None
        key, extension = parts
        if self._sample is None or self._sample["__key__"] != key:
            self._end_archive()
            self._sample = {"__key__": key}
        if not isinstance(content, bytes):
            self._fail(content)
        elif extension in self._sample:
            self._fail(f"the sample {key!r} has two files with the extension {extension!r}")
        else:
            self._sample[extension] = content

    def _fail(self, message: str) -> None:
        self._wrong = self._wrong or self._error(message)

    def _end_archive(self) -> None:
        """Close the sample that is open before `_base`."""
        if self._sample is not None:
            self._add(self._sample if self._wrong is None else self._wrong, self._base)
        self._sample = self._wrong = None
