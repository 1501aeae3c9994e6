"""Tar archives cut into files and samples, compared with `tarfile`; damage anywhere; what is refused."""

from __future__ import annotations

import io
import tarfile
import tracemalloc
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiodata.engine.block import Failure
from aiodata.errors import CorruptRecordError
from aiodata.formats.tar import LARGEST_HEADER, TarSplitter, split_name
from aiodata.formats.tar_samples import SampleSplitter

if TYPE_CHECKING:
    from collections.abc import Iterable

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
each_format = pytest.mark.parametrize("kind", FORMATS)


def member(name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, **fields: Any) -> tuple[Any, bytes]:
    info = tarfile.TarInfo(name)
    info.size, info.type = len(content), kind
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def archive(*members: tuple[Any, bytes], kind: str = "pax", **options: Any) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=FORMATS[kind], **options) as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def files(**contents: bytes) -> bytes:
    """Make an archive of files; `_` in a keyword is the first dot of the name."""
    return archive(*(member(name.replace("_", ".", 1), content) for name, content in contents.items()))


def cut(data: bytes, size: int = 1 << 20, splitter: Any = SampleSplitter, **options: Any) -> list[Any]:
    """Split in pieces of a size; give the records, with the errors in their places, and the one that ended it last."""
    found: list[Any] = []
    cutter = splitter("x.tar", 0, 0, **options)
    total = 0

    def take(cuts: Iterable[Any]) -> None:
        nonlocal total
        for part in cuts:
            found.extend(e.exception if isinstance(e, Failure) else e for e in part.elements)
            assert part.clean == (Failure not in map(type, part.elements))
            total += part.size

    try:
        for at in range(0, len(data), size):
            take(cutter.feed(data[at : at + size]))
        take(cutter.finish())
    except CorruptRecordError as error:
        found.append(error)
    assert total <= len(data)
    return found


def by_tarfile(data: bytes) -> list[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:", ignore_zeros=True, encoding="utf-8") as tar:
        return [(info.name, tar.extractfile(info).read()) for info in tar if info.isreg()]  # type: ignore[union-attr]


def grouped(listed: list[tuple[str, bytes]]) -> list[dict[str, Any]]:
    """Group the files of one archive into samples in the most obvious way; none has an extension twice."""
    samples: list[dict[str, Any]] = []
    for name, content in listed:
        parts = split_name(name)
        if parts is not None:
            if not samples or samples[-1]["__key__"] != parts[0]:
                samples.append({"__key__": parts[0]})
            samples[-1][parts[1]] = content
    return samples


def texts(found: list[Any]) -> list[Any]:
    return [str(e) if isinstance(e, Exception) else e for e in found]


# Names


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("0001.jpg", ("0001", "jpg")),
        ("a/b/0001.seg.PNG", ("a/b/0001", "seg.png")),
        ("./x.y/7.Cls", ("./x.y/7", "cls")),
        ("a.", ("a", "")),
        ("README", None),
        ("a.b/README", None),
        (".hidden", None),
        ("d/._0001.jpg", None),
        ("", None),
    ],
)
def test_names_are_split_as_webdataset_does(name: str, expected: Any) -> None:
    assert split_name(name) == expected


# Reading


@each_format
def test_samples_of_every_format(kind: str) -> None:
    data = archive(
        member("d", kind=tarfile.DIRTYPE),
        member("d/0.txt", b"zero"),
        member("d/0.seg.png", b""),
        member("d/README", b"no"),
        member("d/._1.txt", b"apple"),
        member("d/1.TXT", b"1" * 513),
        kind=kind,
    )
    assert cut(data) == [
        {"__key__": "d/0", "txt": b"zero", "seg.png": b""},
        {"__key__": "d/1", "txt": b"1" * 513},
    ]
    assert cut(data, splitter=TarSplitter) == by_tarfile(data)


@pytest.mark.parametrize("kind", ["gnu", "pax"])
def test_long_and_foreign_names(kind: str) -> None:
    names = ["x" * 300 + ".a", "d/" * 200 + "y.b", "Zürich/日本.jpg", "n" * 100 + ".c", "l" * 97 + ".d"]
    data = archive(*(member(name, name.encode()) for name in names), kind=kind)
    assert cut(data, splitter=TarSplitter) == [(name, name.encode()) for name in names]
    assert [sample["__key__"] for sample in cut(data)] == [name.rpartition(".")[0] for name in names]


