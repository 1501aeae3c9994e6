"""Encoded images to numpy arrays: tf.io's decoders, by Pillow, and by simplejpeg where that is quicker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.formats.image_pixels import (
    DEPTHS,
    FORMATS,
    frames,
    jpeg_pixels,
    opened,
    png_gamma,
    stored_pixels,
    with_channels,
    with_depth,
)

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy.typing as npt

    Contents: TypeAlias = bytes | bytearray | memoryview

__all__ = ["decode_image", "decode_jpeg", "decode_png"]


def decode_image(
    contents: Contents,
    channels: int | None = None,
    dtype: npt.DTypeLike = np.uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> npt.NDArray[Any]:
    """Decode a BMP, GIF, JPEG, PNG or WebP image.

    Colours are those that are stored: EXIF orientation and colour profiles do not matter, as in tf. Decoding frees the
    interpreter for other threads, so a map with `num_parallel_calls` gains by it.

    Args:
        contents: The encoded image.
        channels: 1 for grey, 3 for red, green, blue, 4 with alpha; None or 0 for as many as the image has.
        dtype: uint8, uint16 or float32. Integers fill the range, whatever the image has; float32 is from 0 to 1.
        name: Ignored; there because tf has it.
        expand_animations: Whether a GIF gives all its frames; if not, the first one only.

    Returns:
        An array of shape `(height, width, channels)`; for a GIF with `expand_animations`, also one of a single frame,
        `(frames, height, width, channels)`. Of other animations the first frame.

    Raises:
        DataError: The image is damaged, cut short, or has more pixels than Pillow allows (`PIL.Image.MAX_IMAGE_PIXELS`,
            about 89 million, all frames together); or it has colours of 16 bits and uint16 is wanted.
        ImportError: Pillow is not installed; it comes with the extra `image`.
        TypeError: `contents` are not bytes, or `dtype` is none.
        ValueError: `channels` or `dtype` is none of these.

    >>> from aiodata.formats.image_encoding import encode_png
    >>> decode_image(encode_png(np.full((2, 3, 1), 255, np.uint8)), channels=3, dtype=np.float32).shape
    (2, 3, 3)

    Source: `tf.io.decode_image`.
    """
    wanted = np.dtype(dtype)
    if wanted != np.float32:
        _check_dtype(wanted, "decode_image", "uint8, uint16 or float32")
    count = _check_channels(channels or 0, (0, 1, 3, 4), "decode_image")
    data = _bytes(contents, "decode_image")
    if data.startswith(b"\xff\xd8\xff"):
        pixels = jpeg_pixels(data, count, 1, "decode_image")
    else:
        image = opened(data, FORMATS, "decode_image")
        if image.format == "GIF":
            found = frames(image, "decode_image")
            pixels = with_channels(np.stack(list(found)) if expand_animations else next(found), count)
        else:
            pixels = with_channels(stored_pixels(image, data, count, "decode_image"), count, png_gamma(image))
    if wanted == np.float32:
        return pixels / np.float32(DEPTHS[pixels.dtype])
    return with_depth(pixels, wanted, data, "decode_image")


def decode_jpeg(
    contents: Contents, channels: int = 0, ratio: int = 1, name: str | None = None
) -> npt.NDArray[np.uint8]:
    """Decode a JPEG image; several times as fast with simplejpeg installed, and to the same pixels.

    The pixels are those of tf's `dct_method="INTEGER_ACCURATE"`; its default is quicker, and off by a few. Grey is what
    the image has for it, as in tf. EXIF orientation is ignored, as in tf; CMYK becomes RGB. Decoding frees the
    interpreter for other threads.

    Args:
        contents: The encoded image.
        channels: 1 for grey, 3 for red, green, blue, 0 for as many as the image has.
        ratio: 1, 2, 4 or 8: decode to a size smaller by that, rounded up, which is quicker.
        name: Ignored; there because tf has it.

    Returns:
        A uint8 array of shape `(height, width, channels)`.

    Raises:
        DataError: The image is damaged, cut short, or has more pixels than Pillow allows.
        ImportError: Pillow is not installed; it comes with the extra `image`.
        TypeError: `contents` are not bytes.
        ValueError: `channels` or `ratio` is none of these.

    >>> from aiodata.formats.image_encoding import encode_jpeg
    >>> decode_jpeg(encode_jpeg(np.zeros((5, 8, 3), np.uint8)), ratio=2).shape
    (3, 4, 3)

    Source: `tf.io.decode_jpeg`, without its choices of speed and of recovering what is cut short.
    """
    _check_channels(channels, (0, 1, 3), "decode_jpeg")
    if ratio not in (1, 2, 4, 8):
        raise ValueError(f"decode_jpeg: ratio must be 1, 2, 4 or 8, not {ratio!r}")
    return jpeg_pixels(_bytes(contents, "decode_jpeg"), channels, ratio, "decode_jpeg")


def decode_png(
    contents: Contents, channels: int = 0, dtype: npt.DTypeLike = np.uint8, name: str | None = None
) -> npt.NDArray[Any]:
    """Decode a PNG image.

    Palettes become colours. Grey is made of colours as in tf: 0.299 red, 0.587 green, 0.114 blue, in linear light where
    the image tells its gamma. Alpha is dropped or filled in, never applied. Decoding frees the interpreter for other
    threads.

    Args:
        contents: The encoded image.
        channels: 1 for grey, 3 for red, green, blue, 4 with alpha; 0 for as many as the image has, 2 being grey with
            alpha.
        dtype: uint8 or uint16. 8 bits become 16 by `x * 257`, 16 become 8 by `x >> 8`.
        name: Ignored; there because tf has it.

    Returns:
        An array of shape `(height, width, channels)`.

    Raises:
        DataError: The image is damaged, cut short, or has more pixels than Pillow allows; or it has colours of 16 bits
            and uint16 is wanted, since Pillow keeps 8 of them (grey of 16 bits is read whole).
        ImportError: Pillow is not installed; it comes with the extra `image`.
        TypeError: `contents` are not bytes, or `dtype` is none.
        ValueError: `channels` or `dtype` is none of these.

    >>> from aiodata.formats.image_encoding import encode_png
    >>> decode_png(encode_png(np.array([[[7], [300]]], np.uint16)), dtype=np.uint16)[..., 0]
    array([[  7, 300]], dtype=uint16)

    Source: `tf.io.decode_png`.
    """
    wanted = np.dtype(dtype)
    _check_dtype(wanted, "decode_png", "uint8 or uint16")
    _check_channels(channels, (0, 1, 3, 4), "decode_png")
    data = _bytes(contents, "decode_png")
    image = opened(data, ("PNG",), "decode_png")
    pixels = with_channels(stored_pixels(image, data, channels, "decode_png"), channels, png_gamma(image))
    return with_depth(pixels, wanted, data, "decode_png")


def _bytes(contents: Any, method: str) -> bytes:
    if not isinstance(contents, (bytes, bytearray, memoryview)):
        raise TypeError(f"{method}: contents must be bytes, not {type(contents).__name__}")
    return bytes(contents)


def _check_channels(channels: int, allowed: tuple[int, ...], method: str) -> int:
    if channels not in allowed:
        raise ValueError(f"{method}: channels must be one of {', '.join(map(str, allowed))}, not {channels!r}")
    return channels


def _check_dtype(dtype: np.dtype[Any], method: str, allowed: str) -> None:
    if dtype not in DEPTHS:
        raise ValueError(f"{method}: dtype must be {allowed}, not {dtype}")
