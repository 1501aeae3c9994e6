"""`parse_example`, `parse_single_example`: what TensorFlow gave, all kinds of features, errors, damage, pipelines."""

from __future__ import annotations

import base64
import json
import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aiodata
from aiodata import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    TFRecordDataset,
    VarLenFeature,
    parse_example,
    parse_single_example,
)
from aiodata.errors import CorruptRecordError, DataError, StructureError
from aiodata.sparse import SparseTensor
from tests.programs import arr, assert_same, objects, outcomes, same, to_list

pytest.importorskip("google.protobuf", reason="tf.train.Example needs protobuf")
pytest.importorskip("google_crc32c", reason="TFRecord's checksums need google-crc32c")

from tests.formats.examples import example

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "tfrecord"
EXPECTED: dict[str, Any] = json.loads((GOLDEN / "expected.json").read_text())
FEATURES: dict[str, Any] = {
    "image": FixedLenFeature([], bytes),
    "label": FixedLenFeature([], np.int64, -99),
    "embedding": FixedLenFeature([2, 2], np.float32),
    "tokens": FixedLenSequenceFeature([], np.int64, allow_missing=True, default_value=0),
}


def f32(*values: float) -> np.ndarray[Any, Any]:
    return arr(values, np.float32)


def texts(encoded: list[str]) -> list[bytes]:
    return [base64.b64decode(text) for text in encoded]


def golden(start: int, stop: int) -> dict[str, Any]:
    """Return what TensorFlow's parse_example gave of all 25 examples, for some of them."""
    given = EXPECTED["parse_example"]
    tokens = [example["tokens"][1] if "tokens" in example else [] for example in EXPECTED["examples"][start:stop]]
    longest = max(map(len, tokens))
    return {
        "image": objects(*texts(given["image_base64"])[start:stop]),
        "label": arr(given["label"][start:stop]),
        "embedding": arr(given["embedding"][start:stop], np.float32),
        "tokens": arr(given["tokens"])[start:stop, :longest],
    }


# What TensorFlow gave


def test_a_batch_as_tensorflow_parses_it() -> None:
    (batch,) = to_list(TFRecordDataset(GOLDEN / "examples-plain.tfrecord").batch(25))
    assert_same(parse_example(batch, FEATURES), golden(0, 25))
    assert arr(EXPECTED["parse_example"]["tokens"]).shape == golden(0, 25)["tokens"].shape


@pytest.mark.parametrize("size", [1, 2, 10, 25])
def test_a_pipeline_that_parses_batches(size: int) -> None:
    files = TFRecordDataset(GOLDEN / "examples-gzip.tfrecord", "GZIP")
    ds = files.batch(size).map(lambda records: parse_example(records, FEATURES))
    for number, batch in enumerate(to_list(ds)):
        assert_same(batch, golden(number * size, min(number * size + size, 25)))


def test_a_pipeline_that_parses_one_by_one() -> None:
    ds = TFRecordDataset(GOLDEN / "examples-zlib.tfrecord", "ZLIB").map(lambda x: parse_single_example(x, FEATURES))
    everything = golden(0, 25)
    for number, (found, wrote) in enumerate(zip(to_list(ds), EXPECTED["examples"], strict=True)):
        tokens = wrote["tokens"][1] if "tokens" in wrote else []
        rest = {key: everything[key][number] for key in ("image", "label", "embedding")}
        assert_same(found, rest | {"tokens": arr(tokens)})
    (batch,) = to_list(ds.padded_batch(25))
    assert_same(batch, everything)


def test_a_pipeline_that_parses_blocks_to_single_examples() -> None:
    wanted: dict[str, Any] = FEATURES | {"tokens": RaggedFeature(np.int64)}
    files = TFRecordDataset(GOLDEN / "examples-plain.tfrecord")
    blocks = files.map(partial(parse_example, features=wanted), vectorized=True)
    assert_same(to_list(blocks), to_list(files.map(lambda record: parse_single_example(record, wanted))))


