"""Errors that bad data raises; wrong arguments raise plain `ValueError` and `TypeError` at the call."""

from __future__ import annotations

__all__ = [
    "CardinalityError",
    "CorruptRecordError",
    "DataError",
    "EndedEarlyError",
    "OutOfRangeError",
    "RemoteError",
    "StateError",
    "StructureError",
    "TooManyErrorsError",
    "WorkerError",
]


class DataError(ValueError):
    """Data that cannot be what the pipeline says it is; raised while iterating."""


class CorruptRecordError(DataError):
    """A record that is cut short or damaged.

    Args:
        message: What is wrong, in words.
        path: The file.
        record: Number of the record in the file, from 0, where known.
        offset: Byte offset in the file's (uncompressed) content, where known.
    """

    def __init__(self, message: str, path: str, record: int | None = None, offset: int | None = None) -> None:
        self.message = message
        self.path = path
        self.record = record
        self.offset = offset
        where = [path]
        if record is not None:
            where.append(f"record {record}")
        if offset is not None:
            where.append(f"byte {offset}")
        super().__init__(f"{', '.join(where)}: {message}")

    def __reduce__(self) -> tuple[type[CorruptRecordError], tuple[str, str, int | None, int | None]]:
        """Pickle by the constructor's own arguments, so that it crosses process borders whole."""
        return type(self), (self.message, self.path, self.record, self.offset)


class StructureError(DataError):
    """Elements whose structure, shape or dtype do not fit each other."""


class CardinalityError(DataError):
    """A dataset that does not have as many elements as it was said to have.

    Args:
        expected: How many it was to have, -1 for an endless number.
        found: How many there are.
        more: There may be more than those.
    """

    def __init__(self, expected: int, found: int, more: bool = False) -> None:
        self.expected, self.found, self.more = expected, found, more
        wanted = "the dataset was expected to be endless" if expected < 0 else f"{expected} elements were expected"
        super().__init__(f"{wanted}, but there are {'at least' if more else 'only'} {found}")

    def __reduce__(self) -> tuple[type[CardinalityError], tuple[int, int, bool]]:
        """Pickle by the constructor's own arguments, so that it crosses process borders whole."""
        return type(self), (self.expected, self.found, self.more)


class TooManyErrorsError(DataError):
    """More elements failed than `ignore_errors` may leave out; raised from the last of their errors."""


class StateError(ValueError):
    """A saved state that does not belong to this pipeline, or is not a state at all."""


class WorkerError(RuntimeError):
    """A failure of a worker process that could not be carried over as the exception that it was."""


class EndedEarlyError(RuntimeError):
    """An iterator that was closed while it was being read, or is used in a process that did not open it."""


class OutOfRangeError(EOFError):
    """There is no next element; raised by `get_next` at the end, where `next` raises StopIteration.

    It is an `EOFError`, as nothing is wrong with the data, and no loop or generator of Python's takes one for its own
    end, as they do with StopIteration and IndexError.
    """


class RemoteError(OSError):
    """Remote storage, or a server, that could not be read or written to, also not by trying again.

    Args:
        message: What is wrong, in words.
        url: Where, without its secrets.
        offset: The first byte, or row, that is missing; None where that has no meaning.
        attempts: How often it was tried since something last arrived.
        unit: What the offset counts.
    """

    def __init__(
        self, message: str, url: str, offset: int | None = None, attempts: int = 1, unit: str = "byte"
    ) -> None:
        self.message = message
        self.url = url
        self.offset = offset
        self.attempts = attempts
        self.unit = unit
        where = url if offset is None else f"{url}, {unit} {offset}"
        tries = f" (tried {attempts} times)" if attempts > 1 else ""
        super().__init__(f"{where}: {message}{tries}")

    def __reduce__(self) -> tuple[type[RemoteError], tuple[str, str, int | None, int, str]]:
        """Pickle by the constructor's own arguments, so that it crosses process borders whole."""
        return type(self), (self.message, self.url, self.offset, self.attempts, self.unit)
