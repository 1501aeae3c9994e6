"""The window of one epoch of shuffling, in tf.data's order: which id comes out next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from aiodata.philox import WordStream

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

__all__ = ["ShuffleRing"]

_STEP_BITS = 12
_STEP = 1 << _STEP_BITS  # most ids that one vectorised step of a ring moves
_STEPS = np.arange(_STEP, dtype=np.intp)
_BULK = 128  # a vectorised step costs as much as so many ids one by one


class ShuffleRing:
    """The window of one epoch of shuffling, over integer ids: which one comes out next.

    Ids go in one by one (`push`) or in bulk (`extend`) and come out one by one (`pop`) or in bulk (`drain`);
    `advance` does both in turn. All can be mixed freely. Ids must fit 64 bits.

    The window is `array[low:high]` followed by `list[head:]`. Single pops need all of it in the list and bulk work
    needs all of it in the array; moving it is put off long enough that even the worst mixture stays cheap.

    Args:
        pair: The epoch's seed pair.
        capacity: Most ids the window may hold; None for no bound.
        window: Ids in the window at the start, the front first.
        words: Number of words drawn in this epoch before.

    Attributes:
        pair: As given.
        capacity: As given.
        push: Call it with an id to append it at the window's end. It's up to the caller not to push when full.

    Raises:
        ValueError: The capacity is below 1 or the window holds more than that.
    """

    __slots__ = ("_array", "_debt", "_head", "_high", "_list", "_low", "_ready", "_stream", "capacity", "pair", "push")

    def __init__(
        self, pair: tuple[int, int], capacity: int | None, *, window: npt.ArrayLike = (), words: int = 0
    ) -> None:
        ids: list[int] = np.asarray(window, np.int64).tolist()
        if capacity is not None and not len(ids) <= capacity >= 1:
            raise ValueError(f"capacity {capacity} is below 1 or too small for a window of {len(ids)}")
        self.pair = pair
        self.capacity = capacity
        self._stream = WordStream(*pair, drawn=words)
        self._ready = self._stream.ready
        self._list = ids
        self._head = 0
        self._array: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self._low = self._high = 0
        # In the list: ids that bulk calls have to move before it pays to leave. In the array: ids that would have been
        # moved one by one in the time that small calls have taken.
        self._debt = 0
        self.push: Callable[[int], None] = self._list.append

    def __len__(self) -> int:
        """Return the number of ids in the window."""
        return len(self._list) - self._head + self._high - self._low

    @property
    def full(self) -> bool:
        """Whether the window holds as many ids as it may."""
        return len(self) == self.capacity

    def pop(self) -> int:
        """Take out the id that comes next.

        Raises:
            IndexError: The window is empty; no word is drawn.
        """
        ids, head = self._list, self._head
        try:
            word = self._ready.pop()
            chosen = head + word % (len(ids) - head)
        except IndexError:
            self._settle()
            return self.pop()
        except ZeroDivisionError:
            self._ready.append(word)
            raise IndexError("pop from an empty shuffle window") from None
        self._head = head + 1
        out = ids[chosen]
        ids[chosen] = ids[head]
        return out

    def extend(self, ids: npt.ArrayLike) -> None:
        """Append ids at the window's end.

        Raises:
            ValueError: They would be more than the window may hold.
        """
        new = np.asarray(ids, np.int64)
        if self.capacity is not None and len(self) + len(new) > self.capacity:
            raise ValueError(f"{len(new)} ids do not fit a window with {len(self)} of {self.capacity}")
        if len(new) >= _BULK and self._in_bulk(len(new)):
            self._append(new)
        else:
            self._list.extend(new.tolist())

    def advance(self, ids: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Push and pop in turn, once for each id; the window must be one short of full.

        Args:
            ids: The ids that come in.

        Returns:
            The ids that come out, as many.

        Raises:
            ValueError: The window is not one short of full.
        """
        new = np.asarray(ids, np.int64)
        size = len(self) + 1
        if size != self.capacity:
            raise ValueError(f"the window must be one short of full, but holds {size - 1} of {self.capacity}")
        out = np.empty(len(new), np.int64)
        if not self._in_bulk(len(new)):
            push, pop = self.push, self.pop
            for i, id_ in enumerate(new.tolist()):
                push(id_)
                out[i] = pop()
            return out
        for start in range(0, len(new), _STEP):
            part = new[start : start + _STEP]
            self._append(part)
            words = self._stream.take(len(part))
            self._move(words - words // np.uint32(size) * np.uint32(size), out[start : start + _STEP])
        return out

    def drain(self, count: int) -> npt.NDArray[np.int64]:
        """Pop `count` ids with nothing coming in.

        Raises:
            ValueError: There are fewer in the window.
        """
        if not 0 <= count <= len(self):
            raise ValueError(f"cannot pop {count} ids from a window of {len(self)}")
        if not self._in_bulk(count):
            return np.array([self.pop() for _ in range(count)], np.int64)
        out = np.empty(count, np.int64)
        for start in range(0, count, _STEP):
            part = out[start : start + _STEP]
            size = len(self)
            sizes = np.arange(size, size - len(part), -1, dtype=np.uint32)
            self._move(self._stream.take(len(part)) % sizes, part)
        return out

    def snapshot(self) -> tuple[npt.NDArray[np.int64], int]:
        """Return a copy of the window, the front first, and the number of words drawn in this epoch."""
        rest = np.array(self._list[self._head :], np.int64)
        return np.concatenate([self._array[self._low : self._high], rest]), self._stream.drawn

    def _settle(self) -> None:
        """Bring the whole window into the list, and words into `ready`."""
        ids = self._list
        if self._high > self._low:
            ids[:0] = self._array[self._low : self._high].tolist()  # nothing was popped from the list yet
            self._low = self._high = 0
            self._debt = len(ids)
        elif 2 * self._head > len(ids):
            del ids[: self._head]
            self._head = 0
        self._stream.refill()

    def _in_bulk(self, count: int) -> bool:
        """Bring the whole window into the array, or leave it there, if that pays for moving `count` ids.

        Returns:
            Whether it is in the array now, and all words out of `ready`.
        """
        if self._high > self._low:
            self._debt += _BULK if count < _BULK else 0
            if self._debt > len(self):
                return False
        else:
            self._debt -= count
            if count < _BULK or self._debt > 0:
                return False
            self._debt = 0
        self._stream.pack()
        if self._list:
            ids = np.array(self._list[self._head :], np.int64)
            self._list.clear()
            self._head = 0
            self._append(ids)
        return True

    def _append(self, ids: npt.NDArray[np.int64]) -> None:
        """Append ids to the array, which moves or grows when it has no room."""
        size = self._high - self._low + len(ids)
        if self._low + size > len(self._array):
            old = self._array[self._low : self._high]
            if 3 * size > 2 * len(self._array):
                self._array = np.empty(size + max(size // 2, 2 * _STEP), np.int64)
            self._array[: len(old)] = old
            self._low, self._high = 0, len(old)
        self._array[self._high : self._low + size] = ids
        self._high = self._low + size

    def _move(self, offsets: npt.NDArray[np.uint32], out: npt.NDArray[np.int64]) -> None:
        """Pop one id for each offset, all at once.

        Step j reads slot `j + offsets[j]`, then moves the id of slot j, the front, there; slots count from the
        present front, so nothing is ever read behind it. What a slot holds at step j is what the last earlier step
        that chose it put there, which is again some slot's id at that step, down to an id of the start.
        """
        steps = _STEPS[: len(offsets)]
        ids = self._array[self._low : self._high]
        chosen = offsets + steps
        # source[j]: the slot whose first id has come to slot j when that is the front (unless step j chooses slot j
        # itself: then it puts nothing anywhere, and what source[j] says doesn't matter).
        source = steps.copy()
        early = np.flatnonzero(chosen < len(steps))
        targets = chosen[early]
        source[targets] = early  # of repeated targets the last one counts
        while True:
            near = source[targets]
            far = source[near]
            if (near == far).all():
                break
            source[targets] = far
        fronts = ids[source]
        # Steps that choose the same slot come together, in order, when slot and step are sorted as one number.
        keys = chosen << _STEP_BITS | steps
        keys.sort()
        again = np.flatnonzero((keys[1:] ^ keys[:-1]) < _STEP)
        keys &= _STEP - 1
        np.take(ids, chosen, out=out)
        out[keys[again + 1]] = fronts[keys[again]]
        ids[chosen] = fronts
        self._low += len(steps)
