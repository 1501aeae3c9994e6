"""`encode_example` and `encode_sequence_example`: values to serialized `tf.train.Example`s, without TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import numpy as np

from aiodata.formats.example_proto import BYTES, FLOAT, INT64, Kind, message_class
from aiodata.structure import array_of

__all__ = ["encode_example", "encode_sequence_example"]

_TEXT = (str, bytes)


def encode_example(features: Mapping[str, Any]) -> bytes:
    r"""Write features as one serialized `tf.train.Example`, the record of a `TFRecordWriter`.

    Integers and bools are stored as int64, floats as float32 (what is beyond its range becomes infinite), text as
    bytes, str in UTF-8. An array is stored without its shape, in row-major order. An empty list has no dtype, so it is
    stored as a feature of no kind: reading takes it for a feature that is not there. An empty array keeps its kind.
    The same features give the same bytes: names are in sorted order.

    Args:
        features: For each name a number, text, a numpy array or scalar, or a list of numbers or text, which may be
            nested.

    Raises:
        ImportError: protobuf is not installed; it comes with the extra `tfrecord`.
        TypeError: A name is no str, or a value none of these.
        ValueError: A list is ragged or mixes text with numbers, or an integer is beyond int64.

    >>> encode_example({"label": 3})
    b'\n\x10\n\x0e\n\x05label\x12\x05\x1a\x03\n\x01\x03'

    Source: `tf.train.Example`'s `SerializeToString`.
    """
    message = message_class("Example", "encode_example", maps=False)()
    _fill(message.features.feature, features, "encode_example", "features")
    encoded: bytes = message.SerializeToString()
    return encoded


def encode_sequence_example(
    context: Mapping[str, Any] | None = None, feature_lists: Mapping[str, Any] | None = None
) -> bytes:
    """Write a sequence as one serialized `tf.train.SequenceExample`.

    Args:
        context: Features of the whole, as for `encode_example`.
        feature_lists: For each name a list, or an array, of steps; each step is a value as for `encode_example`.
            The steps of one list are of one kind; integers beside floats become floats.

    Raises:
        ImportError: protobuf is not installed; it comes with the extra `tfrecord`.
        TypeError: A name is no str, or a value none of these.
        ValueError: As for `encode_example`; or a list's steps mix text with numbers.

    >>> from aiodata import RaggedFeature, parse_single_sequence_example
    >>> record = encode_sequence_example({"id": 42}, {"words": [["a", "b"], ["c"]]})
    >>> parse_single_sequence_example(record, sequence_features={"words": RaggedFeature(bytes)})[1]["words"][0]
    array([b'a', b'b'], dtype=object)

    Source: `tf.train.SequenceExample`'s `SerializeToString`.
    """
    message = message_class("SequenceExample", "encode_sequence_example", maps=False)()
    _fill(message.context.feature, {} if context is None else context, "encode_sequence_example", "context")
    lists = message.feature_lists.feature_list
    given = {} if feature_lists is None else feature_lists
    for key, steps in _in_order(given, "encode_sequence_example", "feature_lists"):
        owner = f"encode_sequence_example: {key!r}"
        if not isinstance(steps, (list, tuple, np.ndarray)) or (isinstance(steps, np.ndarray) and not steps.ndim):
            raise TypeError(f"{owner} must be a list or array of steps, not {steps!r:.80}")
        values = [_values(step, f"{owner}, step {number}") for number, step in enumerate(steps)]
        kinds = {kind for kind, _ in values if kind is not None}
        if BYTES in kinds and len(kinds) > 1:
            raise ValueError(f"{owner}: its steps mix text with numbers")
        made = _added(lists, key).feature
        for kind, step_values in values:
            _set(made.add(), FLOAT if kind is INT64 and FLOAT in kinds else kind, step_values)
    encoded: bytes = message.SerializeToString()
    return encoded


def _in_order(features: Any, method: str, argument: str) -> list[tuple[str, Any]]:
    if not isinstance(features, Mapping):
        raise TypeError(f"{method}: {argument} must be a dict of names and values, not {type(features).__name__}")
    for key in features:
        if not isinstance(key, str):
            raise TypeError(f"{method}: a feature's name must be a str, not {key!r}")
    return sorted(features.items(), key=itemgetter(0))


def _fill(target: Any, features: Any, method: str, argument: str) -> None:
    for key, value in _in_order(features, method, argument):
        _set(_added(target, key), *_values(value, f"{method}: {key!r}"))


def _added(entries: Any, key: str) -> Any:
    """Add an entry, with an empty message; give that."""
    message = entries.add(key=key).value
    message.SetInParent()  # so that an empty one is written, too
    return message


def _set(feature: Any, kind: Kind | None, values: list[Any]) -> None:
    if kind is not None:
        getattr(feature, kind.list_name).SetInParent()  # so that an empty list has a kind, too
        kind.values_of(feature).extend(values)


def _values(value: Any, owner: str) -> tuple[Kind | None, list[Any]]:
    """Give the kind that a value is stored as, None for an empty list, and its values one after the other."""
    try:
        array = array_of(list(value) if isinstance(value, tuple) else [value] if isinstance(value, _TEXT) else value)
    except ValueError as error:
        raise ValueError(f"{owner}: {error}") from None
    if isinstance(value, (list, tuple)) and not array.size:
        return None, []
    flat = array.ravel()
    if array.dtype.kind in "biu":
        if array.dtype.kind == "u" and array.size and flat.max() > np.iinfo(np.int64).max:
            raise ValueError(f"{owner}: {flat.max()} does not fit int64")
        return INT64, flat.astype(np.int64).tolist()
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return FLOAT, flat.astype(np.float32).tolist()
    given = flat.tolist()
    if array.dtype.hasobject and all(isinstance(one, _TEXT) for one in given):
        return BYTES, [one.encode() if isinstance(one, str) else bytes(one) for one in given]
    if array.dtype.hasobject and all(isinstance(one, int) for one in given):
        raise ValueError(f"{owner}: an integer does not fit int64")
    raise TypeError(f"{owner} must be a number, text, or a list or array of them, not {value!r:.80}")
