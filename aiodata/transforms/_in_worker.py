"""What runs in the threads and processes of a parallel map."""

from __future__ import annotations

import os
import pickle
import sys
import threading
import traceback
from functools import partial
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any, cast

from aiodata.engine.block import Failure
from aiodata.errors import WorkerError
from aiodata.extras import load
from aiodata.functions import as_error, call
from aiodata.structure import normalize

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiodata.engine.serving import Record

__all__ = ["ThreadWatch", "Watch", "compute", "compute_portable", "install", "is_timed_out", "pickled", "timed_out"]


def compute(function: Callable[..., Any], elements: list[Any], watch: Watch | None = None) -> tuple[list[Any], float]:
    """Call a function on elements in a worker, each error in its element's place; tell the seconds it took.

    Args:
        function: The user's function.
        elements: None of them a failure.
        watch: Holds each call to a limit, and may end the work before its time.
    """
    results: list[Any] = [] if watch is None else watch.results
    start = perf_counter()
    for element in elements:
        if watch is not None and not watch.begin():
            break
        try:
            result = normalize(call(function, element))
        except Exception as error:
            result = Failure(as_error(error))
        results.append(result if watch is None else watch.checked(result))
    return results, perf_counter() - start


def timed_out(limit: float) -> TimeoutError:
    """Make the error of a call that took too long."""
    return TimeoutError(f"the call took longer than timeout_seconds={limit:g}")


def is_timed_out(error: BaseException, limit: float) -> bool:
    """Tell whether an error is that of a call that took too long, not one that the user's function raised."""
    return type(error) is TimeoutError and error.args == timed_out(limit).args


class Watch:
    """Holds each call of a portion to a limit.

    Args:
        limit: Seconds that a call may take.
        record: Where a worker process notes its calls.
    """

    def __init__(self, limit: float, record: Record | None = None) -> None:
        self.limit = limit
        self.results: list[Any] = []
        """What has been computed; as many as there were calls before the one under way."""
        self.began = 0.0
        self._record = record

    def begin(self) -> bool:
        """Note that the next call begins; tell whether it may."""
        self.began = monotonic()
        if self._record is not None:
            self._record.note(len(self.results), self.began)
        return True

    def checked(self, result: Any) -> Any:
        """Give the result of the call under way, or what stands for it if it took too long."""
        return Failure(timed_out(self.limit)) if monotonic() - self.began > self.limit else result


class ThreadWatch(Watch):
    """A watch on a thread, whose portion is taken away from it when a call takes too long."""

    def __init__(self, limit: float) -> None:
        super().__init__(limit)
        self._lock = threading.Lock()
        self._begun = 0
        self._over = False

    def begin(self) -> bool:
        """Note that the next call begins; tell whether it may."""
        with self._lock:
            if not self._over:
                self._begun += 1
                self.began = monotonic()
            return not self._over

    @property
    def call(self) -> int:
        """The number of the call that was begun last."""
        return self._begun - 1

    def seconds_left(self) -> float:
        """Give how long the call under way may still take, or a little longer."""
        return self.limit if not self._begun else max(0.001, self.began + self.limit - monotonic())

    def give_up(self) -> bool:
        """Tell whether a call has been taking too long; if so, its thread begins no other one."""
        with self._lock:
            if self._begun > len(self.results) and monotonic() - self.began > self.limit:
                self._over = True
            return self._over

    def stop(self) -> None:
        """Have the thread begin no other call."""
        with self._lock:
            self._over = True


def compute_portable(
    function: Callable[..., Any], elements: list[Any], watch: Watch | None = None
) -> tuple[list[Any], float]:
    """Do as `compute`, with errors that can cross to another process."""
    results, seconds = compute(function, elements, watch)
    return [_portable(result) if result.__class__ is Failure else result for result in results], seconds


def install(pickled: bytes, limit: float | None) -> Callable[[list[Any], Record | None], tuple[list[Any], float]]:
    """Receive the function once for all calls in this worker process; give what computes elements."""
    return partial(_compute_installed, pickle.loads(pickled), limit)


def _compute_installed(
    function: Callable[..., Any], limit: float | None, elements: list[Any], record: Record | None
) -> tuple[list[Any], float]:
    return compute_portable(function, elements, None if limit is None else Watch(limit, record))


def pickled(function: Callable[..., Any], label: str) -> bytes:
    """Pickle a function for worker processes: by reference where they can import it, else with its code.

    Raises:
        Exception: It cannot be pickled; notes say what can be, and what to install.
    """
    try:
        by_reference = pickle.dumps(function)
        if not (b"__main__" in by_reference and _is_main_a_secret()):
            return by_reference
        reason: Exception = pickle.PicklingError("worker processes cannot import the module __main__: it has no file")
    except Exception as error:
        reason = error
    try:
        return cast("bytes", load("cloudpickle", "process", "one that they cannot import").dumps(function))
    except ImportError as missing:
        reason.add_note(f"in {label}: worker processes import the function; {missing}")
        raise reason from None
    except Exception as error:
        error.add_note(f"in {label}: a function for executor='process' has to be pickled")
        raise
    finally:
        del reason  # else it and this frame, which its traceback holds, would be a cycle


def _is_main_a_secret() -> bool:
    """Tell whether the main module cannot be imported by another process, as in an interactive session."""
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    return getattr(main, "__spec__", None) is None and (file is None or not os.path.exists(file))


def _portable(failure: Failure) -> Failure:
    """Make sure that an exception survives being pickled, with its traceback as a note."""
    error = failure.exception
    if error.__traceback__ is None and error.__cause__ is None:  # it was not raised here, but made
        return failure
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
