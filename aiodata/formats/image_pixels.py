"""The pixels of encoded images as they are stored, by Pillow and simplejpeg, and with other channels and depths."""

from __future__ import annotations

import io
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.errors import DataError
from aiodata.extras import load

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

__all__ = [
    "DEPTHS",
    "FORMATS",
    "frames",
    "jpeg_pixels",
    "opened",
    "png_gamma",
    "stored_pixels",
    "with_channels",
    "with_depth",
]

FORMATS = ("BMP", "GIF", "JPEG", "PNG", "WEBP")
"""What `decode_image` reads; Pillow knows many more, but each is one more way in for hostile data."""

DEPTHS = {np.dtype(np.uint8): 255, np.dtype(np.uint16): 65535}
_GREY = np.array([9797, 19234, 3737], np.uint32)
"""Weights of red, green and blue in 1 / 32768, as TensorFlow has libpng round 0.299, 0.587 and 0.114."""

_SRGB = 45455
"""The exponent of a PNG in sRGB, in 1 / 100000."""


def opened(contents: bytes, formats: tuple[str, ...], method: str) -> Any:
    """Read an image's header."""
    pillow = load("PIL.Image", "image", method, "pillow")
    try:
        image = pillow.open(io.BytesIO(contents), formats=formats)
    except pillow.UnidentifiedImageError:
        kinds = "image" if formats is FORMATS else f"{formats[0]} image"
        raise DataError(f"{method}: the {len(contents)} bytes are no {kinds}, or only the beginning of one") from None
    except Exception as error:  # Pillow's readers raise what they come upon
        raise _damaged(error, method) from error
    _check_size(image.width, image.height, method)
    return image


def _damaged(error: Exception, method: str) -> DataError:
    return DataError(f"{method}: the image is damaged, cut short or too large: {error}")


def _check_size(width: int, height: int, method: str, frames: int = 1) -> None:
    limit = load("PIL.Image", "image", method, "pillow").MAX_IMAGE_PIXELS
    if limit is not None and width * height * frames > limit:
        raise DataError(
            f"{method}: the image has {width} x {height} pixels{f' in {frames} frames or more' * (frames > 1)}, and "
            f"PIL.Image.MAX_IMAGE_PIXELS allows {limit}: it may be made to fill up the memory"
        )


def _loaded(image: Any, mode: str | None, method: str) -> npt.NDArray[Any]:
    """Decode an image, convert it to one of Pillow's modes, and give it with its axis of channels."""
    try:
        image.load()
        pixels = np.array(image if mode is None else image.convert(mode))
    except Exception as error:
        raise _damaged(error, method) from error
    return pixels if pixels.ndim == 3 else pixels[..., None]


def stored_pixels(image: Any, contents: bytes, channels: int, method: str) -> npt.NDArray[Any]:
    """Give the pixels as they are stored, palettes resolved: uint8, or uint16 for grey of 16 bits."""
    has_alpha = "transparency" in image.info
    if image.mode == "P":
        return _loaded(image, "RGBA" if has_alpha else "RGB", method)
    if image.mode.startswith("I"):
        return _loaded(image, None, method).astype(np.uint16)
    if has_alpha and channels == 4 and image.mode in ("1", "L", "RGB"):
        return _loaded(image, "RGBA", method)
    pixels = _loaded(image, "L" if image.mode == "1" else None, method)
    return pixels[..., [0, 3]] if _png_kind(contents) == (16, 4) else pixels  # Pillow gives four channels for the two


def _png_kind(contents: bytes) -> tuple[int, int]:
    """Give a PNG's bits for each channel, and its type of colours (4 is grey with alpha)."""
    return (contents[24], contents[25]) if contents.startswith(b"\x89PNG") else (8, 0)


def png_gamma(image: Any) -> int:
    """Give the exponent of a PNG's colours in 1 / 100000, as libpng counts it; 100000 where it is not told."""
    if image.format == "PNG" and "srgb" in image.info:
        return _SRGB
    told = round(image.info.get("gamma", 1) * 100000) if image.format == "PNG" else 0
    return told if 16 <= told <= 625000000 else 100000


