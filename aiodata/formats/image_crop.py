"""Parts of images and images turned over, as in `tf.image`; by chance where a generator of random numbers is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.checks import check_integer

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

__all__ = ["central_crop", "random_crop", "random_flip_left_right", "random_flip_up_down"]


def central_crop(image: npt.ArrayLike, central_fraction: float) -> npt.NDArray[Any]:
    """Cut out the middle.

    Args:
        image: An array of shape `(height, width, channels)`, or `(images, height, width, channels)`.
        central_fraction: The part of height and width to keep, above 0 and up to 1.

    Returns:
        A new array.

    Raises:
        ValueError: `central_fraction` is out of its range, or the image has another shape.

    >>> central_crop(np.arange(16).reshape(4, 4, 1), 0.5)[..., 0]
    array([[ 5,  6],
           [ 9, 10]])

    Source: `tf.image.central_crop`.
    """
    pixels = _checked(image, "central_crop")
    if not 0 < central_fraction <= 1:
        raise ValueError(f"central_crop: central_fraction must be above 0 and at most 1, not {central_fraction!r}")
    top, left = (int((length - length * central_fraction) / 2) for length in pixels.shape[-3:-1])
    return pixels[..., top : pixels.shape[-3] - top, left : pixels.shape[-2] - left, :].copy()


def random_crop(value: npt.ArrayLike, size: Sequence[int], rng: np.random.Generator) -> npt.NDArray[Any]:
    """Cut a part of a given size out of an array, at a place that is drawn.

    For `random_map`, whose generators give the same places whatever runs at once. Draws one number for each axis.

    Args:
        value: An array of any shape, such as an image.
        size: The length of each axis of the part; for an image `(height, width, channels)`.
        rng: Draws the place.

    Returns:
        A new array, which does not keep the whole one in memory.

    Raises:
        TypeError: `size` is not integers.
        ValueError: `size` has not one length for each axis, or one that is negative or longer than the array's.

    >>> random_crop(np.arange(100), [3], np.random.default_rng(0)).shape
    (3,)

    Source: `tf.image.random_crop`, which takes a seed for `rng`.
    """
    whole = np.asarray(value)
    lengths = [check_integer(length, "random_crop", "size", 0) for length in size]
    if len(lengths) != whole.ndim or any(part > length for part, length in zip(lengths, whole.shape, strict=True)):
        raise ValueError(f"random_crop: no part of size {tuple(lengths)} can be cut out of an array of {whole.shape}")
    begins = rng.integers(0, np.subtract(whole.shape, lengths) + 1)
    return whole[tuple(slice(begin, begin + part) for begin, part in zip(begins, lengths, strict=True))].copy()


def random_flip_left_right(image: npt.ArrayLike, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Turn an image over from left to right, or not, with even chances.

    Args:
        image: An array of shape `(height, width, channels)`; of several, `(images, height, width, channels)`, each is
            turned or not by itself.
        rng: Draws one number for each image.

    Returns:
        The image, or a view of it; a new array for several.

    Raises:
        ValueError: The image has another shape.

    >>> random_flip_left_right(np.arange(3).reshape(1, 3, 1), np.random.default_rng(3)).ravel()
    array([2, 1, 0])

    Source: `tf.image.random_flip_left_right`, which takes a seed for `rng`.
    """
    return _flipped(_checked(image, "random_flip_left_right"), -2, rng)


def random_flip_up_down(image: npt.ArrayLike, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Turn an image upside down, or not, as `random_flip_left_right` does from left to right.

    >>> random_flip_up_down(np.arange(3).reshape(3, 1, 1), np.random.default_rng(3)).ravel()
    array([2, 1, 0])

    Source: `tf.image.random_flip_up_down`, which takes a seed for `rng`.
    """
    return _flipped(_checked(image, "random_flip_up_down"), -3, rng)


def _checked(image: npt.ArrayLike, method: str) -> npt.NDArray[Any]:
    pixels = np.asarray(image)
    if pixels.ndim not in (3, 4):
        raise ValueError(f"{method}: the image must be of shape (height, width, channels), not {pixels.shape}")
    return pixels


def _flipped(pixels: npt.NDArray[Any], axis: int, rng: np.random.Generator) -> npt.NDArray[Any]:
    turned = np.flip(pixels, axis)
    if pixels.ndim == 3:
        return turned if rng.random() < 0.5 else pixels
    return np.where(rng.random((len(pixels), 1, 1, 1)) < 0.5, turned, pixels)
