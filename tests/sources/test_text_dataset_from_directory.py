"""`text_dataset_from_directory`: whole text files with labels from their folders, in Keras's order."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from aiodata import Dataset, TensorSpec, text_dataset_from_directory
from tests.programs import arr, assert_gives, assert_outcomes, assert_same, objects, to_list
from tests.resume.saving import along, check_rest, drive, part

if TYPE_CHECKING:
    from pathlib import Path

FILES = {
    "b/1.txt": b"b1",
    "b/10.txt": b"b10",
    "b/2.TXT": b"b2",
    "a/x/1.txt": b"ax1",
    "a/2.txt": b"a2",
    "c/1.txt": b"c1",
}
SORTED = [b"a2", b"ax1", b"b1", b"b10", b"b2", b"c1"]
LABELS = [0, 0, 1, 1, 1, 2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "texts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    (tmp_path / "texts" / "a" / "notes.md").write_bytes(b"no text file")
    (tmp_path / "texts" / ".hidden").mkdir()
    (tmp_path / "texts" / ".hidden" / "1.txt").write_bytes(b"hidden")
    return tmp_path / "texts"


def texts_of(ds: Dataset[Any]) -> list[bytes]:
    return [text for batch in ds for text in (batch[0] if isinstance(batch, tuple) else batch)]


# Labels


def test_folders_are_the_labels(folder: Path) -> None:
    ds = text_dataset_from_directory(folder, shuffle=False)
    assert ds.class_names == ["a", "b", "c"]
    assert_gives(ds, [(objects(*SORTED), arr(LABELS, np.int32))])
    assert ds.cardinality() == 1
    ds = text_dataset_from_directory(str(folder), batch_size=4, shuffle=False)
    assert_gives(ds, [(objects(*SORTED[:4]), arr(LABELS[:4], np.int32)), (objects(*SORTED[4:]), arr([1, 2], np.int32))])


def test_single_texts(folder: Path) -> None:
    ds = text_dataset_from_directory(folder, batch_size=None, shuffle=False)
    assert_gives(ds, [(text, np.int32(label)) for text, label in zip(SORTED, LABELS, strict=True)])


@pytest.mark.parametrize("arguments", [{"labels": None}, {"label_mode": None}, {"labels": [0] * 7, "label_mode": None}])
def test_texts_alone(arguments: Any, folder: Path) -> None:
    ds = text_dataset_from_directory(folder, shuffle=False, **arguments)
    assert ds.class_names is None
    assert_gives(ds, [objects(b"hidden", *SORTED)])  # without classes every folder counts


def test_categorical_labels(folder: Path) -> None:
    ((_, labels),) = to_list(text_dataset_from_directory(folder, label_mode="categorical", shuffle=False))
    assert_same(labels, np.eye(3, dtype=np.float32)[LABELS])


def test_binary_labels(folder: Path) -> None:
    ds = text_dataset_from_directory(folder, label_mode="binary", class_names=["c", "a"], shuffle=False)
    assert_gives(ds, [(objects(b"c1", b"a2", b"ax1"), arr([[0], [1], [1]], np.float32))])
    assert ds.class_names == ["c", "a"]
    with pytest.raises(ValueError, match="label_mode='binary' needs two classes, not 3"):
        text_dataset_from_directory(folder, label_mode="binary")


def test_labels_of_ones_own(folder: Path) -> None:
    given = [7, 5, 5, 7, 7, 5, 7]
    ds = text_dataset_from_directory(folder, given, shuffle=False)
    assert ds.class_names == ["5", "7"]
    assert_gives(ds, [(objects(b"hidden", *SORTED), arr(given, np.int32))])
    with pytest.raises(ValueError, match="needs labels from 0"):
        text_dataset_from_directory(folder, given, "categorical")
    with pytest.raises(ValueError, match=r"there are 2 labels for 7 \.txt files"):
        text_dataset_from_directory(folder, [0, 1])


def test_texts_are_cut_off(folder: Path) -> None:
    ds = text_dataset_from_directory(folder, labels=None, max_length=2, shuffle=False)
    assert_gives(ds, [objects(b"hi", *(text[:2] for text in SORTED))])
    assert_gives(
        text_dataset_from_directory(folder, labels=None, max_length=0, shuffle=False).take(1), [objects(*[b""] * 7)]
    )


def test_links_are_followed_if_wanted(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "1.txt").write_bytes(b"other")
    (folder / "a" / "link").symlink_to(tmp_path / "other")
    assert b"other" not in texts_of(text_dataset_from_directory(folder))
    assert b"other" in texts_of(text_dataset_from_directory(folder, follow_links=True))


# Order


def keras_order(texts: list[bytes], seed: int) -> list[bytes]:
    shuffled = list(texts)
    np.random.RandomState(seed).shuffle(shuffled)
    return shuffled


@pytest.mark.parametrize("seed", [0, 1, 42, 2**32 - 1])
def test_with_a_seed_the_order_is_that_of_keras(seed: int, folder: Path) -> None:
    ds = text_dataset_from_directory(folder, seed=seed, batch_size=2)
    expected = Dataset.from_tensor_slices(keras_order(SORTED, seed)).shuffle(16, seed).batch(2)
    for _ in range(2):
        assert_same([texts for texts, _ in ds], list(expected))
    for texts, labels in ds:
        assert_same(labels, arr([LABELS[SORTED.index(text)] for text in texts], np.int32))


def test_without_a_seed_all_files_come_in_any_order(folder: Path) -> None:
    ds = text_dataset_from_directory(folder, batch_size=1)
    orders = {tuple(texts_of(ds)) for _ in range(20)}
    assert len(orders) > 1
    assert {tuple(sorted(order)) for order in orders} == {tuple(SORTED)}


@pytest.mark.parametrize("shuffle", [False, True])
def test_subsets_share_no_file(shuffle: bool, folder: Path) -> None:
    arguments: dict[str, Any] = {"shuffle": shuffle, "seed": 3 if shuffle else None, "validation_split": 0.4}
    training = text_dataset_from_directory(folder, subset="training", **arguments)
    validation = text_dataset_from_directory(folder, subset="validation", **arguments)
    order = keras_order(SORTED, 3) if shuffle else SORTED
    assert sorted(texts_of(training)) == sorted(order[:4])
    assert sorted(texts_of(validation)) == sorted(order[4:])
    both = text_dataset_from_directory(folder, subset="both", **arguments)
    assert_same(to_list(both[0]), to_list(text_dataset_from_directory(folder, subset="training", **arguments)))
    assert texts_of(both[1]) == order[4:]
    assert both[0].class_names == both[1].class_names == ["a", "b", "c"]


# While iterating


def test_files_are_read_while_iterating(folder: Path) -> None:
    ds = text_dataset_from_directory(folder, batch_size=None, shuffle=False)
    (folder / "a" / "2.txt").write_bytes(b"changed")
    (folder / "b" / "1.txt").unlink()
    expected = [(text, np.int32(label)) for text, label in zip(SORTED, LABELS, strict=True)]
    expected[0] = (b"changed", np.int32(0))
    assert_outcomes(ds, [*expected[:2], FileNotFoundError, *expected[3:]])


@pytest.mark.parametrize("face", ["sync", "async"])
def test_resumes_at_every_text(face: str, folder: Path) -> None:
    def make() -> Dataset[Any]:
        made: Dataset[Any] = text_dataset_from_directory(folder, batch_size=2, seed=5)
        return made.repeat(2)

    async def work() -> None:
        straight, states = await along(make(), face)
        assert len(straight) == 6
        for number, state in enumerate(states):
            found, _ = await part(make(), face, state)
            check_rest(f"before pull {number}", found, straight[number:])

    drive(face, work())


def test_what_is_known_of_it(folder: Path) -> None:
    ds = text_dataset_from_directory(folder, batch_size=4)
    assert len(ds) == 2
    assert ds.element_spec is None or ds.element_spec[1] == TensorSpec([None], np.int32)


# The call


@pytest.mark.parametrize(
    ("arguments", "error", "problem"),
    [
        ({"labels": "folders"}, ValueError, "labels must be 'inferred', a list of integers or None"),
        ({"labels": 5}, ValueError, "labels must be"),
        ({"labels": [0.5] * 7}, TypeError, "labels must be an integer"),
        ({"label_mode": "text"}, ValueError, "label_mode must be one of"),
        ({"class_names": ["a", "z"]}, ValueError, "class_names has 'z', which is no folder"),
        ({"class_names": ["a"], "labels": [0]}, ValueError, "class_names goes with"),
        ({"class_names": ["a"], "labels": None}, ValueError, "class_names goes with"),
        ({"batch_size": 0}, ValueError, "batch_size must be at least 1, not 0"),
        ({"max_length": -1}, ValueError, "max_length must be at least 0, not -1"),
        ({"seed": -1}, ValueError, "seed must be at least 0, not -1"),
        ({"seed": 2**32}, ValueError, "seed must be below"),
        ({"subset": "test"}, ValueError, "subset must be one of"),
        ({"subset": "training"}, ValueError, "give both of validation_split and subset"),
        ({"validation_split": 0.5}, ValueError, "give both of validation_split and subset"),
        ({"validation_split": 1.0, "subset": "both"}, ValueError, "validation_split must be between 0 and 1, not 1.0"),
        ({"validation_split": 0.5, "subset": "both"}, ValueError, "there must be a seed"),
        ({"validation_split": 0.1, "subset": "validation", "seed": 1}, ValueError, r"no \.txt files for validation in"),
        ({"validation_split": 0.1, "subset": "both", "seed": 1}, ValueError, r"no \.txt files for validation in"),
    ],
)
def test_wrong_arguments_are_refused_at_the_call(
    arguments: Any, error: type[Exception], problem: str, folder: Path
) -> None:
    with pytest.raises(error, match=f"text_dataset_from_directory: .*{problem}"):
        text_dataset_from_directory(folder, **arguments)


def test_folders_without_texts(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there are no \.txt files in"):
        text_dataset_from_directory(tmp_path)
    with pytest.raises(FileNotFoundError):
        text_dataset_from_directory(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        text_dataset_from_directory(tmp_path / "none", labels=None)
    assert os.listdir(tmp_path) == []
