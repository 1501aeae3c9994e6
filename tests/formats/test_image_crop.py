"""Crops and flips: exact parts, even chances, the same by the same generator, and in `random_map` in any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from aiodata import Dataset, image
from tests.programs import arr, assert_gives, assert_same, to_list


def numbered(*shape: int) -> Any:
    return np.arange(np.prod(shape)).reshape(shape)


@pytest.mark.parametrize(
    ("shape", "fraction", "kept"),
    [
        ((4, 4, 1), 0.5, (slice(1, 3), slice(1, 3))),
        ((5, 8, 2), 0.5, (slice(1, 4), slice(2, 6))),
        ((3, 3, 3), 1.0, (slice(0, 3), slice(0, 3))),
        ((5, 5, 1), 0.01, (slice(2, 3), slice(2, 3))),
    ],
)
def test_central_crop(shape: tuple[int, ...], fraction: float, kept: Any) -> None:
    pixels = numbered(*shape)
    assert_same(image.central_crop(pixels, fraction), pixels[kept])
    assert_same(image.central_crop(np.stack([pixels, -pixels]), fraction)[1], -pixels[kept])


def test_random_crops_are_every_part_about_as_often() -> None:
    pixels = numbered(3, 4, 2)
    rng = np.random.default_rng(0)
    places: dict[tuple[int, int], int] = {}
    for _ in range(600):
        part = image.random_crop(pixels, (2, 3, 2), rng)
        top, left = divmod(int(part[0, 0, 0]) // 2, 4)
        assert_same(part, pixels[top : top + 2, left : left + 3])
        places[top, left] = places.get((top, left), 0) + 1
    assert sorted(places) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert min(places.values()) > 110


def test_a_crop_does_not_hold_the_whole_image() -> None:
    for part in (
        image.random_crop(numbered(9, 9, 3), (2, 2, 3), np.random.default_rng(0)),
        image.central_crop(numbered(9, 9, 3), 0.3),
    ):
        assert part.base is None
        assert part.flags.c_contiguous


def test_a_crop_of_everything_and_of_nothing() -> None:
    rng = np.random.default_rng(0)
    assert_same(image.random_crop(numbered(2, 3), [2, 3], rng), numbered(2, 3))
    assert image.random_crop(numbered(2, 3), [0, 3], rng).shape == (0, 3)


@pytest.mark.parametrize(("flip", "axis"), [(image.random_flip_left_right, 1), (image.random_flip_up_down, 0)])
def test_flips_have_even_chances(flip: Any, axis: int) -> None:
    pixels = numbered(2, 3, 2)
    rng = np.random.default_rng(0)
    turned = 0
    for _ in range(400):
        found = flip(pixels, rng)
        if found[0, 0, 0]:
            turned += 1
            assert_same(found, np.flip(pixels, axis))
        else:
            assert_same(found, pixels)
    assert 160 < turned < 240


def test_several_images_are_turned_one_by_one() -> None:
    pixels = np.stack([numbered(1, 2, 1)] * 400)
    found = image.random_flip_left_right(pixels, np.random.default_rng(0))
    assert found.shape == pixels.shape
    assert 160 < int((found[:, 0, 0, 0] == 1).sum()) < 240


def changed(pixels: Any, rng: np.random.Generator) -> Any:
    return image.random_flip_left_right(image.random_crop(pixels, (2, 2, 1), rng), rng)


def test_random_map_gives_the_same_whatever_runs_at_once() -> None:
    images = Dataset.from_tensor_slices(numbered(40, 4, 4, 1))
    straight = to_list(images.random_map(changed, seed=3))
    assert_same(to_list(images.random_map(changed, seed=3, num_parallel_calls=3)), straight)
    ds = images.random_map(changed, seed=3)
    passes = [to_list(ds), to_list(ds)]
    assert_same(passes[0], straight)
    assert any(not np.array_equal(a, b) for a, b in zip(*passes, strict=True))
    assert_gives(images.map(lambda x: image.central_crop(x, 0.5)).take(1), [arr([[[5], [6]], [[9], [10]]])])


def test_wrong_arguments_are_refused() -> None:
    rng = np.random.default_rng(0)
    pixels = numbered(4, 4, 1)
    calls: list[tuple[type[Exception], Any]] = [
        (ValueError, lambda: image.central_crop(pixels, 0)),
        (ValueError, lambda: image.central_crop(pixels, 1.1)),
        (ValueError, lambda: image.central_crop(pixels[0], 0.5)),
        (ValueError, lambda: image.random_crop(pixels, (2, 2), rng)),
        (ValueError, lambda: image.random_crop(pixels, (5, 2, 1), rng)),
        (ValueError, lambda: image.random_crop(pixels, (-1, 2, 1), rng)),
        (TypeError, lambda: image.random_crop(pixels, (2.5, 2, 1), rng)),  # type: ignore[arg-type]
        (ValueError, lambda: image.random_flip_left_right(pixels[0], rng)),
        (ValueError, lambda: image.random_flip_up_down(pixels[0, 0], rng)),
    ]
    for error, call in calls:
        with pytest.raises(error, match=r"(random|central)_\w+: "):
            call()
