"""Which word comes next? Text to tokens, to numbers, to batches of lines of similar length, with aiodata and numpy.

The words of a book's first pages get numbers by a vocabulary, and the lines are batched with lines of about the same
length, so that little of a batch is padding. A small model learns from the batches which word follows which.

    python examples/text_vocabulary.py
    python examples/text_vocabulary.py --file my-own.txt --words 500
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from aiodata import Dataset, TextLineDataset, Vocabulary

Ids: TypeAlias = npt.NDArray[np.int64]

TEXT = Path(__file__).resolve().parent / "data" / "alice" / "alice.txt"
PADDING, START, END = b"<padding>", b"<start>", b"<end>"
UNKNOWN_BUCKETS = 4
WORD = re.compile(rb"[a-z]+(?:['-][a-z]+)*")

# The pipeline


def tokenize(line: bytes) -> dict[str, list[bytes]]:
    """Split a line into its words, in small letters."""
    return {"words": WORD.findall(line.lower())}


def has_words(element: dict[str, Any]) -> bool:
    return len(element["words"]) > 0


def words_of(path: str) -> Dataset[dict[str, Any]]:
    """Describe the words of each line; blank lines are left out."""
    return TextLineDataset(path).map(tokenize).filter(has_words)


def learn_vocabulary(lines: Dataset[dict[str, Any]], most_words: int) -> Vocabulary:
    """Give the commonest words numbers; the others share a few numbers by their hash."""
    counts = Counter(word for line in lines for word in line["words"])
    common = [word for word, count in counts.most_common(most_words) if count > 1]
    return Vocabulary([PADDING, START, END, *common], num_oov_buckets=UNKNOWN_BUCKETS)


def numbers_of(lines: Dataset[dict[str, Any]], vocabulary: Vocabulary) -> Dataset[Ids]:
    """Describe the numbers of each line's words, between those of its start and its end."""
    start, end = vocabulary.lookup([START, END])
    return lines.map(lambda line: np.concatenate([[start], vocabulary.lookup(line["words"]), [end]]))


def batches_of(numbers: Dataset[Ids]) -> Dataset[Ids]:
    """Describe batches (n, length) of lines of similar length, filled up with the number of `PADDING`, which is 0."""
    shuffled = numbers.shuffle(1000, seed=42)
    return shuffled.bucket_by_sequence_length(len, [8, 12, 16, 24], [16, 16, 12, 8, 4]).prefetch(1)


# The model


class NextWords:
    """Counts which word follows which; every pair has been seen a little before anything is."""

    def __init__(self, size: int) -> None:
        self.counts = np.full((size, size), 0.01)

    def learn(self, batch: Ids) -> None:
        """Count the pairs of a batch; nothing follows padding, and padding follows nothing."""
        before, after = batch[:, :-1], batch[:, 1:]
        np.add.at(self.counts, (before[after != 0], after[after != 0]), 1)

    def perplexity(self, batches: list[Ids]) -> float:
        """Give of how many words, equally likely, the next one would be as hard to guess."""
        chances = self.counts / self.counts.sum(axis=1, keepdims=True)
        pairs = [(batch[:, :-1], batch[:, 1:]) for batch in batches]
        logs = np.concatenate([np.log(chances[before[after != 0], after[after != 0]]) for before, after in pairs])
        return float(np.exp(-logs.mean()))

    def followers(self, number: int, count: int) -> Ids:
        """Give the words that follow most often, rare ones left out."""
        return np.argsort(-self.counts[number, :-UNKNOWN_BUCKETS], kind="stable")[:count]


def padding_share(batches: list[Ids]) -> float:
    """Give the part of all numbers that is padding."""
    return sum(int((batch == 0).sum()) for batch in batches) / sum(batch.size for batch in batches)


async def train(batches: Dataset[Ids], size: int) -> tuple[NextWords, list[Ids]]:
    """Learn from each batch once; give the model and the batches."""
    model, seen = NextWords(size), []
    async for batch in batches:
        model.learn(batch)
        seen.append(batch)
    return model, seen


def main(arguments: Sequence[str] | None = None) -> str | None:
    """Run the example; give what went wrong, if anything did."""
    parser = argparse.ArgumentParser(description="Learn which word comes next.")
    parser.add_argument("--file", default=str(TEXT), help="a text file, a sentence a line")
    parser.add_argument("--words", type=int, default=200, help="words in the vocabulary at most (default: 200)")
    options = parser.parse_args(arguments)

    lines = words_of(options.file)
    vocabulary = learn_vocabulary(lines, options.words)
    print(f"{vocabulary.size} numbers: the commonest words, and {UNKNOWN_BUCKETS} for all others")
    numbers = numbers_of(lines, vocabulary)
    model, seen = asyncio.run(train(batches_of(numbers), vocabulary.size))

    bucketed, plain = padding_share(seen), padding_share(list(numbers.padded_batch(16)))
    print(f"{sum(map(len, seen))} lines in {len(seen)} batches; {bucketed:.0%} is padding, without buckets {plain:.0%}")
    learnt, before = model.perplexity(seen), NextWords(vocabulary.size).perplexity(seen)
    print(f"the next word is as hard to guess as one of {learnt:.1f}, before learning as one of {before:.1f}")
    for word in (b"the", b"alice", b"rabbit"):
        followers = vocabulary.tokens(model.followers(vocabulary.lookup(word), 3))
        print(f"after {word.decode()!r}: {b', '.join(followers).decode()}")
    if bucketed > plain / 2:
        return f"with buckets {bucketed:.0%} is padding, which is no less than half of {plain:.0%}"
    if learnt > before / 4:
        return f"the model has learnt little: {learnt:.1f}, not below a quarter of {before:.1f}"
    return None


if __name__ == "__main__":
    sys.exit(main())
