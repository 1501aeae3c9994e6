"""The messages of `tf.train.Example`, and what one of them holds.

The message classes are made when they are first needed, from a description in a pool of their own: TensorFlow in the
same process has messages of these names in the pool that all share. Source: TensorFlow's `core/example/feature.proto`
and `example.proto`.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np

from aiodata.errors import CorruptRecordError

__all__ = ["BYTES", "FLOAT", "INT64", "KINDS", "Kind", "decoded", "held", "message_class", "object_array"]

Array: TypeAlias = "np.ndarray[Any, Any]"

# Numbers of protobuf's descriptor.proto.
_FLOAT, _INT64, _STRING, _MESSAGE, _BYTES = 2, 3, 9, 11, 12
_OPTIONAL, _REPEATED = 1, 3
_PACKAGE = "tensorflow"

_SHORT = 32
"""Up to here values are quicker by way of a list; longer ones protobuf copies into the array itself."""


@dataclass(frozen=True)
class Kind:
    """One of the three kinds of values that a feature may hold.

    Args:
        name: What errors call it.
        dtype: Its dtype here.
        list_name: The message's field that holds it.
    """

    name: str
    dtype: np.dtype[Any]
    list_name: str
    values_of: Any = field(init=False, compare=False)
    """Gives a feature message's values of this kind."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "values_of", attrgetter(f"{self.list_name}.value"))

    def array(self, values: Any) -> Array:
        """Give a message's values, or a list of them, as a fresh array (n,)."""
        if self.dtype.hasobject:
            return object_array(values[:])
        return np.array(values[:] if len(values) <= _SHORT else values, self.dtype)


BYTES = Kind("bytes", np.dtype(object), "bytes_list")
FLOAT = Kind("float32", np.dtype(np.float32), "float_list")
INT64 = Kind("int64", np.dtype(np.int64), "int64_list")
KINDS = {kind.list_name: kind for kind in (BYTES, FLOAT, INT64)}


def object_array(values: list[Any]) -> Array:
    """Give an object array (n,) of the values."""
    out = np.empty(len(values), object)
    out[:] = values
    return out


def message_class(name: str, method: str, *, maps: bool = True) -> Any:
    """Give the class of the messages of a name: Example or SequenceExample.

    Args:
        name: The name.
        method: Who needs it, for errors.
        maps: Whether features are in maps, as TensorFlow has it. If not they are in lists of names and values, which
            are the same bytes, but are written in the order in which they were added.

    Raises:
        ImportError: protobuf is not installed; says how to install it.
    """
    try:
        return _classes(maps)[name]
    except ImportError as error:
        raise ImportError(
            f"{method} needs protobuf: pip install 'aiodata-pipeline[tfrecord]'", name=error.name
        ) from error


@cache
def _classes(maps: bool) -> dict[str, Any]:
    descriptor = importlib.import_module("google.protobuf.descriptor_pb2")
    pools = importlib.import_module("google.protobuf.descriptor_pool")
    factory = importlib.import_module("google.protobuf.message_factory")
    file = descriptor.FileDescriptorProto(name="aiodata/example.proto", package=_PACKAGE, syntax="proto3")
    _describe(file, "BytesList", ("value", _BYTES, _REPEATED, None))
    _describe(file, "FloatList", ("value", _FLOAT, _REPEATED, None))
    _describe(file, "Int64List", ("value", _INT64, _REPEATED, None))
    kinds = [("bytes_list", "BytesList"), ("float_list", "FloatList"), ("int64_list", "Int64List")]
    feature = _describe(file, "Feature", *((name, _MESSAGE, _OPTIONAL, kind) for name, kind in kinds))
    feature.oneof_decl.add(name="kind")
    for one in feature.field:
        one.oneof_index = 0
    _describe_map(file, "Features", "feature", "Feature", maps)
    _describe(file, "Example", ("features", _MESSAGE, _OPTIONAL, "Features"))
    _describe(file, "FeatureList", ("feature", _MESSAGE, _REPEATED, "Feature"))
    _describe_map(file, "FeatureLists", "feature_list", "FeatureList", maps)
    parts = [("context", _MESSAGE, _OPTIONAL, "Features"), ("feature_lists", _MESSAGE, _OPTIONAL, "FeatureLists")]
    _describe(file, "SequenceExample", *parts)
    pool = pools.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    names = ("Example", "SequenceExample")
    return {name: factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in names}


def _describe(file: Any, name: str, *fields: tuple[str, int, int, str | None]) -> Any:
    """Add a message of fields, numbered from 1: name, type, label, and a message's name."""
    message = file.message_type.add(name=name)
    for number, (field_name, kind, label, of) in enumerate(fields, 1):
        full = None if of is None else f".{_PACKAGE}.{of}"
        message.field.add(name=field_name, number=number, type=kind, label=label, type_name=full)
    return message


def _describe_map(file: Any, name: str, field_name: str, of: str, is_map: bool) -> None:
    """Add a message with one field, a map from text to messages; protobuf wants its entry's name made like this."""
    entry_name = "".join(word.capitalize() for word in field_name.split("_")) + "Entry"
    message = _describe(file, name, (field_name, _MESSAGE, _REPEATED, f"{name}.{entry_name}"))
    entry = message.nested_type.add(name=entry_name)
    entry.options.map_entry = is_map
    entry.field.add(name="key", number=1, type=_STRING, label=_OPTIONAL)
    entry.field.add(name="value", number=2, type=_MESSAGE, label=_OPTIONAL, type_name=f".{_PACKAGE}.{of}")


def decoded(kind: Any, serialized: bytes, number: int | None, name: str | None) -> Any:
    """Give the message that the bytes are.

    Args:
        kind: The message's class.
        serialized: The bytes.
        number: The example's number in its batch, for errors.
        name: The example's name, for errors.

    Raises:
        CorruptRecordError: They are no such message.
    """
    try:
        return kind.FromString(serialized)
    except (_decode_error(), UnicodeDecodeError) as error:  # the second from protobuf without its C part
        what = f"its {len(serialized)} bytes are no tf.train.{kind.DESCRIPTOR.name}: damaged, or something else"
        raise CorruptRecordError(what, name or "a serialized example", number) from error


@cache
def _decode_error() -> type[Exception]:
    error: type[Exception] = importlib.import_module("google.protobuf.message").DecodeError
    return error


def held(feature: Any, kind: Kind) -> Any:
    """Give a feature's values.

    Args:
        feature: Its message.
        kind: What it should hold.

    Returns:
        The message's values, of that kind; None where it holds nothing of any kind; or another kind, which it holds.
    """
    values = kind.values_of(feature)
    if values:
        return values
    found = feature.WhichOneof("kind")
    return None if found is None else values if found == kind.list_name else KINDS[found]
