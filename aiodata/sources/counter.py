"""`Dataset.counter`: numbers in steps, for ever."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.checks import check_integer
from aiodata.engine.block import Block
from aiodata.engine.plan import INFINITE, Plan
from aiodata.engine.position import Origin
from aiodata.spec import TensorSpec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from numpy.typing import DTypeLike

    from aiodata.dataset import Dataset
    from aiodata.engine.run import Run

__all__ = ["counter"]

SMALLEST_BLOCK = 64
LARGEST_BLOCK = 4096


def counter(
    cls: type[Dataset[Any]],
    start: float = 0,
    step: float = 1,
    dtype: DTypeLike = np.int64,
    name: str | None = None,
) -> Dataset[Any]:
    """Give `start`, `start + step`, `start + step + step` and so on for ever, as numpy scalars.

    Each number is the sum of the one before and `step`, in `dtype`: floating-point numbers are rounded each time, and
    integers that grow past the dtype go on from its other end, both as in tf.data.

    Args:
        start: The first number; an integer unless `dtype` is a floating-point one.
        step: What is added each time; may be negative, and 0 repeats the first number.
        dtype: Any integer or floating-point dtype.
        name: A name for the stage, shown in `repr`.

    Raises:
        TypeError: `dtype` is not numeric, or a number is not of its kind.
        ValueError: `start` or `step` does not fit `dtype`.

    >>> import aiodata
    >>> list(aiodata.Dataset.counter(10, -5).take(3))
    [np.int64(10), np.int64(5), np.int64(0)]

    Source: `tf.data.Dataset.counter`.
    """
    kind = np.dtype(dtype)
    if kind.kind not in "iuf":
        raise TypeError(f"counter: dtype must be an integer or floating-point dtype, not {kind}")
    first, stride = _number(start, kind, "start"), _number(step, kind, "step")
    spec = TensorSpec((), first.dtype)
    detail = f"{first}, {stride}" + ("" if kind == np.int64 else f", {kind}")
    stage = partial(_counter, first=first, stride=stride)
    return cls.of(Plan("counter", stage, detail=detail, count=lambda: INFINITE, spec=lambda: spec, title=name))


def _number(value: Any, dtype: np.dtype[Any], argument: str) -> Any:
    """Give a number as a scalar of `dtype`."""
    if dtype.kind != "f":
        value, limits = check_integer(value, "counter", argument), np.iinfo(dtype)
        if not limits.min <= value <= limits.max:
            raise ValueError(f"counter: {argument} does not fit {dtype}: {value}")
    elif isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"counter: {argument} must be a number, not {type(value).__name__}")
    try:
        with np.errstate(over="ignore"):
            number = dtype.type(value)
    except OverflowError:  # an integer past every floating-point number
        number = np.inf
    if np.isinf(number) and abs(value) != np.inf:
        raise ValueError(f"counter: {argument} does not fit {dtype}: {value}")
    return number


def _counter(run: Run, *, start: str | None, first: Any, stride: Any) -> AsyncIterator[Block[Any]]:
    return _numbers(run, first if start is None else np.frombuffer(bytes.fromhex(start), first.dtype)[0], stride)


async def _numbers(run: Run, number: Any, stride: Any) -> AsyncIterator[Block[Any]]:
    size = SMALLEST_BLOCK
    while True:
        values = np.full(size + 1, stride)
        values[0] = number
        with np.errstate(over="ignore", invalid="ignore"):
            np.add.accumulate(values, dtype=values.dtype, out=values)
        yield Block(Origin(partial(_position, number)), columns=values[:-1], length=size)
        number = values[-1]
        size = min(2 * size, LARGEST_BLOCK)
        await run.breathe()  # a stage that lets nothing through would hold the loop for ever


def _position(number: Any) -> str:
    """Give the number's bytes as hexadecimal digits: exact, and JSON has no infinity."""
    digits: str = number.tobytes().hex()
    return digits
