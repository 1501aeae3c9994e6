"""`parse_sequence_example` and `parse_single_sequence_example`."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiodata import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    VarLenFeature,
    encode_sequence_example,
    parse_sequence_example,
    parse_single_sequence_example,
)
from aiodata.errors import CorruptRecordError, DataError, StructureError
from aiodata.sparse import SparseTensor
from tests.programs import arr, assert_same, objects

pytest.importorskip("google.protobuf", reason="tf.train.Example needs protobuf")

from tests.formats.examples import SequenceExample, block, feature, named

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "tfrecord" / "expected.json"


def f32(*values: float) -> np.ndarray[Any, Any]:
    return arr(values, np.float32)


def sequence(**lists: Any) -> bytes:
    return encode_sequence_example({}, lists)


def test_what_tensorflow_wrote() -> None:
    given = json.loads(GOLDEN.read_text())
    record = base64.b64decode(given["sequence_example_base64"])
    expected = given["sequence_example"]
    context, lists = parse_single_sequence_example(
        record,
        {"id": FixedLenFeature([], np.int64)},
        {"words": FixedLenSequenceFeature([], bytes), "scores": FixedLenSequenceFeature([2], np.float32)},
    )
    assert_same(context, {"id": np.int64(expected["context"]["id"])})
    words = objects(*[word.encode() for word in expected["words"]])
    assert_same(lists, {"words": words, "scores": arr(expected["scores"], np.float32)})
    written = encode_sequence_example(expected["context"], {key: expected[key] for key in ("words", "scores")})
    assert SequenceExample.FromString(written) == SequenceExample.FromString(record)


RECORDS = [
    encode_sequence_example({"id": 1}, {"x": [[1, 2], [3, 4]], "v": [[0.5], [], [1.5, 2.5]], "w": ["a", "b"]}),
    encode_sequence_example({"id": 2, "tags": ["t", "u"]}, {"x": [[5, 6]], "v": [], "w": []}),
    encode_sequence_example({"id": 3}, {"x": [], "v": [[3.5]]}),
]
CONTEXT: dict[str, Any] = {"id": FixedLenFeature([], np.int64), "tags": VarLenFeature(bytes)}
LISTS: dict[str, Any] = {
    "x": FixedLenSequenceFeature([2], np.int64, default_value=-1),
    "v": VarLenFeature(np.float32),
    "w": FixedLenSequenceFeature([], bytes, allow_missing=True),
    "r": RaggedFeature(np.float32, "v"),
}


def test_a_batch() -> None:
    context, lists, lengths = parse_sequence_example(RECORDS, CONTEXT, LISTS)
    tags = SparseTensor(arr([[1, 0], [1, 1]]), objects(b"t", b"u"), arr([3, 2]))
    assert_same(context, {"id": arr([1, 2, 3]), "tags": tags})
    assert_same(
        lists,
        {
            "x": arr([[[1, 2], [3, 4]], [[5, 6], [-1, -1]], [[-1, -1], [-1, -1]]]),
            "v": SparseTensor(
                arr([[0, 0, 0], [0, 2, 0], [0, 2, 1], [2, 0, 0]]), f32(0.5, 1.5, 2.5, 3.5), arr([3, 3, 2])
            ),
            "w": arr([[b"a", b"b"], [b"", b""], [b"", b""]], object),
            "r": objects(objects(f32(0.5), f32(), f32(1.5, 2.5)), objects(), objects(f32(3.5))),
        },
    )
    assert_same(lengths, {"x": arr([2, 1, 0]), "w": arr([2, 0, 0])})


def test_one_by_one() -> None:
    context, lists = parse_single_sequence_example(RECORDS[0], CONTEXT, LISTS)
    tags = SparseTensor(np.zeros((0, 1), np.int64), objects(), arr([0]))
    assert_same(context, {"id": np.int64(1), "tags": tags})
    assert_same(
        lists,
        {
            "x": arr([[1, 2], [3, 4]]),
            "v": SparseTensor(arr([[0, 0], [2, 0], [2, 1]]), f32(0.5, 1.5, 2.5), arr([3, 2])),
            "w": objects(b"a", b"b"),
            "r": objects(f32(0.5), f32(), f32(1.5, 2.5)),
        },
    )


def test_no_examples_and_no_steps() -> None:
    context, lists, lengths = parse_sequence_example([], CONTEXT, LISTS)
    nothing = SparseTensor(np.zeros((0, 2), np.int64), objects(), arr([0, 0]))
    assert_same(context, {"id": arr([]), "tags": nothing})
    assert_same(
        lists,
        {
            "x": np.zeros((0, 0, 2), np.int64),
            "v": SparseTensor(np.zeros((0, 3), np.int64), f32(), arr([0, 0, 0])),
            "w": np.zeros((0, 0), object),
            "r": objects(),
        },
    )
    assert_same(lengths, {"x": arr([]), "w": arr([])})
    for record in (sequence(x=[]), sequence(x=[], v=[])):
        _, single = parse_single_sequence_example(record, None, LISTS)
        assert_same(single["x"], np.zeros((0, 2), np.int64))
        assert_same(single["v"], SparseTensor(np.zeros((0, 2), np.int64), f32(), arr([0, 0])))
        assert_same(single["r"], objects())


@pytest.mark.parametrize(
    ("record", "wanted", "message"),
    [
        (sequence(), {"x": FixedLenSequenceFeature([], np.int64)}, "feature list 'x': it is required (int64)"),
        (sequence(x=[1, 2]), {"x": FixedLenSequenceFeature([], np.float32)}, "'x', step 0: it should hold float32"),
        (sequence(x=[1, []]), {"x": FixedLenSequenceFeature([], np.int64)}, "'x', step 1: it should have 1 values"),
        (sequence(x=[[1], [1, 2]]), {"x": FixedLenSequenceFeature([1], np.int64)}, "step 1: it should have 1 values"),
        (sequence(x=["a"]), {"x": VarLenFeature(np.int64)}, "'x', step 0: it should hold int64, but holds bytes"),
    ],
)
def test_errors_name_the_step(record: bytes, wanted: Any, message: str) -> None:
    with pytest.raises(StructureError) as raised:
        parse_sequence_example([sequence(x=[]), record], None, wanted, ["p", "q"])
    assert str(raised.value).startswith("example 1 'q', feature list 'x'")
    assert message in str(raised.value)
    with pytest.raises(StructureError) as raised:
        parse_single_sequence_example(record, sequence_features=wanted)
    assert str(raised.value).startswith("feature list 'x'")


def test_context_errors_and_damage() -> None:
    with pytest.raises(StructureError, match=r"^example 1, feature 'id': it is required"):
        parse_sequence_example([RECORDS[0], sequence()], CONTEXT)
    with pytest.raises(CorruptRecordError, match=r"record 1: its 4 bytes are no tf\.train\.SequenceExample") as raised:
        parse_sequence_example([RECORDS[0], b"junk"], CONTEXT)
    assert raised.value.record == 1


@given(st.binary(max_size=60))
def test_any_bytes_give_a_result_or_a_data_error(noise: bytes) -> None:
    for record in (noise, block(2, named("v", noise)), block(2, named("v", block(1, noise) + feature("float", [1])))):
        try:
            _, lists = parse_single_sequence_example(record, None, {"v": VarLenFeature(np.float32)})
        except DataError:
            continue
        assert len(lists["v"].indices) == len(lists["v"].values)


def test_wrong_arguments() -> None:
    wrong: list[tuple[tuple[Any, ...], type[Exception], str]] = [
        (([], None, None), ValueError, "no features"),
        (
            ([], {"x": FixedLenSequenceFeature([], int, True)}, None),
            TypeError,
            "context_features: there can be no such",
        ),
        (([], None, {"x": FixedLenFeature([], int)}), TypeError, "sequence_features: there can be no such"),
        (([], [], None), TypeError, "context_features must be a dict"),
        ((b"", CONTEXT), TypeError, "serialized must be a list or array of bytes"),
        (([5], CONTEXT), TypeError, "example 0 must be bytes"),
        (([b""], CONTEXT, None, ["a", "b"]), ValueError, "example_names must be 1 names"),
    ]
    for arguments, error, message in wrong:
        with pytest.raises(error, match=r"^parse_sequence_example: ") as raised:
            parse_sequence_example(*arguments)
        assert message in str(raised.value)
    wrong_bytes: Any = [b""]
    with pytest.raises(TypeError, match=r"^parse_single_sequence_example: serialized must be bytes"):
        parse_single_sequence_example(wrong_bytes, CONTEXT)
