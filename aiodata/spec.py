"""Element specs: what is known of elements without having any, as structures of dtypes and shapes.

A spec has the structure of an element, with a `TensorSpec`, a `DatasetSpec` or a `NoneTensorSpec` for each leaf.
None in place of a whole spec means that it is not known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from aiodata.engine.plan import plan_of
from aiodata.structure import flatten, map_structure, same_structure

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "DatasetSpec",
    "NoneTensorSpec",
    "TensorSpec",
    "batched",
    "generalized",
    "row_spec",
    "same",
    "spec_of",
    "spec_text",
    "unbatched",
]

Spec: TypeAlias = Any
_OBJECT = np.dtype(object)
_TEXT = (str, bytes, np.str_, np.bytes_)


@dataclass(frozen=True)
class TensorSpec:
    """The shape and dtype of one component.

    Args:
        shape: Lengths of the axes, None for one that is not known; None in place of the shape means any rank.
        dtype: Anything that numpy takes for a dtype. Text (`bytes`, `str`) and other objects have `object`, as in the
            arrays that they are batched into.
        name: A name for readers; it is not compared.

    >>> TensorSpec([None, 3], "float32")
    TensorSpec(shape=(None, 3), dtype=float32)

    Source: `tf.TensorSpec`.
    """

    shape: tuple[int | None, ...] | None
    dtype: np.dtype[Any]
    name: str | None = field(default=None, compare=False)

    def __init__(
        self, shape: Sequence[int | None] | int | None, dtype: Any = np.float32, name: str | None = None
    ) -> None:
        given = (shape,) if isinstance(shape, int) else shape
        object.__setattr__(self, "shape", None if given is None else tuple(given))
        found = np.dtype(object if dtype in _TEXT else dtype)
        object.__setattr__(self, "dtype", _OBJECT if found.kind in "SUT" else found)
        object.__setattr__(self, "name", name)

    def __repr__(self) -> str:
        """Show it as tf.data does."""
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype})"

    def is_compatible_with(self, value: Any) -> bool:
        """Tell whether a component, or another spec, has this dtype and may have this shape; an object is anything."""
        if self.dtype == _OBJECT and not self.shape:
            return True
        other = value if isinstance(value, TensorSpec) else spec_of(value)
        if not isinstance(other, TensorSpec) or other.dtype != self.dtype:
            return False
        if self.shape is None or other.shape is None:
            return True
        fits = zip(self.shape, other.shape, strict=False)
        return len(self.shape) == len(other.shape) and all(a is None or b is None or a == b for a, b in fits)


@dataclass(frozen=True)
class DatasetSpec:
    """A component that is a dataset, such as a window.

    Args:
        element_spec: The spec of its elements; None if it is not known.

    Source: `tf.data.DatasetSpec`.
    """

    element_spec: Spec


@dataclass(frozen=True)
class NoneTensorSpec:
    """A component that is None in every element; `tf.NoneTensorSpec`."""

    def __repr__(self) -> str:
        """Show it as tf.data does."""
        return "NoneTensorSpec()"


def same(spec: Spec) -> Spec:
    """Hand the spec of a stage's only input on: for stages that move elements and leave them as they are."""
    return spec


def spec_of(element: Any) -> Spec:
    """Give the spec of one element.

    >>> spec_of({"x": np.zeros((2, 3)), "y": (b"text", 1)})
    {'x': TensorSpec(shape=(2, 3), dtype=float64), 'y': (TensorSpec(shape=(), dtype=object), TensorSpec(shape=(), \
dtype=int64))}
    """
    return map_structure(_leaf_spec, element)


def _leaf_spec(leaf: Any) -> Spec:
    if leaf is None:
        return NoneTensorSpec()
    if isinstance(leaf, (np.ndarray, np.generic)):
        return TensorSpec(leaf.shape, leaf.dtype)
    if isinstance(leaf, (bool, int, float, complex)):
        return TensorSpec((), np.asarray(leaf).dtype)
    plan = plan_of(leaf)
    return TensorSpec((), _OBJECT) if plan is None else DatasetSpec(plan.element_spec())


def row_spec(columns: Any) -> Spec:
    """Give the spec of the rows of columns.

    >>> row_spec({"x": np.zeros((5, 3), np.float32)})
    {'x': TensorSpec(shape=(3,), dtype=float32)}
    """
    return map_structure(
        lambda leaf: NoneTensorSpec() if leaf is None else TensorSpec(leaf.shape[1:], leaf.dtype), columns
    )


