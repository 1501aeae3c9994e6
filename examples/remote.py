"""Read flights from a web server that fails all the time, and get every line once, in order.

A server on this machine gives the files of `data/flights`, but each third answer is an error, is cut in the middle, or
stops for good. The pipeline that reads them is the one for local files, with URLs in place of paths. What comes out is
compared with what the local files give; the log says what was waited out.

    pip install "aiodata-pipeline[http]"
    python examples/remote.py
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from aiodata import Dataset, Options, StorageOptions, TextLineDataset

DATA = Path(__file__).resolve().parent / "data" / "flights"
NAMES = sorted(path.name for path in DATA.glob("flights-*.csv"))


@asynccontextmanager
async def failing_server() -> AsyncIterator[str]:
    """Serve the files; give the address."""
    count = 0

    async def serve(request: web.Request) -> web.StreamResponse:
        nonlocal count
        count += 1
        if count % 9 == 0:
            return web.Response(status=503, headers={"Retry-After": "0"})
        content = (DATA / request.match_info["name"]).read_bytes()
        begin = request.http_range.start or 0
        stop = min(request.http_range.stop or len(content), len(content))
        response = web.StreamResponse(status=206, headers={"Content-Range": f"bytes {begin}-{stop - 1}/{len(content)}"})
        response.content_length = stop - begin
        await response.prepare(request)
        if count % 3:
            await response.write(content[begin:stop])
            return response
        await response.write(content[begin : (begin + stop) // 2])
        if count % 2 and request.transport is not None:
            request.transport.abort()
        else:
            await asyncio.sleep(3600)  # silence, until the client leaves
        return response

    application = web.Application()
    application.router.add_get("/{name}", serve)
    runner = web.AppRunner(application, access_log=None, handler_cancellation=True)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


def lines(names: list[str]) -> Dataset[bytes]:
    """Describe the pipeline: four files at once, without their headers, shuffled."""
    files = Dataset.from_tensor_slices(names)
    read = files.interleave(lambda name: TextLineDataset(name).skip(1), cycle_length=4, num_parallel_calls=4)
    return read.shuffle(1_000, seed=7)


async def main() -> None:
    """Read all from the server, and compare it with the local files."""
    logging.basicConfig(format="%(message)s", stream=sys.stdout)
    impatient = Options(storage=StorageOptions(first_wait_seconds=0.01, idle_seconds=0.5))
    async with failing_server() as address:
        dataset = lines([f"{address}/{name}" for name in NAMES]).with_options(impatient)
        async with dataset.iterate() as iterator:
            found = [line async for line in iterator]
            counters = next(each for each in iterator.statistics() if each["stage"] == "text_line")
    same = found == list(lines([str(DATA / name) for name in NAMES]))
    print(f"{len(found):,} lines, {counters['requests']} requests, {counters['retries']} of them repeated others")
    print("the same lines in the same order as from local files" if same else "SOMETHING IS MISSING OR OTHER")
    if not same:
        raise SystemExit(1)


if __name__ == "__main__":
    asyncio.run(main())
