"""Will this flight arrive late? The textbook's input pipeline and training loop, with aiodata and numpy alone.

Twelve CSV files of real flights are read side by side, shuffled, parsed in parallel, batched, and fetched ahead while
the model learns. The model is a logistic regression; it is tested on every fifth flight, which it never learns from.

    python examples/flights.py                 train with `async for`
    python examples/flights.py --sync          the same with a plain `for`
    python examples/flights.py --epochs 3
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from aiodata import Dataset, TextLineDataset, decode_csv

Floats: TypeAlias = npt.NDArray[np.float32]
Batch: TypeAlias = tuple[Floats, Floats]
"""The features (n, 24) of n flights, and their labels (n,): 1 for a late one."""

DATA = Path(__file__).resolve().parent / "data" / "flights"
LATE_MINUTES = 15
HELD_OUT_EVERY = 5
GOOD_AUC = 0.85
CARRIERS = b"9E AA AS B6 DL EV F9 FL HA MQ OO UA US VX WN YV".split()
ORIGINS = b"EWR JFK LGA".split()
N_FEATURES = 5 + len(CARRIERS) + len(ORIGINS)

# The pipeline

# A column is chosen by its number in the file. Its default tells its type, and stands for an empty field: a flight
# that was cancelled or diverted has no delay, so it gets "not a number". With a bare type the field must be there.
COLUMNS = {0: int, 1: int, 2: int, 5: np.nan, 8: np.nan, 9: bytes, 12: bytes, 15: float, 16: int}


def preprocess(line: bytes) -> tuple[Floats, np.float32]:
    """Turn a line of a file into features (24,) and the label."""
    fields = decode_csv(line, list(COLUMNS.values()), select_cols=list(COLUMNS))
    year, month, day, departure_delay, arrival_delay, carrier, origin, miles, hour = fields
    weekday = datetime.date(year, month, day).weekday()
    features = [hour / 24, month / 12, weekday / 7, miles / 1000, departure_delay / 60]  # all of about the size of 1
    features += [carrier == known for known in CARRIERS]
    features += [origin == known for known in ORIGINS]
    late = arrival_delay > LATE_MINUTES if np.isfinite(arrival_delay) else np.nan
    return np.array(features, np.float32), np.float32(late)


def has_arrived(features: Floats, late: np.float32) -> bool:
    """Tell whether a flight was neither cancelled nor diverted."""
    return not np.isnan(late)


def lines_of(path: bytes, held_out: bool) -> Dataset[bytes]:
    """Give the lines of a file that are held out, or the others.

    They are told apart by their number in the file, before anything is shuffled, so that the two can never overlap.
    """
    lines = TextLineDataset(path).skip(1)  # the header
    numbered = lines.enumerate().filter(lambda number, line: (number % HELD_OUT_EVERY == 0) == held_out)
    return numbered.map(lambda number, line: line)


def csv_reader_dataset(
    file_pattern: str,
    repeat: int | None = 1,
    n_readers: int = 5,
    shuffle_buffer_size: int = 10_000,
    n_parse_threads: int = 5,
    batch_size: int = 32,
    *,
    held_out: bool = False,
    seed: int = 42,
) -> Dataset[Batch]:
    """Describe the pipeline from files to batches; nothing is read before somebody iterates over it."""
    files = Dataset.list_files(file_pattern, seed=seed).repeat(repeat)
    lines = files.interleave(
        lambda path: lines_of(path, held_out), cycle_length=n_readers, num_parallel_calls=n_readers
    )
    lines = lines.shuffle(shuffle_buffer_size, seed=seed)
    flights = lines.map(preprocess, num_parallel_calls=n_parse_threads).filter(has_arrived)
    return flights.batch(batch_size).prefetch(1)


# The model


class LogisticRegression:
    """A logistic regression that learns a batch at a time, by Adam (Kingma and Ba, 2015)."""

    def __init__(self, n_features: int, learning_rate: float = 0.005) -> None:
        self.weights = np.zeros(n_features + 1)  # the last one is the intercept
        self.learning_rate = learning_rate
        self.steps = 0
        self.mean = np.zeros_like(self.weights)
        self.mean_square = np.zeros_like(self.weights)

    def chances(self, features: Floats) -> npt.NDArray[np.float64]:
        """Give each flight's chance of being late."""
        scores: npt.NDArray[np.float64] = features @ self.weights[:-1] + self.weights[-1]
        return 0.5 + 0.5 * np.tanh(0.5 * scores)  # the logistic function, without overflow

    def learn(self, features: Floats, late: Floats) -> float:
        """Take one step on a batch; give the mean loss before it."""
        chances = self.chances(features)
        errors = (chances - late) / len(late)
        gradient = np.append(errors @ features, errors.sum())
        self.steps += 1
        self.mean += 0.1 * (gradient - self.mean)
        self.mean_square += 0.001 * (gradient**2 - self.mean_square)
        mean = self.mean / (1 - 0.9**self.steps)
        mean_square = self.mean_square / (1 - 0.999**self.steps)
        self.weights -= self.learning_rate * mean / (np.sqrt(mean_square) + 1e-8)
        return log_loss(chances, late)


