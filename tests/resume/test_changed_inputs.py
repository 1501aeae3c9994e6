"""Going on where the input is not what it was: an error, never an early end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from aiodata import Dataset, TextLineDataset
from aiodata.errors import StateError
from tests.programs import to_list

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

LINES = 300
CHAINS: dict[str, Callable[[str], Dataset[Any]]] = {
    "lines": lambda path: TextLineDataset(path, buffer_size=64),
    "skip": lambda path: TextLineDataset(path, buffer_size=64).skip(1),
    "batch": lambda path: TextLineDataset(path, buffer_size=64).batch(3),
    "shuffle": lambda path: TextLineDataset(path, buffer_size=64).shuffle(5, seed=1),
    "flat_map": lambda path: TextLineDataset([path], buffer_size=64),
    "interleave": lambda path: Dataset.from_tensor_slices([path]).interleave(TextLineDataset, 1, num_parallel_calls=1),
    "prefetch": lambda path: TextLineDataset(path).map(len, num_parallel_calls=2).batch(2).prefetch(2),
}


def saved(path: Path, chain: str) -> Any:
    path.write_text("".join(f"line {number}\n" for number in range(LINES)))
    with CHAINS[chain](str(path)).iterate() as iterator:
        for _ in range(70):
            next(iterator)
        return iterator.state_dict()


@pytest.mark.parametrize("chain", CHAINS)
def test_a_file_that_is_gone_is_reported(chain: str, tmp_path: Path) -> None:
    path = tmp_path / "text"
    state = saved(path, chain)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="text"):
        list(CHAINS[chain](str(path)).iterate(state))


@pytest.mark.parametrize("chain", CHAINS)
def test_a_file_that_is_shorter_is_reported(chain: str, tmp_path: Path) -> None:
    path = tmp_path / "text"
    state = saved(path, chain)
    path.write_text("short\n")
    with pytest.raises(StateError):
        list(CHAINS[chain](str(path)).iterate(state))


def test_a_file_whose_lines_begin_elsewhere_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiodata.storage.marks.HEAD_BYTES", 7)
    path = tmp_path / "text"
    state = saved(path, "lines")
    path.write_text("line 0\n" + "x" * 10_000)
    with pytest.raises(StateError, match="no record begins there"):
        list(CHAINS["lines"](str(path)).iterate(state))


def test_other_files_are_reported(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text("1\n2\n")
    ds = Dataset.list_files(str(tmp_path / "*"), shuffle=False)
    with ds.iterate() as iterator:
        next(iterator)
        state = iterator.state_dict()
    (tmp_path / "c").rename(tmp_path / "d")
    with pytest.raises(StateError, match=r"3 files matched .* now others do"):
        list(ds.iterate(state))
    (tmp_path / "d").unlink()
    with pytest.raises(StateError, match=r"3 files matched .* now 2 do"):
        list(ds.iterate(state))


def test_a_generator_that_fails_while_it_is_replayed_is_reported() -> None:
    broken = False

    def numbers() -> Iterator[int]:
        if broken:
            raise ConnectionError("no server")
        yield from range(10)

    async def numbers_later() -> AsyncIterator[int]:
        for number in numbers():
            yield number

    for generator in (numbers, numbers_later):
        broken = False
        with Dataset.from_generator(generator).iterate() as iterator:
            assert [next(iterator) for _ in range(3)] == [0, 1, 2]
            state = iterator.state_dict()
        broken = True
        with pytest.raises((ConnectionError, StateError)):
            list(Dataset.from_generator(generator).iterate(state))


def test_an_element_that_fails_now_does_not_go_into_the_window() -> None:
    broken = False

    def number_of(number: Any) -> Any:
        if broken:
            raise ConnectionError(f"no {number}")
        return number

    ds = Dataset.range(9000).map(number_of).shuffle(3, seed=1)
    with ds.iterate() as iterator:
        for _ in range(8000):
            next(iterator)
        state = iterator.state_dict()
    broken = True
    with pytest.raises(ConnectionError):
        list(ds.iterate(state))
    broken = False
    assert len(list(ds.iterate(state))) == 1000


def test_the_iterator_of_a_loop_that_has_ended_says_so() -> None:
    async def begin() -> Any:
        iterator = aiter(Dataset.range(10).prefetch(2))
        await anext(iterator)
        return iterator

    async def go_on(iterator: Any) -> list[Any]:
        return [element async for element in iterator]

    iterator = asyncio.run(begin())
    with pytest.raises(RuntimeError, match="event loop"):
        asyncio.run(go_on(iterator))
    assert to_list(Dataset.range(10).prefetch(2)) == list(range(10))
