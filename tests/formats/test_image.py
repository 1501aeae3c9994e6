"""Decoding and encoding of images: channels, depths, every kind of PNG and JPEG, damage, hostile sizes."""

from __future__ import annotations

import io
import struct
import sys
import warnings
import zlib
from typing import Any

import numpy as np
import pytest

from aiodata import image
from aiodata.errors import DataError
from aiodata.formats import image_pixels
from tests.programs import arr, assert_same

PIL = pytest.importorskip("PIL.Image", reason="images need Pillow")

U8, U16 = np.uint8, np.uint16


def smooth(height: int, width: int, channels: int = 3) -> Any:
    """Make an image that JPEG keeps well."""
    rows, columns = np.mgrid[:height, :width]
    return np.stack([(rows * 3 + columns * (2 + c) + 40 * c) % 256 // 2 for c in range(channels)], -1).astype(U8)


def saved(picture: Any, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def by_pillow(contents: bytes, mode: str) -> Any:
    return np.array(PIL.open(io.BytesIO(contents)).convert(mode))


def png(pixels: Any, kind: int, bits: int, *chunks: tuple[bytes, bytes]) -> bytes:
    """Write a PNG by the book (ISO/IEC 15948); rows are given packed for less than 8 bits."""
    height, width = pixels.shape[0], pixels.shape[1] * (8 // bits if bits < 8 else 1)
    order = pixels.astype(">u2") if bits == 16 else pixels.astype(U8)
    raw = b"".join(b"\0" + row.tobytes() for row in order)
    header = struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, 0)
    parts = [(b"IHDR", header), *chunks, (b"IDAT", zlib.compress(raw)), (b"IEND", b"")]
    framed = [struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d)) for t, d in parts]
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


# PNG


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_gives_its_own_channels(channels: int) -> None:
    pixels = smooth(5, 7, channels)
    contents = image.encode_png(pixels)
    assert_same(image.decode_png(contents), pixels)
    assert_same(image.decode_image(contents), pixels)
    assert image.decode_png(contents).flags.writeable


def test_png_channels_on_demand() -> None:
    grey = arr([[[10], [200]]], U8)
    grey_alpha = arr([[[10, 5], [200, 6]]], U8)
    colour = arr([[[1, 2, 3], [250, 20, 0]]], U8)
    colour_alpha = arr([[[1, 2, 3, 4], [250, 20, 0, 255]]], U8)
    made = {name: image.encode_png(x) for name, x in zip("gGcC", (grey, grey_alpha, colour, colour_alpha), strict=True)}
    three = arr([[[10, 10, 10], [200, 200, 200]]], U8)
    for name, channels, expected in [
        ("g", 3, three),
        ("G", 3, three),
        ("g", 4, np.concatenate([three, arr([[[255], [255]]], U8)], -1)),
        ("G", 4, np.concatenate([three, arr([[[5], [6]]], U8)], -1)),
        ("G", 1, grey),
        ("C", 3, colour),
        ("c", 4, arr([[[1, 2, 3, 255], [250, 20, 0, 255]]], U8)),
        ("c", 1, arr([[[1], [86]]], U8)),
        ("C", 1, arr([[[1], [86]]], U8)),
    ]:
        assert_same(image.decode_png(made[name], channels), expected)


COLOURS = arr([[[255, 0, 0], [0, 255, 0], [0, 0, 255], [10, 20, 30], [255, 228, 34], [9, 9, 9]]], U8)


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([], [76, 149, 29, 18, 213, 9]),
        ([(b"gAMA", 45455)], [147, 200, 95, 21, 225, 9]),
        ([(b"gAMA", 220000)], [18, 79, 2, 18, 203, 9]),
        ([(b"gAMA", 100000)], [76, 149, 29, 18, 213, 9]),
        ([(b"gAMA", 0)], [76, 149, 29, 18, 213, 9]),
        ([(b"gAMA", 50000), (b"sRGB", None)], [147, 200, 95, 21, 225, 9]),
    ],
)
def test_grey_is_what_tensorflow_makes_of_colours(chunks: list[Any], expected: list[int]) -> None:
    held = [(kind, b"\0" if value is None else struct.pack(">I", value)) for kind, value in chunks]
    contents = png(COLOURS, 2, 8, *held)
    grey = arr(expected, U8).reshape(1, 6, 1)
    assert_same(image.decode_png(contents, 1), grey)
    assert_same(image.decode_image(contents, 1), grey)
    assert_same(image.decode_png(contents, 1, U16), grey * U16(257))