def test_every_feature_as_it_was_written() -> None:
    kinds = {"bytes": bytes, "int64": np.int64, "float": np.float32}
    records = to_list(TFRecordDataset(GOLDEN / "examples-plain.tfrecord"))
    for record, wrote in zip(records, EXPECTED["examples"], strict=True):
        wanted = {name: RaggedFeature(kinds[kind]) for name, (kind, _) in wrote.items()}
        expected = {
            name: objects(*texts(values)) if kind == "bytes" else arr(values, kinds[kind])
            for name, (kind, values) in wrote.items()
        }
        assert_same(parse_single_example(record, wanted), expected)
        sparse = parse_single_example(record, {name: VarLenFeature(feature.dtype) for name, feature in wanted.items()})
        assert_same({name: found.values for name, found in sparse.items()}, expected)


# Kinds of features

RECORDS = [
    example(("n", "int64", [1]), ("v", "float", [0.5, 1.5]), ("t", "bytes", [b"a", b"b\0"])),
    example(("n", "int64", [-2]), ("v", "float", []), ("t", "bytes", [b""])),
    example(("n", "int64", [2**63 - 1]), ("v", "float", [2.5, 3.5, 4.5, 5.5])),
]


def test_fixed_features() -> None:
    wanted = {
        "n": FixedLenFeature([], np.int64),
        "one": FixedLenFeature([1], "int64", [7]),
        "grid": FixedLenFeature((2, 1), np.float32, [[1], [2.5]]),
        "text": FixedLenFeature([], str, "é"),
        "none": FixedLenFeature([0], float, []),
    }
    assert_same(
        parse_example(RECORDS, wanted),
        {
            "n": arr([1, -2, 2**63 - 1]),
            "one": arr([[7], [7], [7]]),
            "grid": arr([[[1], [2.5]]] * 3, np.float32),
            "text": objects(*["é".encode()] * 3),
            "none": np.zeros((3, 0), np.float32),
        },
    )
    assert_same(
        parse_single_example(RECORDS[1], wanted),
        {
            "n": np.int64(-2),
            "one": arr([7]),
            "grid": arr([[1], [2.5]], np.float32),
            "text": "é".encode(),
            "none": np.zeros(0, np.float32),
        },
    )


def test_features_of_any_length() -> None:
    assert_same(
        parse_example(
            RECORDS,
            {
                "v": VarLenFeature(np.float32),
                "t": VarLenFeature(bytes),
                "none": VarLenFeature(np.int64),
            },
        ),
        {
            "v": SparseTensor(
                arr([[0, 0], [0, 1], [2, 0], [2, 1], [2, 2], [2, 3]]), f32(0.5, 1.5, 2.5, 3.5, 4.5, 5.5), arr([3, 4])
            ),
            "t": SparseTensor(arr([[0, 0], [0, 1], [1, 0]]), objects(b"a", b"b\0", b""), arr([3, 2])),
            "none": SparseTensor(np.zeros((0, 2), np.int64), arr([]), arr([3, 0])),
        },
    )
    assert_same(
        parse_example(
            RECORDS,
            {
                "v": FixedLenSequenceFeature([2], np.float32, True, -1),
                "t": FixedLenSequenceFeature([], bytes, True),
                "none": FixedLenSequenceFeature([], np.int64, True),
                "again": RaggedFeature(np.float32, value_key="v"),
            },
        ),
        {
            "v": arr([[[0.5, 1.5], [-1, -1]], [[-1, -1], [-1, -1]], [[2.5, 3.5], [4.5, 5.5]]], np.float32),
            "t": arr([[b"a", b"b\0"], [b"", b""], [b"", b""]], object),
            "none": np.zeros((3, 0), np.int64),
            "again": objects(f32(0.5, 1.5), f32(), f32(2.5, 3.5, 4.5, 5.5)),
        },
    )


def test_features_of_any_length_one_by_one() -> None:
    wanted = {
        "v": VarLenFeature(np.float32),
        "t": RaggedFeature(bytes),
        "pairs": RaggedFeature(np.float32, "v"),
        "none": FixedLenSequenceFeature([3], np.int64, True),
    }
    assert_same(
        parse_single_example(RECORDS[0], wanted),
        {
            "v": SparseTensor(arr([[0], [1]]), f32(0.5, 1.5), arr([2])),
            "t": objects(b"a", b"b\0"),
            "pairs": f32(0.5, 1.5),
            "none": np.zeros((0, 3), np.int64),
        },
    )
    padded = {"v": FixedLenSequenceFeature([2], np.float32, True)}
    assert_same(parse_single_example(RECORDS[2], padded), {"v": arr([[2.5, 3.5], [4.5, 5.5]], np.float32)})


