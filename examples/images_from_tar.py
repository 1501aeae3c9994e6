"""Read images out of tar shards, as WebDataset lays them out, and change each by chance, as training wants them.

Makes two shards of small JPEG images in a temporary folder. Then reads them for some epochs: shards in turn, shuffled,
decoded, cropped and turned over in parallel, in batches, fetched ahead. Every epoch has each image once, in another
order and cut at other places; with the same seed a second run gives the same. Needs `aiodata-pipeline[image]`.

    python examples/images_from_tar.py
    python examples/images_from_tar.py --epochs 5 --seed 1
"""

from __future__ import annotations

import argparse
import asyncio
import io
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from aiodata import Dataset, TarDataset, image

Batch: TypeAlias = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]
"""Images of shape (n, 32, 32, 3), and their labels, of shape (n,)."""

SHARDS, SAMPLES = 2, 48
LABELS = list(range(SHARDS * SAMPLES))


def picture(label: int) -> npt.NDArray[np.uint8]:
    """Make an image of 40 x 48 pixels; its label is its brightness."""
    rows, columns = np.mgrid[:40, :48]
    return np.stack([label + rows, label + columns, np.full((40, 48), label)], axis=-1).astype(np.uint8)


def write_shards(folder: Path) -> None:
    """Write the shards, each sample as two files that stand together: `0007.jpg` and `0007.cls`."""
    for shard in range(SHARDS):
        with tarfile.open(folder / f"shard-{shard}.tar", "w") as archive:
            for label in LABELS[shard * SAMPLES : (shard + 1) * SAMPLES]:
                parts = {"jpg": image.encode_jpeg(picture(label)), "cls": str(label).encode()}
                for extension, content in parts.items():
                    member = tarfile.TarInfo(f"{label:04}.{extension}")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))


def prepare(sample: dict[str, Any], rng: np.random.Generator) -> tuple[npt.NDArray[np.uint8], int]:
    """Decode a sample, cut a part out of it, and turn that over, or not."""
    pixels = image.random_crop(image.decode_jpeg(sample["jpg"]), (32, 32, 3), rng)
    return image.random_flip_left_right(pixels, rng), int(sample["cls"])


def batches(folder: Path, seed: int) -> Dataset[Batch]:
    """Describe the pipeline."""
    shards = Dataset.list_files(str(folder / "shard-*.tar"), seed=seed)
    samples = shards.interleave(TarDataset, cycle_length=SHARDS, num_parallel_calls=SHARDS)
    return samples.shuffle(32, seed=seed).random_map(prepare, seed=seed, num_parallel_calls=4).batch(16).prefetch(2)


async def read(ds: Dataset[Batch], epochs: int) -> list[list[Batch]]:
    """Read some epochs, as a training loop would."""
    found: list[list[Batch]] = []
    for number in range(1, epochs + 1):
        start = time.perf_counter()
        epoch = [batch async for batch in ds]
        count = sum(len(labels) for _, labels in epoch)
        print(f"epoch {number}: {count} images in {len(epoch)} batches, {count / (time.perf_counter() - start):,.0f}/s")
        found.append(epoch)
    return found


def wrong_with(epochs: list[list[Batch]]) -> str | None:
    """Check what was read; give what is wrong, if anything is."""
    orders: list[list[int]] = []
    for epoch in epochs:
        if any(pixels.shape != (len(labels), 32, 32, 3) or pixels.dtype != np.uint8 for pixels, labels in epoch):
            return "a batch has another shape"
        orders.append([int(label) for _, labels in epoch for label in labels])
        if sorted(orders[-1]) != LABELS:
            return "an epoch does not have each image once"
    if any(order == orders[0] for order in orders[1:]):
        return "two epochs have the same order"
    return None


def main(arguments: Sequence[str] | None = None) -> str | None:
    """Run the example; give what went wrong, if anything did."""
    parser = argparse.ArgumentParser(description="Read images out of tar shards.")
    parser.add_argument("--epochs", type=int, default=2, help="passes over the images (default: 2)")
    parser.add_argument("--seed", type=int, default=7, help="seed of the order and the changes (default: 7)")
    options = parser.parse_args(arguments)
    if options.epochs < 1:
        parser.error(f"--epochs must be at least 1, not {options.epochs}")
    with tempfile.TemporaryDirectory() as name:
        write_shards(Path(name))
        epochs = asyncio.run(read(batches(Path(name), options.seed), options.epochs))
        again = asyncio.run(read(batches(Path(name), options.seed), 1))
    if found := wrong_with(epochs):
        return found
    print(f"each epoch has the {len(LABELS)} images once, in an order of its own")
    for (pixels, labels), (same_pixels, same_labels) in zip(epochs[0], again[0], strict=True):
        if not np.array_equal(pixels, same_pixels) or not np.array_equal(labels, same_labels):
            return "the same seed gave other batches"
    print("the same seed gives the same batches, pixel by pixel")
    return None


if __name__ == "__main__":
    sys.exit(main())
