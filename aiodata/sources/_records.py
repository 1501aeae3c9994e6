"""How the records of one file are read: its content is fed to a splitter, which cuts it into runs of records."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.engine.block import Block
from aiodata.engine.position import Origin, locate
from aiodata.errors import StateError
from aiodata.storage.content import pieces
from aiodata.storage.local import LocalFile

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from aiodata.engine.run import Run
    from aiodata.formats.cuts import Cut, Splitter

__all__ = ["read_records"]


async def read_records(
    run: Run,
    *,
    start: Any,
    path: str,
    compression: str,
    chunk_bytes: int | None,
    splitter: Callable[[str, int, int], Splitter],
    stage: str,
    unit: str = "record",
    first: int = 1,
    ends: bytes = b"",
) -> AsyncGenerator[Block[Any], None]:
    """Give a file's records; what goes wrong takes the place of the record that could not be read, and is the last.

    A position is `[offset, number]`: the byte of the content where a record begins, and its number; where a record
    failed to be read, a third part says so. If nothing can be read at a position where a record was, the file is not
    what it was, and the error ends the run: to go on would lose the rest in silence.

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
    """
    offset, number = start[:2] if start is not None else (0, first)
    begun = number
    restored = start is not None and len(start) == 2
    counters = run.statistics.counters(stage)
    failed: list[Block[Any]] = []
    file = LocalFile(run, path)
    try:
        cutter = splitter(path, offset, number)
        async with aclosing(pieces(run, file, compression, chunk_bytes, offset, ends)) as content:
            async for piece in content:
                counters.bytes_read += len(piece)
                for cut in cutter.feed(piece):
                    restored = False
                    await run.breathe()
                    yield _block(cut, path, unit, offset, number)
                    offset, number = offset + cut.size, number + cut.numbers
                    counters.elements += cut.length
                    counters.blocks += 1
        for cut in cutter.finish():
            restored = False
            yield _block(cut, path, unit, offset, number)
            offset, number = offset + cut.size, number + cut.numbers
            counters.elements += cut.length
            counters.blocks += 1
    except Exception as error:
        origin = Origin(partial(_failed_position, offset, number), partial(_place, path, unit, number, None))
        locate(error, stage, number - begun, origin, 0)
        if restored:
            raise
        failed.append(Block.failed(error, origin))
    finally:
        await file.aclose()
    if failed:
        yield failed.pop()  # not held: the error holds this frame by its traceback
    elif restored:
        raise StateError(f"{path}, byte {offset}: the file ends there, where a {unit} was when the state was saved")


def _block(cut: Cut, path: str, unit: str, offset: int, number: int) -> Block[Any]:
    origin = Origin(partial(_position, offset, number), partial(_place, path, unit, number, cut.begins))
    if cut.elements is None:
        return Block(origin, columns=cut.columns, length=cut.length)
    return Block(origin, computed=cut.elements, clean=cut.clean)


def _position(offset: int, number: int) -> list[int]:
    return [offset, number]


def _failed_position(offset: int, number: int) -> list[Any]:
    return [offset, number, "failed"]


def _place(path: str, unit: str, number: int, begins: Sequence[int] | None, offset: int) -> str:
    if begins is not None:
        offset = begins[offset] if offset < len(begins) else begins[-1] + 1 if begins else 0
    return f"{path} {unit} {number + offset}"