@pytest.mark.parametrize("records", [[], np.array([], object), np.array([])])
def test_an_empty_batch(records: Any) -> None:
    wanted = {
        "a": FixedLenFeature([2], np.float32),
        "b": FixedLenSequenceFeature([2], np.int64, True),
        "c": VarLenFeature(bytes),
        "d": RaggedFeature(bytes),
    }
    expected = {
        "a": np.zeros((0, 2), np.float32),
        "b": np.zeros((0, 0, 2), np.int64),
        "c": SparseTensor(np.zeros((0, 2), np.int64), objects(), arr([0, 0])),
        "d": objects(),
    }
    assert_same(parse_example(records, wanted), expected)


@pytest.mark.parametrize("count", [1, 15, 16, 17, 100])
def test_results_are_writable_and_nobody_elses(count: int) -> None:
    records = [example(("x", "float", [1.0, 2.0]), ("n", "int64", [300, 5]), ("m", "int64", [5]))] * count
    wanted = {
        "x": FixedLenFeature([2], np.float32),
        "n": FixedLenSequenceFeature([], np.int64, True),
        "m": VarLenFeature(np.int64),
        "default": FixedLenFeature([2], np.int64, [1, 2]),
    }
    first, second = parse_example(records, wanted), parse_example(records, wanted)
    for array in (first["x"], first["n"], first["m"].values, first["default"]):
        array[...] = 0
    assert_same(parse_example(records, wanted), second)
    single = parse_single_example(records[0], wanted)
    single["default"][...] = 0
    assert_same(parse_single_example(records[0], wanted)["default"], arr([1, 2]))


def test_a_feature_of_no_kind_is_a_missing_one() -> None:
    record = example(("x", None, []))
    assert_same(parse_single_example(record, {"x": FixedLenFeature([], np.int64, 5)}), {"x": np.int64(5)})
    assert_same(parse_example([record], {"x": RaggedFeature(np.float32)}), {"x": objects(f32())})
    with pytest.raises(StructureError, match="'x': it is required"):
        parse_example([record], {"x": FixedLenFeature([], np.int64)})


# Errors


@pytest.mark.parametrize("count", [4, 50])
@pytest.mark.parametrize(
    ("feature", "wrong", "message"),
    [
        (FixedLenFeature([], np.int64), [], "it is required (int64), but the example does not have it"),
        (FixedLenFeature([], np.int64), [("x", "float", [1.0])], "it should hold int64, but holds float32"),
        (FixedLenFeature([], np.int64, 5), [("x", "bytes", [])], "it should hold int64, but holds bytes"),
        (VarLenFeature(np.int64), [("x", "bytes", [b"1"])], "it should hold int64, but holds bytes"),
        (RaggedFeature(np.int64), [("x", "float", [1.0])], "it should hold int64, but holds float32"),
        (FixedLenFeature([], np.int64), [("x", "int64", [])], "it should have 1 values for shape (), but has 0"),
        (
            FixedLenFeature([1, 1], np.int64),
            [("x", "int64", [1, 2])],
            "it should have 1 values for shape (1, 1), but has 2",
        ),
        (
            FixedLenSequenceFeature([1], np.int64, True),
            [("x", "float", [])],
            "it should hold int64, but holds float32",
        ),
    ],
)
def test_an_error_names_example_and_feature(count: int, feature: Any, wrong: Any, message: str) -> None:
    records = [example(("x", "int64", [number % 100])) for number in range(count)]
    records[2] = example(*wrong)
    records[-1] = b"\xff"
    with pytest.raises(StructureError) as raised:
        parse_example(records[:3], {"y": FixedLenFeature([], bytes, b""), "x": feature})
    assert str(raised.value) == f"example 2, feature 'x': {message}"
    names = [f"no. {number}" for number in range(count)]
    with pytest.raises(StructureError) as raised:
        parse_example(records, {"x": feature}, names)
    assert str(raised.value) == f"example 2 'no. 2', feature 'x': {message}"
    with pytest.raises(StructureError) as raised:
        parse_single_example(example(*wrong), {"x": feature})
    assert str(raised.value) == f"feature 'x': {message}"


