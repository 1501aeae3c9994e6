"""What processes hand each other arrives as it was, in memory of its own, through the pipe or the file."""

from __future__ import annotations

import datetime
import multiprocessing
import os
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiodata.engine.messages import APART_BYTES, KEPT_BYTES, SHARED_BYTES, Exchange, memory_file, pack, unpack

LARGE = SHARED_BYTES // 8


class Pair:
    """Two ends that share a pipe and a file, as two processes would."""

    def __init__(self, file: int | None) -> None:
        ours, theirs = multiprocessing.get_context("spawn").Pipe()
        self.file = file
        self.ours = Exchange(ours, file)
        self.theirs = Exchange(theirs, None if file is None else os.dup(file))

    def send(self, value: Any) -> Any:
        """Send a value over, and give what arrives."""
        return self._sent(value, self.ours, self.theirs)

    def answer(self, value: Any) -> Any:
        """Send a value back."""
        return self._sent(value, self.theirs, self.ours)

    def _sent(self, value: Any, one: Exchange, other: Exchange) -> Any:
        sender = threading.Thread(target=one.send, args=(pack(value),))  # the pipe alone does not hold all
        sender.start()
        found = other.receive()
        sender.join()
        assert found is not None
        return unpack(found)

    def held(self) -> int:
        return 0 if self.file is None else os.fstat(self.file).st_size


@pytest.fixture(params=["file", "pipe"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    file = memory_file() if request.param == "file" else None
    if file is None and request.param == "file":
        pytest.skip("this system has no such file")
    pair = Pair(file)
    yield pair
    pair.ours.close()
    pair.theirs.close()


def assert_same(found: Any, expected: Any) -> None:
    __tracebackhide__ = True
    assert type(found) is type(expected)
    if isinstance(expected, np.ndarray):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        if expected.dtype.hasobject:
            assert found.tolist() == expected.tolist()
        else:
            assert found.tobytes() == expected.tobytes()
        assert found.flags.writeable
        assert found.flags.aligned
    elif isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    else:
        assert found == expected


ARRAYS = {
    "int64": np.arange(LARGE),
    "rows": np.arange(LARGE, dtype="f4").reshape(64, -1),
    "columns": np.asfortranarray(np.arange(LARGE, dtype="f4").reshape(64, -1)),
    "strided": np.arange(4 * LARGE)[::4],
    "backwards": np.arange(LARGE)[::-1],
    "axes": np.arange(LARGE).reshape(16, 16, -1).transpose(1, 2, 0),
    "read-only": np.frombuffer(bytes(8 * LARGE), "i8"),
    "big-endian": np.arange(LARGE, dtype=">i4"),
    "dates": np.arange(LARGE).astype("M8[D]"),
    "words": np.array(["a word", "another"] * LARGE),
    "bytes": np.array([b"a\0b", b"c"] * LARGE),
    "fields": np.zeros(LARGE, [("a", "i4"), ("b", "f8", (2,))]),
    "objects": np.array([1, "two", None] * LARGE, object),
    "strings": np.array(["a", "a long string, longer than fifteen bytes"] * LARGE, np.dtypes.StringDType()),
    "no elements": np.zeros((0, 5)),
    "a scalar": np.array(3.5),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_arrives(name: str, pair: Pair) -> None:
    assert_same(pair.send((1, ARRAYS[name], b"end")), (1, ARRAYS[name], b"end"))


def test_the_order_of_the_axes_in_memory_stays(pair: Pair) -> None:
    assert pair.send(ARRAYS["columns"]).flags.f_contiguous
    assert pair.send(ARRAYS["rows"]).flags.c_contiguous


@pytest.mark.parametrize("size", [APART_BYTES - 1, APART_BYTES, SHARED_BYTES - 1, SHARED_BYTES, 3 * SHARED_BYTES + 1])
def test_sizes_around_the_limits(size: int, pair: Pair) -> None:
    array = np.arange(size, dtype=np.uint8)
    for value in (array, array.tobytes(), bytearray(array.tobytes()), [array, array[: size // 2], b""]):
        assert_same(pair.send(value), value)


def test_what_has_arrived_stays_when_more_comes(pair: Pair) -> None:
    found = [pair.send(np.full(LARGE, number)) for number in range(5)]
    assert [array.tolist() for array in found] == [[number] * LARGE for number in range(5)]
    found[0][:] = -1
    assert found[1].tolist() == [1] * LARGE


def test_an_array_that_is_there_twice_stays_one() -> None:
    array = np.arange(LARGE)
    one, other = unpack(pack([array, array]))
    assert one is other


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 2 * SHARED_BYTES), max_size=6), st.booleans())
def test_any_sizes_in_a_row(sizes: list[int], together: bool) -> None:
    pair = Pair(memory_file())
    values = [np.full(size, number, np.uint8) for number, size in enumerate(sizes)]
    try:
        for value in [values] if together else values:
            assert_same(pair.send(value), value)
    finally:
        pair.ours.close()
        pair.theirs.close()


def test_other_objects_with_buffers_arrive(pair: Pair) -> None:
    masked = np.ma.masked_array(np.arange(LARGE), np.arange(LARGE) % 2 == 1)
    assert pair.send(masked).tolist() == masked.tolist()
    assert pair.send(datetime.date(2026, 1, 2)) == datetime.date(2026, 1, 2)


def test_a_large_message_is_not_held_on_to() -> None:
    pair = Pair(memory_file())
    if pair.file is None:
        pytest.skip("this system has no such file")
    pair.send(np.zeros(SHARED_BYTES, np.uint8))
    assert pair.held() > SHARED_BYTES
    pair.send(np.zeros(KEPT_BYTES, np.uint8))
    assert pair.held() == 0
    pair.send(np.zeros(SHARED_BYTES, np.uint8))
    pair.ours.send_rest()
    assert pair.theirs.receive() is None
    assert pair.held() == 0
    array = np.arange(KEPT_BYTES // 8 + 1)
    for value in (array[:LARGE], array, array[::-1], array[:LARGE]):  # both sides map it anew
        assert_same(pair.send(value), value)
        assert_same(pair.answer(value), value)
    pair.ours.close()
    pair.theirs.close()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a file that is always full")
def test_without_room_in_the_file_all_goes_through_the_pipe() -> None:
    pair = Pair(os.open("/dev/full", os.O_RDWR))
    array = np.arange(4 * LARGE)
    assert_same(pair.send([array, b"end"]), [array, b"end"])
    pair.ours.close()
    pair.theirs.close()


def test_the_other_side_is_gone() -> None:
    pair = Pair(memory_file())
    pair.theirs.close()
    with pytest.raises(EOFError):
        pair.ours.receive()
    with pytest.raises(OSError):  # noqa: PT011 - which one depends on the system
        pair.ours.send(pack(np.arange(LARGE)))
    pair.ours.close()
    pair.ours.close()
