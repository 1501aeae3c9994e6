"""Photographs for training: 2,000 JPEGs of 500x375 pixels, read, decoded, the middle 224x224 cut out, batches of 32.

Two threads, or processes. All decoders are libjpeg-turbo; they may differ by a little in their rounding.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.workload import Pass, Workload

IMAGES, HEIGHT, WIDTH, CROP, BATCH, THREADS = 2_000, 375, 500, 224, 32, 2
TOP, LEFT = (HEIGHT - CROP) // 2, (WIDTH - CROP) // 2
MIDDLE = slice(TOP, TOP + CROP), slice(LEFT, LEFT + CROP)


def prepare(folder: Path) -> None:
    """Write the files: noise of all sizes, the large ones strongest, as in photographs; 30 to 60 kB each."""
    from PIL import Image

    generator = np.random.default_rng(0)
    for number in range(IMAGES):
        pixels = np.full((HEIGHT, WIDTH, 3), 128, np.float32)
        for level, strength in ((4, 80), (12, 50), (40, 25), (125, 14)):
            small = generator.integers(0, 256, (level * 3 // 4, level, 3), np.uint8)
            large = Image.fromarray(small).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)
            pixels += (np.asarray(large, np.float32) - 128) * (strength / 128)
        pixels += generator.standard_normal((HEIGHT, WIDTH, 1), np.float32) * 3
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / f"{number:04}.jpg", quality=88)


WORKLOAD = Workload(
    "images",
    "images: 2,000 JPEGs of 500x375, decode, crop 224x224, batch 32, 2 threads",
    IMAGES,
    prepare,
    unit="image",
    # Contrast, not brightness: tf.data's quick arithmetic makes all pixels darker by one.
    total=lambda batch: np.asarray(batch)[:, ::4, ::4].std(axis=(1, 2, 3)).sum(),
)


def paths(folder: Path) -> list[str]:
    """Name the files."""
    return sorted(map(str, folder.glob("*.jpg")))


# aiodata


def read_and_decode(path: str) -> Any:
    """Read, decode and crop a file; a view would keep the whole image in memory until its batch is made."""
    from aiodata import image, read_file

    return image.decode_jpeg(read_file(path), channels=3)[MIDDLE].copy()


def _ours(folder: Path, calls: int) -> Any:
    from aiodata import Dataset

    files: Any = Dataset.list_files(str(folder / "*.jpg"), shuffle=False)
    return files.map(read_and_decode, num_parallel_calls=calls).batch(BATCH).prefetch(2)


@WORKLOAD.ours("aiodata")
def two_calls(folder: Path) -> Pass:
    """Decode in two threads."""
    dataset = _ours(folder, THREADS)
    return lambda: dataset


@WORKLOAD.ours("aiodata, async for")
def two_calls_async(folder: Path) -> Pass:
    """Do the same in an event loop."""
    dataset = _ours(folder, THREADS)
    return lambda: _only_async(dataset)


async def _only_async(dataset: Any) -> Any:
    async for batch in dataset:
        yield batch


@WORKLOAD.ours("aiodata, AUTOTUNE")
def autotune(folder: Path) -> Pass:
    """Let aiodata choose how many calls there are at once."""
    from aiodata import AUTOTUNE

    dataset = _ours(folder, AUTOTUNE)
    return lambda: dataset


@WORKLOAD.ours("aiodata, a batch of names a call")
def batched(folder: Path) -> Pass:
    """Batch first: a call decodes a batch of names."""
    from aiodata import Dataset

    files: Any = Dataset.list_files(str(folder / "*.jpg"), shuffle=False).batch(BATCH)
    dataset = files.map(_decode_names, num_parallel_calls=THREADS).prefetch(2)
    return lambda: dataset


def _decode_names(names: Any) -> Any:
    batch = np.empty((len(names), CROP, CROP, 3), np.uint8)
    for row, name in zip(batch, names, strict=True):
        row[...] = read_and_decode(name)
    return batch


# Peers


@WORKLOAD.peer("tf.data, decode_and_crop_jpeg", "tensorflow")
def tensorflow(folder: Path) -> Pass:
    """Decode only the rows that are wanted."""
    import tensorflow as tf

    def decode(path: Any) -> Any:
        window = [TOP, LEFT, CROP, CROP]
        return tf.image.decode_and_crop_jpeg(tf.io.read_file(path), window, channels=3)

    return _tensorflow(folder, decode, THREADS)


@WORKLOAD.peer("tf.data, decode_jpeg, AUTOTUNE", "tensorflow")
def tensorflow_whole(folder: Path) -> Pass:
    """Decode all, then crop, with as many calls as tf.data likes."""
    import tensorflow as tf

    def decode(path: Any) -> Any:
        pixels = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        return tf.image.crop_to_bounding_box(pixels, TOP, LEFT, CROP, CROP)

    return _tensorflow(folder, decode, tf.data.AUTOTUNE)


def _tensorflow(folder: Path, decode: Callable[[Any], Any], calls: int) -> Pass:
    import tensorflow as tf

    files = tf.data.Dataset.list_files(str(folder / "*.jpg"), shuffle=False)
    dataset = files.map(decode, num_parallel_calls=calls).batch(BATCH).prefetch(tf.data.AUTOTUNE)
    return dataset.as_numpy_iterator


class _Images:
    """The images, for torch and Grain."""

    def __init__(self, folder: Path) -> None:
        self.paths = paths(folder)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        return _decode(self.paths[index])


def _decode(path: str) -> Any:
    from simplejpeg import decode_jpeg

    with open(path, "rb") as file:
        return decode_jpeg(file.read())[MIDDLE].copy()


def _decode_batch(names: list[str]) -> Any:
    batch = np.empty((len(names), CROP, CROP, 3), np.uint8)
    for row, name in zip(batch, names, strict=True):
        row[...] = _decode(name)
    return batch


@WORKLOAD.peer("torch, 2 workers, simplejpeg", "torch,simplejpeg")
def torch(folder: Path) -> Pass:
    """Send batches as tensors in shared memory."""
    from torch import from_numpy
    from torch.utils.data import DataLoader

    loader: Any = DataLoader(
        _Images(folder),  # type: ignore[arg-type]
        BATCH,
        num_workers=THREADS,
        collate_fn=lambda images: from_numpy(np.stack(images)),
        persistent_workers=True,
    )
    return lambda: loader


@WORKLOAD.peer("Grain, 2 threads, simplejpeg", "grain,simplejpeg")
def grain(folder: Path) -> Pass:
    """Make a batch in each thread."""
    from grain import MapDataset, ReadOptions

    images = MapDataset.source(_Images(folder)).batch(BATCH)  # type: ignore[arg-type]
    dataset = images.to_iter_dataset(ReadOptions(num_threads=THREADS, prefetch_buffer_size=4))
    return lambda: dataset


@WORKLOAD.peer("SPDL, 2 threads, simplejpeg, a batch per task", "spdl,simplejpeg")
def spdl(folder: Path) -> Pass:
    """Decode a batch of names in each task."""
    from spdl.pipeline import PipelineBuilder

    def one_pass() -> Iterator[Any]:
        builder: Any = PipelineBuilder().add_source(_batches(folder))
        pipeline = builder.pipe(_decode_batch, concurrency=THREADS).add_sink(4).build(num_threads=THREADS)
        with pipeline.auto_stop():
            yield from pipeline

    return one_pass


# Limits


def _batches(folder: Path) -> list[list[str]]:
    names = paths(folder)
    return [names[start : start + BATCH] for start in range(0, len(names), BATCH)]


def _in_order(pool: ThreadPoolExecutor, function: Callable[[Any], Any], items: list[Any], ahead: int) -> Iterator[Any]:
    waiting: deque[Future[Any]] = deque()
    for item in items:
        waiting.append(pool.submit(function, item))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


@WORKLOAD.limit("pool of 2 threads, a batch per task", "simplejpeg")
def pool_batches(folder: Path) -> Pass:
    """Decode a batch of names in each task."""

    def one_pass() -> Iterator[Any]:
        with ThreadPoolExecutor(THREADS) as pool:
            yield from _in_order(pool, _decode_batch, _batches(folder), 4)

    return one_pass


@WORKLOAD.limit("pool of 2 threads, a file per task", "simplejpeg")
def pool_files(folder: Path) -> Pass:
    """Decode a file in each task, stack in the reader's thread."""

    def one_pass() -> Iterator[Any]:
        with ThreadPoolExecutor(THREADS) as pool:
            images = _in_order(pool, _decode, paths(folder), 4 * BATCH)
            while batch := list(itertools.islice(images, BATCH)):
                yield np.stack(batch)

    return one_pass


OTHERS = ("torch", "Grain", "SPDL", "tf.data")
WORKLOAD.target("aiodata", "tf.data", 1, "tf.data's best form")
WORKLOAD.target("aiodata", OTHERS, 1, "the fastest peer")
WORKLOAD.target("aiodata", "pool of 2 threads", 0.85, "a bare pool")
WORKLOAD.target("aiodata, AUTOTUNE", "pool of 2 threads", 0.85, "a bare pool")
