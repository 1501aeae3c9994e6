"""Tokens to numbers and back: `tf.lookup`'s tables of text."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from aiodata.checks import check_integer
from aiodata.errors import DataError
from aiodata.farmhash import fingerprint64
from aiodata.sparse import SparseTensor
from aiodata.storage.masking import masked
from aiodata.structure import array_of, map_structure
from aiodata.whole_file import read_file

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiodata.options import StorageOptions

__all__ = ["Vocabulary"]


class Vocabulary:
    r"""Numbers for tokens: the first token of the vocabulary is 0, the next one 1, and so on.

    `str` and `bytes` are the same token where the bytes are its UTF-8 form. What is not in the vocabulary is an error,
    unless one of `num_oov_buckets` and `default` says what its number is. It can be shared by threads and sent to
    processes. Memory: about 300 bytes for a token.

    Args:
        vocabulary: The tokens in order, or a dataset of them, which is read at once; or the path or URL of a file with
            one token a line, read at once too. A byte-order mark at its start is left out, and so is every carriage
            return.
        num_oov_buckets: Unknown tokens share so many numbers behind those of the vocabulary. Which one a token gets
            is the same in every process and TensorFlow, for it is FarmHash's 64-bit fingerprint of the token's bytes
            modulo `num_oov_buckets`.
        default: The number of all unknown tokens, such as -1.
        storage: How a remote file is read.

    Raises:
        TypeError: `vocabulary` is neither a path nor tokens in order, or a number is not an integer.
        ValueError: A token comes twice (its places are named), there is none, `num_oov_buckets` is negative, or both
            it and `default` are given.
        OSError: The file cannot be read.

    >>> words = Vocabulary(["the", "cat", "sat"], num_oov_buckets=2)
    >>> words.lookup("cat"), words.lookup([b"the", b"dog", b"sat"]), words.size
    (np.int64(1), array([0, 3, 2]), 5)
    >>> words.tokens([2, 1])
    array(['sat', 'cat'], dtype=object)

    Source: `tf.lookup.StaticVocabularyTable` with a `TextFileInitializer` of whole lines, and with `default`
    `tf.lookup.StaticHashTable`; there a token may come again with the same number. Of a dataset:
    `tf.data.experimental.index_table_from_dataset`.
    """

    __slots__ = ("_ids", "_known", "_name")

    def __init__(
        self,
        vocabulary: str | bytes | os.PathLike[str] | Iterable[str | bytes],
        num_oov_buckets: int = 0,
        default: int | None = None,
        *,
        storage: StorageOptions | None = None,
    ) -> None:
        buckets = check_integer(num_oov_buckets, "Vocabulary", "num_oov_buckets", 0)
        if default is not None:
            default = check_integer(default, "Vocabulary", "default")
            if buckets:
                raise ValueError("Vocabulary: give num_oov_buckets or default, not both")
        place = "token"
        if isinstance(vocabulary, (str, bytes, os.PathLike)):
            place = f"{masked(os.fsdecode(vocabulary))} line"
            self._known: list[str | bytes] = _lines(vocabulary, storage)
        elif hasattr(vocabulary, "__iter__") and not isinstance(vocabulary, (set, frozenset, dict)):
            self._known = list(vocabulary)
        else:
            raise TypeError(f"Vocabulary: vocabulary must be a path or tokens in order, not {vocabulary!r:.80}")
        self._ids = _Ids(self._known, place, buckets, default)
        self._name = place.removesuffix(" line") if place != "token" else "tokens"

    @property
    def size(self) -> int:
        """How many numbers there are, those of the buckets for unknown tokens among them."""
        return len(self._known) + self._ids.buckets

    def lookup(self, tokens: Any) -> Any:
        """Give the numbers of tokens.

        Args:
            tokens: A token, a list or an array (any shape) of them, a `SparseTensor` of them, or a structure (tuple,
                named tuple, dict) of those.

        Returns:
            int64: a numpy scalar for a token, an array of the same shape for many, and the same structure of those.

        Raises:
            DataError: A token is unknown, and neither `num_oov_buckets` nor `default` was given; it is named.
            TypeError: Something is not text.

        Source: `tf.lookup.StaticVocabularyTable.lookup`.
        """
        if isinstance(tokens, (str, bytes)):
            return np.int64(self._ids[tokens])
        if isinstance(tokens, SparseTensor):
            return tokens._replace(values=self.lookup(tokens.values))
        if isinstance(tokens, (tuple, dict)):
            return map_structure(self.lookup, tokens)
        array = array_of(tokens) if isinstance(tokens, list) else tokens
        if not isinstance(array, np.ndarray):
            self._ids.refuse(tokens)
        return np.array(list(map(self._ids.__getitem__, array.ravel().tolist())), np.int64).reshape(array.shape)

    def tokens(self, ids: Any, unknown: str | bytes | None = None) -> Any:
        """Give the tokens that numbers stand for.

        Args:
            ids: A number, or a list or an array of them (any shape).
            unknown: What to give for numbers that no token has; None makes them an error.

        Returns:
            What the vocabulary was made of, `bytes` if it was a file; for many numbers an object array.

        Raises:
            DataError: No token has a number, and `unknown` is None.
            TypeError: Something is not an integer.
        """
        numbers = np.asarray(ids)
        if numbers.size and numbers.dtype.kind not in "iu":
            raise TypeError(f"Vocabulary: ids must be integers, not {numbers.dtype}")
        found = np.empty(numbers.shape, object)
        found.ravel()[:] = [self._token(number, unknown) for number in numbers.ravel().tolist()]
        return found[()]

    def _token(self, number: int, unknown: str | bytes | None) -> str | bytes:
        if 0 <= number < len(self._known):
            return self._known[number]
        if unknown is None:
            raise DataError(f"Vocabulary: no token has the number {number}; there are {len(self._known)}")
        return unknown

    def __repr__(self) -> str:
        """Show where it came from and how large it is."""
        buckets = f", {self._ids.buckets} buckets for others" if self._ids.buckets else ""
        default = f", {self._ids.default} for others" if self._ids.default is not None else ""
        return f"<Vocabulary of {len(self._known)} from {self._name}{buckets}{default}>"


def _lines(path: str | bytes | os.PathLike[str], storage: StorageOptions | None) -> list[str | bytes]:
    text = read_file(path, storage).removeprefix(b"\xef\xbb\xbf").replace(b"\r", b"")
    return list(text.removesuffix(b"\n").split(b"\n")) if text else []


class _Ids(dict[str | bytes, int]):
    """The number of each token, in both its forms; asks a hash or a default for others."""

    def __init__(self, tokens: list[str | bytes], place: str, buckets: int, default: int | None) -> None:
        self.count, self.buckets, self.default = len(tokens), buckets, default
        if not tokens:
            raise ValueError(f"Vocabulary: there are no tokens in {place.removesuffix(' line')}")
        for number, token in enumerate(tokens):
            for form in self.forms(token):
                if self.setdefault(form, number) != number:
                    first = int(place != "token")
                    raise ValueError(
                        f"Vocabulary: {token!r} is {place} {dict.__getitem__(self, form) + first} "
                        f"and again {number + first}"
                    )

    def forms(self, token: Any) -> tuple[bytes, str]:
        if isinstance(token, str):
            return token.encode("utf-8", "surrogateescape"), token
        if isinstance(token, bytes):
            return token, token.decode("utf-8", "surrogateescape")
        self.refuse(token)

    def refuse(self, token: Any) -> NoReturn:
        raise TypeError(f"Vocabulary: a token must be bytes or str, not {type(token).__name__}")

    def __missing__(self, token: Any) -> int:
        form = self.forms(token)[0]
        if self.buckets:
            return self.count + fingerprint64(form) % self.buckets
        if self.default is None:
            raise DataError(
                f"Vocabulary: {token!r} is not one of the {self.count} tokens; num_oov_buckets or default say what "
                "unknown ones are"
            )
        return self.default
