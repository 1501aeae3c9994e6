"""Trouble is waited out by growing waits, from the last progress on, up to limits; requests are made again by that."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiodata import StorageOptions
from aiodata.engine.statistics import Counters
from aiodata.errors import RemoteError
from aiodata.storage import Answer, Storage, Trouble
from aiodata.storage.transfer.asking import ask, in_time
from aiodata.storage.transfer.healing import Healing
from aiodata.storage.transfer.network import Limits

URL = "quiet://host/a"


class Slept:
    """Notes waits instead of waiting: a clock of the test's own, which `asyncio.sleep` moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.waits: list[float] = []
        monkeypatch.setattr("aiodata.storage.transfer.healing.monotonic", lambda: self.now)
        monkeypatch.setattr("aiodata.storage.transfer.healing.asyncio.sleep", self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> Slept:
    return Slept(monkeypatch)


async def waits(healing: Healing, errors: list[BaseException]) -> RemoteError | None:
    for error in errors:
        try:
            await healing.wait(error, 7)
        except RemoteError as last:
            return last
    return None


async def test_waits_grow_by_chance_up_to_the_longest(slept: Slept) -> None:
    counters = Counters("x")
    healing = Healing(URL, StorageOptions(max_attempts=100, give_up_seconds=1e6), counters)
    await waits(healing, [Trouble("no")] * 12)
    longest = [min(10.0, 0.2 * 2**number) for number in range(12)]
    assert all(most / 2 <= wait <= most for wait, most in zip(slept.waits, longest, strict=True))
    assert len(set(slept.waits)) == 12
    assert counters.retries == 12


async def test_the_last_attempt_is_not_waited_for(slept: Slept) -> None:
    counters = Counters("x")
    last = await waits(Healing(URL, StorageOptions(max_attempts=3), counters), [Trouble(f"no {n}") for n in range(9)])
    assert last is not None
    assert (last.message, last.url, last.offset, last.attempts) == ("no 2", URL, 7, 3)
    assert str(last) == "quiet://host/a, byte 7: no 2 (tried 3 times)"
    assert (len(slept.waits), counters.retries) == (2, 2)


async def test_one_attempt_is_no_second_one(slept: Slept) -> None:
    last = await waits(Healing(URL, StorageOptions(max_attempts=1), Counters("x")), [ConnectionResetError()])
    assert str(last) == "quiet://host/a, byte 7: ConnectionResetError"
    assert slept.waits == []


async def test_progress_begins_anew(slept: Slept) -> None:
    healing = Healing(URL, StorageOptions(max_attempts=3, give_up_seconds=1), Counters("x"))
    for _ in range(50):
        assert await waits(healing, [Trouble("no")] * 2) is None
        healing.progress()


async def test_hints_are_the_least_that_is_waited(slept: Slept) -> None:
    options = StorageOptions(first_wait_seconds=3, max_wait_seconds=3, give_up_seconds=100)
    last = await waits(
        Healing(URL, options, Counters("x")), [Trouble("a", 0.1), Trouble("b", 50.0), Trouble("c", 60.0)]
    )
    assert 1.5 <= slept.waits[0] <= 3
    assert slept.waits[1:] == [50.0]
    assert last is not None
    assert last.message == "c, and asks to wait 60 s; give_up_seconds (100) leaves no time for another attempt"


@given(
    first=st.floats(0, 5),
    longest=st.floats(0, 20),
    patience=st.floats(0, 60),
    hints=st.lists(st.one_of(st.none(), st.floats(0, 30)), max_size=30),
    attempts=st.integers(1, 20),
)
def test_limits_hold_whatever_they_are(
    first: float, longest: float, patience: float, hints: list[float | None], attempts: int
) -> None:
    async def main() -> None:
        with pytest.MonkeyPatch.context() as patch:
            slept = Slept(patch)
            options = StorageOptions(
                max_attempts=attempts, first_wait_seconds=first, max_wait_seconds=longest, give_up_seconds=patience
            )
            last = await waits(Healing(URL, options, Counters("x")), [Trouble("no", hint) for hint in hints])
            assert len(slept.waits) < max(1, attempts)
            assert sum(slept.waits) <= patience + 1e-6
            given_up = last is not None
            assert given_up or len(slept.waits) == len(hints)
            for number, wait in enumerate(slept.waits):
                assert wait >= min(longest, first * 2**number) / 2
                assert wait >= (hints[number] or 0)
                assert wait <= max(longest, hints[number] or 0)

    asyncio.run(main())


async def test_what_came_in_vain_is_not_held_by_the_error() -> None:
    class Bytes(bytearray):
        pass

    held: list[weakref.ref[Bytes]] = []

    async def request() -> None:
        data = Bytes(b"x")
        held.append(weakref.ref(data))
        raise Trouble("no")

    gc.disable()
    try:
        with pytest.raises(RemoteError) as caught:
            await ask(Quiet(), URL, request, StorageOptions(max_attempts=2, first_wait_seconds=0), Counters("x"))
        assert [each() for each in held] == [None, None]
        del caught
    finally:
        gc.enable()


# Asking


class Quiet(Storage):
    """Has nothing, but new credentials as often as it may."""

    def __init__(self, renewals: int = 0) -> None:
        self.renewals = renewals

    async def open(self, url: str, offset: int, length: int | None) -> Answer:
        raise FileNotFoundError(url)

    async def renew(self) -> bool:
        self.renewals -= 1
        return self.renewals >= 0


async def asked(outcomes: list[Any], storage: Storage | None = None, places: list[int] | None = None) -> Any:
    """Make a request that ends in these ways, one after the other; tell the result and the number of retries."""
    counters = Counters("x")
    left, at = list(outcomes), list(places or [])

    async def request() -> Any:
        outcome = left.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    options = StorageOptions(first_wait_seconds=0, max_attempts=3)
    reached = (lambda: at.pop(0)) if places else None
    try:
        result: Any = await ask(storage or Quiet(), URL, request, options, counters, reached)
    except (Exception, asyncio.CancelledError) as error:
        result = error
    return result, counters.retries, len(left)


@pytest.mark.parametrize("error", [Trouble("x"), ConnectionError(), ConnectionAbortedError(), TimeoutError()])
async def test_what_may_pass_is_asked_again(error: Exception) -> None:
    assert await asked([error, error, 5]) == (5, 2, 0)
    result, retries, left = await asked([error, error, error, 5])
    assert isinstance(result, RemoteError)
    assert (retries, left, result.offset) == (2, 1, None)
    assert str(result).startswith("quiet://host/a: ")


@pytest.mark.parametrize("error", [FileNotFoundError("x"), OSError(5, "x"), ValueError("x"), KeyError("x"), EOFError()])
async def test_what_will_not_pass_is_raised_as_it_is(error: Exception) -> None:
    assert await asked([error, 5]) == (error, 0, 1)


async def test_a_refusal_asks_for_credentials_once_at_each_place() -> None:
    refused = PermissionError("no")
    assert await asked([refused, 5]) == (refused, 0, 1)
    assert await asked([refused, 5], Quiet(1)) == (5, 1, 0)
    assert await asked([refused, refused, 5], Quiet(9)) == (refused, 1, 1)
    assert await asked([refused, refused, 5], Quiet(9), [10, 20]) == (5, 2, 0)
    assert await asked([refused, Trouble("x"), refused, 5], Quiet(9), [10, 10, 10]) == (refused, 2, 1)


async def test_a_cancellation_of_the_storages_own_is_trouble() -> None:
    assert await asked([asyncio.CancelledError(), 5]) == (5, 1, 0)


async def test_a_cancellation_from_here_is_one() -> None:
    entered = asyncio.Event()

    async def request() -> None:
        entered.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(ask(Quiet(), URL, request, StorageOptions(), Counters("x")))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancelled_wait_ends_at_once() -> None:
    healing = Healing(
        URL, StorageOptions(first_wait_seconds=1000, max_wait_seconds=1000, give_up_seconds=1e6), Counters("x")
    )
    task = asyncio.create_task(healing.wait(Trouble("x")))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_silence_is_trouble() -> None:
    with pytest.raises(Trouble, match=r"there was silence for 0.01 s instead of an answer"):
        await in_time(asyncio.Event().wait(), StorageOptions(idle_seconds=0.01), "an answer")


async def test_each_wait_is_logged(slept: Slept, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "aiodata")
    await waits(Healing(URL, StorageOptions(first_wait_seconds=0), Counters("x"), "row"), [Trouble("no")])
    await Healing(URL, StorageOptions(first_wait_seconds=0), Counters("x")).wait(Trouble("no"))
    assert [record.message for record in caplog.records] == [
        "quiet://host/a, row 7: no; attempt 2 of 10 follows in 0.00 s",
        "quiet://host/a: no; attempt 2 of 10 follows in 0.00 s",
    ]
    assert Limits().held == 0
