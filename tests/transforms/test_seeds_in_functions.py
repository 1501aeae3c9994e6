"""Random nodes without a seed that functions make under a global seed: orders that TensorFlow 2.21 printed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from aiodata import Dataset
from tests.programs import global_seed, plain, to_list

if TYPE_CHECKING:
    from collections.abc import Callable


def shuffled(x: Any) -> Dataset[Any]:
    return Dataset.range(5).shuffle(5)


def twice(x: Any) -> Dataset[Any]:
    return Dataset.range(5).shuffle(5).concatenate(Dataset.range(5).shuffle(5))


def group(key: Any, ds: Dataset[Any]) -> Dataset[Any]:
    return ds.shuffle(5)


def test_implicit_seeds_are_counted_within_the_function() -> None:
    with global_seed(7):
        inside, outside = Dataset.range(3).flat_map(shuffled), Dataset.range(4).shuffle(4)
    assert plain(to_list(inside)) == plain(to_list(inside)) == [2, 4, 1, 0, 3] * 3
    assert plain(to_list(outside)) == [0, 3, 2, 1]
    with global_seed(7):
        ds = Dataset.range(2).interleave(twice, 2)
    assert plain(to_list(ds)) == [2, 2, 4, 4, 1, 1, 0, 0, 3, 3, 0, 0, 4, 4, 1, 1, 3, 3, 2, 2]
    with global_seed(7):
        ds = Dataset.range(9).group_by_window(lambda x: x % 2, group, 3)
    assert plain(to_list(ds)) == [4, 0, 2, 5, 1, 3, 8, 6, 7]


def test_reading_takes_no_seed_of_what_is_built_later() -> None:
    def orders(read: bool) -> Any:
        with global_seed(11):
            first = Dataset.range(3).flat_map(shuffled)
            if read:
                to_list(first)
            return plain(to_list(Dataset.range(5).shuffle(5)))

    assert orders(True) == orders(False) == [3, 4, 0, 2, 1]


def test_they_go_on_exactly() -> None:
    makers: list[Callable[[], Dataset[Any]]] = [
        lambda: Dataset.range(3).flat_map(shuffled),
        lambda: Dataset.range(3).interleave(twice, 2),
        lambda: Dataset.range(9).group_by_window(lambda x: x % 2, group, 3),
    ]

    def built(make: Callable[[], Dataset[Any]]) -> Dataset[Any]:
        with global_seed(3):
            return make()

    for make in makers:
        straight = plain(to_list(built(make)))
        with built(make).iterate() as iterator:
            for at in range(len(straight)):
                state = json.loads(json.dumps(iterator.state_dict()))
                with built(make).iterate(state) as restored:
                    assert plain(list(restored)) == straight[at:]
                next(iterator)
