"""`parse_sequence_example` and `parse_single_sequence_example`: `tf.train.SequenceExample`s to numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from aiodata.errors import StructureError
from aiodata.formats.example import serialized_batch, serialized_single
from aiodata.formats.example_batch import gathered
from aiodata.formats.example_columns import Column, example_name, positions, rows_of
from aiodata.formats.example_features import (
    Features,
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    RawFeature,
    VarLenFeature,
)
from aiodata.formats.example_proto import Kind, decoded, held, message_class
from aiodata.formats.example_request import checked, column_of
from aiodata.sparse import SparseTensor

__all__ = ["parse_sequence_example", "parse_single_sequence_example"]

Array: TypeAlias = "np.ndarray[Any, Any]"
_CONTEXT = (FixedLenFeature, RawFeature, VarLenFeature, RaggedFeature)
_SEQUENCE = (FixedLenSequenceFeature, VarLenFeature, RaggedFeature)


def parse_sequence_example(
    serialized: Sequence[bytes] | Array,
    context_features: Features | None = None,
    sequence_features: Features | None = None,
    example_names: Sequence[str] | None = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Read features out of a batch of serialized `tf.train.SequenceExample`s.

    Args:
        serialized: A list or object array (n,) of `bytes`.
        context_features: What to read of the whole: a `FixedLenFeature`, `RawFeature`, `VarLenFeature` or
            `RaggedFeature` for each name.
        sequence_features: What to read of the steps: a `FixedLenSequenceFeature`, `VarLenFeature` or `RaggedFeature`
            for each name. What `allow_missing` does not allow is an example without the whole list.
        example_names: n names of the examples, for errors.
        name: Ignored; there because tf has it.

    Returns:
        Three dicts. The context, as `parse_example` gives it. The sequences: for a `FixedLenSequenceFeature` an array
        (n, most steps, *shape), padded; for a `VarLenFeature` a `SparseTensor` of shape (n, most steps, most values);
        for a `RaggedFeature` an object array (n,) of object arrays (steps,) of arrays. The numbers of steps, int64
        (n,), of each `FixedLenSequenceFeature`.

    Raises:
        ImportError: protobuf is not installed; it comes with the extra `tfrecord`.
        TypeError: An argument is not of these types.
        ValueError: There are no features at all, or more or fewer names than examples.
        CorruptRecordError: Bytes are no `tf.train.SequenceExample`.
        StructureError: An example lacks a feature, or holds another kind or number of values.

    >>> import aiodata, numpy as np
    >>> records = [aiodata.encode_sequence_example({}, {"x": steps}) for steps in ([1], [2, 3])]
    >>> features = {"x": aiodata.FixedLenSequenceFeature([], np.int64)}
    >>> aiodata.parse_sequence_example(records, sequence_features=features)[1:]
    ({'x': array([[1, 0],
           [2, 3]])}, {'x': array([1, 2])})

    Source: `tf.io.parse_sequence_example`.
    """
    method = "parse_sequence_example"
    context, sequence = _columns(context_features, sequence_features, method)
    records, names = serialized_batch(serialized, example_names, method)
    kind = message_class("SequenceExample", method)
    whole: list[list[Any]] = [[] for _ in context]
    steps: list[list[list[Any]]] = [[] for _ in sequence]
    for number, record in enumerate(records):
        title = None if names is None else names[number]
        message = decoded(kind, record, number, title)
        for column, values in zip(context, whole, strict=True):
            values.append(column.read(message.context.feature, number, title))
        for reader, lists in zip(sequence, steps, strict=True):
            lists.append(reader.read(message.feature_lists.feature_list, number, title))
    gathered_whole = [gathered(values, column) for column, values in zip(context, whole, strict=True)]
    found = [(reader, reader.joined(lists)) for reader, lists in zip(sequence, steps, strict=True)]
    return (
        {column.key: column.many(*values) for column, values in zip(context, gathered_whole, strict=True)},
        {reader.column.key: reader.many(joined) for reader, joined in found},
        {reader.column.key: joined.steps for reader, joined in found if reader.dense},
    )


