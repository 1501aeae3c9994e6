"""`fingerprint`: a number that tells pipelines apart."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from aiodata.digest import Digests

if TYPE_CHECKING:
    from aiodata.dataset import Dataset

__all__ = ["fingerprint"]


def fingerprint(self: Dataset[Any]) -> int:
    """Give a number from 0 to 2**64 - 1: the same for equal pipelines in every process, else very likely another.

    What counts: the stages and their order, their arguments, the data in memory (dtypes, shapes and bytes), the seeds,
    the options, and the users' functions: module, name, bytecode and constants, those of functions inside them too,
    defaults, the values that they have closed over, and the names of the globals that they use. Two builds without a
    seed are equal. Objects of any class count by what pickle would keep of them, part by part; a part that cannot be
    pickled, such as a lock or an open file, counts by its class, and so does an executor. A callable object's
    `__call__` counts as a function does.

    What does not: names of stages, element specs, where code stands in its file, and how far iterators have come.

    What it cannot see: the values of globals, among them the functions that a function calls; the code of classes, but
    for `__call__` and a method that is itself the argument; compiled code; the content of files. A list or an object
    that a function has closed over counts as it is now. A set of objects that refer to each other may count otherwise
    in another process. Bytecode is that of one Python version, so another version gives other numbers where there are
    functions.

    Raises:
        RecursionError: An object is nested some 200 levels deep.

    >>> import aiodata
    >>> def build(size):
    ...     return aiodata.Dataset.range(10).map(lambda x: x + 1).batch(size)
    >>> build(4).fingerprint() == build(4).fingerprint(), build(4).fingerprint() == build(5).fingerprint()
    (True, False)

    Source: `tf.data.Dataset.fingerprint`, which gives a tensor.
    """
    digests = Digests()
    for plan in self.plan.walk():  # inputs first, so that a long chain is not a deep recursion
        written = digests.of(plan)
    return int.from_bytes(blake2b(written, digest_size=8).digest(), "big")
