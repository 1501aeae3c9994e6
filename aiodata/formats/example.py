"""`parse_example` and `parse_single_example`: `tf.train.Example`s to numpy, without TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.formats.example_batch import read_batch
from aiodata.formats.example_proto import decoded, message_class
from aiodata.formats.example_request import compiled

if TYPE_CHECKING:
    from aiodata.formats.example_features import Features

__all__ = ["parse_example", "parse_single_example", "serialized_batch", "serialized_single"]


def parse_example(
    serialized: Sequence[bytes] | np.ndarray[Any, Any],
    features: Features,
    example_names: Sequence[str] | None = None,
    name: str | None = None,
) -> dict[str, Any]:
    r"""Read features out of a batch of serialized `tf.train.Example`s.

    Made for `TFRecordDataset(...).batch(256).map(lambda records: parse_example(records, features))`. Examples that
    are written alike, with the same features in one order and values of the same sizes, are read together as slices
    of one array, many times quicker than one by one; any others are read by protobuf. The result does not depend on
    it. Features that are not asked for are passed over. Memory: about twice the records, beside the result.

    With `map(partial(parse_example, features=features), vectorized=True)` the elements are single examples at nearly
    the same speed, where all features are `FixedLenFeature`s, `RawFeature`s and `RaggedFeature`s. Images and
    other arrays that were written as their bytes are read quickest as `RawFeature`s.

    Args:
        serialized: A list or object array (n,) of `bytes`, as `batch` makes of a `TFRecordDataset`.
        features: What to read: a feature for each name. Make it once, outside of the function that is mapped.
        example_names: n names of the examples, for errors.
        name: Ignored; there because tf has it.

    Returns:
        A dict in the order of `features`. For a `FixedLenFeature` or `RawFeature` an array (n, *shape). For a
        `FixedLenSequenceFeature` an array (n, most steps, *shape), padded. For a `VarLenFeature` a `SparseTensor` of
        shape (n, most values). For a `RaggedFeature` an object array (n,) of arrays, all of them views of one. The
        dtypes are int64, float32 and, for bytes, object; for a `RawFeature` its own.

    Raises:
        ImportError: protobuf is not installed; it comes with the extra `tfrecord`.
        TypeError: An argument is not of these types.
        ValueError: There are no features, a `FixedLenSequenceFeature` is without `allow_missing`, or there are more or
            fewer names than examples.
        CorruptRecordError: Bytes are no `tf.train.Example`. It has the example's number as `record`, and its name, if
            it has one, as `path`.
        StructureError: An example lacks a feature, or holds another kind or number of values. It names the example
            and the feature.

    >>> import numpy as np
    >>> from aiodata import FixedLenFeature, encode_example
    >>> records = [encode_example({"x": [1.0, 2.0], "y": 5}), encode_example({"x": [3.0, 4.0]})]
    >>> parse_example(records, {"x": FixedLenFeature([2], np.float32), "y": FixedLenFeature([], np.int64, -1)})
    {'x': array([[1., 2.],
           [3., 4.]], dtype=float32), 'y': array([ 5, -1])}

    Source: `tf.io.parse_example`.
    """
    request = compiled(features, "parse_example")
    records, names = serialized_batch(serialized, example_names, "parse_example")
    found = read_batch(records, request, names, message_class("Example", "parse_example"))
    return {column.key: column.many(*values) for column, values in zip(request.columns, found, strict=True)}


def parse_single_example(
    serialized: bytes,
    features: Features,
    example_names: str | None = None,
    name: str | None = None,
) -> dict[str, Any]:
    """Read features out of one serialized `tf.train.Example`.

    `parse_example` on batches of bytes is several times quicker, and it can give single examples, too: see there.

    Args:
        serialized: The example.
        features: What to read: a feature for each name. Make it once, outside of the function that is mapped.
        example_names: Its name, for errors.
        name: Ignored; there because tf has it.

    Returns:
        A dict in the order of `features`. For a `FixedLenFeature` or `RawFeature` an array of its shape, or for the
        shape `[]` a numpy scalar or `bytes`. For a `FixedLenSequenceFeature` an array (steps, *shape). For a
        `VarLenFeature` a `SparseTensor` of shape (values,). For a `RaggedFeature` an array (values,).

    Raises:
        ImportError: protobuf is not installed; it comes with the extra `tfrecord`.
        TypeError: An argument is not of these types.
        ValueError: There are no features, or a `FixedLenSequenceFeature` is without `allow_missing`.
        CorruptRecordError: The bytes are no `tf.train.Example`.
        StructureError: The example lacks a feature, or holds another kind or number of values.

    >>> from aiodata import FixedLenFeature, RaggedFeature, encode_example
    >>> record = encode_example({"label": 3, "words": ["a", "b"]})
    >>> parse_single_example(record, {"label": FixedLenFeature([], int), "words": RaggedFeature(bytes)})
    {'label': np.int64(3), 'words': array([b'a', b'b'], dtype=object)}

    Source: `tf.io.parse_single_example`.
    """
    columns = compiled(features, "parse_single_example").columns
    kind = message_class("Example", "parse_single_example")
    record = serialized_single(serialized, "parse_single_example")
    found = decoded(kind, record, None, example_names).features.feature
    return {column.key: column.one(column.read(found, None, example_names)) for column in columns}


def serialized_single(serialized: Any, method: str) -> bytes:
    """Give one example's bytes.

    Raises:
        TypeError: It is something else; names the method.
    """
    if isinstance(serialized, np.ndarray) and serialized.ndim == 0 and serialized.dtype.hasobject:
        serialized = serialized.item()
    if not isinstance(serialized, bytes):
        raise TypeError(f"{method}: serialized must be bytes, not {type(serialized).__name__}")
    return serialized


def serialized_batch(serialized: Any, names: Any, method: str) -> tuple[list[bytes], Sequence[str] | None]:
    """Give a batch of examples' bytes as a list, and their names.

    Raises:
        TypeError: It is something else; names the method.
        ValueError: There are more or fewer names than examples.
    """
    if isinstance(serialized, np.ndarray):
        if serialized.ndim != 1 or not (serialized.dtype.hasobject or not serialized.size):
            raise TypeError(
                f"{method}: serialized must be an object array (n,) of bytes, not one of {serialized.dtype} and shape "
                f"{serialized.shape}; numpy's own text types cut zero bytes off the end"
            )
        records = serialized.tolist()
    elif isinstance(serialized, (list, tuple)):
        records = list(serialized)
    else:
        raise TypeError(f"{method}: serialized must be a list or array of bytes, not {type(serialized).__name__}")
    if set(map(type, records)) - {bytes}:
        for number, record in enumerate(records):
            if not isinstance(record, bytes):
                raise TypeError(f"{method}: example {number} must be bytes, not {type(record).__name__}")
    if names is not None and (isinstance(names, (str, bytes)) or len(names) != len(records)):
        raise ValueError(
            f"{method}: example_names must be {len(records)} names, one for each example, not {names!r:.80}"
        )
    return records, names