def test_palettes_become_colours() -> None:
    palette = (b"PLTE", bytes([1, 2, 3, 40, 50, 60]))
    indexes = arr([[0, 1, 1]], U8)
    colours = arr([[[1, 2, 3], [40, 50, 60], [40, 50, 60]]], U8)
    assert_same(image.decode_png(png(indexes, 3, 8, palette)), colours)
    seen = png(indexes, 3, 8, palette, (b"tRNS", bytes([9])))
    assert_same(image.decode_png(seen), np.concatenate([colours, arr([[[9], [255], [255]]], U8)], -1))
    assert_same(image.decode_png(seen, 3), colours)


@pytest.mark.parametrize(
    ("bits", "byte", "expected"), [(1, 0b1010_0000, [255, 0, 255, 0]), (2, 0b00011011, [0, 85, 170, 255])]
)
def test_grey_of_few_bits_fills_the_range(bits: int, byte: int, expected: list[int]) -> None:
    found = image.decode_png(png(arr([[byte]], U8), 0, bits))
    assert_same(found[0, :4], arr(expected, U8)[:, None])


def test_a_transparent_colour_counts_only_where_alpha_is_wanted() -> None:
    contents = png(arr([[[1, 2, 3], [4, 5, 6]]], U8), 2, 8, (b"tRNS", struct.pack(">HHH", 4, 5, 6)))
    assert image.decode_png(contents).shape == (1, 2, 3)
    assert_same(image.decode_png(contents, 4), arr([[[1, 2, 3, 255], [4, 5, 6, 0]]], U8))


def test_16_bits() -> None:
    grey = arr([[[0], [255], [256], [65535]]], U16)
    contents = image.encode_png(grey)
    assert contents == image.encode_png(grey.copy())
    assert_same(image.decode_png(contents, dtype=U16), grey)
    assert_same(image.decode_png(contents), arr([[[0], [0], [1], [255]]], U8))
    assert_same(image.decode_png(contents, 3, U16), np.repeat(grey, 3, -1))
    assert_same(image.decode_png(contents, 4, U16)[..., 3], np.full((1, 4), 65535, U16))
    assert_same(image.decode_image(contents, dtype=np.float32), grey / np.float32(65535))
    eight = image.encode_png(arr([[[0], [7], [255]]], U8))
    assert_same(image.decode_png(eight, dtype=U16), arr([[[0], [1799], [65535]]], U16))
    assert_same(image.decode_image(eight, dtype=np.float32), arr([[[0], [7], [255]]], np.float32) / np.float32(255))


@pytest.mark.parametrize(("kind", "channels"), [(4, 2), (2, 3), (6, 4)])
def test_colours_of_16_bits_are_read_with_8(kind: int, channels: int) -> None:
    pixels = (np.arange(6 * channels) * 2621 % 65536).reshape(2, 3, channels).astype(U16)
    contents = png(pixels, kind, 16)
    assert_same(image.decode_png(contents), (pixels >> 8).astype(U8))
    with pytest.raises(DataError, match="decode_png: the image has colours of 16 bits"):
        image.decode_png(contents, dtype=U16)


# JPEG


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"subsampling": 0}, {"quality": 30}])
@pytest.mark.parametrize("size", [(8, 8), (37, 53), (1, 1)])
def test_jpeg_is_what_pillow_makes_of_it(options: dict[str, Any], size: tuple[int, int]) -> None:
    contents = saved(PIL.fromarray(smooth(*size)), "JPEG", **options)
    found = image.decode_jpeg(contents)
    assert_same(found, by_pillow(contents, "RGB"))
    assert abs(found.astype(int) - smooth(*size)).mean() < 12
    assert_same(image.decode_jpeg(contents, 3), found)
    assert_same(image.decode_image(contents), found)
    luminance = PIL.open(io.BytesIO(contents))
    luminance.draft("L", None)
    assert_same(image.decode_jpeg(contents, 1), np.array(luminance)[..., None])
    assert_same(image.decode_image(contents, 4)[..., 3], np.full(size, 255, U8))


def test_grey_jpeg() -> None:
    contents = image.encode_jpeg(smooth(9, 10, 1))
    found = image.decode_jpeg(contents)
    assert found.shape == (9, 10, 1)
    assert_same(image.decode_jpeg(contents, 3), np.repeat(found, 3, -1))