def parse_single_sequence_example(
    serialized: bytes,
    context_features: Features | None = None,
    sequence_features: Features | None = None,
    example_name: str | None = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read features out of one serialized `tf.train.SequenceExample`.

    Args:
        serialized: The example.
        context_features: As for `parse_sequence_example`.
        sequence_features: As for `parse_sequence_example`.
        example_name: Its name, for errors.
        name: Ignored; there because tf has it.

    Returns:
        Two dicts. The context, as `parse_single_example` gives it. The sequences: for a `FixedLenSequenceFeature` an
        array (steps, *shape); for a `VarLenFeature` a `SparseTensor` of shape (steps, most values); for a
        `RaggedFeature` an object array (steps,) of arrays.

    Raises:
        ImportError: protobuf is not installed; it comes with the extra `tfrecord`.
        TypeError: An argument is not of these types.
        ValueError: There are no features at all.
        CorruptRecordError: The bytes are no `tf.train.SequenceExample`.
        StructureError: The example lacks a feature, or holds another kind or number of values.

    >>> import aiodata, numpy as np
    >>> record = aiodata.encode_sequence_example({"id": 42}, {"scores": [[0.5, 1.5], [2.5, 3.5]]})
    >>> aiodata.parse_single_sequence_example(
    ...     record,
    ...     {"id": aiodata.FixedLenFeature([], np.int64)},
    ...     {"scores": aiodata.FixedLenSequenceFeature([2], np.float32)},
    ... )
    ({'id': np.int64(42)}, {'scores': array([[0.5, 1.5],
           [2.5, 3.5]], dtype=float32)})

    Source: `tf.io.parse_single_sequence_example`.
    """
    method = "parse_single_sequence_example"
    context, sequence = _columns(context_features, sequence_features, method)
    kind = message_class("SequenceExample", method)
    message = decoded(kind, serialized_single(serialized, method), None, example_name)
    whole, lists = message.context.feature, message.feature_lists.feature_list
    return (
        {column.key: column.one(column.read(whole, None, example_name)) for column in context},
        {reader.column.key: reader.one(reader.joined([reader.read(lists, None, example_name)])) for reader in sequence},
    )


def _columns(context: Any, sequence: Any, method: str) -> tuple[list[Column], list[_StepReader]]:
    whole = checked({} if context is None else context, _CONTEXT, f"{method}: context_features")
    steps = checked({} if sequence is None else sequence, _SEQUENCE, f"{method}: sequence_features")
    if not whole and not steps:
        raise ValueError(f"{method}: there are no features to read")
    return (
        [column_of(name, feature) for name, feature in whole.items()],
        [_StepReader(column_of(name, feature), feature) for name, feature in steps.items()],
    )


class _Steps(NamedTuple):
    """The steps of some examples: all values, how many each step has, and how many steps each example has."""

    values: Array
    lengths: Array
    steps: Array


class _StepReader:
    """One requested list of steps."""

    def __init__(self, column: Column, feature: Any) -> None:
        self.column = column
        self.dense = isinstance(feature, FixedLenSequenceFeature)
        self._sparse = isinstance(feature, VarLenFeature)
        self._size = int(np.prod(feature.shape, dtype=np.int64)) if self.dense else 0

    def read(self, lists: Mapping[str, Any], number: int | None, name: str | None) -> list[Any]:
        """Give the values of each step of an example.

        Raises:
            StructureError: They are missing, of another kind, or of another number.
        """
        kind, key = self.column.kind, self.column.source
        place = f"{example_name(number, name)}feature list {key!r}"
        if key not in lists:
            if self.column.absent is None:
                raise StructureError(f"{place}: it is required ({kind.name}), but the example does not have it")
            return []
        steps = []
        for step, feature in enumerate(lists[key].feature):
            values = held(feature, kind)
            if isinstance(values, Kind):
                raise StructureError(f"{place}, step {step}: it should hold {kind.name}, but holds {values.name}")
            values = () if values is None else values
            if self.dense and len(values) != self._size:
                raise StructureError(f"{place}, step {step}: it should have {self._size} values, but has {len(values)}")
            steps.append(values)
        return steps

    def joined(self, examples: list[list[Any]]) -> _Steps:
        """Join the steps of examples."""
        values, lengths = gathered([values for steps in examples for values in steps], self.column.kind)
        return _Steps(values, lengths, np.fromiter(map(len, examples), np.int64, len(examples)))

    def one(self, found: _Steps) -> Any:
        """Give the component of a single example."""
        if self.dense:
            return self.column.one(found.values)
        if self._sparse:
            return self.column.many(found.values, found.lengths)
        return rows_of(found.values, found.lengths)

    def many(self, found: _Steps) -> Any:
        """Give the component of a batch."""
        if self.dense:
            return self.column.many(found.values, found.steps * self._size)
        if not self._sparse:
            return rows_of(rows_of(found.values, found.lengths), found.steps)
        examples, numbers = positions(found.steps)
        steps, places = positions(found.lengths)
        shape = [len(found.steps), found.steps.max(initial=0), found.lengths.max(initial=0)]
        return SparseTensor(np.stack((examples[steps], numbers[steps], places), axis=1), found.values, np.array(shape))
