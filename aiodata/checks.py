"""Checks of arguments, made when a dataset is described."""

from __future__ import annotations

import operator

__all__ = ["check_integer"]


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
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{method}: {argument} must be an integer, not {type(value).__name__}")
    number = operator.index(value)  # type: ignore[arg-type]
    if least is not None and number < least:
        raise ValueError(f"{method}: {argument} must be at least {least}, not {number}")
    return number
