"""`Dataset.range`: numbers in steps."""

from __future__ import annotations

import builtins
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.checks import check_integer
from aiodata.engine.block import Block
from aiodata.engine.plan import Plan
from aiodata.engine.position import Origin
from aiodata.spec import TensorSpec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from numpy.typing import DTypeLike

    from aiodata.dataset import Dataset
    from aiodata.engine.run import Run

__all__ = ["range"]

SMALLEST_BLOCK = 64
LARGEST_BLOCK = 4096


def range(
    cls: type[Dataset[Any]], *args: int, output_type: DTypeLike = np.int64, name: str | None = None
) -> Dataset[Any]:
    """Give the numbers of Python's `range` as numpy scalars.

    Args:
        *args: `stop`, or `start, stop`, or `start, stop, step`; integers.
        output_type: Any numeric dtype.
        name: A name for the stage, shown in `repr`.

    Raises:
        TypeError: An argument is not an integer, there are not one to three, or the dtype is not numeric.
        ValueError: The step is 0, or a number does not fit int64.

    >>> import aiodata
    >>> list(aiodata.Dataset.range(1, 10, 4))
    [np.int64(1), np.int64(5), np.int64(9)]

    Source: `tf.data.Dataset.range`.
    """
    if not 1 <= len(args) <= 3:
        raise TypeError(f"range: takes 1 to 3 numbers, not {len(args)}")
    words = ("stop",) if len(args) == 1 else ("start", "stop", "step")
    bounds = [check_integer(arg, "range", word) for word, arg in zip(words, args, strict=False)]
    if bounds[2:] == [0]:
        raise ValueError("range: step must not be 0")
    numbers = builtins.range(*bounds)
    limits = np.iinfo(np.int64)
    if numbers and not (limits.min <= min(numbers[0], numbers[-1]) and max(numbers[0], numbers[-1]) <= limits.max):
        raise ValueError(f"range: the numbers must fit 64 bits, which those from {numbers[0]} to {numbers[-1]} do not")
    dtype = np.dtype(output_type)
    if dtype.kind not in "iufc":
        raise TypeError(f"range: output_type must be a numeric dtype, not {dtype}")
    detail = f"{numbers.start}, {numbers.stop}, {numbers.step}" + ("" if dtype == np.int64 else f", {dtype}")
    stage = partial(_range, numbers=numbers, dtype=dtype)
    spec = TensorSpec((), dtype)
    count = partial(_length, numbers)
    return cls.of(Plan("range", stage, detail=detail, count=count, spec=lambda: spec, title=name))


def _length(numbers: builtins.range) -> int:
    return max(0, -(-(numbers.stop - numbers.start) // numbers.step))  # len() does not know numbers past 2**63 - 1


def _range(run: Run, *, start: int | None, numbers: builtins.range, dtype: np.dtype[Any]) -> AsyncIterator[Block[Any]]:
    return _numbers(run, start or 0, numbers, dtype)


async def _numbers(run: Run, index: int, numbers: builtins.range, dtype: np.dtype[Any]) -> AsyncIterator[Block[Any]]:
    size = SMALLEST_BLOCK
    while index < _length(numbers):
        part = numbers[index : index + size]
        values = (part.start + part.step * np.arange(len(part))).astype(dtype, copy=False)
        yield Block(Origin(partial(int, index)), columns=values, length=len(part))
        index += len(part)
        size = min(2 * size, LARGEST_BLOCK)
        await run.breathe()  # a stage that lets nothing through would hold the loop for ever