def test_steps_that_do_not_come_out_even() -> None:
    wanted = {"x": FixedLenSequenceFeature([2], np.int64, True)}
    records = [example(("x", "int64", [1, 2])), example(("x", "int64", [1, 2, 3]))]
    with pytest.raises(StructureError, match=r"example 1, feature 'x': 3 values are no whole number of steps of shape"):
        parse_example(records, wanted)
    # All of them alike, so that the quick way meets them.
    with pytest.raises(StructureError, match=r"example 0, feature 'x': 3 values"):
        parse_example(records[1:] * 40, wanted)


def test_damage_is_named() -> None:
    records = [*RECORDS, RECORDS[0][:-1], b"junk"]
    with pytest.raises(CorruptRecordError) as raised:
        parse_example(records, {"x": VarLenFeature(bytes)})
    error = pickle.loads(pickle.dumps(raised.value))
    assert (error.record, error.path, error.offset) == (3, "a serialized example", None)
    size = len(records[3])
    what = f"its {size} bytes are no tf.train.Example: damaged, or something else"
    assert str(error) == f"a serialized example, record 3: {what}"
    with pytest.raises(CorruptRecordError, match=r"^seventh: its 4 bytes"):
        parse_single_example(b"junk", {"x": VarLenFeature(bytes)}, "seventh")


def test_bad_records_in_a_pipeline_are_errors_in_their_places() -> None:
    ds = aiodata.Dataset.from_generator(lambda: [RECORDS[0], b"junk", RECORDS[1]])
    found = outcomes(ds.map(lambda record: parse_single_example(record, {"n": FixedLenFeature([], np.int64)})))
    assert_same([found[0], found[2]], [{"n": np.int64(1)}, {"n": np.int64(-2)}])
    assert isinstance(found[1], CorruptRecordError)


@given(st.binary(max_size=60), st.integers(1, 40))
def test_any_bytes_give_a_result_or_a_data_error(record: bytes, count: int) -> None:
    wanted = {"x": VarLenFeature(np.int64), "": RaggedFeature(bytes)}
    for parse in (lambda: parse_example([record] * count, wanted), lambda: parse_single_example(record, wanted)):
        try:
            found = parse()
        except DataError:
            continue
        assert list(found) == ["x", ""]


