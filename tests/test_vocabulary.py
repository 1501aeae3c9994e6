"""`Vocabulary`: tokens to numbers and back, from lists, files and datasets."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiodata import Dataset, TextLineDataset, Vocabulary
from aiodata.errors import DataError
from aiodata.sparse import SparseTensor
from tests.programs import Pair, arr, assert_gives, assert_outcomes, assert_same, objects

if TYPE_CHECKING:
    from pathlib import Path

WORDS = ["the", "cat", "sät"]


def write(folder: Path, content: bytes) -> Path:
    path = folder / "words.txt"
    path.write_bytes(content)
    return path


# Looking up


@pytest.mark.parametrize("token", ["sät", "sät".encode(), np.str_("sät"), np.bytes_("sät".encode())])
def test_one_token(token: Any) -> None:
    assert_same(Vocabulary(WORDS).lookup(token), np.int64(2))


@pytest.mark.parametrize(
    "tokens",
    [
        ["cat", "the", "cat"],
        [b"cat", "the", b"cat"],
        objects("cat", b"the", "cat"),
        np.array(["cat", "the", "cat"]),
        np.array([b"cat", b"the", b"cat"]),
    ],
)
def test_many_tokens(tokens: Any) -> None:
    assert_same(Vocabulary(WORDS).lookup(tokens), arr([1, 0, 1]))


def test_arrays_keep_their_shape() -> None:
    words = Vocabulary(WORDS)
    assert_same(words.lookup([["cat", "the"], ["the", "sät"]]), arr([[1, 0], [0, 2]]))
    assert_same(words.lookup(np.array("cat", object)), arr(1))
    assert_same(words.lookup(np.zeros((2, 0, 3), object)), np.zeros((2, 0, 3), np.int64))
    assert_same(words.lookup([]), arr([]))
    assert_same(words.lookup(np.array([["cat", "the"]]).T), arr([[1], [0]]))


def test_structures_keep_their_form() -> None:
    found = Vocabulary(WORDS).lookup({"a": ("cat", ["the"]), "b": Pair("the", objects("cat"))})
    assert_same(found, {"a": (np.int64(1), arr([0])), "b": Pair(np.int64(0), arr([1]))})
    sparse = SparseTensor(arr([[0, 1]]), objects("cat"), arr([2, 2]))
    assert_same(Vocabulary(WORDS).lookup(sparse), SparseTensor(arr([[0, 1]]), arr([1]), arr([2, 2])))


# Unknown tokens


def test_unknown_tokens_are_an_error_that_names_one() -> None:
    with pytest.raises(DataError, match="Vocabulary: 'dog' is not one of the 3 tokens"):
        Vocabulary(WORDS).lookup(["cat", "dog", "cow"])


def test_unknown_tokens_get_the_default() -> None:
    words = Vocabulary(WORDS, default=-1)
    assert words.size == 3
    assert_same(words.lookup(["cat", "dog", b"\xff"]), arr([1, -1, -1]))


def test_unknown_tokens_get_tensorflows_buckets() -> None:
    # FarmHash's fingerprints of these are in tests/test_farmhash.py.
    tokens = ["1footrue", b"2applefalse", "3true"]
    prints = [-1541654101129638711 % 2**64, 2794438866806483259, -4880158226897771312 % 2**64]
    for buckets in (1, 2, 7, 1000):
        words = Vocabulary(WORDS, num_oov_buckets=buckets)
        assert words.size == 3 + buckets
        assert_same(words.lookup(tokens), arr([3 + each % buckets for each in prints]))
    assert_same(words.lookup("cat"), np.int64(1))


def test_buckets_are_the_same_in_every_process() -> None:
    code = "import aiodata; print(*aiodata.Vocabulary(['a'], 50).lookup(['b', 'ü', '', 'long ' * 99]))"
    printed = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert printed == {" ".join(map(str, Vocabulary(["a"], 50).lookup(["b", "ü", "", "long " * 99]))) + "\n"}


@pytest.mark.parametrize("token", [5, None, 1.5, np.int64(3), arr([1]), ["a", "b", 3], [["a"], ["b", "c"]], {1}])
def test_what_is_no_text_is_refused(token: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        Vocabulary(WORDS, 1).lookup(token)


# Back to tokens


def test_numbers_become_tokens_again() -> None:
    words = Vocabulary(WORDS, 2)
    assert words.tokens(1) == "cat"
    assert words.tokens(np.int64(0)) == "the"
    assert_same(words.tokens([2, 0]), objects("sät", "the"))
    assert_same(words.tokens(arr([[2], [0]], np.uint8)), objects("sät", "the").reshape(2, 1))
    assert_same(words.tokens([]), objects())


@pytest.mark.parametrize("number", [3, 4, -1])
def test_numbers_without_a_token(number: int) -> None:
    words = Vocabulary(WORDS, 2)
    with pytest.raises(DataError, match=f"no token has the number {number}; there are 3"):
        words.tokens([0, number])
    assert_same(words.tokens([0, number], "?"), objects("the", "?"))


def test_tokens_with_zeros_at_their_end_stay_whole() -> None:
    assert_same(Vocabulary([b"a\0", b"a"]).tokens([0, 1]), objects(b"a\0", b"a"))


@pytest.mark.parametrize("ids", [1.0, "1", [True], [1.5]])
def test_ids_must_be_integers(ids: Any) -> None:
    with pytest.raises(TypeError, match="ids must be integers"):
        Vocabulary(WORDS).tokens(ids)


@given(
    st.lists(st.text(max_size=5) | st.binary(max_size=5), unique_by=lambda t: t.encode() if isinstance(t, str) else t)
)
def test_there_and_back(tokens: list[Any]) -> None:
    if tokens:
        words = Vocabulary(tokens, 3)
        ids = words.lookup(objects(*tokens))
        assert_same(ids, np.arange(len(tokens)))
        assert_same(words.tokens(ids), objects(*tokens))
        assert_same(pickle.loads(pickle.dumps(words)).lookup(objects(*tokens, "new")), words.lookup([*tokens, "new"]))


# Where the tokens come from


@pytest.mark.parametrize("content", [b"the\ncat\n", b"the\ncat", b"the\r\ncat\r\n", b"\xef\xbb\xbfthe\ncat\n"])
def test_a_file_has_one_token_a_line(content: bytes, tmp_path: Path) -> None:
    path = write(tmp_path, content)
    for name in (path, str(path), str(path).encode()):
        words = Vocabulary(name)
        assert words.size == 2
        assert_same(words.tokens([0, 1]), objects(b"the", b"cat"))
        assert_same(words.lookup(["cat", b"the"]), arr([1, 0]))


def test_a_line_may_be_empty_once_and_need_not_be_utf_8(tmp_path: Path) -> None:
    words = Vocabulary(write(tmp_path, b"a\n\n\xff b\n"))
    assert_same(words.lookup(["", b"\xff b"]), arr([1, 2]))


@pytest.mark.parametrize("make", [tuple, iter, np.array, Dataset.from_tensor_slices])
def test_tokens_in_any_order_that_is_one(make: Any) -> None:
    assert_same(Vocabulary(make(["a", "b"])).lookup("b"), np.int64(1))


def test_a_dataset_of_lines(tmp_path: Path) -> None:
    words = Vocabulary(TextLineDataset(write(tmp_path, b"the\ncat\nsat")).take(2), default=9)
    assert_same(words.lookup(["cat", "sat"]), arr([1, 9]))


def test_a_token_that_comes_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Vocabulary: 'b' is token 1 and again 3"):
        Vocabulary(["a", "b", "c", "b"])
    with pytest.raises(ValueError, match="Vocabulary: b'a' is token 0 and again 1"):
        Vocabulary(["a", b"a"])
    path = write(tmp_path, b"a\nb\nc\nb\n")
    with pytest.raises(ValueError, match=f"Vocabulary: b'b' is {path} line 2 and again 4"):
        Vocabulary(path)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([],), ValueError, "there are no tokens"),
        (({"a"},), TypeError, "a path or tokens in order"),
        (({"a": 0},), TypeError, "a path or tokens in order"),
        ((5,), TypeError, "a path or tokens in order"),
        ((["a", 5],), TypeError, "a token must be bytes or str, not int"),
        ((["a"], -1), ValueError, "num_oov_buckets must be at least 0, not -1"),
        ((["a"], 1.5), TypeError, "num_oov_buckets must be an integer"),
        ((["a"], 0, "x"), TypeError, "default must be an integer"),
        ((["a"], 1, 0), ValueError, "not both"),
    ],
)
def test_wrong_arguments(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"Vocabulary: .*{message}"):
        Vocabulary(*arguments)


def test_files_that_are_not_there_or_empty(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Vocabulary(tmp_path / "none")
    with pytest.raises(ValueError, match=r"there are no tokens in .*words\.txt"):
        Vocabulary(write(tmp_path, b""))


def test_repr(tmp_path: Path) -> None:
    assert repr(Vocabulary(WORDS, 2)) == "<Vocabulary of 3 from tokens, 2 buckets for others>"
    path = write(tmp_path, b"a")
    assert repr(Vocabulary(path, default=0)) == f"<Vocabulary of 1 from {path}, 0 for others>"


# In pipelines


def test_maps_tokens_and_lists_of_them() -> None:
    words = Vocabulary(WORDS)
    ds = Dataset.from_tensor_slices(["the dog", "cat the sät"]).map(str.split).map(lambda *tokens: list(tokens))
    found = ds.map(lambda *tokens: {"ids": Vocabulary(WORDS, default=-1).lookup(list(tokens))})
    assert_gives(found, [{"ids": arr([0, -1])}, {"ids": arr([1, 0, 2])}])
    assert_outcomes(Dataset.from_tensor_slices(["cat", "dog"]).map(words.lookup), [np.int64(1), DataError])


def test_maps_in_processes() -> None:
    ds = Dataset.from_tensor_slices(["cat", "the"]).map(Vocabulary(WORDS).lookup, 1, executor="process")
    assert_gives(ds, [np.int64(1), np.int64(0)])
