"""Seeds, random words and the shuffle window, in tf.data's order.

Everything random comes from streams of 32-bit words (Philox4x32-10). A seed pair names a stream, and word j of a
stream costs the same whatever j is, so a position in it is all that a checkpoint needs.
"""

from __future__ import annotations

import operator
import os
import random
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

__all__ = ["PairSource", "ShuffleRing", "WordStream", "get_seed", "set_seed"]

_MAX31 = 2**31 - 1
_MASK32 = 2**32 - 1
_DEFAULT_GLOBAL = 87654321
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
# 0-d arrays are the cheapest operands that NumPy takes.
_M0, _M1 = np.array(_MULTIPLIERS[0], np.uint64), np.array(_MULTIPLIERS[1], np.uint64)
_LOW, _HALF = np.array(_MASK32, np.uint64), np.array(32, np.uint64)
_PLAIN_WORDS = 64  # a NumPy call costs as much as about so many words in plain Python
_FIRST_BLOCKS, _MOST_BLOCKS = 64, 4096  # Philox blocks in one NumPy call
_STEP_BITS = 12
_STEP = 1 << _STEP_BITS  # most ids that one vectorised step of a ring moves
_STEPS = np.arange(_STEP, dtype=np.intp)
_BULK = 128  # a vectorised step costs as much as so many ids one by one

_scratch: list[npt.NDArray[np.uint64]] = []  # at most one array, to save making it anew; popped while in use
_global: tuple[int, random.Random] | None = None


def set_seed(seed: int | None) -> None:
    """Set the global seed and start the implicit op seeds anew.

    Args:
        seed: Any integer, or None to go back to having no global seed.

    Raises:
        TypeError: The seed is not an integer.
    """
    global _global
    if seed is None:
        _global = None
        return
    value = int(operator.index(seed))
    _global = (value, random.Random(value))


def get_seed(op_seed: int | None) -> tuple[int, int]:
    """Combine the global seed and a node's own seed into the pair that names its stream.

    Args:
        op_seed: The node's seed, or None to take the next implicit one (without a global seed: fresh entropy).

    Returns:
        The pair (seed, seed2), neither negative.

    Raises:
        TypeError: The seed is not an integer.
    """
    own = None if op_seed is None else int(operator.index(op_seed))
    state = _global
    if state is None:
        if own is None:
            return int.from_bytes(os.urandom(8), "little") >> 1, int.from_bytes(os.urandom(8), "little") >> 1
        seed = _DEFAULT_GLOBAL
    else:
        seed = state[0]
        if own is None:
            own = state[1].randint(0, _MAX31)
    pair = (seed % _MAX31, own % _MAX31)
    return pair if pair != (0, 0) else (0, _MAX31)