@given(st.data())
def test_flipped_bits_give_a_result_or_a_data_error(data: Any) -> None:
    record = bytearray(data.draw(st.sampled_from(RECORDS)))
    for _ in range(data.draw(st.integers(1, 3))):
        record[data.draw(st.integers(0, len(record) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    wanted = {"n": FixedLenFeature([], np.int64), "v": VarLenFeature(np.float32), "t": RaggedFeature(bytes)}
    records = [bytes(record)] * data.draw(st.integers(1, 30))
    try:
        single: Any = parse_single_example(records[0], wanted)
    except DataError:
        single = None
    try:
        batch: Any = parse_example(records, wanted)
    except DataError:
        batch = None
    assert (single is None) == (batch is None)
    assert single is None or same(batch["n"], np.full(len(records), single["n"]))


def test_a_length_that_is_not_there_allocates_nothing() -> None:
    for record in (b"\x0a\xff\xff\xff\xff\x7f", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"):
        for count in (1, 40):
            with pytest.raises(CorruptRecordError):
                parse_example([record] * count, {"x": VarLenFeature(bytes)})


# Arguments


def test_wrong_features_are_refused_where_they_are_made() -> None:
    wrong: list[tuple[Any, tuple[Any, ...], type[Exception], str]] = [
        (FixedLenFeature, ([], np.float64), TypeError, "dtype must be int64, float32 or bytes"),
        (FixedLenFeature, ([], None), TypeError, "dtype"),
        (FixedLenFeature, (None, np.int64), TypeError, "shape"),
        (FixedLenFeature, ([None], np.int64), ValueError, "take FixedLenSequenceFeature"),
        (FixedLenFeature, ([-2], np.int64), ValueError, "at least 0"),
        (FixedLenFeature, ([1.5], np.int64), TypeError, "integer"),
        (FixedLenFeature, ([2], np.int64, 1), ValueError, "must have 2 values for shape (2,), not 1"),
        (FixedLenFeature, ([], np.int64, 1.5), TypeError, "must be of int64, not 1.5"),
        (FixedLenFeature, ([], np.int64, 2**63), ValueError, "does not fit int64"),
        (FixedLenFeature, ([], bytes, 5), TypeError, "must be of bytes"),
        (VarLenFeature, ("complex64",), TypeError, "complex64"),
        (FixedLenSequenceFeature, ([0], np.int64), ValueError, "no values"),
        (FixedLenSequenceFeature, ([None], np.int64), ValueError, "known"),
        (FixedLenSequenceFeature, ([], np.int64, True, [1, 2]), ValueError, "one value"),
        (RaggedFeature, (bytes, 5), TypeError, "value_key"),
    ]
    for kind, arguments, error, message in wrong:
        with pytest.raises(error) as raised:
            kind(*arguments)
        assert str(raised.value).startswith(kind.__name__)
        assert message in str(raised.value)


def test_features_are_named_tuples_that_cannot_change() -> None:
    shape, default = [2], np.array([1.0, 2.0])
    feature = FixedLenFeature(shape, "float32", default)
    shape.append(3)
    default[0] = 9
    assert tuple(feature) == ((2,), np.dtype(np.float32), (1.0, 2.0))
    assert pickle.loads(pickle.dumps(feature)) == feature
    assert FixedLenFeature._fields == ("shape", "dtype", "default_value")
    assert FixedLenSequenceFeature._fields == ("shape", "dtype", "allow_missing", "default_value")
    assert FixedLenSequenceFeature([], str) == ((), np.dtype(object), False, None)
    assert (VarLenFeature(int).dtype, VarLenFeature(float).dtype, VarLenFeature("S").dtype) == (
        np.dtype(np.int64),
        np.dtype(np.float32),
        np.dtype(object),
    )
    unchecked: Any = [2, 2]
    replaced = feature._replace(shape=unchecked)
    with pytest.raises(ValueError, match="4 values"):
        parse_example(RECORDS, {"v": replaced})


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((RECORDS, {}), ValueError, "no features"),
        ((RECORDS, [VarLenFeature(bytes)]), TypeError, "features must be a dict"),
        ((RECORDS, {1: VarLenFeature(bytes)}), TypeError, "name must be a str"),
        ((RECORDS, {"x": bytes}), TypeError, "'x'"),
        ((RECORDS, {"x": FixedLenSequenceFeature([], bytes)}), ValueError, "allow_missing=True"),
        ((RECORDS[0], {"x": VarLenFeature(bytes)}), TypeError, "serialized must be a list or array of bytes"),
        (([RECORDS[0], "text"], {"x": VarLenFeature(bytes)}), TypeError, "example 1 must be bytes, not str"),
        ((np.array(RECORDS), {"x": VarLenFeature(bytes)}), TypeError, "cut zero bytes off the end"),
        ((objects(*RECORDS)[:, None], {"x": VarLenFeature(bytes)}), TypeError, "object array (n,)"),
        ((RECORDS, {"x": VarLenFeature(bytes)}, ["a"]), ValueError, "must be 3 names"),
    ],
)
def test_wrong_arguments_are_refused(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        parse_example(*arguments)
    assert str(raised.value).startswith("parse_example: ")
    assert message in str(raised.value)


def test_a_single_example_is_bytes() -> None:
    wanted = {"n": FixedLenFeature([], np.int64)}
    alone: Any = np.array(RECORDS[0], object)
    assert_same(parse_single_example(alone, wanted), {"n": np.int64(1)})
    others: list[Any] = ["text", [RECORDS[0]], objects(*RECORDS), None]
    for wrong in others:
        with pytest.raises(TypeError, match="parse_single_example: serialized must be bytes"):
            parse_single_example(wrong, wanted)


def test_without_protobuf_the_error_says_what_to_install() -> None:
    code = """
import sys
sys.modules["google.protobuf"] = None
import aiodata
for call in (
    lambda: aiodata.parse_example([b""], {"x": aiodata.VarLenFeature(bytes)}),
    lambda: aiodata.encode_example({"x": 1}),
):
    try:
        call()
    except ImportError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=True)
    assert done.stdout.splitlines() == [
        f"{name} needs protobuf: pip install 'aiodata-pipeline[tfrecord]'"
        for name in ("parse_example", "encode_example")
    ]
