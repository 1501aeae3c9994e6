"""The size of a file, where there is one."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

__all__ = ["size_of"]


def size_of(path: str) -> int | None:
    """Give the number of bytes in a regular file; None for anything else, and where opening it will say what is wrong.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     size_of(file.name), file.write(b"abc"), file.flush(), size_of(file.name)
    (None, 3, None, 3)
    """
    with suppress(OSError, ValueError):
        status = os.stat(path)
        # /proc's files say that they are empty.
        if stat.S_ISREG(status.st_mode) and status.st_size:
            return status.st_size
    return None
