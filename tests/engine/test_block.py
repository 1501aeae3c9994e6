"""Blocks: what is dropped leaves nothing behind."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

from aiodata.engine.block import Block, pull, resumable
from aiodata.engine.position import Origin
from aiodata.engine.skipped import Skipped
from tests.programs import Boom

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_an_error_that_is_dropped_is_gone_without_the_collector() -> None:
    raised: list[weakref.ref[Exception]] = []
    numbers = iter(range(9))

    def rows() -> Iterator[int]:
        for number in numbers:
            if number % 2:
                error = Boom(number)
                raised.append(weakref.ref(error))
                try:
                    raise error
                finally:
                    del error
            yield number

    block: Block[int] = Block(Origin(lambda: None), rows=resumable(rows))
    gc.collect()
    gc.disable()
    try:
        rest, dropped = block.drop(6, Skipped(6))
        assert dropped == 6
        assert [error() for error in raised] == [None, None, None]
        assert len(pull(rest.rows(), 2)) == 2
        assert [error() for error in raised] == [None] * 4
    finally:
        gc.enable()