def test_names_that_are_no_utf8_are_kept() -> None:
    data = archive(member(b"caf\xe9.txt".decode("utf-8", "surrogateescape"), b"x"), kind="gnu", encoding="utf-8")
    (sample,) = cut(data)
    assert sample["__key__"].encode("utf-8", "surrogateescape") == b"caf\xe9"


NAMES = st.text("ab.é/", min_size=1, max_size=9).filter(lambda name: name.strip("/") == name and "//" not in name)
LISTS = st.lists(st.tuples(NAMES, st.binary(max_size=1100), st.booleans()), max_size=9)


@settings(max_examples=60)
@given(LISTS, st.sampled_from(sorted(FORMATS)), st.integers(1, 64), st.integers(0, 3))
def test_any_archive_is_read_as_tarfile_reads_it(listed: list[Any], kind: str, size: int, joined: int) -> None:
    members = [
        member(name, content, pax_headers={"comment": "é" * len(content)} if pax and kind == "pax" else {})
        for name, content, pax in listed
    ]
    split = min(joined, len(members))
    parts = [archive(*members[:split], kind=kind), archive(*members[split:], kind=kind)]
    data = b"".join(parts)
    expected = by_tarfile(data)
    assert cut(data, size, TarSplitter) == expected
    assert cut(data, splitter=TarSplitter) == expected
    found = cut(data, size)
    assert texts(found) == texts(cut(data))
    if not any(isinstance(e, Exception) for e in found):
        assert found == [sample for part in parts for sample in grouped(by_tarfile(part))]


def test_many_small_files_come_in_cuts_of_bounded_size() -> None:
    data = archive(*(member(f"{n:04}.txt", b"%d" % n) for n in range(500)))
    cuts = list(SampleSplitter("x", 0, 0).feed(data))
    assert sum(part.length for part in cuts) == 500
    assert max(part.length for part in cuts) <= 64


def test_every_cut_is_a_place_to_begin() -> None:
    data = archive(
        *(member(f"{'k' * (n * 40)}{n}.{e}", bytes(n * 99)) for n in range(5) for e in ("a", "b")),
        member("end", kind=tarfile.DIRTYPE),
        kind="gnu",
    )
    whole = cut(data)
    assert len(whole) == 5
    for size in range(512, len(data), 512):
        cuts = list(SampleSplitter("x", 0, 0).feed(data[:size]))
        offset, count = sum(part.size for part in cuts), sum(part.length for part in cuts)
        later = SampleSplitter("x", offset, count)
        assert [e for part in later.feed(data[offset:]) for e in part.elements or ()] == whole[count:]
        assert list(later.finish()) == []


# Choosing


def test_what_is_not_selected_is_dropped() -> None:
    data = files(a_jpg=b"A" * 3000, a_cls=b"1", b_jpg=b"B" * 3000, c_CLS=b"3")
    expected = [{"__key__": "a", "cls": b"1"}, {"__key__": "c", "cls": b"3"}]
    for size in (1, 64, 700, 1 << 20):
        assert cut(data, size, select=frozenset(["cls"])) == expected
        assert cut(data, size, TarSplitter, select=frozenset(["cls"])) == [("a.cls", b"1"), ("c.CLS", b"3")]


def test_dropped_content_is_not_held() -> None:
    data = files(a_jpg=b"A" * 1_000_000, a_cls=b"1")
    cutter = SampleSplitter("x", 0, 0, select=frozenset(["cls"]))
    for at in range(0, len(data), 1000):
        list(cutter.feed(data[at : at + 1000]))
        assert sum(map(len, cutter._held)) <= 2000


# What cannot be a sample


def test_files_that_do_not_stand_together_are_samples_of_their_own() -> None:
    names = ("0.a", "1.a", "0.b", "1.b", "2.a", "2.a/3.b", "2.c")
    found = cut(archive(*(member(name, b"x") for name in names)))
    assert found == grouped([(name, b"x") for name in names])
    assert [sample["__key__"] for sample in found] == ["0", "1", "0", "1", "2", "2.a/3", "2"]


def test_nothing_is_kept_of_samples_that_have_been_given() -> None:
    cutter = SampleSplitter("x", 0, 0)
    for number in range(2000):
        list(cutter.feed(member(f"{number}.txt")[0].tobuf()))
    tracemalloc.start()
    try:
        for number in range(2000, 6000):
            list(cutter.feed(member(f"{number}.txt")[0].tobuf()))
        assert tracemalloc.get_traced_memory()[0] < 100_000
    finally:
        tracemalloc.stop()


