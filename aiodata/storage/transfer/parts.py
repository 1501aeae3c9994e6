"""What is asked for of a file that is read by seeking: what is expected ahead, the rest when it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiodata.storage.transfer.download import CHUNK_BYTES, MEMORY_BYTES, READ_AHEAD_BYTES
from aiodata.storage.transfer.expected import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future

    from aiodata.options import StorageOptions
    from aiodata.storage.transfer.expected import Range
    from aiodata.storage.transfer.limits import Limits

__all__ = ["Part", "Parts", "WINDOW_BYTES"]

WINDOW_BYTES = 65 << 10
"""How much is asked for where less is read, unless it is expected: all that Parquet's readers and `zipfile` look at
first."""

WINDOWS = 4
"""How many of those are kept."""


class Part:
    """Bytes that were asked for in one request.

    Args:
        begin: The first byte.
        end: The one behind the last.
        future: Gets them.
        group: Number of the group of ranges, read side by side, that they are of; -1 for what was not expected.
    """

    __slots__ = ("begin", "data", "end", "future", "group", "left")

    def __init__(self, begin: int, end: int, future: Future[bytes], group: int = -1) -> None:
        self.begin = begin
        self.end = end
        self.future: Future[bytes] | None = future
        self.data: bytes | None = None
        self.left = end - begin
        """How many bytes have not been read."""
        self.group = group


class Parts:
    """Reads ranges of a file. It is synchronous; one thread uses it at a time.

    Args:
        fetch: Asks for the bytes from one up to another; also gets how many are not held any more since the last call.
        result: Waits for what that gives.
        limits: What all transfers share; only looked at.
        options: The limits.
    """

    def __init__(
        self,
        fetch: Callable[[int, int, int], Future[bytes]],
        result: Callable[[Future[bytes]], bytes],
        limits: Limits,
        options: StorageOptions,
    ) -> None:
        self.size = 0
        """Number of bytes of the file."""
        self._fetch = fetch
        self._result = result
        self._limits = limits
        self._chunk = options.chunk_bytes or CHUNK_BYTES
        self._read_ahead = READ_AHEAD_BYTES if options.read_ahead_bytes is None else options.read_ahead_bytes
        self._memory = MEMORY_BYTES if options.memory_bytes is None else options.memory_bytes
        self._freed = 0
        self._last: Part | None = None
        self._windows: list[Part] = []
        self._asked: dict[int, Part] = {}
        """What has been asked for of what is expected, by its first byte."""
        self._later: dict[int, tuple[int, int]] = {}
        """What has not, in order: the byte behind the last one, and the group."""
        self._groups: Iterator[Sequence[Range]] = iter(())
        self._cut = self._entered = 0
        """How many groups have been cut into parts; which one is being read."""
        self._ahead = self._most_ahead = 0
        """How many bytes may be asked for and not read: now, and when reading has gone on."""
        self._unread = 0
        """How many are."""

    def start(self) -> None:
        """Ask for the first bytes, of a file whose size is not known."""
        head = self._ask(0, WINDOW_BYTES)
        head.end = len(self._content(head))
        self._windows.append(head)

    def expect(self, groups: Iterable[Sequence[Range]]) -> None:
        """Say what will be read from now on; see `SeekableFile.expect`."""
        self._forget(self._cut)
        self._groups, self._ahead, self._most_ahead = iter(groups), 0, 0
        self._ask_ahead()

    def close(self) -> None:
        """Let go of everything."""
        self._last = None
        self._groups = iter(())
        self._windows.clear()
        self._asked.clear()
        self._later.clear()

    def read(self, begin: int, end: int) -> bytes:
        """Read the bytes from one up to another.

        Raises:
            OSError: They cannot be read.
        """
        wanted: list[tuple[int, Part]] = []  # all are asked for before one is waited for
        at = begin
        while at < end:
            part = self._find(at) or self._find_next(at) or self._ask_unexpected(at, end)
            wanted.append((at, part))
            at = part.end
        group = min((part.group for _, part in wanted if part.group >= 0), default=0)
        if group > self._entered:
            self._entered = group
            self._forget(group)
        self._ask_ahead()
        pieces: list[bytes] = []
        for at, part in wanted:
            pieces.append(self._content(part)[at - part.begin : end - part.begin])
            self._last = part
            self._use(part, len(pieces[-1]))
        for window in self._windows[:-WINDOWS]:
            self._drop(window)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _find(self, at: int) -> Part | None:
        """Give the part that has a byte, if it has been asked for or is expected."""
        if (last := self._last) is not None and last.begin <= at < last.end:
            return last
        if at in self._asked:
            return self._asked[at]
        for part in (*self._asked.values(), *self._windows):
            if part.begin <= at < part.end:
                return part
        return self._find_later(at)

    def _find_next(self, at: int) -> Part | None:
        """Do the same for the next group, if there is one: what is left of those before may have been skipped."""
        ranges = next(self._groups, None)
        if ranges is None:
            return None
        self._cut_group(ranges)
        return self._find_later(at)

    def _find_later(self, at: int) -> Part | None:
        if at in self._later:
            return self._ask_expected(at)
        for begin, (end, _) in self._later.items():
            if begin <= at < end:
                return self._ask_expected(begin)
        return None

    def _ask_expected(self, begin: int) -> Part:
        end, group = self._later.pop(begin)
        self._unread += end - begin
        part = self._asked[begin] = self._ask(begin, end, group)
        return part

    def _ask_unexpected(self, at: int, end: int) -> Part:
        """Ask for bytes from `at` on: those up to `end`, or more, but not what else has been asked for."""
        asked = [begin for begin in self._asked if begin > at]
        if end - at > WINDOW_BYTES or asked:
            return self._ask(at, min(end, at + max(self._chunk, 1), *asked))
        begin = max(0, min(at, self.size - WINDOW_BYTES))
        window = self._ask(begin, min(begin + WINDOW_BYTES, self.size))
        self._windows.append(window)
        return window

    def _ask(self, begin: int, end: int, group: int = -1) -> Part:
        freed, self._freed = self._freed, 0
        return Part(begin, end, self._fetch(begin, end, freed), group)

    def _ask_ahead(self) -> None:
        """Ask for what is expected next, as far as the limits go."""
        while True:
            if not self._later:
                ranges = next(self._groups, None) if self._unread < max(self._ahead, 1) else None
                if ranges is None:
                    return
                self._cut_group(ranges)
                continue
            begin, (end, _) = next(iter(self._later.items()))
            length = end - begin
            if (self._unread and self._unread + length > self._ahead) or self._limits.held + length > self._memory:
                return
            self._ask_expected(begin)

    def _cut_group(self, ranges: Sequence[Range]) -> None:
        inside = [(begin, end) for begin, end in ranges if 0 <= begin < end <= self.size]
        if inside:
            cutting = cut(inside, self._read_ahead, self._chunk)
            self._later |= {begin: (end, self._cut) for begin, end in cutting.parts if begin not in self._asked}
            self._most_ahead = max(self._most_ahead, cutting.most)
            self._ahead = max(self._ahead, cutting.first)
        self._cut += 1

    def _forget(self, group: int) -> None:
        """Drop what was expected in groups before this one."""
        for part in [part for part in self._asked.values() if part.group < group]:
            self._drop(part)
        self._later = {begin: later for begin, later in self._later.items() if later[1] >= group}

    def _use(self, part: Part, count: int) -> None:
        """Count bytes of a part as read, and drop it when all are."""
        part.left -= count
        if self._asked.get(part.begin) is part:
            self._unread -= count + min(part.left, 0)
            if part.left <= 0:
                self._ahead = min(self._ahead * 2, self._most_ahead)
                self._drop(part)
                self._ask_ahead()
        elif part not in self._windows:
            self._drop(part)

    def _drop(self, part: Part) -> None:
        if self._asked.get(part.begin) is part:
            del self._asked[part.begin]
            self._unread -= max(part.left, 0)
        elif part in self._windows:
            self._windows.remove(part)
        if part.data is not None:
            self._freed += len(part.data)
        elif part.future is not None:
            part.future.cancel()
        if part is self._last:
            self._last = None

    def _content(self, part: Part) -> bytes:
        """Wait for a part; one that failed is asked for again when it is read again."""
        if part.data is None:
            assert part.future is not None
            try:
                part.data = self._result(part.future)
            except BaseException:
                self._drop(part)
                raise
            finally:
                part.future = None
        return part.data
