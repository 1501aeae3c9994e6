"""What runs in the threads and processes of a parallel map."""

from __future__ import annotations

import pickle
import traceback
from time import perf_counter
from typing import TYPE_CHECKING, Any

from aiodata.engine.block import Failure
from aiodata.errors import WorkerError
from aiodata.functions import as_error, call
from aiodata.structure import normalize

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["compute", "compute_installed", "compute_portable", "install", "pickled"]


def compute(function: Callable[..., Any], elements: list[Any]) -> tuple[list[Any], float]:
    """Call a function on elements in a worker, each error in its element's place; tell the seconds it took."""
    results: list[Any] = []
    start = perf_counter()
    for element in elements:
        if element.__class__ is Failure:
            results.append(element)
            continue
        try:
            results.append(normalize(call(function, element)))
        except Exception as error:
            results.append(Failure(as_error(error)))
    return results, perf_counter() - start


def compute_portable(function: Callable[..., Any], elements: list[Any]) -> tuple[list[Any], float]:
    """Do as `compute`, with errors that can cross to another process."""
    results, seconds = compute(function, elements)
    return [_portable(result) if result.__class__ is Failure else result for result in results], seconds


_function: Callable[..., Any] | None = None


def install(pickled: bytes) -> None:
    """Receive the function once for all calls in this worker process."""
    global _function
    _function = pickle.loads(pickled)


def compute_installed(elements: list[Any]) -> tuple[list[Any], float]:
    """Do as `compute_portable` with the function that this process was started for."""
    assert _function is not None
    return compute_portable(_function, elements)


def pickled(function: Callable[..., Any], label: str) -> bytes:
    """Pickle a function for worker processes; its error tells what can be pickled."""
    try:
        return pickle.dumps(function)
    except Exception as error:
        error.add_note(f"in {label}: a function for executor='process' must be defined at the top level of a module")
        raise


def _portable(failure: Failure) -> Failure:
    """Make sure that an exception survives being pickled, with its traceback as a note."""
    error = failure.exception
    trace = "".join(traceback.format_exception(error))
    try:
        copy = pickle.loads(pickle.dumps(error))
        if type(copy) is not type(error):
            raise TypeError
    except Exception:
        described = WorkerError(f"{type(error).__name__}: {error}")
        described.add_note(f"raised in a worker process:\n{trace}")
        return Failure(described)
    error.add_note(f"raised in a worker process:\n{trace}")
    return failure
