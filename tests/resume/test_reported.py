"""Places that other libraries' users have reported as not restored, each as it was reported."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from aiodata import Dataset
from tests.programs import plain, to_list
from tests.resume.saving import FACES, drive, part

if TYPE_CHECKING:
    from collections.abc import Callable


def double(x: Any) -> Any:
    return 2 * x


def mapped() -> Dataset[Any]:
    return Dataset.from_tensor_slices(np.arange(5_000)).map(double)


@pytest.mark.parametrize("face", FACES)
def test_behind_a_map_the_next_element_follows_not_the_next_block(face: str) -> None:
    begun, state = drive(face, part(mapped(), face, None, 200))
    assert plain(begun) == list(range(0, 400, 2))
    assert plain(drive(face, part(mapped(), face, state))[0]) == list(range(400, 10_000, 2))


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize(
    "make",
    [
        lambda: Dataset.range(20),
        lambda: Dataset.range(20).batch(3).prefetch(2),
        lambda: Dataset.range(20).map(double, num_parallel_calls=3),
    ],
)
def test_behind_an_epochs_end_comes_a_whole_epoch(make: Callable[[], Dataset[Any]], face: str) -> None:
    whole, state = drive(face, part(make(), face))
    ds = make()
    assert drive(face, part(ds, face, state))[0] == [], "the epoch that was saved is over"
    assert plain(drive(face, part(ds, face))[0]) == plain(whole)
    begun, state = drive(face, part(make().repeat(2), face, None, len(whole)))
    assert plain(begun) == plain(whole)
    assert plain(drive(face, part(make().repeat(2), face, state))[0]) == plain(whole)


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("count", [0, 1])
def test_the_earliest_places_are_places(count: int, face: str) -> None:
    begun, state = drive(face, part(mapped(), face, None, count))
    rest = drive(face, part(mapped(), face, state))[0]
    assert plain(begun + rest) == list(range(0, 10_000, 2))


SHUFFLED = """
import json, sys
from aiodata import Dataset

with Dataset.range(1_000).shuffle(100, seed=3).iterate(json.load(sys.stdin)) as iterator:
    print(json.dumps([int(x) for x in iterator]))
"""


def test_a_shuffle_goes_on_in_a_new_process() -> None:
    ds = Dataset.range(1_000).shuffle(100, seed=3)
    whole = plain(to_list(ds))
    with Dataset.range(1_000).shuffle(100, seed=3).iterate() as iterator:
        begun = [int(next(iterator)) for _ in range(37)]
        state = json.dumps(iterator.state_dict())
    done = subprocess.run([sys.executable, "-c", SHUFFLED], input=state, capture_output=True, text=True, check=True)
    assert begun + json.loads(done.stdout) == whole
    assert sorted(whole) == list(range(1_000)), "nothing is lost or doubled"


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("stop", [False, True])
def test_a_mix_by_weight_goes_on(stop: bool, face: str) -> None:
    def make() -> Dataset[Any]:
        both = [Dataset.range(60), Dataset.range(1000, 1040).map(double)]
        return Dataset.sample_from_datasets(both, [0.7, 0.3], seed=5, stop_on_empty_dataset=stop).prefetch(2)

    whole = plain(drive(face, part(make(), face))[0])
    assert len(whole) == 100 or stop
    for count in (0, 1, len(whole) // 2, len(whole) - 1, len(whole)):
        begun, state = drive(face, part(make(), face, None, count))
        assert plain(begun + drive(face, part(make(), face, state))[0]) == whole
