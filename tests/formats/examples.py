"""What the tests of `tf.train.Example` share: other ways to write, read and parse one, all of them plain and slow."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from aiodata import FixedLenFeature, FixedLenSequenceFeature, RaggedFeature, RawFeature, VarLenFeature
from aiodata.sparse import SparseTensor

if TYPE_CHECKING:
    from collections.abc import Sequence

PROTOBUF = "tf.train.Example needs protobuf"
descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2", reason=PROTOBUF)
descriptor_pool = pytest.importorskip("google.protobuf.descriptor_pool", reason=PROTOBUF)
json_format = pytest.importorskip("google.protobuf.json_format", reason=PROTOBUF)
message_factory = pytest.importorskip("google.protobuf.message_factory", reason=PROTOBUF)

LISTS = ("BytesList", "FloatList", "Int64List")
KINDS: dict[Any, str] = {np.dtype(object): "bytes", np.dtype(np.float32): "float", np.dtype(np.int64): "int64"}


def _classes() -> tuple[Any, Any]:
    """Make the message classes once more, from the text of TensorFlow's .proto files as protobuf's JSON has it."""

    def one(name: str, number: int, kind: str, of: str | None = None, label: str = "OPTIONAL", **more: Any) -> Any:
        given = {"name": name, "number": number, "type": f"TYPE_{kind}", "label": f"LABEL_{label}", **more}
        return given | ({"typeName": f".tensorflow.{of}"} if of else {})

    def entry(name: str, of: str) -> Any:
        fields = [one("key", 1, "STRING"), one("value", 2, "MESSAGE", of)]
        return [{"name": name, "field": fields, "options": {"mapEntry": True}}]

    values = dict(zip(LISTS, ("BYTES", "FLOAT", "INT64"), strict=True))
    parts = [("bytes_list", "BytesList"), ("float_list", "FloatList"), ("int64_list", "Int64List")]
    kinds = [one(name, number, "MESSAGE", of, oneofIndex=0) for number, (name, of) in enumerate(parts, 1)]
    messages = [{"name": name, "field": [one("value", 1, kind, label="REPEATED")]} for name, kind in values.items()]
    messages += [
        {"name": "Feature", "field": kinds, "oneofDecl": [{"name": "kind"}]},
        {
            "name": "Features",
            "field": [one("feature", 1, "MESSAGE", "Features.FeatureEntry", "REPEATED")],
            "nestedType": entry("FeatureEntry", "Feature"),
        },
        {"name": "FeatureList", "field": [one("feature", 1, "MESSAGE", "Feature", "REPEATED")]},
        {
            "name": "FeatureLists",
            "field": [one("feature_list", 1, "MESSAGE", "FeatureLists.FeatureListEntry", "REPEATED")],
            "nestedType": entry("FeatureListEntry", "FeatureList"),
        },
        {"name": "Example", "field": [one("features", 1, "MESSAGE", "Features")]},
        {
            "name": "SequenceExample",
            "field": [one("context", 1, "MESSAGE", "Features"), one("feature_lists", 2, "MESSAGE", "FeatureLists")],
        },
    ]
    described = {"name": "tests.proto", "package": "tensorflow", "syntax": "proto3", "messageType": messages}
    file = json_format.ParseDict(described, descriptor_pb2.FileDescriptorProto())
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    names = ("tensorflow.Example", "tensorflow.SequenceExample")
    first, second = [message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in names]
    return first, second


Example, SequenceExample = _classes()


# Writing, byte by byte


def varint(number: int, longer: int = 0) -> bytes:
    """Write an integer in groups of seven bits; `longer` adds bytes that do not change it, up to ten in all."""
    number %= 1 << 64
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    for _ in range(min(longer, 10 - len(out))):
        out[-1] |= 0x80
        out.append(0)
    return bytes(out)


def block(number: int, content: bytes) -> bytes:
    """Write a field that has a length."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def feature(kind: str | None, values: Sequence[Any], packed: bool = True, longer: int = 0) -> bytes:
    """Write a feature's message."""
    if kind is None:
        return b""
    if kind == "bytes":
        return block(1, b"".join(block(1, value) for value in values))
    write, tag = (lambda x: struct.pack("<f", x), 5) if kind == "float" else (lambda x: varint(x, longer), 0)
    written = [write(value) for value in values]
    content = b"".join(varint(1 << 3 | tag) + one for one in written)
    if packed:
        content = block(1, b"".join(written)) if written else b""
    return block(2 if kind == "float" else 3, content)


