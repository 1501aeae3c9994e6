"""TFRecord files and their examples read by hand: for libraries that cannot, and for loops without one."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

FILES, RECORDS, PIXELS = 8, 16_000, 784
WINDOW, BATCH = 2_000, 128
PARSERS = "google_crc32c,google.protobuf"


def paths(folder: Path) -> list[str]:
    """Name the files."""
    return sorted(map(str, folder.glob("*.tfrecord")))


_HEAD = struct.Struct("<QI")
_CHECKSUM = struct.Struct("<I")


def _mask(crc: int) -> int:
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def read_records(files: Iterable[str]) -> Iterator[bytes]:
    """Read whole files, and verify both checksums of each record; those of lengths once for each length."""
    from google_crc32c import value as crc

    heads: dict[bytes, int] = {}
    read_checksum = _CHECKSUM.unpack_from
    for path in files:
        data = Path(path).read_bytes()
        at, end = 0, len(data)
        while at < end:
            head = data[at : at + 12]
            length = heads.get(head)
            if length is None:
                length, checksum = _HEAD.unpack(head)
                assert _mask(crc(head[:8])) == checksum
                heads[head] = length
            at += 12
            record = data[at : at + length]
            at += length
            found = crc(record)
            assert ((found >> 15 | found << 17) + 0xA282EAD8) & 0xFFFFFFFF == read_checksum(data, at)[0]
            at += 4
            yield record


def shuffled(elements: Iterator[Any]) -> Iterator[Any]:
    """Give the elements in random order, each from a window."""
    window: list[Any] = list(islice(elements, WINDOW))
    draw, size = random.random, len(window)
    for element in elements:
        at = int(draw() * size)
        yield window[at]
        window[at] = element
    random.shuffle(window)
    yield from window


def cut(elements: Iterator[Any]) -> Iterator[list[Any]]:
    """Cut elements into batches."""
    while batch := list(islice(elements, BATCH)):
        yield batch


def protobuf() -> Callable[[bytes], tuple[bytes, int]]:
    """Give a function from a record to its image and label."""
    from aiodata.formats.example_proto import message_class

    decoded = message_class("Example", "benchmark").FromString

    def parse(record: bytes) -> tuple[bytes, int]:
        feature = decoded(record).features.feature
        return feature["image"].bytes_list.value[0], feature["label"].int64_list.value[0]

    return parse


def gathered(examples: Iterable[tuple[bytes, int]]) -> dict[str, Any]:
    """Make a batch of images and labels."""
    images, labels = zip(*examples, strict=True)
    return {"image": np.frombuffer(b"".join(images), np.uint8).reshape(len(images), -1), "label": np.array(labels)}


def parse_batches() -> Callable[[list[bytes]], dict[str, Any]]:
    """Give a function from records to a batch, by protobuf."""
    parse = protobuf()
    return lambda records: gathered(map(parse, records))


def learnt(record: bytes) -> tuple[Any, int, int]:
    """Find the image in a record; its label is the last byte."""
    image, label = protobuf()(record)
    start = record.index(image)
    assert record[-1] == label
    return np.frombuffer(record, np.uint8), start, start + len(image)
