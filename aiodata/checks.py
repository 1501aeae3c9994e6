"""Checks of arguments, made when a dataset is described."""

from __future__ import annotations

import operator
from typing import Any

from aiodata.engine.plan import AUTOTUNE

__all__ = ["check_integer", "check_parallelism"]


def check_integer(value: object, method: str, argument: str, least: int | None = None) -> int:
    """Give `value` as an int.

    Args:
        value: A Python or numpy integer.
        method: The public method, for the message.
        argument: The argument's name, for the message.
        least: The smallest value that is allowed.

    Raises:
        TypeError: It is not an integer (a bool is not one).
        ValueError: It is below `least`.
    """
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{method}: {argument} must be an integer, not {type(value).__name__}")
    index: Any = value
    try:
        number = operator.index(index)
    except TypeError:  # an array of several numbers has the method, and no use for it
        raise TypeError(f"{method}: {argument} must be an integer, not {value!r:.80}") from None
    if least is not None and number < least:
        raise ValueError(f"{method}: {argument} must be at least {least}, not {number}")
    return number


def check_parallelism(value: object, method: str, argument: str) -> int | None:
    """Give a degree of parallelism: None, `AUTOTUNE` or a number from 1.

    Raises:
        TypeError: It is neither None nor an integer.
        ValueError: It is 0 or below -1.
    """
    if value is None:
        return None
    number = check_integer(value, method, argument, AUTOTUNE)
    if number == 0:
        raise ValueError(f"{method}: {argument} must be at least 1, or AUTOTUNE, not 0")
    return number