def batched(spec: Spec, size: int | None, known: bool = True) -> Spec:
    """Give the spec of batches of `size` elements, or of any number of them where it is None.

    Args:
        spec: That of the elements.
        size: Length of the new leading axis.
        known: The other axes keep their lengths; False where they may be padded.

    >>> batched(TensorSpec((3,), int), None)
    TensorSpec(shape=(None, 3), dtype=int64)
    """
    if spec is None or any(isinstance(leaf, DatasetSpec) for leaf in flatten(spec)):
        return None

    def widen(leaf: Any) -> Any:
        if not isinstance(leaf, TensorSpec) or leaf.shape is None:
            return leaf
        return TensorSpec((size, *(leaf.shape if known else [None] * len(leaf.shape))), leaf.dtype)

    return map_structure(widen, spec)


def unbatched(spec: Spec) -> tuple[Spec, int | None]:
    """Give the spec of the rows of elements, and how many rows every element has, None if that is not known.

    Raises:
        ValueError: A component is known to have no first axis, or two are known to differ in it.

    >>> unbatched(TensorSpec((2, 3), int))
    (TensorSpec(shape=(3,), dtype=int64), 2)
    """
    if spec is None:
        return None, None
    rows: int | None = None
    for leaf in flatten(spec):
        if isinstance(leaf, TensorSpec) and leaf.shape == ():
            if leaf.dtype != _OBJECT:
                raise ValueError(f"a component is a single value, which has no rows: {spec_text(spec)}")
        elif isinstance(leaf, TensorSpec) and leaf.shape is not None and leaf.shape[0] is not None:
            if rows is not None and rows != leaf.shape[0]:
                raise ValueError(f"components differ in their number of rows: {spec_text(spec)}")
            rows = leaf.shape[0]

    def narrow(leaf: Any) -> Any:
        if not isinstance(leaf, TensorSpec) or not leaf.shape:
            return leaf
        return TensorSpec(leaf.shape[1:], leaf.dtype)

    return map_structure(narrow, spec), rows


def generalized(one: Spec, other: Spec) -> Spec:
    """Give the spec that holds for elements of both; axes that differ are None.

    Raises:
        TypeError: They differ in structure or dtype; says where.

    >>> generalized(TensorSpec((3,), int), TensorSpec((4,), int))
    TensorSpec(shape=(None,), dtype=int64)
    """
    if one is None or other is None:
        return None
    if difference := same_structure(one, other):
        raise TypeError(difference)
    return _generalized(one, other, "")


def _generalized(one: Spec, other: Spec, path: str) -> Spec:
    if isinstance(one, dict):
        return {key: _generalized(part, other[key], f"{path}[{key!r}]") for key, part in one.items()}
    if isinstance(one, tuple):
        pairs = enumerate(zip(one, other, strict=True))
        parts = [_generalized(*pair, f"{path}[{number}]") for number, pair in pairs]
        kind: Any = type(one)
        return kind._make(parts) if hasattr(one, "_fields") else tuple(parts)
    if one == other:
        return one
    where = f"component {path}" if path else "the element"
    if isinstance(one, DatasetSpec) and isinstance(other, DatasetSpec):
        return DatasetSpec(generalized(one.element_spec, other.element_spec))
    if not isinstance(one, TensorSpec) or not isinstance(other, TensorSpec) or one.dtype != other.dtype:
        raise TypeError(f"{where} is {spec_text(one)} in one and {spec_text(other)} in the other")
    if one.shape is None or other.shape is None or len(one.shape) != len(other.shape):
        return TensorSpec(None, one.dtype)
    axes = zip(one.shape, other.shape, strict=True)
    return TensorSpec([a if a == b else None for a, b in axes], one.dtype)


def spec_text(spec: Spec) -> str:
    """Write a spec in short: `int64`, `float32[None, 3]`, `{'x': int64}`; `?` where it is not known.

    >>> spec_text((TensorSpec((), int), {"x": TensorSpec((None, 3), np.float32)}))
    "(int64, {'x': float32[None, 3]})"
    """
    if spec is None:
        return "?"
    if isinstance(spec, dict):
        return "{" + ", ".join(f"{key!r}: {spec_text(part)}" for key, part in spec.items()) + "}"
    if isinstance(spec, tuple):
        names = [f"{name}=" for name in spec._fields] if hasattr(spec, "_fields") else [""] * len(spec)
        parts = ", ".join(name + spec_text(part) for name, part in zip(names, spec, strict=True))
        comma = "," if len(spec) == 1 and not hasattr(spec, "_fields") else ""
        return (type(spec).__name__ if hasattr(spec, "_fields") else "") + f"({parts}{comma})"
    if isinstance(spec, TensorSpec):
        axes = "[...]" if spec.shape is None else f"[{', '.join(map(str, spec.shape))}]" if spec.shape else ""
        return f"{spec.dtype}{axes}"
    return f"Dataset[{spec_text(spec.element_spec)}]" if isinstance(spec, DatasetSpec) else "None"
