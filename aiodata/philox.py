"""Streams of random 32-bit words: Philox4x32-10, counted as tf.data counts.

A seed pair names a stream, and word j of a stream costs the same whatever j is, so a position in it is all that a
checkpoint needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Words: TypeAlias = npt.NDArray[np.uint64] | int
    """Words, each in 64 bits so that products fit."""

__all__ = ["WordStream", "philox"]

_MASK32 = 2**32 - 1
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
# 0-d arrays are the cheapest operands that NumPy takes.
_M0, _M1 = np.array(_MULTIPLIERS[0], np.uint64), np.array(_MULTIPLIERS[1], np.uint64)
_W0, _W1 = np.array(_WEYL[0], np.uint64), np.array(_WEYL[1], np.uint64)
_LOW, _HALF = np.array(_MASK32, np.uint64), np.array(32, np.uint64)
_PLAIN_WORDS = 64  # a NumPy call costs as much as about so many words in plain Python
_FIRST_BLOCKS, _MOST_BLOCKS = 64, 4096  # Philox blocks in one NumPy call

_scratch: list[npt.NDArray[np.uint64]] = []  # at most one array, to save making it anew; popped while in use


def philox(counter: Sequence[Words], key: Sequence[Words]) -> list[npt.NDArray[np.uint64]]:
    """Compute one block of four words for each counter and key.

    Args:
        counter: Four arrays of 32-bit words, or single ones.
        key: Two, likewise.

    Returns:
        The words number 0 to 3 of the blocks. What is the same for all blocks may be a single word in `counter` and
        `key`, but not everything.
    """
    c0, c1, c2, c3 = (np.asarray(word, np.uint64) for word in counter)
    k0, k1 = (np.asarray(word, np.uint64) for word in key)
    for number in range(_ROUNDS):
        if number:
            k0, k1 = k0 + _W0 & _LOW, k1 + _W1 & _LOW
        a, b = c0 * _M0, c2 * _M1
        c0, c1, c2, c3 = b >> _HALF ^ c1 ^ k0, b & _LOW, a >> _HALF ^ c3 ^ k1, a & _LOW
    return [c0, c1, c2, c3]


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
