"""The quick way to read batches of examples: it gives what protobuf gives, record for record."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiodata import FixedLenFeature, FixedLenSequenceFeature, RaggedFeature, RawFeature, VarLenFeature, parse_example
from aiodata.errors import DataError, StructureError
from aiodata.formats.example_layout import learnt
from tests.programs import arr, assert_same, objects

pytest.importorskip("google.protobuf", reason="tf.train.Example needs protobuf")

from tests.formats.examples import Example, block, example, feature, named, parsed, varint

DTYPES = {"bytes": bytes, "float": np.float32, "int64": np.int64}
NAMES = ["x", "a longer name", "", "é", "unknown"]
EDGES = [0, 1, 127, 128, 16383, 16384, 2**31, 2**56 - 1, 2**56, 2**63 - 1, -1, -(2**63), -300]


def value(random: Random, kind: str, wild: bool) -> Any:
    """Make a value; one that is not wild has the size of all others."""
    if kind == "bytes":
        return random.randbytes(random.randrange(4) if wild else 3)
    if kind == "float":
        return float(np.float32(random.choice([0.0, -0.0, 1e30, float("inf"), random.uniform(-9, 9)])))
    return random.choice(EDGES) if wild else random.randrange(128, 16384)


Shape = list[tuple[str, str | None, int]]


def made(random: Random, shape: Shape, wild: bool) -> bytes:
    """Make an example of features: name, kind, number of values."""
    return example(
        *[(name, kind, [value(random, kind or "int64", wild) for _ in range(count)]) for name, kind, count in shape]
    )


def odd(random: Random, shape: Shape) -> bytes:
    """Make an example that is like the others in its contents, but not in its bytes."""
    names = [name for name, _, _ in shape]
    entries = [
        named(
            name,
            feature(
                kind,
                [value(random, kind or "int64", True) for _ in range(count)],
                packed=random.random() < 0.5,
                longer=random.randrange(2),
            ),
        )
        for name, kind, count in shape
    ]
    random.shuffle(entries)
    if random.random() < 0.3 and names:
        entries += random.choices(entries, k=1)  # the last one counts
    if random.random() < 0.3 and names:
        kind = random.choice(list(DTYPES))
        entries.append(named(random.choice(names), feature(kind, [value(random, kind, True)])))
    if random.random() < 0.3:
        entries.insert(0, block(7, b"unknown field") + varint(9 << 3) + varint(5))
    if random.random() < 0.3:
        return b"".join(block(1, entry) for entry in entries)  # messages that are repeated are merged
    return block(1, b"".join(entries)) + (varint(12 << 3) + b"\x05" if random.random() < 0.3 else b"")


def wanted_of(random: Random, shape: Shape) -> dict[str, Any]:
    """Choose what to read of such examples, mostly what is there."""
    wanted: dict[str, Any] = {}
    for name, kind, count in [*shape, ("absent", "int64", 1)]:
        dtype = DTYPES[kind if kind and random.random() < 0.95 else random.choice(list(DTYPES))]
        default: Any = [b"d" if dtype is bytes else 7] * count if random.random() < 0.8 else None
        raw = random.choice([RawFeature([3], np.uint8), RawFeature([1, 3, 1], bool), RawFeature([], "V3")])
        if kind == "bytes" and count == 1 and random.random() < 0.3:
            wanted[name] = raw if default is None else raw._replace(default_value=b"\0d\2")
            continue
        wanted[name] = random.choice(
            [
                FixedLenFeature([count], dtype, default),
                FixedLenFeature([1, count], dtype, default),
                FixedLenSequenceFeature([random.choice([1, max(count, 1)])], dtype, True),
                VarLenFeature(dtype),
                RaggedFeature(dtype),
            ]
        )
    keys = random.sample(list(wanted), random.randint(1, len(wanted)))
    return {key: wanted[key] for key in keys}


@given(st.integers(0, 2**63), st.integers(0, 60))
def test_batches_are_read_as_protobuf_reads_them(seed: int, count: int) -> None:
    random = Random(seed)
    shapes = [
        [(name, random.choice([*DTYPES, *DTYPES, None]), random.randrange(4)) for name in random.sample(NAMES, size)]
        for size in (random.randrange(5), random.randrange(5))
    ]
    shape = shapes[0]
    shares = random.choice([(1.0, 0.0, 0.0), (0.9, 0.05, 0.0), (0.6, 0.3, 0.05), (0.0, 0.0, 1.0)])
    records = []
    for _ in range(count):
        draw = random.random()
        if draw < shares[0]:
            records.append(made(random, shape, False))
        elif draw < shares[0] + shares[1]:
            records.append(made(random, shape, True))
        elif draw < sum(shares):
            records.append(odd(random, shape))
        else:
            records.append(made(random, random.choice(shapes), False))
    wanted = wanted_of(random, shape)
    try:
        expected = parsed(records, wanted)
    except ValueError:
        with pytest.raises(DataError):
            parse_example(records, wanted)
        return
    for _ in range(2):  # the second time with the layouts of the first
        assert_same(parse_example(records, wanted), expected)


@given(st.integers(0, 2**63), st.binary(max_size=30))
def test_any_change_in_one_of_many_is_seen(seed: int, noise: bytes) -> None:
    random = Random(seed)
    shape: Shape = [("x", "int64", 2), ("y", "float", 1), ("z", "bytes", 2), ("n", None, 0)]
    records = [made(random, shape, False) for _ in range(20)]
    changed = bytearray(records[7])
    at = random.randrange(len(changed))
    changed[at : at + len(noise)] = noise[: len(changed) - at]
    changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    records[7] = bytes(changed)
    wanted = {"x": VarLenFeature(np.int64), "y": VarLenFeature(np.float32), "z": RaggedFeature(bytes)}
    try:
        expected = parsed(records, wanted)
    except Exception:  # not an example, or not one that fits
        with pytest.raises(DataError):
            parse_example(records, wanted)
        return
    assert_same(parse_example(records, wanted), expected)


@pytest.mark.parametrize("number", EDGES)
def test_integers_of_every_size(number: int) -> None:
    records = [example(("x", "int64", [number, 5, number]), ("y", "int64", [number])) for _ in range(20)]
    assert learnt(records[0]) is not None
    found = parse_example(records, {"x": FixedLenFeature([3], np.int64), "y": FixedLenFeature([], np.int64)})
    assert_same(found, {"x": arr([[number, 5, number]] * 20), "y": arr([number] * 20)})


@pytest.mark.parametrize("last", [0, 1, 2, 3, 0x7F, 0x81])
def test_the_tenth_byte_of_an_integer(last: int) -> None:
    records = [block(1, named("x", block(3, block(1, b"\xff" * 9 + b"\x01")))) for _ in range(20)]
    records[7] = records[7][:-1] + bytes([last])
    wanted = {"x": FixedLenFeature([], np.int64)}
    try:
        expected = parsed(records, wanted)
    except Exception:  # whatever protobuf says
        with pytest.raises(DataError):
            parse_example(records, wanted)
        return
    assert_same(parse_example(records, wanted), expected)


def test_many_of_a_wrong_kind() -> None:
    records = [example(("x", "float", [number])) for number in range(20)]
    for wanted in (FixedLenFeature([], np.int64, 5), VarLenFeature(bytes), RaggedFeature(np.int64)):
        with pytest.raises(StructureError, match=r"^example 0, feature 'x': it should hold \w+, but holds float32$"):
            parse_example(records, {"x": wanted})


def test_floats_keep_their_bits() -> None:
    bits = np.arange(0x7F800001, 0x7F800001 + 40, dtype=np.uint32)  # NaNs that differ
    records = [block(1, named("x", block(2, block(1, one.tobytes())))) for one in bits]
    found = parse_example(records, {"x": FixedLenFeature([], np.float32)})["x"]
    assert_same(found.view(np.uint32), bits)


def test_several_layouts_in_one_batch() -> None:
    random = Random(1)
    numbers = [random.choice([5, 300, 70000]) + random.randrange(100) for _ in range(200)]
    texts = [random.randbytes(random.choice([1, 2])) for _ in numbers]
    records = [
        example(("n", "int64", [number]), ("t", "bytes", [text]), ("m", "int64", [number, -number]))
        for number, text in zip(numbers, texts, strict=True)
    ]
    wanted = {"n": FixedLenFeature([], np.int64), "t": FixedLenFeature([], bytes), "m": FixedLenFeature([2], np.int64)}
    expected = {"n": arr(numbers), "t": objects(*texts), "m": np.stack([arr(numbers), -arr(numbers)], axis=1)}
    assert_same(parse_example(records, wanted), expected)


def test_what_has_no_layout() -> None:
    good = named("x", feature("int64", [5]))
    without = {
        "nothing": b"",
        "an unknown field": block(1, good) + block(9, b""),
        "a repeated message": block(1, good) + block(1, good),
        "a repeated name": block(1, good + good),
        "a name that is no text": block(1, block(1, block(1, b"\xff") + block(2, b""))),
        "no name": block(1, block(1, block(2, b""))),
        "the value before the name": block(1, block(1, block(2, feature("int64", [5])) + block(1, b"x"))),
        "single values": block(1, named("x", feature("int64", [5], packed=False))),
        "values in two parts": block(1, named("x", block(3, block(1, b"\x05") + block(1, b"\x06")))),
        "two kinds": block(1, named("x", feature("int64", [5]) + feature("float", [5]))),
        "an unknown kind": block(1, named("x", block(4, b""))),
        "half a float": block(1, named("x", block(2, block(1, b"\0\0")))),
        "half an integer": block(1, named("x", block(3, block(1, b"\x80")))),
        "an integer of 11 bytes": block(1, named("x", block(3, block(1, b"\x80" * 10 + b"\x01")))),
        "an integer of 65 bits": block(1, named("x", block(3, block(1, b"\xff" * 9 + b"\x03")))),
        "a length beyond the end": block(1, good)[:-1],
        "a value beyond its list": block(1, named("y", block(1, b"\x0a\x05ab")) + good),
        "a name beyond its entry": block(1, block(1, b"\x0a\x7fx") + good * 20),
        "an empty packed list": block(1, named("x", block(3, block(1, b"")))),
    }
    assert {what: learnt(record) for what, record in without.items()} == dict.fromkeys(without)
    layout = learnt(block(1, good))
    assert layout is not None
    assert list(layout.features) == ["x"]


def test_records_as_protobuf_writes_them_have_a_layout() -> None:
    message = Example()
    message.features.feature["x"].float_list.value.extend([1, 2])
    message.features.feature["y"].bytes_list.value.extend([b"", b"abc"])
    message.features.feature["z"].int64_list.value.extend([-1, 300])
    message.features.feature["empty"].int64_list.SetInParent()
    message.features.feature["none"].SetInParent()
    layout = learnt(message.SerializeToString())
    assert layout is not None
    counts = {name: segment and segment.count for name, segment in layout.features.items()}
    assert counts == {"x": 2, "y": 2, "z": 2, "empty": 0, "none": None}


def test_long_records_are_read_too() -> None:
    records = [example(("x", "bytes", [bytes([number]) * 70_000])) for number in range(20)]
    found = parse_example(records, {"x": FixedLenFeature([], bytes)})
    assert_same(found, {"x": objects(*[bytes([number]) * 70_000 for number in range(20)])})