def test_cmyk_jpeg_becomes_rgb() -> None:
    inks = np.full((8, 8, 4), (0, 255, 100, 51), U8)
    contents = saved(PIL.fromarray(inks, "CMYK"), "JPEG", quality=100, subsampling=0)
    stored = 255 - by_pillow(contents, "CMYK").astype(int)
    found = image.decode_jpeg(contents)
    assert_same(found, (stored[..., :3] * stored[..., 3:] // 255).astype(U8))
    assert abs(found.astype(int) - (204, 0, 124)).max() <= 3
    assert image.decode_jpeg(contents, 1).shape == (8, 8, 1)


@pytest.mark.parametrize("ratio", [2, 4, 8])
def test_smaller_jpegs_have_the_size_rounded_up(ratio: int) -> None:
    for height, width in [(1, 1), (5, 100), (100, 3), (16, 16), (37, 53), (799, 1)]:
        contents = saved(PIL.fromarray(smooth(height, width)), "JPEG")
        for channels in (1, 3):
            found = image.decode_jpeg(contents, channels, ratio)
            assert found.shape == (-(-height // ratio), -(-width // ratio), channels)
    flat = image.encode_jpeg(np.full((64, 64, 3), 90, U8))
    assert abs(image.decode_jpeg(flat, ratio=ratio).astype(int) - 90).max() <= 1


def test_orientation_is_ignored() -> None:
    exif = PIL.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    contents = saved(PIL.fromarray(smooth(8, 16)), "JPEG", exif=exif)
    assert image.decode_jpeg(contents).shape == image.decode_image(contents).shape == (8, 16, 3)


def test_without_simplejpeg_the_pixels_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [image.encode_jpeg(smooth(30, 41, channels)) for channels in (1, 3)]
    found = [image.decode_jpeg(contents, channels) for contents in made for channels in (0, 1, 3)]
    monkeypatch.setitem(sys.modules, "simplejpeg", None)
    image_pixels._quick.cache_clear()
    try:
        assert_same([image.decode_jpeg(contents, channels) for contents in made for channels in (0, 1, 3)], found)
    finally:
        image_pixels._quick.cache_clear()


def test_what_does_not_matter_in_a_jpeg_is_no_error() -> None:
    contents = image.encode_jpeg(smooth(16, 16))
    assert_same(image.decode_jpeg(contents + b"rest"), image.decode_jpeg(contents))
    at = contents.index(b"\xff\xdb")
    assert_same(image.decode_jpeg(contents[:at] + b"\0\0\0" + contents[at:]), image.decode_jpeg(contents))


# GIF, BMP, WebP


def test_gif_gives_all_frames_or_the_first() -> None:
    frames = [PIL.fromarray(np.full((4, 6, 3), n, U8)) for n in (10, 20, 30)]
    contents = saved(frames[0], "GIF", save_all=True, append_images=frames[1:])
    expected = np.stack([np.full((4, 6, 3), n, U8) for n in (10, 20, 30)])
    assert_same(image.decode_image(contents), expected)
    assert_same(image.decode_image(contents, expand_animations=False), expected[0])
    assert_same(image.decode_image(contents, 1).shape, (3, 4, 6, 1))
    assert image.decode_image(saved(frames[0], "GIF")).shape == (1, 4, 6, 3)


def test_bmp_and_webp() -> None:
    pixels = smooth(5, 6)
    assert_same(image.decode_image(saved(PIL.fromarray(pixels), "BMP")), pixels)
    assert_same(image.decode_image(saved(PIL.fromarray(pixels), "WEBP", lossless=True)), pixels)


# Damage


def made() -> dict[str, bytes]:
    pixels = np.random.default_rng(0).integers(0, 256, (40, 50, 3), U8)
    return {kind: saved(PIL.fromarray(pixels), kind) for kind in ("BMP", "GIF", "JPEG", "PNG", "WEBP")}


@pytest.mark.parametrize("kind", made())
def test_an_image_that_is_cut_short_is_an_error(kind: str) -> None:
    contents = made()[kind]
    for size in [*range(0, len(contents) * 9 // 10, 97), 1, 2, 3, 8, 10, 26]:
        with pytest.raises(DataError, match="decode_image"):
            image.decode_image(contents[:size])


@pytest.mark.parametrize("kind", made())
def test_damage_is_an_error_or_an_image_and_nothing_else(kind: str) -> None:
    contents = made()[kind]
    rng = np.random.default_rng(1)
    failed = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PIL.DecompressionBombWarning)
        for _ in range(150):
            damaged = bytearray(contents)
            for at in rng.integers(0, rng.choice([30, len(contents)]), 3):
                damaged[at] = rng.integers(256)
            try:
                assert image.decode_image(damaged).dtype == U8
            except DataError:
                failed += 1
    assert failed


def test_messages_do_not_change_from_call_to_call() -> None:
    messages = set()
    for _ in range(2):
        with pytest.raises(DataError) as caught:
            image.decode_png(b"no image")
        messages.add(str(caught.value))
    assert messages == {"decode_png: the 8 bytes are no PNG image, or only the beginning of one"}
    with pytest.raises(DataError, match="no PNG image"):
        image.decode_png(image.encode_jpeg(smooth(8, 8)))
    with pytest.raises(DataError, match="no JPEG image"):
        image.decode_jpeg(image.encode_png(smooth(8, 8)))


def test_more_pixels_than_pillow_allows_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    jpeg = bytearray(image.encode_jpeg(smooth(8, 8)))
    at = jpeg.index(b"\xff\xc0") + 5
    jpeg[at : at + 4] = b"\xff\xff\xff\xff"
    big = bytearray(png(np.zeros((1, 1), U8), 0, 8))
    big[16:24] = struct.pack(">II", 60000, 60000)
    big[29:33] = struct.pack(">I", zlib.crc32(big[12:29]))
    frames = [PIL.fromarray(np.full((10, 10, 3), n, U8)) for n in (10, 20, 30)]
    gif = saved(frames[0], "GIF", save_all=True, append_images=frames[1:])
    for contents in (jpeg, big):
        with pytest.raises(DataError, match=r"decode_image: .*(MAX_IMAGE_PIXELS|limit)"):
            image.decode_image(bytes(contents))
    monkeypatch.setattr(PIL, "MAX_IMAGE_PIXELS", 250)
    with pytest.raises(DataError, match="10 x 10 pixels in 3 frames or more"):
        image.decode_image(gif)
    assert image.decode_image(gif, expand_animations=False).shape == (10, 10, 3)
    monkeypatch.setattr(PIL, "MAX_IMAGE_PIXELS", None)
    assert image.decode_image(gif).shape == (3, 10, 10, 3)


# Arguments


def test_wrong_arguments_are_refused() -> None:
    contents = image.encode_png(smooth(2, 2))
    calls: list[tuple[type[Exception], Any]] = [
        (ValueError, lambda: image.decode_png(contents, 2)),
        (ValueError, lambda: image.decode_png(contents, dtype=np.float32)),
        (ValueError, lambda: image.decode_image(contents, 5)),
        (ValueError, lambda: image.decode_image(contents, dtype=np.int32)),
        (ValueError, lambda: image.decode_jpeg(contents, 4)),
        (ValueError, lambda: image.decode_jpeg(contents, ratio=3)),
        (TypeError, lambda: image.decode_jpeg("text")),  # type: ignore[arg-type]
        (TypeError, lambda: image.decode_png(5)),  # type: ignore[arg-type]
        (TypeError, lambda: image.decode_image(None)),  # type: ignore[arg-type]
        (ValueError, lambda: image.encode_png(smooth(2, 2)[0])),
        (ValueError, lambda: image.encode_png(smooth(2, 2, 5))),
        (ValueError, lambda: image.encode_png(smooth(2, 2).astype(U16))),
        (ValueError, lambda: image.encode_png(smooth(2, 2), 10)),
        (ValueError, lambda: image.encode_jpeg(smooth(2, 2, 4))),
        (ValueError, lambda: image.encode_jpeg(smooth(2, 2, 1).astype(U16))),
        (ValueError, lambda: image.encode_jpeg(smooth(2, 2), "grayscale")),
        (ValueError, lambda: image.encode_jpeg(smooth(2, 2), "cmyk")),
        (ValueError, lambda: image.encode_jpeg(smooth(2, 2), quality=101)),
        (TypeError, lambda: image.encode_jpeg(smooth(2, 2), quality=1.5)),  # type: ignore[arg-type]
    ]
    for error, call in calls:
        with pytest.raises(error, match=r"(de|en)code_") as caught:
            call()
        assert not isinstance(caught.value, DataError)


def test_bytes_of_any_kind_are_taken() -> None:
    contents = image.encode_jpeg(smooth(3, 4))
    for kind in (bytearray, memoryview):
        assert_same(image.decode_image(kind(contents)), image.decode_image(contents))


def test_without_pillow_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    for call in (image.decode_png, image.decode_image):
        with pytest.raises(ImportError, match=r"needs pillow: pip install 'aiodata-pipeline\[image\]'"):
            call(b"")
