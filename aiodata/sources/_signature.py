"""Declared elements: what a signature is, and values converted to it, as tf.data's `from_generator` does."""

from __future__ import annotations

import operator
from typing import Any, NoReturn, TypeAlias

import numpy as np

from aiodata.engine.plan import plan_of
from aiodata.errors import StructureError
from aiodata.spec import DatasetSpec, NoneTensorSpec, TensorSpec, spec_text
from aiodata.structure import array_of, flatten

__all__ = ["conform", "signature_of"]

Array: TypeAlias = "np.ndarray[Any, Any]"
_LEAVES = (TensorSpec, DatasetSpec, NoneTensorSpec)
_NUMBERS = (bool, int, float, complex, np.number, np.bool_, np.datetime64, np.timedelta64)
# Which kinds of dtype go into which: those that hold at least what the value's kind is.
_INTO = {"b": "biufc", "i": "iufc", "u": "iufc", "f": "fc", "c": "c", "m": "m", "M": "M"}


def signature_of(output_types: Any, output_shapes: Any, output_signature: Any) -> Any:
    """Make one structure of specs of `from_generator`'s arguments; None where there are none.

    Raises:
        TypeError: A part is no spec, dtype or shape, or both ways are used at once, or shapes without types.
        ValueError: `output_shapes` has not the structure of `output_types`.
    """
    if output_signature is not None:
        if output_types is not None or output_shapes is not None:
            raise TypeError("from_generator: output_signature takes the place of output_types and output_shapes")
        for leaf in flatten(output_signature):
            if not isinstance(leaf, _LEAVES):
                raise TypeError(f"from_generator: output_signature must hold TensorSpecs, not {leaf!r:.80}")
        return output_signature
    if output_types is None:
        if output_shapes is not None:
            raise TypeError("from_generator: output_shapes needs output_types")
        return None
    return _specs(output_types, output_shapes)


def _specs(types: Any, shapes: Any) -> Any:
    if isinstance(types, dict):
        if shapes is not None and (not isinstance(shapes, dict) or shapes.keys() != types.keys()):
            _unlike(types, shapes)
        return {key: _specs(part, None if shapes is None else shapes[key]) for key, part in types.items()}
    if isinstance(types, tuple):
        if shapes is not None and (not isinstance(shapes, tuple) or len(shapes) != len(types)):
            _unlike(types, shapes)
        given = [None] * len(types) if shapes is None else shapes
        parts = [_specs(part, shape) for part, shape in zip(types, given, strict=True)]
        kind: Any = type(types)
        return kind._make(parts) if hasattr(types, "_fields") else tuple(parts)
    try:
        if types is None or isinstance(types, list):  # which numpy takes for dtypes, too
            raise TypeError
        axes = [shapes] if isinstance(shapes, int) else shapes
        known = None if axes is None else [None if axis is None else operator.index(axis) for axis in axes]
        return TensorSpec(known, types)
    except TypeError:
        raise TypeError(f"from_generator: {types!r:.60} is no dtype, or {shapes!r:.60} no shape") from None


def _unlike(types: Any, shapes: Any) -> NoReturn:
    raise ValueError(
        f"from_generator: output_shapes {shapes!r:.80} has not the structure of output_types {types!r:.80}"
    )


def conform(value: Any, spec: Any, path: str = "") -> Any:
    """Convert a value to what a signature says.

    Args:
        value: An element, or the component at `path`. Lists are array-likes, never structures.
        spec: A structure of specs.
        path: Where the component stands, for messages.

    Returns:
        The signature's structure, with arrays and numpy scalars of its dtypes. Text and objects stay as they are.

    Raises:
        StructureError: The structure, a dtype or a shape does not fit; names the component and both.
    """
    if isinstance(spec, dict):
        if not isinstance(value, dict) or value.keys() != spec.keys():
            _unfit(value, spec, path)
        return {key: conform(value[key], part, f"{path}[{key!r}]") for key, part in spec.items()}
    if isinstance(spec, tuple):
        if not isinstance(value, type(spec)) or len(value) != len(spec):
            _unfit(value, spec, path)
        kind: Any = type(spec)
        names = [f".{name}" for name in getattr(spec, "_fields", ())] or [f"[{number}]" for number in range(len(spec))]
        parts = [conform(part, own, path + name) for part, own, name in zip(value, spec, names, strict=True)]
        return kind._make(parts) if hasattr(spec, "_fields") else tuple(parts)
    if isinstance(spec, NoneTensorSpec):
        return value if value is None else _unfit(value, spec, path)
    if isinstance(spec, DatasetSpec):
        return _unfit(value, spec, path) if plan_of(value) is None else value
    if value is None or isinstance(value, dict):
        _unfit(value, spec, path)
    try:
        leaf = _objects(value) if spec.dtype == object else _numbers(value, spec.dtype)
    except ValueError as error:
        _unfit(value, spec, path, f" ({error})")
    shape = leaf.shape if isinstance(leaf, np.ndarray) else ()
    if spec.shape is not None and not _fits(shape, spec.shape):
        _unfit(value, spec, path, f" (its shape is {shape})")
    return leaf


def _fits(shape: tuple[int, ...], declared: tuple[int | None, ...]) -> bool:
    return len(shape) == len(declared) and all(most in (None, n) for n, most in zip(shape, declared, strict=True))


def _objects(value: Any) -> Any:
    """Take text and other objects as they are, and array-likes of them as object arrays."""
    if isinstance(value, _NUMBERS):
        raise ValueError("it is a number")
    if not isinstance(value, (list, tuple, np.ndarray)):
        return value
    array = value if isinstance(value, np.ndarray) else array_of(list(value))
    if array.dtype.kind not in "OSUT" and array.size:
        raise ValueError(f"its dtype is {array.dtype}")
    return array.astype(object, copy=False)[()]


def _numbers(value: Any, dtype: np.dtype[Any]) -> Any:
    """Convert numbers and array-likes of them to a dtype."""
    if isinstance(value, (np.ndarray, np.generic)):
        array: Any = value
    else:
        array = array_of(list(value) if isinstance(value, tuple) else value)
    if array.dtype == dtype:
        return array.view(dtype)[
            ()
        ]  # C has two types for 64 bits, whose dtypes are equal, but not their scalars' types
    if array.size:
        if dtype.kind not in _INTO.get(array.dtype.kind, ""):
            raise ValueError(f"its dtype is {array.dtype}")
        if dtype.kind in "iu" and not np.can_cast(array.dtype, dtype):
            limits = np.iinfo(dtype)
            if int(array.min()) < limits.min or int(array.max()) > limits.max:
                raise ValueError(f"it does not fit {dtype}")
    with np.errstate(over="ignore"):  # a float that is too large is infinite, as in numpy
        return array.astype(dtype, copy=False)[()]


def _unfit(value: Any, spec: Any, path: str, why: str = "") -> NoReturn:
    where = f"component {path}" if path else "the element"
    raise StructureError(f"{where} is {value!r:.80} where the signature says {spec_text(spec)}{why}")
