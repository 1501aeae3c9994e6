"""numpy arrays to encoded images, by Pillow."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.checks import check_integer
from aiodata.extras import load

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["encode_jpeg", "encode_png"]


def encode_jpeg(image: npt.ArrayLike, format: str = "", quality: int = 95, name: str | None = None) -> bytes:
    r"""Encode an image as JPEG, with its colours at half the resolution.

    Args:
        image: A uint8 array of shape `(height, width, channels)` with 1 channel (grey) or 3.
        format: "", "grayscale" or "rgb"; another number of channels is refused then.
        quality: From 0, the smallest, to 100, the best.
        name: Ignored; there because tf has it.

    Raises:
        ImportError: Pillow is not installed; it comes with the extra `image`.
        TypeError: `quality` is not an integer.
        ValueError: The image or an argument is none of these.

    >>> encode_jpeg(np.zeros((4, 4, 3), np.uint8))[:3]
    b'\xff\xd8\xff'

    Source: `tf.io.encode_jpeg`.
    """
    counts = {"": (1, 3), "grayscale": (1,), "rgb": (3,)}.get(format)
    if counts is None:
        raise ValueError(f"encode_jpeg: format must be '', 'grayscale' or 'rgb', not {format!r}")
    check_integer(quality, "encode_jpeg", "quality", 0)
    if quality > 100:
        raise ValueError(f"encode_jpeg: quality must be at most 100, not {quality}")
    return _encoded(image, counts, "encode_jpeg", "JPEG", quality=quality)


def encode_png(image: npt.ArrayLike, compression: int = -1, name: str | None = None) -> bytes:
    """Encode an image as PNG.

    Args:
        image: A uint8 array of shape `(height, width, channels)` with 1 channel (grey), 2 (with alpha), 3 or 4, or a
            uint16 array with 1.
        compression: From 0, the quickest, to 9, the smallest; -1 is zlib's own choice.
        name: Ignored; there because tf has it.

    Raises:
        ImportError: Pillow is not installed; it comes with the extra `image`.
        TypeError: `compression` is not an integer.
        ValueError: The image or an argument is none of these.

    >>> encode_png(np.zeros((4, 4, 3), np.uint8))[1:4]
    b'PNG'

    Source: `tf.io.encode_png`, which takes uint16 with several channels too.
    """
    check_integer(compression, "encode_png", "compression", -1)
    if compression > 9:
        raise ValueError(f"encode_png: compression must be at most 9, not {compression}")
    return _encoded(image, (1, 2, 3, 4), "encode_png", "PNG", compress_level=6 if compression < 0 else compression)


def _encoded(image: Any, counts: tuple[int, ...], method: str, kind: str, **options: Any) -> bytes:
    pixels = np.asarray(image)
    is_deep = pixels.dtype == np.uint16 and kind == "PNG"
    if pixels.ndim != 3 or 0 in pixels.shape or pixels.shape[-1] not in counts:
        raise ValueError(
            f"{method}: the image must have shape (height, width, {' or '.join(map(str, counts))}), not {pixels.shape}"
        )
    if pixels.dtype != np.uint8 and not (is_deep and pixels.shape[-1] == 1):
        raise ValueError(f"{method}: an image of {pixels.shape[-1]} channels must be uint8, not {pixels.dtype}")
    flat = np.ascontiguousarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
    file = io.BytesIO()
    load("PIL.Image", "image", method, "pillow").fromarray(flat).save(file, kind, **options)
    return file.getvalue()
