"""Predicates on elements, for the stages that keep some of them."""

from __future__ import annotations

from array import array
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.engine.block import Tally, resumable
from aiodata.engine.position import Origin, locate
from aiodata.functions import as_error, check_callable, is_coroutine_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aiodata.engine.block import Block

__all__ = ["accepted", "check_predicate", "kept_origin"]


def check_predicate(predicate: object, method: str) -> None:
    """Refuse what is not a plain function.

    Raises:
        TypeError: It names the method and what was given.
    """
    check_callable(predicate, method, "predicate")
    if callable(predicate) and is_coroutine_function(predicate):
        raise TypeError(
            f"{method}: predicate must be a plain function; map to (keep, element) with a coroutine instead"
        )


def accepted(
    block: Block[Any],
    predicate: Callable[..., Any],
    label: str,
    index: Tally,
    kept: array[int],
    refused: Tally | None = None,
) -> Iterator[Any]:
    """Iterate lazily over the elements of a block for which a predicate is true.

    Args:
        block: Its rows are pulled one at a time.
        predicate: Called as `map` calls its function; gives a bool scalar.
        label: The stage's label, for the note that an error gets.
        index: Number of the block's first element in the stage's input; grows by the number of elements.
        kept: Gets the number of each element in the block that is given, or that failed.
        refused: Where one is given, the first refused element ends the iteration, and is counted here.
    """
    rows = block.rows()
    origin, first = block.origin, block.offset
    done = 0

    def keeping() -> Iterator[Any]:
        nonlocal done
        number = done
        try:
            for element in rows:
                try:
                    keep = predicate(*element) if element.__class__ is tuple else predicate(element)
                    if keep.__class__ is not bool and keep.__class__ is not np.bool_:
                        keep = _as_bool(keep)
                except Exception as error:
                    failure = as_error(error)
                    locate(failure, label, index.count + number - done, origin, first + number)
                    try:
                        raise failure
                    finally:
                        del failure  # else it and this frame, which its traceback holds, would be a cycle
                if keep:
                    kept.append(number)
                    number += 1
                    yield element
                else:
                    number += 1
                    if refused is not None:
                        refused.count += 1
                        return
        except Exception:
            kept.append(number)
            number += 1
            raise
        finally:
            index.count += number - done
            done = number

    return resumable(keeping)


def _as_bool(keep: Any) -> bool:
    if isinstance(keep, np.ndarray) and keep.shape == () and keep.dtype == np.bool_:
        return bool(keep)
    raise TypeError(f"a predicate must give a bool, not {type(keep).__name__}: {keep!r:.80}")


def kept_origin(block: Block[Any], kept: array[int], position: Callable[[], Any]) -> Origin:
    """Give the origin of a block of which some elements are kept: those with the numbers in `kept`, up to now."""
    origin = block.origin.within(position, block.offset)
    origin.place = partial(_place, origin.place, kept)
    return origin


def _place(place: Callable[[int], str | None], kept: array[int], offset: int) -> str | None:
    return place(kept[offset] if offset < len(kept) else kept[-1] + 1 if kept else 0)
