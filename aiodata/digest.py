"""Digests: short bytes that are the same for equal pipelines, functions and values in every process."""

from __future__ import annotations

import copyreg
import inspect
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from hashlib import blake2b
from types import CodeType, FunctionType, MethodType, ModuleType, NoneType
from typing import Any

import numpy as np

from aiodata.engine.plan import Plan, plan_of
from aiodata.random import PairSource

__all__ = ["Digests"]

DIGEST_BYTES = 16
_PICKLE_PROTOCOL = 4
_WRITTEN_OUT = frozenset({NoneType, bool, float, complex})
_CODE_FIELDS = ("argcount", "posonlyargcount", "kwonlyargcount", "flags", "code", "exceptiontable", "consts", "names")
_CODE_NAMES = ("varnames", "freevars", "cellvars")


class Digests:
    """Makes digests of values, each object once.

    A value is written as bytes: small ones as they are, others as the hash of what their parts are written as. So two
    values that are equal part by part are written alike, wherever the parts are shared. Nothing that differs from
    process to process goes in: no identities, no `hash()`, no order of a set, no `repr` of an unknown object.
    """

    def __init__(self) -> None:
        self._done: dict[int, bytes] = {}
        self._open: dict[int, int] = {}
        """What is being written, by identity, and how deep it lies; here an object is found that leads to itself."""
        self._kept: list[Any] = []
        """All that is known by identity, so that no identity is given to another object meanwhile."""

    def of(self, value: Any) -> bytes:
        """Give the digest of a plan, a function or any other value.

        Of an object whose class is not known here, what pickle would keep of it counts; if that is nothing, its class.
        """
        small = _small(value)
        if small is not None:
            return small
        if type(value) is tuple:
            return _sealed("tuple", map(self.of, value))
        key = id(value)
        if key in self._done:
            return self._done[key]
        if key in self._open:
            return _sealed("itself", [str(len(self._open) - self._open[key]).encode()])
        self._open[key] = len(self._open)
        self._kept.append(value)
        try:
            written = self._compound(value)
        finally:
            del self._open[key]
        self._done[key] = written
        return written

    def _compound(self, value: Any) -> bytes:
        kind = type(value)
        if kind is list:
            return _sealed("list", map(self.of, value))
        if kind is dict:
            return _sealed("dict", map(self.of, value.items()))
        if kind is set or kind is frozenset:
            return _sealed("set", sorted(map(self.of, value)))
        if kind is np.ndarray:
            return self._array(value)
        if kind is FunctionType:
            return self._function(value)
        if kind is CodeType:
            return self._code(value)
        if kind is MethodType:
            return _sealed("method", [self.of(value.__func__), self.of(value.__self__)])
        if kind is ModuleType or isinstance(value, type):
            return _sealed("name", [_name(value)])
        if isinstance(value, Executor):  # its queue and its threads are not what it is
            return _sealed("executor", [_name(kind)])
        if isinstance(value, PairSource):
            return _sealed("seeds", [self.of(value.seeds if value.seeded else None), self.of(value.reshuffle)])
        plan = value if kind is Plan else plan_of(value)
        return self._object(value) if plan is None else self._plan(plan) if kind is Plan else self.of(plan)

    def _plan(self, plan: Plan) -> bytes:
        """Write a stage and what it reads; the facts about it, such as its spec, follow from these."""
        if plan.seeds is not None and not isinstance(plan.seeds, PairSource):
            # What iterations have left in it does not count.
            self._kept.append(plan.seeds)
            self._done[id(plan.seeds)] = _sealed("owner", [_name(type(plan.seeds))])
        return _sealed("plan", map(self.of, (plan.name, plan.stage, plan.inputs, plan.options, plan.seeds)))

    def _array(self, value: np.ndarray[Any, Any]) -> bytes:
        """Write an array: dtype, shape, and the bytes of its elements."""
        flat = np.ascontiguousarray(value).reshape(-1)
        content: Any = self.of(flat.tolist()) if value.dtype.hasobject else flat.view(np.uint8) if flat.nbytes else b""
        return _sealed("array", [self.of(value.dtype), self.of(value.shape), content])

    def _function(self, function: FunctionType) -> bytes:
        """Write a function: name, defaults, what it has closed over, and its code unless it is this package's."""
        own = str(function.__module__).partition(".")[0] == __name__.partition(".")[0]
        parts = [_name(function), b"" if own else self.of(function.__code__)]
        parts += [self.of(function.__defaults__), self.of(function.__kwdefaults__)]
        for cell in function.__closure__ or ():
            try:
                parts.append(self.of(cell.cell_contents))
            except ValueError:
                parts.append(b"nothing yet")
        return _sealed("function", parts)

    def _code(self, code: CodeType) -> bytes:
        """Write what a code object does, and not where it stands."""
        return _sealed("code", [self.of(getattr(code, f"co_{field}")) for field in (*_CODE_FIELDS, *_CODE_NAMES)])

    def _object(self, value: Any) -> bytes:
        """Write an object as pickle would: what makes it, and its state; and what it does when it is called."""
        parts = [_name(type(value)), _name(value)]
        wrapped = inspect.getattr_static(value, "__wrapped__", None)  # of a cache or a compiled function
        called = getattr(type(value), "__call__", None)  # noqa: B004
        parts += [self.of(wrapped), self.of(called if isinstance(called, FunctionType) else None)]
        reduce: Callable[[Any], Any] = copyreg.dispatch_table.get(type(value), _reduced)
        try:
            reduced = reduce(value)
        except Exception:  # it cannot be pickled
            return _sealed("object", parts)
        if isinstance(reduced, str):
            return _sealed("object", [*parts, reduced.encode()])
        make, *state = reduced[:3]
        contents = [None if items is None else list(items) for items in reduced[3:5]]
        return _sealed("object", [*parts, _name(make), *map(self.of, state), *map(self.of, contents)])


def _reduced(value: Any) -> Any:
    return value.__reduce_ex__(_PICKLE_PROTOCOL)


def _name(value: Any) -> bytes:
    """Name a class, function or module; other objects have no such names."""
    names = [getattr(value, attribute, None) for attribute in ("__module__", "__qualname__", "__name__")]
    return " ".join(name for name in names if isinstance(name, str)).encode()


def _small(value: Any) -> bytes | None:
    """Write a plain value out; None for anything else."""
    kind = type(value)
    if kind in _WRITTEN_OUT:
        written = repr(value).encode()
    elif kind is int:
        written = format(value, "x").encode()  # decimal is limited to some thousand digits
    elif kind is str:
        written = value.encode("utf-8", "surrogatepass")
    elif kind is bytes:
        written = value
    elif isinstance(value, (np.number, np.bool_)):
        return _sealed("scalar", [value.dtype.str.encode(), value.tobytes()])
    else:
        return None
    return _sealed(kind.__name__, [written]) if len(written) > DIGEST_BYTES else kind.__name__.encode() + b" " + written


def _sealed(tag: str, parts: Iterable[bytes]) -> bytes:
    """Hash parts, so that no others of this tag are likely to give the same."""
    digest = blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return tag.encode() + b" " + digest.digest()
