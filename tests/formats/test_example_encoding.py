"""`encode_example`, `encode_sequence_example`: what they write, bit by bit and by protobuf's own parser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiodata import (
    Dataset,
    FixedLenFeature,
    RaggedFeature,
    TFRecordDataset,
    TFRecordWriter,
    encode_example,
    encode_sequence_example,
    parse_example,
    parse_single_example,
)
from tests.programs import arr, assert_same, objects, to_list

pytest.importorskip("google.protobuf", reason="tf.train.Example needs protobuf")

from tests.formats.examples import SequenceExample, block, contents, example, feature, named

INT64S = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(width=32, allow_nan=False)


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=5),
        st.one_of(
            st.tuples(st.just("int64"), st.lists(INT64S, min_size=1, max_size=5)),
            st.tuples(st.just("float"), st.lists(FLOATS, min_size=1, max_size=5)),
            st.tuples(st.just("bytes"), st.lists(st.binary(max_size=5), min_size=1, max_size=5)),
        ),
        max_size=4,
    )
)
def test_what_is_written_bit_by_bit(features: dict[str, tuple[str, list[Any]]]) -> None:
    written = encode_example({name: values for name, (_, values) in features.items()})
    in_order = sorted(features.items(), key=lambda item: item[0].encode())
    expected = example(*[(name, kind, values) for name, (kind, values) in in_order])
    assert written == (expected if features else b"")
    assert contents(written) == features


@pytest.mark.parametrize(
    ("value", "kind", "values"),
    [
        (5, "int64", [5]),
        (True, "int64", [1]),
        (np.int8(-1), "int64", [-1]),
        (np.bool_(False), "int64", [0]),
        (np.uint64(2**63 - 1), "int64", [2**63 - 1]),
        ([True, 2], "int64", [1, 2]),
        (arr([[1, 2], [3, 4]], np.int32), "int64", [1, 2, 3, 4]),
        (np.asfortranarray([[1, 2], [3, 4]]), "int64", [1, 2, 3, 4]),
        ([[1, 2], [3, 4]], "int64", [1, 2, 3, 4]),
        (arr([], np.uint8), "int64", []),
        (arr(7), "int64", [7]),
        (0.1, "float", [float(np.float32(0.1))]),
        (1e300, "float", [float("inf")]),
        ([1, 2.5], "float", [1.0, 2.5]),
        ((1.5, 2), "float", [1.5, 2.0]),
        (np.float16(1.5), "float", [1.5]),
        (arr([1.5, 2.5], np.float64)[::-1], "float", [2.5, 1.5]),
        (arr([], np.float64), "float", []),
        (b"a\0", "bytes", [b"a\0"]),
        ("é", "bytes", ["é".encode()]),
        ("", "bytes", [b""]),
        (["a", b"b\0"], "bytes", [b"a", b"b\0"]),
        (("a", b"b\0"), "bytes", [b"a", b"b\0"]),
        (np.str_("x"), "bytes", [b"x"]),
        (np.bytes_(b"x"), "bytes", [b"x"]),
        (np.array(["x", "yz"]), "bytes", [b"x", b"yz"]),
        (objects("x", b"y"), "bytes", [b"x", b"y"]),
        (objects(), "bytes", []),
        ([], None, []),
        ((), None, []),
        ([[], []], None, []),
    ],
)
def test_kinds_of_values(value: Any, kind: str | None, values: list[Any]) -> None:
    written = encode_example({"x": value})
    assert written == block(1, named("x", feature(kind, values)))
    assert contents(written) == {"x": (kind, values)}


def test_names_are_in_order_whatever_the_dicts_is() -> None:
    forth = dict.fromkeys("abcdefghijké", 1)
    back = dict(reversed(forth.items()))
    assert encode_example(forth) == encode_example(back) == example(*[(name, "int64", [1]) for name in forth])


@pytest.mark.parametrize(
    ("features", "error", "message"),
    [
        ({"x": None}, TypeError, "'x' must be a number, text, or a list or array of them, not None"),
        ({"x": 1j}, TypeError, "'x' must be"),
        ({"x": {"y": 1}}, TypeError, "'x' must be"),
        ({"x": [None]}, TypeError, "'x' must be"),
        ({"x": np.datetime64("2024-01-01")}, TypeError, "'x' must be"),
        ({"x": [[1], [1, 2]]}, ValueError, "'x': the list is ragged"),
        ({"x": ["a", 1]}, ValueError, "'x': the list mixes text"),
        ({"x": 2**63}, ValueError, "'x': 9223372036854775808 does not fit int64"),
        ({"x": [2**70]}, ValueError, "'x': an integer does not fit int64"),
        ({1: 1}, TypeError, "a feature's name must be a str, not 1"),
        ([1], TypeError, "features must be a dict"),
    ],
)
def test_what_cannot_be_written(features: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        encode_example(features)
    assert type(raised.value) is error
    assert str(raised.value).startswith("encode_example: ")
    assert message in str(raised.value)


def test_a_name_may_be_empty() -> None:
    assert contents(encode_example({"": 5, "x": []})) == {"": ("int64", [5]), "x": (None, [])}


def test_files_are_read_back(tmp_path: Path) -> None:
    pytest.importorskip("google_crc32c", reason="TFRecord's checksums need google-crc32c")
    rows: list[dict[str, Any]] = [
        {"x": arr([n, n + 0.5], np.float32), "n": n * 1000, "words": ["w"] * (n % 3)} for n in range(40)
    ]
    with TFRecordWriter(tmp_path / "x.tfrecord") as writer:
        for row in rows:
            writer.write(encode_example(row))
    features = {
        "x": FixedLenFeature([2], np.float32),
        "n": FixedLenFeature([], np.int64),
        "words": RaggedFeature(bytes),
    }
    expected = [{"x": row["x"], "n": np.int64(row["n"]), "words": objects(*[b"w"] * len(row["words"]))} for row in rows]
    files = TFRecordDataset(tmp_path / "x.tfrecord")
    assert_same(to_list(files.map(lambda record: parse_single_example(record, features))), expected)
    batches: Dataset[Any] = files.batch(16).map(lambda records: parse_example(records, features))
    assert_same(to_list(batches.unbatch()), expected)
    assert [contents(record)["n"] for record in to_list(files)] == [("int64", [n * 1000]) for n in range(40)]


def test_a_sequence_bit_by_bit() -> None:
    written = encode_sequence_example(
        {"id": 42, "a": "text"},
        {"scores": arr([[0.5, 1.5], [2.5, 3.5]], np.float64), "words": ["a", ["bc", b""]], "none": []},
    )
    context = named("a", feature("bytes", [b"text"])) + named("id", feature("int64", [42]))
    scores = block(1, feature("float", [0.5, 1.5])) + block(1, feature("float", [2.5, 3.5]))
    words = block(1, feature("bytes", [b"a"])) + block(1, feature("bytes", [b"bc", b""]))
    lists = named("none", b"") + named("scores", scores) + named("words", words)
    assert written == block(1, context) + block(2, lists)
    message = SequenceExample.FromString(written)
    assert list(message.context.feature["id"].int64_list.value) == [42]
    assert [list(step.float_list.value) for step in message.feature_lists.feature_list["scores"].feature] == [
        [0.5, 1.5],
        [2.5, 3.5],
    ]
    assert encode_sequence_example() == b""


def test_steps_of_integers_and_floats_are_floats() -> None:
    mixed = encode_sequence_example(None, {"x": [1, 2.5, []]})
    steps = block(1, feature("float", [1])) + block(1, feature("float", [2.5])) + block(1, b"")
    assert mixed == block(2, named("x", steps))


@pytest.mark.parametrize(
    ("lists", "error", "message"),
    [
        ({"x": "text"}, TypeError, "'x' must be a list or array of steps, not 'text'"),
        ({"x": arr(5)}, TypeError, "'x' must be a list or array of steps"),
        ({"x": [1, "a"]}, ValueError, "'x': its steps mix text with numbers"),
        ({"x": [1, None]}, TypeError, "'x', step 1 must be a number"),
        ([], TypeError, "feature_lists must be a dict"),
    ],
)
def test_what_is_no_sequence(lists: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        encode_sequence_example({}, lists)
    assert str(raised.value).startswith("encode_sequence_example: ")
    assert message in str(raised.value)