def named(name: str, message: bytes) -> bytes:
    """Write an entry of a map."""
    return block(1, block(1, name.encode()) + block(2, message))


def example(*entries: tuple[str, str | None, Sequence[Any]]) -> bytes:
    """Write an example of features: name, kind, values."""
    return block(1, b"".join(named(name, feature(kind, values)) for name, kind, values in entries))


# Reading, feature by feature


def contents(record: bytes) -> dict[str, tuple[str | None, list[Any]]]:
    """Read an example by protobuf: the kind and the values of each feature."""
    found = {}
    for name, message in Example.FromString(record).features.feature.items():
        kind = message.WhichOneof("kind")
        found[name] = (None, []) if kind is None else (kind.removesuffix("_list"), list(getattr(message, kind).value))
    return found


def objects(values: Sequence[Any]) -> np.ndarray[Any, Any]:
    out = np.empty(len(values), object)
    out[:] = values
    return out


def array(values: Sequence[Any], dtype: Any) -> np.ndarray[Any, Any]:
    return objects(values) if np.dtype(dtype).hasobject else np.array(values, dtype)


def parsed(records: Sequence[bytes], features: Any) -> Any:
    """Parse a batch by the rules of tf.io.

    Raises:
        ValueError: An example has not what a feature wants.
    """
    examples = [contents(record) for record in records]
    return {name: _parsed([found.get(name) for found in examples], wanted) for name, wanted in features.items()}


def _parsed(found: list[Any], wanted: Any) -> Any:
    if isinstance(wanted, RawFeature):
        return _parsed_raw(found, wanted)
    rows: list[list[Any]] = []
    size = int(np.prod(wanted.shape)) if hasattr(wanted, "shape") else 1
    for kind, values in [pair or (None, []) for pair in found]:
        if kind is None:
            if isinstance(wanted, FixedLenFeature):
                if wanted.default_value is None:
                    raise ValueError("missing")
                values = np.array(wanted.default_value, wanted.dtype).ravel().tolist()
        elif kind != KINDS[wanted.dtype]:
            raise ValueError("another kind")
        if len(values) != size if isinstance(wanted, FixedLenFeature) else len(values) % size:
            raise ValueError("another number")
        rows.append(values)
    longest = max(map(len, rows), default=0)
    flat = [value for row in rows for value in row]
    if isinstance(wanted, FixedLenFeature):
        return array(flat, wanted.dtype).reshape(len(rows), *wanted.shape)
    if isinstance(wanted, FixedLenSequenceFeature):
        given = wanted.default_value
        fill = (b"" if wanted.dtype == object else 0) if given is None else given
        flat = [value for row in rows for value in row + [fill] * (longest - len(row))]
        return array(flat, wanted.dtype).reshape(len(rows), longest // size, *wanted.shape)
    if isinstance(wanted, RaggedFeature):
        return objects([array(row, wanted.dtype) for row in rows])
    assert isinstance(wanted, VarLenFeature)
    places = [[row, place] for row, values in enumerate(rows) for place in range(len(values))]
    indices = np.array(places, np.int64).reshape(-1, 2)
    return SparseTensor(indices, array(flat, wanted.dtype), np.array([len(rows), longest], np.int64))


def _parsed_raw(found: list[Any], wanted: RawFeature) -> Any:
    rows = []
    for kind, values in [pair or (None, []) for pair in found]:
        if kind is None and wanted.default_value is not None:
            values = [wanted.default_value]
        elif kind != "bytes":
            raise ValueError("missing, or another kind")
        if len(values) != 1 or len(values[0]) != int(np.prod(wanted.shape)) * wanted.dtype.itemsize:
            raise ValueError("another size")
        if wanted.dtype == bool:
            rows.append(np.array([byte != 0 for byte in values[0]], bool).reshape(wanted.shape))
        else:
            stored = np.frombuffer(values[0], wanted.dtype.newbyteorder("<"))
            rows.append(stored.astype(wanted.dtype).reshape(wanted.shape))
    return np.array(rows, wanted.dtype).reshape(len(rows), *wanted.shape)
