"""Resizing: exact values by hand, and every method compared with its definition written out pixel by pixel."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiodata import image
from tests.programs import arr, assert_same

if TYPE_CHECKING:
    from collections.abc import Callable

F32 = np.float32


def row(*values: float, size: int, **options: Any) -> list[float]:
    """Resize a row of pixels."""
    found = image.resize(arr(values, F32)[None, :, None], (1, size), **options)
    assert found.shape == (1, size, 1)
    return [float(x) for x in found[0, :, 0]]


# By hand


def test_bilinear() -> None:
    assert row(0, 10, size=4) == [0, 2.5, 7.5, 10]
    assert row(0, 4, 8, 12, size=2) == [2, 10]  # only two pixels count for each, of the four
    assert row(0, 10, 20, 30, 40, 50, size=2) == [10, 40]
    assert row(0, 10, 20, size=1) == [10]
    assert row(7, size=3) == [7, 7, 7]
    assert row(1, 2, 3, size=3) == [1, 2, 3]


def test_bilinear_of_both_axes() -> None:
    found = image.resize(arr([[[0], [10]], [[20], [30]]], np.uint8), (4, 1))
    assert_same(found, arr([5, 10, 20, 25], F32)[:, None, None])


def test_nearest() -> None:
    assert row(1, 2, size=4, method="nearest") == [1, 1, 2, 2]
    assert row(1, 2, 3, 4, size=2, method="nearest") == [2, 4]
    assert row(1, 2, 3, size=2, method="nearest") == [1, 3]
    assert_same(image.resize(arr([[[1], [2]]], np.uint8), (2, 1), "nearest"), arr([[[2]], [[2]]], np.uint8))


def test_bicubic() -> None:
    # At 1/4 between 0 and 16, without what lies outside: weights (-9 -> out), 111, 29, -3 of 128.
    assert row(0, 16, 16, size=6, method="bicubic")[1] == pytest.approx((29 * 16 - 3 * 16) / (111 + 29 - 3), abs=1e-5)
    assert row(5, 5, 5, 5, size=7, method="bicubic") == pytest.approx([5] * 7)
    assert row(0, 1, 2, 3, 4, 5, size=3, method="bicubic")[1] == pytest.approx(2.5)


def test_area() -> None:
    assert row(0, 4, 8, 12, size=2, method="area") == [2, 10]
    assert row(0, 3, 6, size=2, method="area") == pytest.approx([1, 5])
    assert row(1, 2, size=4, method="area") == [1, 1, 2, 2]
    assert row(0, 6, size=3, method="area") == pytest.approx([0, 3, 6])


def test_antialias() -> None:
    assert row(0, 0, 8, 0, 0, 0, 0, 0, size=4, antialias=True) == pytest.approx([8 / 7, 3, 0, 0])
    # Weights 1/4, 3/4, 3/4, 1/4 of 2 and, at the border, without the first.
    assert row(7, 0, 0, 0, size=2, antialias=True) == pytest.approx([3, 0])
    assert row(0, 10, size=4, antialias=True) == row(0, 10, size=4)


# By definition


def centre(number: int, before: int, after: int) -> float:
    return (number + 0.5) * before / after - 0.5


def keys(x: float) -> float:
    x = abs(x)
    if x < 1:
        return 1.5 * x**3 - 2.5 * x**2 + 1
    return -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2 if x < 2 else 0


def smooth_weight(kernel: Callable[[float], float]) -> Callable[[int, int, int, int], float]:
    def weight(old: int, new: int, before: int, after: int) -> float:
        return kernel((old - centre(new, before, after)) / max(before / after, 1))

    return weight


def cubic_weight(old: int, new: int, before: int, after: int) -> float:
    """Weigh at one of the 1024 places between two pixels that tf has weights for."""
    return keys(old - round(centre(new, before, after) * 1024) / 1024)


def area_weight(old: int, new: int, before: int, after: int) -> float:
    return max(0, min(old + 1, (new + 1) * before / after) - max(old, new * before / after))


def linear_weight(old: int, new: int, before: int, after: int) -> float:
    place = min(max(centre(new, before, after), 0), before - 1)
    return max(0, 1 - abs(old - place))


def nearest_weight(old: int, new: int, before: int, after: int) -> float:
    return float(old == min(before - 1, math.floor((new + 0.5) * before / after)))


WEIGHTS = {
    ("bilinear", False): linear_weight,
    ("bilinear", True): smooth_weight(lambda x: max(0, 1 - abs(x))),
    ("bicubic", False): cubic_weight,
    ("bicubic", True): smooth_weight(keys),
    ("area", False): area_weight,
    ("area", True): area_weight,
    ("nearest", False): nearest_weight,
    ("nearest", True): nearest_weight,
}


def matrix(weight: Callable[[int, int, int, int], float], before: int, after: int) -> Any:
    table = np.array([[weight(old, new, before, after) for old in range(before)] for new in range(after)])
    return table / table.sum(axis=1, keepdims=True)


LENGTHS = st.integers(1, 12)


@settings(max_examples=150)
@given(st.sampled_from(sorted(WEIGHTS)), LENGTHS, LENGTHS, LENGTHS, LENGTHS)
def test_every_method_by_its_definition(form: tuple[str, bool], h: int, w: int, height: int, width: int) -> None:
    pixels = np.random.default_rng(h * 13 + w).integers(0, 256, (2, h, w, 3)).astype(np.uint8)
    found = image.resize(pixels, (height, width), form[0], antialias=form[1])
    assert found.shape == (2, height, width, 3)
    rows, columns = matrix(WEIGHTS[form], h, height), matrix(WEIGHTS[form], w, width)
    expected = np.einsum("ab,nbcd,ec->naed", rows, pixels, columns)
    if form[0] == "nearest":
        assert found.dtype == np.uint8
    else:
        assert found.dtype == F32
    np.testing.assert_allclose(found, expected, atol=0.01)
    assert_same(image.resize(pixels[1], (height, width), form[0], antialias=form[1]), found[1])


# The rest


def test_the_shape_of_the_image_can_be_kept() -> None:
    pixels = np.zeros((10, 20, 3), np.uint8)
    for size, expected in [((5, 5), (2, 5)), ((5, 100), (5, 10)), ((40, 40), (20, 40)), ((1, 1), (1, 1))]:
        assert image.resize(pixels, size, preserve_aspect_ratio=True).shape == (*expected, 3)


def test_the_result_is_new_and_floats_are_kept() -> None:
    pixels = arr([[[0.25]]], F32)
    for method in ("bilinear", "nearest", "bicubic", "area"):
        found = image.resize(pixels, (1, 1), method)
        assert_same(found, pixels)
        assert not np.shares_memory(found, pixels)


def test_wrong_arguments_are_refused() -> None:
    pixels = np.zeros((4, 4, 3), np.uint8)
    wrong: list[tuple[Any, Any, dict[str, Any], type[Exception]]] = [
        (pixels[0], (2, 2), {}, ValueError),
        (pixels[:0], (2, 2), {}, ValueError),
        (pixels, (2, 0), {}, ValueError),
        (pixels, (2, 2.5), {}, TypeError),
        (pixels, (2, 2, 3), {}, TypeError),
        (pixels, 2, {}, TypeError),
        (pixels, "22", {}, TypeError),
        (pixels, (2, 2), {"method": "lanczos3"}, ValueError),
    ]
    for images, size, options, error in wrong:
        with pytest.raises(error, match="resize: "):
            image.resize(images, size, **options)
