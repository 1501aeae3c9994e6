"""`text_dataset_from_directory`: whole text files, labelled by the folders that they are in."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from aiodata.checks import check_integer
from aiodata.dataset import Dataset
from aiodata.engine.plan import AUTOTUNE
from aiodata.storage.schemes import check_local
from aiodata.transforms.map import mapped

__all__ = ["text_dataset_from_directory"]

_METHOD = "text_dataset_from_directory"
LABEL_MODES = ("int", "categorical", "binary", None)
SUBSETS = ("training", "validation", "both", None)


class LabelledDataset(Dataset[Any]):
    """A dataset that knows the names of its classes.

    Args:
        dataset: What it gives.
        class_names: The name of each label, None if there are no labels.
    """

    __slots__ = ("class_names",)

    def __init__(self, dataset: Dataset[Any], class_names: list[str] | None) -> None:
        super().__init__(dataset.plan)
        self.class_names = class_names


def text_dataset_from_directory(
    directory: str | os.PathLike[str],
    labels: str | Sequence[int] | None = "inferred",
    label_mode: str | None = "int",
    class_names: Sequence[str] | None = None,
    batch_size: int | None = 32,
    max_length: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    validation_split: float | None = None,
    subset: str | None = None,
    follow_links: bool = False,
) -> Any:
    r"""Give the texts of all `.txt` files in a folder and those below it, each with a label.

    The folder is listed by this call; the files are read while iterating, several at once, in threads. With a seed the
    order, and what is set aside for validation, are Keras's own.

    Args:
        directory: The folder. With inferred labels it has a folder for each class.
        labels: "inferred" takes the label from the folder; a list has one for each file, in the order of folders and
            then of names; None gives texts alone.
        label_mode: "int": int32 numbers of the classes. "categorical": float32 with a 1 at that number, (classes,).
            "binary": float32 (1,), 0 or 1, for two classes. None gives texts alone.
        class_names: The folders in the order of their numbers; None sorts all of them by name. Others are left out.
        batch_size: Texts in a batch; None gives single ones.
        max_length: Take so many bytes of each file at most.
        shuffle: Mix the files, anew in each iteration; False keeps them sorted.
        seed: Makes the order the same in every process; needed to set texts aside while shuffling.
        validation_split: The part of the files, between 0 and 1, that `subset` "validation" has.
        subset: "training", "validation", or "both"; goes together with `validation_split`.
        follow_links: Whether to follow links to folders.

    Returns:
        A dataset of `(texts, labels)`, or of texts, as `bytes`; with subset "both" the one for training and the one for
        validation, which is not shuffled. Its attribute `class_names` has the names in the order of their numbers.

    Raises:
        OSError: `directory` cannot be listed. While iterating: a file cannot be read.
        TypeError, ValueError: An argument is not one of these, or they do not fit each other or the folder.

    >>> import aiodata, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, text in [("good", "well done"), ("bad", "oh no")]:
    ...         os.mkdir(os.path.join(folder, name))
    ...         with open(os.path.join(folder, name, "1.txt"), "w") as file:
    ...             _ = file.write(text)
    ...     ds = aiodata.text_dataset_from_directory(folder, shuffle=False)
    ...     ds.class_names, list(ds)
    (['bad', 'good'], [(array([b'oh no', b'well done'], dtype=object), array([0, 1], dtype=int32))])

    Source: `tf.keras.utils.text_dataset_from_directory`; there `verbose` prints numbers, and a last stage fetches
    ahead: use `prefetch`.
    """
    if labels is None or label_mode is None:
        labels = label_mode = None
    _check(labels, label_mode, class_names, shuffle, seed, validation_split, subset)
    size = None if batch_size is None else check_integer(batch_size, _METHOD, "batch_size", 1)
    length = None if max_length is None else check_integer(max_length, _METHOD, "max_length", 0)
    directory = check_local(os.fsdecode(directory), _METHOD, "directory", "list_files and read_file take URLs")
    files, numbers, names = _indexed(directory, labels, class_names, follow_links)
    targets = _targets(numbers, label_mode, names)
    order = np.arange(len(files))
    if shuffle and seed is not None:
        # The window of `shuffle` below is small, and what is sorted by class must not stay so. This is Keras's way.
        np.random.RandomState(seed).shuffle(order)
    held_out = int((validation_split or 0) * len(files))
    parts = {"training": order[: len(order) - held_out], "validation": order[len(order) - held_out :], None: order}

    def dataset(part: str | None, shuffled: bool) -> LabelledDataset:
        chosen = parts[part]
        if not len(chosen):
            raise ValueError(f"{_METHOD}: there are no .txt files {f'for {part} ' if part else ''}in {directory}")
        window = len(chosen) if seed is None else 1024 if size is None else size * 8
        paths = [files[index] for index in chosen]
        columns = paths if targets is None else (paths, targets[chosen])
        ds = Dataset.from_tensor_slices(columns)
        ds = ds.shuffle(window, seed) if shuffled else ds
        detail = "_read" if length is None else f"_read, max_length={length}"
        ds = mapped(ds, partial(_read, max_length=length), AUTOTUNE, detail=detail)
        return LabelledDataset(ds if size is None else ds.batch(size), names)

    if subset == "both":
        return dataset("training", shuffle), dataset("validation", False)
    return dataset(subset, shuffle)


def _check(
    labels: Any,
    label_mode: str | None,
    class_names: Sequence[str] | None,
    shuffle: bool,
    seed: int | None,
    validation_split: float | None,
    subset: str | None,
) -> None:
    """Refuse arguments that are none or do not fit each other."""
    if labels is not None and labels != "inferred" and (isinstance(labels, str) or not isinstance(labels, Sequence)):
        raise ValueError(f"{_METHOD}: labels must be 'inferred', a list of integers or None, not {labels!r:.80}")
    if label_mode not in LABEL_MODES:
        raise ValueError(f"{_METHOD}: label_mode must be one of {LABEL_MODES}, not {label_mode!r}")
    if class_names is not None and labels != "inferred":
        raise ValueError(f"{_METHOD}: class_names goes with labels='inferred' only")
    if subset not in SUBSETS:
        raise ValueError(f"{_METHOD}: subset must be one of {SUBSETS}, not {subset!r}")
    if (subset is None) != (validation_split is None):
        raise ValueError(f"{_METHOD}: give both of validation_split and subset, or none")
    if validation_split is not None and not 0 < validation_split < 1:
        raise ValueError(f"{_METHOD}: validation_split must be between 0 and 1, not {validation_split!r}")
    if seed is not None and check_integer(seed, _METHOD, "seed", 0) >= 2**32:
        raise ValueError(f"{_METHOD}: seed must be below 2**32, not {seed}")
    if subset is not None and shuffle and seed is None:
        raise ValueError(f"{_METHOD}: with shuffle and a subset there must be a seed, else the subsets would overlap")


def _indexed(
    directory: Any, labels: Any, class_names: Sequence[str] | None, follow_links: bool
) -> tuple[list[str], list[int] | None, list[str] | None]:
    """List the files, the number of the class of each, and the classes."""
    if labels != "inferred":
        files = _text_files(directory, follow_links)
        if labels is None:
            return files, None, None
        if len(labels) != len(files):
            raise ValueError(f"{_METHOD}: there are {len(labels)} labels for {len(files)} .txt files in {directory}")
        given = [check_integer(label, _METHOD, "labels") for label in labels]
        return files, given, [str(label) for label in sorted(set(given))]
    with os.scandir(directory) as entries:
        folders = sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
    names = folders if class_names is None else list(class_names)
    if missing := [name for name in names if name not in folders]:
        raise ValueError(f"{_METHOD}: class_names has {missing[0]!r}, which is no folder in {directory}: {folders}")
    by_class = [_text_files(os.path.join(directory, name), follow_links) for name in names]
    numbers = [number for number, files in enumerate(by_class) for _ in files]
    return [path for files in by_class for path in files], numbers, names


def _text_files(folder: Any, follow_links: bool) -> list[str]:
    """List the text files in a folder and those below it, folder by folder."""

    def fail(error: OSError) -> None:
        raise error

    found = sorted(os.walk(folder, onerror=fail, followlinks=follow_links), key=lambda entry: entry[0])
    return [
        os.path.join(root, name) for root, _, names in found for name in sorted(names) if name.lower().endswith(".txt")
    ]


def _targets(numbers: list[int] | None, label_mode: str | None, names: list[str] | None) -> Any:
    """Give the label of each file as `label_mode` says."""
    if numbers is None or names is None:
        return None
    if label_mode == "int":
        return np.array(numbers, np.int32)
    if label_mode == "binary":
        if len(names) != 2:
            raise ValueError(f"{_METHOD}: label_mode='binary' needs two classes, not {len(names)}: {names}")
        return np.array(numbers, np.float32).reshape(-1, 1)
    if not set(numbers) <= set(range(len(names))):
        raise ValueError(
            f"{_METHOD}: label_mode='categorical' needs labels from 0 to the number of classes, not {names}"
        )
    return np.eye(len(names), dtype=np.float32)[numbers]


def _read(path: Any, label: Any = None, *, max_length: int | None) -> Any:
    """Read a file; an element without a label is its text alone."""
    with open(path, "rb") as file:
        text = file.read(-1 if max_length is None else max_length)
    return text if label is None else (text, label)
