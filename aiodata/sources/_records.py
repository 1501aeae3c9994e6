"""How the records of one file are read: its content is fed to a splitter, which cuts it into runs of records."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.engine.block import Block
from aiodata.engine.position import Origin, locate
from aiodata.errors import StateError
from aiodata.sources._promises import Promise, failed_position, position
from aiodata.storage.content import pieces
from aiodata.storage.remote import open_file

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from aiodata.engine.run import Run
    from aiodata.formats.cuts import Cut, Splitter
    from aiodata.storage.local import LocalFile
    from aiodata.storage.remote import RemoteFile

__all__ = ["read_records"]


async def read_records(
    run: Run,
    *,
    start: Any,
    path: str,
    compression: str,
    chunk_bytes: int | None,
    splitter: Callable[..., Splitter],
    stage: str,
    unit: str = "record",
    first: int = 1,
    ends: bytes = b"",
    is_sized: bool = False,
) -> AsyncGenerator[Block[Any], None]:
    """Give a file's records; what goes wrong takes the place of the record that could not be read, and is the last.

    A position is `[offset, number, stop, count, mark]`: the byte of the content where a run of records begins, the
    number of the first one, the byte behind the last one, and what `Promise` has to know.

    Args:
        run: The run.
        start: None or a position.
        path: The file.
        compression: "", "GZIP" or "ZLIB".
        chunk_bytes: As for `pieces`.
        splitter: Makes the splitter from the path, for errors, and the offset and number where it begins.
        stage: The stage's label, for errors and statistics.
        unit: What is numbered: records or lines.
        first: The first number.
        ends: As for `pieces`.
        is_sized: Whether the splitter also takes `size`, which gives the number of bytes of the file, None where that
            is not known, or not the content's.
    """
    promise = Promise(start, (0, first, 0))
    offset, number, stop = promise.where
    begun, read, last = number, offset, b""
    checks_stop = promise.binds and promise.count > 0 and ends
    counters = run.statistics.counters(stage)
    failed: list[Block[Any]] = []
    file = open_file(run, path, promise.mark, counters)
    path = file.path
    try:
        async with aclosing(pieces(run, file, compression, chunk_bytes, offset, ends)) as content:
            piece = await anext(content, b"")  # before anything else: now it is known whether the file is the same
            sized: Any = {"size": file.size} if is_sized and not compression else {}
            cutter = splitter(path, offset, number, **sized)
            while True:
                if checks_stop and read <= stop < read + len(piece):
                    _check_stop((last + piece)[: stop - read + len(last) + 1][-2:], stop, ends, path)
                read, last = read + len(piece), piece[-1:]
                counters.bytes_read += len(piece)
                for cut in cutter.feed(piece) if piece else cutter.finish():
                    promise.give(cut.length)
                    await run.breathe()
                    yield _block(cut, file, unit, (offset, number, min(offset + cut.size, read)))
                    offset, number = offset + cut.size, number + cut.numbers
                    counters.elements += cut.length
                    counters.blocks += 1
                if not piece:
                    break
                piece = await anext(content, b"")
        promise.check(_place(path, unit, begun, None, 0))
    except Exception as error:
        where = (offset, number, 0)
        origin = Origin(partial(failed_position, where), partial(_place, path, unit, number, None))
        locate(error, stage, number - begun, origin, 0)
        if promise.binds or isinstance(error, StateError):
            raise
        failed.append(Block.failed(error, origin))
    finally:
        await file.aclose()
    if failed:
        yield failed.pop()  # not held: the error holds this frame by its traceback


def _check_stop(around: bytes, stop: int, ends: bytes, path: str) -> None:
    """Make sure that a record ends where one did; the last one need not have had an end then."""
    if not any(byte in ends for byte in around):
        raise StateError(f"{path}, byte {stop}: no record ends there, as one did when the state was saved")


def _block(cut: Cut, file: LocalFile | RemoteFile, unit: str, where: tuple[int, int, int]) -> Block[Any]:
    place = partial(_place, file.path, unit, where[1], cut.begins)
    origin = Origin(partial(position, where, cut.length, file.mark), place)
    if cut.elements is None:
        return Block(origin, columns=cut.columns, length=cut.length)
    return Block(origin, computed=cut.elements, clean=cut.clean)


def _place(path: str, unit: str, number: int, begins: Sequence[int] | None, offset: int) -> str:
    if begins is not None:
        offset = begins[offset] if offset < len(begins) else begins[-1] + 1 if begins else 0
    return f"{path} {unit} {number + offset}"
