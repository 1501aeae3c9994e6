"""Errors that bad data raises; wrong arguments raise plain `ValueError` and `TypeError` at the call."""

from __future__ import annotations

__all__ = ["CorruptRecordError", "DataError", "EndedEarlyError", "StateError", "StructureError", "WorkerError"]


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


class StateError(ValueError):
    """A saved state that does not belong to this pipeline, or is not a state at all."""


class WorkerError(RuntimeError):
    """A failure of a worker process that could not be carried over as the exception that it was."""


class EndedEarlyError(RuntimeError):
    """An iterator that was closed while it was being read, or is used in a process that did not open it."""
