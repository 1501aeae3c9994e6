"""Files that readers open in threads, local and remote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiodata.storage.marks import mark_at
from aiodata.storage.remote import mark_of_info
from aiodata.storage.schemes import is_remote
from aiodata.storage.transfer.network import network_of
from aiodata.storage.transfer.seekable import SeekableFile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiodata.engine.run import Run
    from aiodata.engine.statistics import Counters
    from aiodata.storage.marks import Mark

__all__ = ["SeekableFiles", "mark_of_file"]


class SeekableFiles:
    """Opens files for a reader in threads, local and remote; to be made on the loop that the run is on.

    Args:
        run: The run that reads them.
        counters: Where requests and bytes are counted.
        paths: Paths and URLs among which are all that will be opened.
    """

    def __init__(self, run: Run, counters: Counters, paths: Iterable[str]) -> None:
        self._network = network_of(run) if any(map(is_remote, paths)) else None
        self._options = run.options.storage
        self._counters = counters
        self._open: list[SeekableFile] = []
        self._interrupted = False

    def open(self, path: str) -> SeekableFile | None:
        """Open a remote file, which may be closed before all are; None for a local one.

        Raises:
            OSError: It cannot be read.
            ValueError, ImportError: Nothing is known of such URLs, or an optional package is not installed.
        """
        if not is_remote(path):
            return None
        assert self._network is not None
        file = SeekableFile(self._network, path, self._options, self._counters)
        self._open = [*(each for each in self._open if not each.closed), file]
        if self._interrupted:
            file.interrupt()
        file.start()
        return file

    def close(self) -> None:
        """Close all files."""
        for file in self._open:
            file.close()

    def interrupt(self) -> None:
        """End what reads, at once and for good; from any thread."""
        self._interrupted = True
        for file in self._open:
            file.interrupt()


def mark_of_file(path: str, file: SeekableFile | None, saved: Mark) -> Mark:
    """Give the mark of an open file, or of the one at a path, and compare it with a saved one.

    Raises:
        OSError: It cannot be read.
        StateError: It is another file.
    """
    return mark_at(path, saved) if file is None else mark_of_info(file.info, file.path, saved)