class WordStream:
    """A stream of random 32-bit words.

    Args:
        seed: First half of the pair, taken modulo 2**64 (negative: two's complement).
        seed2: Second half, likewise.
        drawn: Number of words to skip, at no cost.

    Attributes:
        ready: Words made and not yet taken, the next one last; popping the last item takes that word. May be empty
            at any time: `refill` then brings more.

    Raises:
        ValueError: `drawn` is negative.
    """

    __slots__ = ("_blocks", "_bulk", "_keys", "_made", "_schedule", "_tail", "ready")

    def __init__(self, seed: int, seed2: int, drawn: int = 0) -> None:
        if drawn < 0:
            raise ValueError(f"drawn must not be negative, got {drawn}")
        k0, k1 = seed & _MASK32, seed >> 32 & _MASK32
        self._schedule = [((k0 + i * _WEYL[0]) & _MASK32, (k1 + i * _WEYL[1]) & _MASK32) for i in range(_ROUNDS)]
        self._keys: list[tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]] = []
        self._tail = (seed2 & _MASK32, seed2 >> 32 & _MASK32)
        self._made = drawn
        self._blocks = _FIRST_BLOCKS
        self._bulk: npt.NDArray[np.uint32] = np.empty(0, np.uint32)
        self.ready: list[int] = []

    @property
    def drawn(self) -> int:
        """Number of words taken so far, skipped ones included."""
        return self._made - len(self.ready) - len(self._bulk)

    def next_word(self) -> int:
        """Take one word."""
        if not self.ready:
            self.refill()
        return self.ready.pop()

    def take(self, count: int) -> npt.NDArray[np.uint32]:
        """Take the next `count` words.

        Args:
            count: How many; 0 is fine.

        Returns:
            The words, as uint32. The array is the caller's own.

        Raises:
            ValueError: The count is negative.
        """
        if count < 0:
            raise ValueError(f"cannot take {count} words")
        self.pack()
        bulk = self._bulk
        if len(bulk) < count:
            parts, have = [bulk], len(bulk)
            while have < count:
                parts.append(self._make(count - have))
                have += len(parts[-1])
            bulk = np.concatenate(parts)
        self._bulk = bulk[count:]
        return bulk[:count]

    def refill(self) -> None:
        """Bring at least one word into `ready`, which must be empty."""
        words = self._bulk if len(self._bulk) else self._make(1)
        self._bulk = words[:0]
        self.ready.extend(words[::-1].tolist())

    def pack(self) -> None:
        """Empty `ready` without losing its words: they go back to the stream."""
        if self.ready:
            self._bulk = np.concatenate([np.array(self.ready[::-1], np.uint32), self._bulk])
            self.ready.clear()

    def _make(self, need: int) -> npt.NDArray[np.uint32]:
        """Make the next words: at least one, and not many more than needed while the stream is young."""
        block, skip = divmod(self._made, 4)
        count = (skip + need + 3) // 4
        if 4 * (block + count) <= _PLAIN_WORDS:
            plain = [word for i in range(block, block + count) for word in self._one_block(i)]
            words = np.array(plain, np.uint32)
        else:
            count = min(max(count, self._blocks), _MOST_BLOCKS)
            self._blocks = min(4 * self._blocks, _MOST_BLOCKS)
            words = self._many_blocks(block, count)
        self._made = 4 * (block + count)
        return words[skip:]

    def _one_block(self, number: int) -> tuple[int, int, int, int]:
        """Compute the four words of one of the first blocks in plain Python."""
        c0, c1, (c2, c3) = number, 0, self._tail
        m0, m1 = _MULTIPLIERS
        for k0, k1 in self._schedule:
            a, b = m0 * c0, m1 * c2
            c0, c1, c2, c3 = b >> 32 ^ c1 ^ k0, b & _MASK32, a >> 32 ^ c3 ^ k1, a & _MASK32
        return c0, c1, c2, c3

    def _many_blocks(self, number: int, count: int) -> npt.NDArray[np.uint32]:
        """Compute the words of `count` blocks with NumPy."""
        if not self._keys:
            self._keys = [(np.array(k0, np.uint64), np.array(k1, np.uint64)) for k0, k1 in self._schedule]
        try:
            scratch = _scratch.pop()
        except IndexError:
            scratch = np.empty((6, _MOST_BLOCKS), np.uint64)
        c0, c1, c2, c3, a, b = scratch[:, :count]
        numbers = np.arange(count, dtype=np.uint64) + np.uint64(number)
        np.bitwise_and(numbers, _LOW, c0)
        np.right_shift(numbers, _HALF, c1)
        c2[:], c3[:] = self._tail
        for k0, k1 in self._keys:
            np.multiply(c0, _M0, a)
            np.multiply(c2, _M1, b)
            np.bitwise_xor(c1, k0, c1)
            np.bitwise_xor(c3, k1, c3)
            np.bitwise_xor(np.right_shift(b, _HALF, c0), c1, c0)
            np.bitwise_xor(np.right_shift(a, _HALF, c2), c3, c2)
            np.bitwise_and(b, _LOW, c1)
            np.bitwise_and(a, _LOW, c3)
        words = np.empty((count, 4), np.uint32)
        for i in range(4):
            words[:, i] = scratch[i, :count]
        if not _scratch:
            _scratch.append(scratch)
        return words.reshape(-1)


class PairSource:
    """The source of a shuffle node's seed pairs, one for each epoch.

    Args:
        seed: First half of the node's own pair.
        seed2: Second half.
        reshuffle: Whether each draw gives a new pair; if not, every draw gives the node's own.

    Attributes:
        seeds: The node's own pair; may be set.
        drawn: Number of pairs drawn so far; may be set, to go on from there.
        reshuffle: As given.
    """

    __slots__ = ("drawn", "reshuffle", "seeds")

    def __init__(self, seed: int, seed2: int, reshuffle: bool) -> None:
        self.seeds = (seed, seed2)
        self.drawn = 0
        self.reshuffle = reshuffle

    def draw(self) -> tuple[int, int]:
        """Draw the next pair."""
        self.drawn += 1
        if not self.reshuffle:
            return self.seeds
        stream = WordStream(*self.seeds, drawn=2 * self.drawn - 2)
        return stream.next_word(), stream.next_word()


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
        self, pair: tuple[int, int], capacity: int | None, *, window: Sequence[int] = (), words: int = 0
    ) -> None:
        if capacity is not None and not len(window) <= capacity >= 1:
            raise ValueError(f"capacity {capacity} is below 1 or too small for a window of {len(window)}")
        self.pair = pair
        self.capacity = capacity
        self._stream = WordStream(*pair, drawn=words)
        self._ready = self._stream.ready
        self._list = [int(id_) for id_ in window]
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

    def snapshot(self) -> tuple[list[int], int]:
        """Return the window, the front first, and the number of words drawn in this epoch."""
        return self._array[self._low : self._high].tolist() + self._list[self._head :], self._stream.drawn

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