def frames(image: Any, method: str) -> Iterator[npt.NDArray[np.uint8]]:
    """Give the frames of an animation, as red, green and blue."""
    for number in count():
        try:
            image.seek(number)
        except EOFError:
            return
        except Exception as error:
            raise _damaged(error, method) from error
        _check_size(image.width, image.height, method, number + 1)
        yield _loaded(image, "RGB", method)


@cache
def _quick() -> Any:
    try:
        return load("simplejpeg", "image", "decode_jpeg")
    except ImportError:
        return None


def jpeg_pixels(contents: bytes, channels: int, ratio: int, method: str) -> npt.NDArray[np.uint8]:
    """Decode a JPEG image, in a size smaller by `ratio`."""
    quick = _quick()
    if ratio == 1 and quick is not None:
        try:
            height, width, colours, _ = quick.decode_jpeg_header(contents)
            _check_size(width, height, method)
            if colours in ("Gray", "YCbCr", "RGB"):
                is_grey = channels == 1 or (channels == 0 and colours == "Gray")
                return with_channels(quick.decode_jpeg(contents, "GRAY" if is_grey else "RGB"), channels)
        except DataError:
            raise
        except ValueError:
            pass  # it is strict about what does not matter; Pillow decides
    image = opened(contents, ("JPEG",), method)
    # Pillow takes the largest ratio that leaves this size; with a fraction that is `ratio`, however small the image.
    size = (image.width / (ratio + 0.5), image.height / (ratio + 0.5)) if ratio > 1 else None
    image.draft("L" if channels == 1 else image.mode, size)
    pixels = _loaded(image, None, method)
    if image.mode == "CMYK":
        inks = 255 - pixels.astype(np.uint16)
        pixels = (inks[..., :3] * inks[..., 3:] // 255).astype(np.uint8)
    return with_channels(pixels, channels)


# Channels and depths


def with_channels(pixels: npt.NDArray[Any], channels: int, gamma: int = 100000) -> npt.NDArray[Any]:
    """Give the pixels with 1, 3 or 4 channels; 0 leaves them. `gamma` is what `png_gamma` gives."""
    found = pixels.shape[-1]
    if channels in (0, found):
        return pixels
    has_alpha, is_grey = found in (2, 4), found < 3
    colours = pixels[..., : found - has_alpha]
    if channels == 1:
        return colours if is_grey else _grey(colours, gamma)
    if is_grey:
        colours = np.repeat(colours, 3, axis=-1)
    if channels == 3:
        return np.ascontiguousarray(colours)
    alpha = pixels[..., -1:] if has_alpha else np.full_like(pixels[..., :1], DEPTHS[pixels.dtype])
    return np.concatenate([colours, alpha], axis=-1)


def _grey(colours: npt.NDArray[Any], gamma: int) -> npt.NDArray[Any]:
    """Make uint8 colours grey to the numbers that libpng does: in linear light, where that is not what they are in."""
    if 95000 <= gamma <= 105000:
        return (colours @ _GREY[:, None] >> 15).astype(np.uint8)
    linear = _powers(int(1e10 / gamma + 0.5))[colours]
    grey = _powers(gamma)[(linear @ _GREY[:, None] + 16384) >> 15]
    return np.where((colours == colours[..., :1]).all(axis=-1, keepdims=True), colours[..., :1], grey)


def _powers(exponent: int) -> npt.NDArray[np.uint8]:
    """Give the powers (256,) of the numbers from 0 to 1 in 1 / 255, to an exponent in 1 / 100000."""
    return np.floor(255 * (np.arange(256) / 255) ** (exponent * 1e-5) + 0.5).astype(np.uint8)


def with_depth(pixels: npt.NDArray[Any], dtype: np.dtype[Any], contents: bytes, method: str) -> npt.NDArray[Any]:
    """Give the pixels of `contents` as uint8 or uint16, black and white staying what they are."""
    if pixels.dtype == dtype:
        return pixels
    if dtype == np.uint8:
        return (pixels >> 8).astype(np.uint8)
    if _png_kind(contents)[0] == 16:
        raise DataError(f"{method}: the image has colours of 16 bits, of which Pillow keeps only 8: take dtype uint8")
    return pixels.astype(np.uint16) * np.uint16(257)
