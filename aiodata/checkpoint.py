"""Checkpoints of iterators on disk: the last few states, each in a file that is there whole or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from math import inf
from typing import Any
from zlib import crc32

from aiodata.checks import check_integer
from aiodata.engine.workers import wait_out
from aiodata.errors import CorruptRecordError, StateError
from aiodata.storage.atomic import AtomicFile, remove_abandoned
from aiodata.storage.schemes import check_local
from aiodata.values import check_json

if sys.platform == "win32":
    fcntl = None
else:
    import fcntl

__all__ = ["CheckpointManager"]

VERSION = 1
HOUR_SECONDS = 3600
HEAD_BYTES = 200
LONGEST_NAME = 64
_NUMBER = "(0|[1-9][0-9]*)"


class CheckpointManager:
    """Keeps the last states of a training job in a folder, one JSON file each: `ckpt-300.json`.

    What is saved is one JSON value of yours: an iterator's `state_dict()`, or a dict of several with whatever else
    belongs to the place, such as the epoch and the name of the file that the model is in. Save the model first and
    then the checkpoint that names it, so that each checkpoint has its model.

    A checkpoint is written beside its place, forced to the disk and renamed. So a process that is killed while it saves
    leaves the checkpoint before, whole; what it leaves of the new one is removed by the next save. Each file has a
    checksum. One that is damaged all the same is an error and not passed over: the disk or a copy has failed then, and
    going on from an older place in silence would not fit the model.

    Several processes, such as the ranks of one job, may share a folder if each has a `checkpoint_name` of its own. With
    one name for all, the second one to save is refused: numbers only grow, except that a manager may write the
    checkpoint that it has saved or restored last again. (Where there are no locks, as on some network file systems, two
    that save at the same moment may not notice each other.) One manager may be used by several threads.

    Args:
        directory: The folder, made by the first save.
        max_to_keep: How many checkpoints stay, at least 1; older ones are removed after a save. None keeps all.
        keep_checkpoint_every_n_hours: Of the older ones keep, for good, the first and each that was saved so many hours
            or more after the one kept before. None keeps none of them.
        checkpoint_name: What the files' names begin with.

    Raises:
        TypeError: An argument is of another type.
        ValueError: `directory` is a URL of remote storage, `max_to_keep` is below 1, the hours are not above 0, or
            `checkpoint_name` is no name of a file, begins with a dot, or has more than 64 bytes.

    >>> import aiodata, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     manager = aiodata.CheckpointManager(folder, max_to_keep=2)
    ...     iterator = aiodata.Dataset.range(5).iterate()
    ...     for step in range(1, 4):
    ...         element = next(iterator)
    ...         path = manager.save(step, {"data": iterator.state_dict()})
    ...     step, state = manager.restore()
    ...     step, [int(x) for x in aiodata.Dataset.range(5).iterate(state["data"])], len(manager.checkpoints)
    (3, [3, 4], 2)

    Source: `tf.train.CheckpointManager`, which saves the objects of a `tf.train.Checkpoint` and restores into them.
    """

    def __init__(
        self,
        directory: str | bytes | os.PathLike[str],
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
    ) -> None:
        method, hours = type(self).__name__, keep_checkpoint_every_n_hours
        if hours is not None and not hours > 0:
            raise ValueError(f"{method}: keep_checkpoint_every_n_hours must be above 0, not {hours!r}")
        if not isinstance(checkpoint_name, str):
            raise TypeError(f"{method}: checkpoint_name must be a str, not {type(checkpoint_name).__name__}")
        fits = re.fullmatch(r"[^./\\\0][^/\\\0]*", checkpoint_name)
        if not fits or len(os.fsencode(checkpoint_name)) > LONGEST_NAME:
            raise ValueError(f"{method}: checkpoint_name must be a short file name, not {checkpoint_name!r:.80}")
        self.directory = check_local(os.fsdecode(directory), method, "directory", "copy the files there")
        self.max_to_keep = None if max_to_keep is None else check_integer(max_to_keep, method, "max_to_keep", 1)
        self.checkpoint_name = checkpoint_name
        self._hours = hours
        self._own: int | None = None
        """The number that was saved or restored last."""
        self._saving = threading.Lock()

    @property
    def checkpoints(self) -> list[str]:
        """The paths of all checkpoints of this name, oldest first."""
        return [self._path(number) for number in self._numbers()]

    @property
    def latest_checkpoint(self) -> str | None:
        """The path of the newest checkpoint, None if there is none."""
        numbers = self._numbers()
        return self._path(numbers[-1]) if numbers else None

    def save(self, checkpoint_number: int | None, state: Any) -> str:
        """Write a checkpoint, and remove those that are too many.

        When it returns, the checkpoint is safely on the disk, which takes some milliseconds; `asave` does not block the
        loop meanwhile.

        Args:
            checkpoint_number: Its number, such as the step: 0 or above, and above those of all checkpoints that there
                are. None takes the next one.
            state: A JSON value: None, bools, ints, finite floats, text, lists, and dicts with text as keys. A tuple
                comes back as a list.

        Returns:
            The checkpoint's path.

        Raises:
            TypeError: Something in `state` is nothing of these, such as an array or a numpy number; says where.
            ValueError: A number in `state` is not finite; or `checkpoint_number` is negative, or too low.
            OSError: The file cannot be written; nothing has changed then.
        """
        return self._save(checkpoint_number, _as_json(state))

    async def asave(self, checkpoint_number: int | None, state: Any) -> str:
        """Do as `save`, in a thread of the loop's executor.

        `state` is copied by the call. When the task is cancelled the checkpoint is written to the end before it stops.
        """
        saving = asyncio.get_running_loop().run_in_executor(None, self._save, checkpoint_number, _as_json(state))
        await wait_out(saving)
        try:
            return saving.result()
        finally:
            del saving  # else it, its error and this frame, which the error's traceback holds, would be a cycle

    def restore(self, checkpoint_number: int | None = None) -> tuple[int, Any] | None:
        """Give the number and the state of the newest checkpoint, or of a certain one.

        Returns:
            `(number, state)`, or None if there is no checkpoint to begin with.

        Raises:
            FileNotFoundError: There is no such checkpoint.
            CorruptRecordError: The file is damaged; it names the file and the checkpoint before.
            StateError: It was written by a later version of this library.
        """
        numbers = self._numbers()
        if checkpoint_number is None:
            if not numbers:
                return None
            number = numbers[-1]
        else:
            number = check_integer(checkpoint_number, f"{type(self).__name__}.restore", "checkpoint_number", 0)
        before = [self._path(other) for other in numbers if other < number]
        state = _read(self._path(number), number, before)
        self._own = number
        return number, state

    def _path(self, number: int) -> str:
        return os.path.join(self.directory, f"{self.checkpoint_name}-{number}.json")

    def _numbers(self, pattern: str = r"{}-{}\.json") -> list[int]:
        """Give the numbers of all files whose names are like a pattern of name and number, in order."""
        try:
            names = os.listdir(self.directory)
        except FileNotFoundError:
            return []
        fits = re.compile(pattern.format(re.escape(self.checkpoint_name), _NUMBER)).fullmatch
        return sorted({int(found[1]) for found in map(fits, names) if found})

    def _save(self, checkpoint_number: int | None, text: str) -> str:
        method = f"{type(self).__name__}.save"
        os.makedirs(self.directory, exist_ok=True)
        with self._saving, _alone_in(self.directory):
            numbers = self._numbers()
            last = numbers[-1] if numbers else -1
            number = last + 1
            if checkpoint_number is not None:
                number = check_integer(checkpoint_number, method, "checkpoint_number", 0)
            if number < last or number == last != self._own:
                raise ValueError(
                    f"{method}: checkpoint_number must be above {last}, not {number}: {self._path(last)} is there. "
                    "Remove what is newer to go back; ranks that share a folder need a checkpoint_name each"
                )
            for part in self._numbers(r"\.{}-{}\.json\.[0-9a-f]+\.part"):
                remove_abandoned(self._path(part))
            _write(self._path(number), number, text)
            self._own = number
            self._sweep(sorted({*numbers, number}))
        return self._path(number)

    def _sweep(self, numbers: list[int]) -> None:
        """Remove the checkpoints that are too many."""
        older = [] if self.max_to_keep is None else numbers[: -self.max_to_keep]
        if self._hours is not None:
            due = -inf
            for number in list(older):
                saved = _time_of(self._path(number))
                if saved >= due:
                    due = saved + self._hours * HOUR_SECONDS
                    older.remove(number)
        for number in older:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path(number))


@contextlib.contextmanager
def _alone_in(directory: str) -> Iterator[None]:
    """Hold a lock on a folder, where the system has such locks; it ends with the process."""
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some file systems have no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _as_json(state: Any) -> str:
    check_json(state, "CheckpointManager.save: state")
    return json.dumps(state, allow_nan=False)


def _write(path: str, number: int, text: str) -> None:
    head = json.dumps({"version": VERSION, "number": number, "time": round(time.time(), 3)})
    content = f'{head[:-1]}, "state": {text}'
    # It is what json.dumps gives of the values that will be read, so that a file may be indented, but not changed.
    checksum = crc32(f"{content}}}".encode())
    file = AtomicFile(path)
    try:
        file.file.write(f'{content}, "crc32": {checksum}}}\n'.encode())
    except BaseException:
        file.discard()
        raise
    file.commit()


def _read(path: str, number: int, before: list[str]) -> Any:
    """Read a checkpoint's state; `before` are the paths of those before it."""
    with open(path, "rb") as file:
        data = file.read()
    damage = "its checksum does not fit"
    try:
        content = json.loads(data)
        checksum = content.pop("crc32")
        whole = bool(checksum == crc32(json.dumps(content).encode()))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        whole, damage = False, str(error)
    if not whole:
        advice = f"; remove it to go on from {before[-1]}, and from that one's model" if before else ""
        raise CorruptRecordError(f"the checkpoint is damaged ({damage}){advice}", path)
    if content["version"] != VERSION:
        raise StateError(f"{path}: the checkpoint has version {content['version']}; this library reads {VERSION}")
    if content["number"] != number:
        raise StateError(f"{path}: the file holds checkpoint {content['number']}; it was renamed")
    return content["state"]


def _time_of(path: str) -> float:
    """Give the time when a checkpoint was saved, which a copy of the file keeps; 0 if it does not say."""
    with open(path, "rb") as file:
        found = re.search(rb'"time": ([0-9.]+)', file.read(HEAD_BYTES))
    return float(found[1]) if found else 0.0