def test_an_extension_twice_is_an_error_of_its_sample() -> None:
    found = cut(archive(*(member(name, b"x") for name in ("0.a", "1.jpg", "1.JPG", "1.c", "2.a", "3.__key__"))))
    assert texts(found) == [
        {"__key__": "0", "a": b"x"},
        "x.tar, record 1, byte 2048: the sample '1' has two files with the extension 'jpg'",
        {"__key__": "2", "a": b"x"},
        "x.tar, record 3, byte 5120: the sample '3' has two files with the extension '__key__'",
    ]


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (tarfile.SYMTYPE, "a symbolic link"),
        (tarfile.LNKTYPE, "a hard link"),
        (tarfile.CHRTYPE, "a device"),
        (tarfile.BLKTYPE, "a device"),
        (tarfile.FIFOTYPE, "a pipe"),
        (b"Z", "of the unknown type b'Z'"),
    ],
)
def test_what_is_no_file_is_an_error_of_its_sample(kind: bytes, word: str) -> None:
    data = archive(member("0.a", b"x"), member("1.a", kind=kind, linkname="0.a"), member("1.b", b"y"), member("2.a"))
    message = f"x.tar, record 1, byte 1024: '1.a' is {word}: only files can be read"
    assert texts(cut(data)) == [{"__key__": "0", "a": b"x"}, message, {"__key__": "2", "a": b""}]
    assert texts(cut(data, splitter=TarSplitter)) == [("0.a", b"x"), message, ("1.b", b"y"), ("2.a", b"")]
    assert cut(data, select=frozenset("b")) == [{"__key__": "1", "b": b"y"}]


def test_folders_labels_and_global_headers_are_left_out() -> None:
    label = tarfile.TarInfo("label.x")
    label.type = b"V"
    data = archive((label, b""), member("d.x", kind=tarfile.DIRTYPE), member("a.x"), pax_headers={"comment": "made by"})
    for splitter in (SampleSplitter, TarSplitter):
        assert len(cut(data, splitter=splitter)) == 1
        assert len(cut(data, 1, splitter=splitter)) == 1
    assert cut(archive(pax_headers={"comment": "nothing else"})) == []


@pytest.mark.parametrize("key", ["path", "size", "GNU.sparse.major"])
def test_a_global_header_that_names_members_is_refused(key: str) -> None:
    (error,) = cut(archive(member("a.x"), pax_headers={key: "1"}))
    assert f"a global header sets '{key}'" in str(error) or "sparse" in str(error)


def test_sparse_members_are_refused() -> None:
    good = files(a_x=b"1")[:1024]
    old = tarfile.TarInfo("b.x")
    old.type = tarfile.GNUTYPE_SPARSE
    for data in (
        old.tobuf(tarfile.GNU_FORMAT),
        archive(member("b.x", b"1\n0\n0\n", pax_headers={"GNU.sparse.major": "1", "GNU.sparse.minor": "0"})),
        archive(member("b.x", b"12", pax_headers={"GNU.sparse.map": "0,2", "GNU.sparse.size": "9"})),
    ):
        found = cut(good + data + bytes(1024))
        assert "sparse file, which cannot be read" in str(found[-1])
        assert found[-1].offset == 1024


# Damage


def test_an_archive_that_is_cut_short_anywhere_is_an_error() -> None:
    data = archive(
        member("0.a", b"zero"), member("0.b", b"x" * 600), member("1.a", b"one"), member("n" * 200 + ".a"), kind="gnu"
    )
    whole = cut(data)
    assert len(whole) == 3
    end = len(data.rstrip(b"\0")) // 512 * 512 + 512
    for size in [*range(0, end + 511, 7), *range(0, end + 511, 512)]:
        found = cut(data[:size])
        assert found[:-1] == whole[: len(found) - 1]
        assert isinstance(found[-1], CorruptRecordError), size
        assert found[-1].record == len(found) - 1
        assert texts(cut(data[:size], 33)) == texts(found)
    assert cut(data[: end + 512]) == whole


def test_a_flipped_byte_in_a_header_is_an_error_that_names_it() -> None:
    data = archive(member("0.a", b"x" * 600), member("1.a", b"y"), member("2.a", b"z"))
    whole = cut(data)
    for at in range(512):
        damaged = bytearray(data)
        damaged[1536 + at] ^= 1 << at % 8
        found = cut(bytes(damaged))
        if found == whole:
            assert 148 <= at < 156  # the end of the checksum's own field
            continue
        assert found[:-1] == []  # the first sample may have lost files, so the error takes its place
        assert (found[-1].path, found[-1].record, found[-1].offset) == ("x.tar", 0, 1536)
        assert "the header is damaged" in str(found[-1])
        damaged = bytearray(data)
        damaged[2560 + at] ^= 1 << at % 8
        assert (cut(bytes(damaged))[0], cut(bytes(damaged))[1].record) == (whole[0], 1)


