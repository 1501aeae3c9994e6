"""`get_single_element`: the only element, or an error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from aiodata import Dataset
from tests.programs import Boom, arr, assert_same, counted, failing, i64, nested, nested_rows


async def check(ds: Dataset[Any], expected: Any) -> None:
    """Check both faces, in a running loop."""
    assert_same(ds.get_single_element(), expected)
    assert_same(await ds.aget_single_element(), expected)


async def test_gives_the_only_element() -> None:
    await check(Dataset.range(5, 6), np.int64(5))
    await check(Dataset.range(3).batch(3), arr([0, 1, 2]))
    await check(nested(1), nested_rows(0)[0])


async def test_a_tuple_element_comes_as_a_tuple() -> None:
    await check(Dataset.zip(Dataset.range(1), Dataset.range(5, 6)), (*i64(0, 5),))
    await check(Dataset.zip((Dataset.range(1),)), (np.int64(0),))


def test_works_without_a_loop() -> None:
    assert_same(Dataset.range(1).get_single_element(), np.int64(0))


@pytest.mark.parametrize("size", [0, 2, 100])
async def test_none_or_several_are_an_error(size: int) -> None:
    ds = Dataset.range(size).map(lambda x: x)
    with pytest.raises(ValueError, match="element"):
        ds.get_single_element()
    with pytest.raises(ValueError, match="element"):
        await ds.aget_single_element()


async def test_an_endless_input_is_read_no_further_than_the_second() -> None:
    ds, seen = counted(Dataset.range(3).repeat())
    with pytest.raises(ValueError, match="element"):
        ds.get_single_element()
    with pytest.raises(ValueError, match="element"):
        await ds.aget_single_element()
    assert seen == [0, 1] * 2


async def test_an_error_arrives_as_itself() -> None:
    ds = failing(Dataset.range(1), 0)
    with pytest.raises(Boom, match="0"):
        ds.get_single_element()
    with pytest.raises(Boom, match="0"):
        await ds.aget_single_element()
