"""The records of streaming HTTP answers, and whole answers."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.engine.block import Block
from aiodata.engine.position import Origin, locate
from aiodata.errors import CorruptRecordError, RemoteError, StateError
from aiodata.sources._http_body import Body, Changed
from aiodata.sources._http_client import client_of
from aiodata.sources._promises import Promise, failed_position, position
from aiodata.storage.masking import masked
from aiodata.storage.transfer.healing import Healing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from aiodata.engine.run import Run
    from aiodata.formats.cuts import Cut, Splitter
    from aiodata.sources._http_client import Asking, Client

__all__ = ["read_records", "read_response"]


async def read_response(run: Run, *, start: None, url: str, asking: Asking) -> AsyncGenerator[Block[Any], None]:
    """Give one element: the body of an answer. Its position is nothing."""
    client = await client_of(run, asking)
    origin = Origin(_nothing, partial(_named, masked(url)))
    blocks: list[Block[Any]] = []
    try:
        body = await _whole(client, url, Healing(masked(url), run.options.storage, client.counters))
        client.counters.elements += 1
        blocks.append(Block(origin, computed=[body], clean=True))
    except Exception as error:
        locate(error, "from_http", 0, origin, 0)
        blocks.append(Block.failed(error, origin))
    yield blocks.pop()  # not held: an error holds this frame by its traceback


async def _whole(client: Client, url: str, healing: Healing) -> bytes:
    """Give the whole body of an answer; from its beginning again if it has changed in between."""
    while True:
        body = Body(client, url, healing, {})
        held: list[bytes] = []
        try:
            async with aclosing(body.pieces()) as pieces:
                async for piece in pieces:
                    client.counters.bytes_read += len(piece)
                    held.append(piece)
                    if body.offset > client.asking.most:
                        raise CorruptRecordError(
                            f"the answer is longer than {client.asking.most} bytes, which max_record_bytes allows",
                            masked(url),
                        )
            return b"".join(held)
        except Changed as error:
            await healing.wait(error)


async def read_records(
    run: Run, *, start: Any, url: str, asking: Asking, splitter: Callable[[str, int, int], Splitter]
) -> AsyncGenerator[Block[Any], None]:
    """Give the records of an answer as they come.

    A position is `[offset, number, proof, count, None]`: the byte where a run of records begins, the number of the
    first one, what tells the content from another (see `Body`), and how many there are.

    Args:
        run: The run.
        start: None or a position.
        url: What to ask for.
        asking: How.
        splitter: Makes the splitter from the URL's name, and the offset and number where it begins.
    """
    promise = Promise(start, (0, 0, None))
    offset, number, proof = promise.where
    begun, name = number, masked(url)
    client = await client_of(run, asking)
    healing = Healing(name, run.options.storage, client.counters)
    body = Body(client, url, healing, {"Accept-Encoding": "identity"}, offset, proof)
    cutter = splitter(name, offset, number)
    failed: list[Block[Any]] = []
    try:
        async with aclosing(body.pieces()) as pieces:
            while True:
                piece = await anext(pieces, b"")
                client.counters.bytes_read += len(piece)
                for cut in cutter.feed(piece) if piece else cutter.finish():
                    promise.give(cut.length)
                    client.counters.elements += cut.length
                    client.counters.blocks += 1
                    yield _block(cut, name, (offset, number, body.proof()))
                    offset, number = offset + cut.size, number + cut.length
                if not piece:
                    break
                await run.breathe()
        promise.check(_place(name, begun, 0))
    except Exception as error:
        origin = Origin(partial(failed_position, (offset, number, body.proof())), partial(_place, name, number))
        locate(error, "from_http", number - begun, origin, 0)
        if promise.binds and isinstance(error, Changed):
            raise StateError(f"the state does not fit any more: {error}") from error
        if promise.binds or isinstance(error, RemoteError | StateError):
            raise
        failed.append(Block.failed(error, origin))
    if failed:
        yield failed.pop()  # not held: the error holds this frame by its traceback


def _block(cut: Cut, name: str, where: tuple[int, int, Any]) -> Block[Any]:
    origin = Origin(partial(position, where, cut.length), partial(_place, name, where[1]))
    return Block(origin, computed=cut.elements, clean=True)


def _place(name: str, number: int, offset: int) -> str:
    return f"{name} record {number + offset}"


def _named(name: str, offset: int) -> str:
    return name


def _nothing() -> None:
    return None