@settings(max_examples=150)
@given(st.data())
def test_nothing_breaks_the_splitter_but_its_own_error(data: st.DataObject) -> None:
    content = bytearray(
        archive(member("é" * 80 + ".a", b"1", pax_headers={"comment": "c"}), member("b.a", b"2"), kind="pax")
    )
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, 3000))] = data.draw(st.integers(0, 255))
    for begin in range(0, len(content), 512):  # make the checksums right again, so that the fields are believed
        block = content[begin : begin + 512]
        if data.draw(st.booleans()) and any(block):
            block[148:156] = b" " * 8
            content[begin + 148 : begin + 156] = b"%06o\0 " % sum(block)
    assert texts(cut(bytes(content))) == texts(cut(bytes(content), 50))


def sized(info: tarfile.TarInfo, size: bytes) -> bytes:
    """Give a header with a size as it stands there, and the right checksum."""
    block = bytearray(info.tobuf(tarfile.USTAR_FORMAT))
    block[124:136] = size
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


@pytest.mark.parametrize(
    "size", [b"77777777777\0", b"\x80" + b"\0" * 5 + b"\x7f" * 6, b"\xff" * 12, b"\x80" + b"\x7f" * 11]
)
def test_an_absurd_size_allocates_nothing(size: bytes) -> None:
    good = files(a_x=b"1")[:1024]
    for info in (tarfile.TarInfo("b.x"), member("longer", kind=tarfile.GNUTYPE_LONGNAME)[0]):
        found = cut(good + sized(info, size) + b"rest" * 300)
        assert len(found) == 1  # the first sample is not known to be whole
        assert isinstance(found[0], CorruptRecordError)
        assert found[0].record == 0


def test_a_size_beyond_the_file_is_an_error_before_anything_is_held() -> None:
    good = files(a_x=b"1")[:1024]
    for splitter, count in [(TarSplitter, 1), (SampleSplitter, 0)]:
        cutter = splitter("x.tar", 0, 0, size=lambda: 1024 + 512 + 10_000)
        given = list(cutter.feed(good))
        with pytest.raises(CorruptRecordError, match=r"'b\.x' has 10001 bytes, which go beyond") as raised:
            given += cutter.feed(sized(tarfile.TarInfo("b.x"), b"%011o\0" % 10_001))
        assert sum(part.length for part in given) == count
        assert (raised.value.record, raised.value.offset) == (count, 1024)
    whole = good + sized(tarfile.TarInfo("b.x"), b"%011o\0" % 10_001) + b"y" * 10_001 + bytes(511 - 272 + 1024)
    found = cut(whole, 700, partial(SampleSplitter, size=lambda: len(whole)))
    assert found == [{"__key__": "a", "x": b"1"}, {"__key__": "b", "x": b"y" * 10_001}]


def test_endless_extended_headers_are_refused() -> None:
    block = member("longer", kind=tarfile.GNUTYPE_LONGNAME)[0].tobuf(tarfile.GNU_FORMAT)
    (error,) = cut(block * (LARGEST_HEADER // 512 + 2))
    assert "too long" in str(error)
    (error,) = cut(block * 1500 + tarfile.TarInfo("x.a").tobuf() + bytes(1024))  # deeper than Python's stack
    assert "extended header" in str(error)


def test_what_stands_behind_the_end_is_an_error() -> None:
    data = files(a_x=b"1")
    assert cut(data + bytes(77)) == [{"__key__": "a", "x": b"1"}]
    for rest in (b"garbage", b"garbage" * 100):
        found = cut(data + rest)
        assert found[0] == {"__key__": "a", "x": b"1"}
        assert "behind the end" in str(found[1])
        assert found[1].offset == len(data)


def test_what_is_no_archive_says_so() -> None:
    for data, word in [(b"", "empty"), (b"text", "no tar archive"), (b"text" * 500, "no tar archive")]:
        (error,) = cut(data)
        assert word in str(error)
    for magic, word in [(b"\x1f\x8b", "GZIP"), (b"\x78\x9c", "ZLIB")]:
        for length in (8, 800):
            (error,) = cut(magic + b"x" * length)
            assert f"looks {word}-compressed: pass compression_type={word!r}" in str(error)
