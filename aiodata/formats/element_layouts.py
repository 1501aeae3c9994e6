"""Layouts: how the values of elements lie in arrays, and the JSON that tells it.

A layout is a structure like the elements', with a `Leaf` for each component. A spec is written in the same way.
"""

from __future__ import annotations

import sys
from collections import namedtuple
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from aiodata.spec import DatasetSpec, NoneTensorSpec, TensorSpec
from aiodata.structure import flatten, is_namedtuple, map_structure
from aiodata.values import decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Leaf", "layout_json", "layout_of", "layout_spec", "spec_json", "spec_of_json"]

_classes: WeakValueDictionary[tuple[str, str, tuple[str, ...]], type] = WeakValueDictionary()
"""Named tuples' classes that have been written or made here, so that what is read back is of the same class."""


@dataclass(frozen=True)
class Leaf:
    """How the values of one component lie in arrays.

    Args:
        kind: The kind of values.
        arrays: The names of the arrays.
        inner: Layouts of what the values are made of: the items of object arrays, each kind of mixed values.
        spec: What the values have in common; None where that is nothing, or not known.
    """

    kind: str
    arrays: tuple[str, ...]
    inner: tuple[Any, ...] = ()
    spec: Any = field(default=None, compare=False)


def layout_spec(layout: Any) -> Any:
    """Give the spec of the elements that have just been laid out so; None where they have none in common."""
    spec = map_structure(lambda leaf: leaf.spec, layout)
    return None if None in flatten(spec) else spec


def layout_json(layout: Any) -> Any:
    """Give a layout as JSON.

    Raises:
        StateError: The key of a dict is nothing that JSON can tell.

    >>> layout_json({"x": Leaf("scalar", ("x",))})
    {'dict': [['x', {'kind': 'scalar', 'arrays': ['x']}]]}
    """
    return _structure_json(layout, _leaf_json)


def _leaf_json(leaf: Leaf) -> dict[str, Any]:
    inner = {"inner": [layout_json(part) for part in leaf.inner]} if leaf.inner else {}
    return {"kind": leaf.kind, "arrays": list(leaf.arrays)} | inner


def layout_of(saved: Any) -> Any:
    """Undo `layout_json`.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: It is no layout.
    """
    return _structure_of(saved, _leaf_of)


def _leaf_of(saved: Any) -> Leaf:
    return Leaf(saved["kind"], tuple(saved["arrays"]), tuple(map(layout_of, saved.get("inner", ()))))


def spec_json(spec: Any) -> Any:
    """Give a spec as JSON; None where it is not known, or of datasets.

    >>> spec_json((TensorSpec((None, 3), np.float32),))
    {'tuple': [{'dtype': '<f4', 'shape': [None, 3]}]}
    """
    if spec is None or any(isinstance(leaf, DatasetSpec) for leaf in flatten(spec)):
        return None
    return _structure_json(spec, _tensor_json)


def _tensor_json(spec: Any) -> dict[str, Any]:
    if isinstance(spec, NoneTensorSpec):
        return {"dtype": None}
    shape = None if spec.shape is None else list(spec.shape)
    return {"dtype": np.lib.format.dtype_to_descr(spec.dtype), "shape": shape}


def spec_of_json(saved: Any) -> Any:
    """Undo `spec_json`; raises as `layout_of`."""
    return None if saved is None else _structure_of(saved, _tensor_of)


def _tensor_of(saved: Any) -> Any:
    if saved["dtype"] is None:
        return NoneTensorSpec()
    return TensorSpec(saved["shape"], np.lib.format.descr_to_dtype(_descr(saved["dtype"])))


def _descr(saved: Any) -> Any:
    """Give numpy's description of a dtype, whose fields are tuples, back from JSON, where they are lists."""
    if isinstance(saved, str):
        return saved
    return [(name, _descr(kind), *map(tuple, shape)) for name, kind, *shape in saved]


# Structures


def _structure_json(x: Any, leaf: Callable[[Any], Any]) -> Any:
    if isinstance(x, dict):
        return {"dict": [[encode(key, "a key"), _structure_json(part, leaf)] for key, part in x.items()]}
    if not isinstance(x, tuple):
        return leaf(x)
    parts = [_structure_json(part, leaf) for part in x]
    if not is_namedtuple(x):
        return {"tuple": parts}
    kind: Any = type(x)
    _classes[kind.__module__, kind.__qualname__, kind._fields] = kind
    return {"named": [kind.__module__, kind.__qualname__, list(kind._fields)], "tuple": parts}


def _structure_of(saved: Any, leaf: Callable[[Any], Any]) -> Any:
    if "dict" in saved:
        return {decode(key): _structure_of(part, leaf) for key, part in saved["dict"]}
    if "tuple" not in saved:
        return leaf(saved)
    parts = [_structure_of(part, leaf) for part in saved["tuple"]]
    return _named_class(*saved["named"])._make(parts) if "named" in saved else tuple(parts)


def _named_class(module: str, qualname: str, fields: list[str]) -> Any:
    """Find the class of a named tuple: in this process's memory, nothing is imported; else make one like it."""
    key = module, qualname, tuple(fields)
    found: Any = _classes.get(key)
    if found is None:
        found = sys.modules.get(module)
        for name in qualname.split("."):
            found = vars(found).get(name) if hasattr(found, "__dict__") else None
        if not (isinstance(found, type) and issubclass(found, tuple) and getattr(found, "_fields", None) == key[2]):
            make: Any = namedtuple
            found = make(qualname.rpartition(".")[2], fields)
            found.__module__, found.__qualname__ = module, qualname
        _classes[key] = found
    return found