def log_loss(chances: npt.NDArray[np.float64], late: Floats) -> float:
    """Give the mean of the negative log-likelihoods."""
    return float(-np.log(np.maximum(np.where(late == 1, chances, 1 - chances), 1e-12)).mean())


def roc_auc(chances: npt.NDArray[np.float64], late: Floats) -> float:
    """Give the chance that a late flight ranks above one in time (Mann and Whitney, 1947); a tie counts half."""
    _, place, counts = np.unique(chances, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    n_late = int((late == 1).sum())
    n_in_time = len(late) - n_late
    return float((ranks[late == 1].sum() - n_late * (n_late + 1) / 2) / (n_late * n_in_time))


# Training and testing


class Epoch:
    """One pass over the training flights: what it counts is shown as it goes on, if somebody is watching."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.rows = 0
        self.loss = 0.0
        self.watched = sys.stdout.isatty()
        self.start = self.shown = time.perf_counter()

    def add(self, rows: int, loss: float) -> None:
        """Count a batch."""
        self.rows += rows
        self.loss += rows * loss
        if self.watched and time.perf_counter() - self.shown > 0.1:
            self.shown = time.perf_counter()
            print(f"\r{self}", end="", flush=True)

    def finish(self, line: str, tested: list[tuple[npt.NDArray[np.float64], Floats]]) -> float:
        """Show the line with the results on the flights that were held out; give their ROC AUC."""
        chances, late = (np.concatenate(parts) for parts in zip(*tested, strict=True))
        loss, auc = log_loss(chances, late), roc_auc(chances, late)
        start = "\r" if self.watched else ""
        print(f"{start}{line}, held out: loss {loss:.4f}, AUC {auc:.4f}", flush=True)
        return auc

    def __str__(self) -> str:
        speed = self.rows / (time.perf_counter() - self.start)
        return f"epoch {self.number:2}: {self.rows:6,} rows, {speed:7,.0f} rows/s, loss {self.loss / self.rows:.4f}"


async def train(train_set: Dataset[Batch], test_set: Dataset[Batch], epochs: int) -> float:
    """Train a model; give its last ROC AUC on the flights that were held out."""
    model, auc = LogisticRegression(N_FEATURES), 0.0
    for number in range(1, epochs + 1):
        epoch = Epoch(number)
        async for features, late in train_set:
            epoch.add(len(late), model.learn(features, late))
        line = str(epoch)
        auc = epoch.finish(line, [(model.chances(features), late) async for features, late in test_set])
    return auc


def train_sync(train_set: Dataset[Batch], test_set: Dataset[Batch], epochs: int) -> float:
    """Do the same without `async`: the pipeline then runs on an event loop of its own, in a thread."""
    model, auc = LogisticRegression(N_FEATURES), 0.0
    for number in range(1, epochs + 1):
        epoch = Epoch(number)
        for features, late in train_set:
            epoch.add(len(late), model.learn(features, late))
        line = str(epoch)
        auc = epoch.finish(line, [(model.chances(features), late) for features, late in test_set])
    return auc


async def collect(batches: Dataset[Batch]) -> list[Batch]:
    """Read a dataset to its end with `async for`."""
    return [batch async for batch in batches]


def faces_agree(file_pattern: str, n_batches: int = 200) -> bool:
    """Tell whether `async for` and `for` give the same first batches, value by value."""
    # Two datasets with the same seed, for the second pass over one of them would come in a new order.
    one, other = (csv_reader_dataset(file_pattern).take(n_batches) for _ in range(2))
    return all(
        ours.dtype == theirs.dtype and np.array_equal(ours, theirs)
        for batch, same in zip(asyncio.run(collect(one)), list(other), strict=True)
        for ours, theirs in zip(batch, same, strict=True)
    )


def main(arguments: Sequence[str] | None = None) -> str | None:
    """Run the example; give what went wrong, if anything did."""
    parser = argparse.ArgumentParser(description="Learn which flights arrive late.")
    parser.add_argument("--epochs", type=int, default=10, help="passes over the training flights (default: 10)")
    parser.add_argument("--data", default=str(DATA / "flights-*.csv"), help="pattern of the CSV files")
    parser.add_argument("--sync", action="store_true", help="train in a plain for loop")
    options = parser.parse_args(arguments)
    if options.epochs < 1:
        parser.error(f"--epochs must be at least 1, not {options.epochs}")

    train_set = csv_reader_dataset(options.data)
    test_set = csv_reader_dataset(options.data, batch_size=512, held_out=True).cache()  # read once, then kept
    start = time.perf_counter()
    if options.sync:
        auc = train_sync(train_set, test_set, options.epochs)
    else:
        auc = asyncio.run(train(train_set, test_set, options.epochs))
    print(f"trained in {time.perf_counter() - start:.1f} s with {'for' if options.sync else 'async for'}")
    if not faces_agree(options.data):
        return "`for` and `async for` gave different batches"
    print("`for` and `async for` give the same batches, value by value")
    if auc <= GOOD_AUC:
        return f"the held-out AUC is {auc:.4f}, not above {GOOD_AUC}"
    return None


if __name__ == "__main__":
    sys.exit(main())
