"""What features to read out of examples: tf.io's configurations on numpy's dtypes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from aiodata.checks import check_integer
from aiodata.formats.example_proto import BYTES, FLOAT, INT64, Kind
from aiodata.formats.raw import checked_dtype

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = [
    "Feature",
    "Features",
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "RaggedFeature",
    "RawFeature",
    "VarLenFeature",
    "flat_default",
    "kind_of",
]

_TEXT = (bytes, str)


def kind_of(dtype: Any, owner: str) -> Kind:
    """Give the kind of values that a dtype stands for.

    Raises:
        TypeError: It is none that examples hold; names the owner.
    """
    if dtype is float:
        return FLOAT
    found = np.dtype(object if dtype in _TEXT else dtype) if dtype is not None else None
    for kind in (INT64, FLOAT, BYTES):
        if found == kind.dtype:
            return kind
    if found is not None and found.kind in "SU":
        return BYTES
    raise TypeError(f"{owner}: dtype must be int64, float32 or bytes, which is all that examples hold, not {dtype!r}")


def _shape(shape: Any, owner: str, hint: str) -> tuple[int, ...]:
    axes = (shape,) if hasattr(shape, "__index__") else shape
    if axes is None or isinstance(axes, (str, bytes)) or not hasattr(axes, "__iter__"):
        raise TypeError(f"{owner}: shape must be a list of integers, not {shape!r}")
    given = tuple(axes)
    if None in given or -1 in given:
        raise ValueError(f"{owner}: every axis of the shape must be known, not {shape!r}{hint}")
    return tuple([check_integer(axis, owner, "an axis of the shape", 0) for axis in given])


def flat_default(value: Any, kind: Kind, owner: str) -> np.ndarray[Any, Any]:
    """Give a default's values as an array (n,).

    Raises:
        TypeError: They are not of the kind.
        ValueError: They do not fit its dtype.
    """
    given: list[Any] = []
    _collect(value, given)
    wanted: Any = {INT64: (int, np.integer), FLOAT: (int, float, np.integer, np.floating), BYTES: _TEXT}[kind]
    for one in given:
        if not isinstance(one, wanted) or isinstance(one, (bool, np.bool_)):
            raise TypeError(f"{owner}: default_value must be of {kind.name}, not {one!r}")
    if kind is BYTES:
        return kind.array([one.encode() if isinstance(one, str) else bytes(one) for one in given])
    try:
        with np.errstate(over="ignore"):
            return np.array(given, kind.dtype)
    except OverflowError:
        raise ValueError(f"{owner}: default_value does not fit {kind.name}: {value!r}") from None


def _collect(value: Any, into: list[Any]) -> None:
    if isinstance(value, np.ndarray):
        into += value.ravel().tolist()
    elif isinstance(value, (list, tuple)):
        for part in value:
            _collect(part, into)
    else:
        into.append(value)


def _kept(value: Any) -> Any:
    """Give what the user cannot change any more: tuples for lists and arrays."""
    if isinstance(value, np.ndarray):
        return _kept(value.tolist())
    return tuple([_kept(part) for part in value]) if isinstance(value, (list, tuple)) else value


class _FixedLen(NamedTuple):
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    default_value: Any


class FixedLenFeature(_FixedLen):
    """A feature that has the same number of values in each example.

    Args:
        shape: Its shape, all axes known; `[]` for a single value.
        dtype: `np.int64`, `np.float32` or `bytes`; `int`, `float`, `str` and `object` mean these.
        default_value: The values where an example has none: as many as the shape has. None: an example without is an
            error.

    Raises:
        TypeError: The dtype, the shape or a default's type is not of these.
        ValueError: An axis is not known, or the default has another number of values.

    >>> FixedLenFeature([2], np.float32)
    FixedLenFeature(shape=(2,), dtype=dtype('float32'), default_value=None)

    Source: `tf.io.FixedLenFeature`.
    """

    __slots__ = ()

    def __new__(cls, shape: Sequence[int] | int, dtype: DTypeLike, default_value: Any = None) -> FixedLenFeature:
        """Check the arguments."""
        owner = cls.__name__
        kind = kind_of(dtype, owner)
        axes = _shape(shape, owner, "; for a first axis that differs take FixedLenSequenceFeature")
        if default_value is not None:
            size, wanted = len(flat_default(default_value, kind, owner)), int(np.prod(axes, dtype=np.int64))
            if size != wanted:
                raise ValueError(f"{owner}: default_value must have {wanted} values for shape {axes}, not {size}")
        return super().__new__(cls, axes, kind.dtype, _kept(default_value))


class _VarLen(NamedTuple):
    dtype: np.dtype[Any]


class VarLenFeature(_VarLen):
    """A feature of any number of values, read as a `SparseTensor`.

    Sparse arrays of single examples differ in size, so `batch` cannot stack them: batch the bytes, then call
    `parse_example`. For arrays of rows instead take `RaggedFeature`, or `FixedLenSequenceFeature`, which pads.

    Args:
        dtype: As for `FixedLenFeature`.

    Raises:
        TypeError: The dtype is none of these.

    Source: `tf.io.VarLenFeature`.
    """

    __slots__ = ()

    def __new__(cls, dtype: DTypeLike) -> VarLenFeature:
        """Check the arguments."""
        return super().__new__(cls, kind_of(dtype, cls.__name__).dtype)


class _FixedLenSequence(NamedTuple):
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    allow_missing: bool
    default_value: Any


class FixedLenSequenceFeature(_FixedLenSequence):
    """A feature of any number of steps of one shape; in a batch, shorter ones are padded at their ends.

    Args:
        shape: The shape of a step, all axes known and none of them 0.
        dtype: As for `FixedLenFeature`.
        allow_missing: An example without it has no steps. It must be True except in a sequence example's
            `sequence_features`, where False makes its absence an error.
        default_value: The one value that pads; None: 0, or empty text.

    Raises:
        TypeError: The dtype, the shape or the default's type is not of these.
        ValueError: An axis is 0 or not known, or there are several defaults.

    Source: `tf.io.FixedLenSequenceFeature`.
    """

    __slots__ = ()

    def __new__(
        cls,
        shape: Sequence[int] | int,
        dtype: DTypeLike,
        allow_missing: bool = False,
        default_value: Any = None,
    ) -> FixedLenSequenceFeature:
        """Check the arguments."""
        owner = cls.__name__
        kind = kind_of(dtype, owner)
        axes = _shape(shape, owner, "")
        if 0 in axes:
            raise ValueError(f"{owner}: a step of shape {axes} has no values, so steps cannot be counted")
        if default_value is not None and (size := len(flat_default(default_value, kind, owner))) != 1:
            raise ValueError(f"{owner}: default_value is one value, which pads, not {size}")
        return super().__new__(cls, axes, kind.dtype, bool(allow_missing), _kept(default_value))


class _Ragged(NamedTuple):
    dtype: np.dtype[Any]
    value_key: str | None


class RaggedFeature(_Ragged):
    """A feature of any number of values, read as an array; a batch of them is an object array of arrays.

    Args:
        dtype: As for `FixedLenFeature`.
        value_key: The feature's name in the examples; None: the name that it has in the result.

    Raises:
        TypeError: The dtype is none of these, or the name no str.

    Source: `tf.io.RaggedFeature`, without `partitions`.
    """

    __slots__ = ()

    def __new__(cls, dtype: DTypeLike, value_key: str | None = None) -> RaggedFeature:
        """Check the arguments."""
        if value_key is not None and not isinstance(value_key, str):
            raise TypeError(f"{cls.__name__}: value_key must be a str, not {value_key!r}")
        return super().__new__(cls, kind_of(dtype, cls.__name__).dtype, value_key)


class _Raw(NamedTuple):
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    default_value: bytes | None


class RawFeature(_Raw):
    r"""A feature of one value of bytes that are an array's numbers, little-endian and in C order: an image's pixels.

    It gives what `decode_raw` makes of a `FixedLenFeature([], bytes)`, in the shape that is asked for, and is several
    times quicker in a batch: the numbers are cut out of the records at once. For big-endian numbers, or values of
    bytes that differ in length, take those two.

    Args:
        shape: The array's shape, all axes known; `[]` for a single number.
        dtype: A dtype of numbers, booleans or times, or a structured one of those, in the machine's byte order.
        default_value: The bytes where an example has none, as many as the array has. None: an example without is an
            error.

    Raises:
        TypeError: The dtype, the shape or the default is not of these.
        ValueError: An axis is not known, the dtype has another byte order, or the default another number of bytes.

    >>> from aiodata import encode_example, parse_example
    >>> records = [encode_example({"pixels": b""}), encode_example({"pixels": b""})]
    >>> parse_example(records, {"pixels": RawFeature([2, 1], np.uint8)})["pixels"].tolist()
    [[[1], [2]], [[3], [4]]]

    Source: an addition; TensorFlow has `tf.io.decode_raw` on what `tf.io.FixedLenFeature` gives.
    """

    __slots__ = ()

    def __new__(cls, shape: Sequence[int] | int, dtype: DTypeLike, default_value: bytes | None = None) -> RawFeature:
        """Check the arguments."""
        owner = cls.__name__
        found = checked_dtype(dtype, f"{owner}: dtype", "")
        axes = _shape(shape, owner, "; for values of bytes that differ in length take FixedLenFeature and decode_raw")
        if default_value is not None:
            wanted = int(np.prod(axes, dtype=np.int64)) * found.itemsize
            if not isinstance(default_value, bytes):
                raise TypeError(f"{owner}: default_value must be bytes, not {type(default_value).__name__}")
            if len(default_value) != wanted:
                raise ValueError(
                    f"{owner}: default_value must be {wanted} bytes for {found} of shape {axes}, "
                    f"not {len(default_value)}"
                )
        return super().__new__(cls, axes, found, default_value)


Features: TypeAlias = Mapping[str, tuple[Any, ...]]
"""Names and features; type checkers take features of several kinds in one dict for tuples."""

Feature: TypeAlias = FixedLenFeature | VarLenFeature | FixedLenSequenceFeature | RaggedFeature | RawFeature
