"""Functions that worker processes can import."""

from __future__ import annotations

import os
import time
from typing import Any


class BadDelay(ValueError):
    """What `delay` raises for the line that it was told not to like."""


class NeedsKeyword(Exception):
    """An exception that cannot be made again from its arguments."""

    def __init__(self, **details: Any) -> None:
        super().__init__("the disk named " + details["disk"] + " is full")


class Delay:
    """Read the departure delay of a line of a flights file; refuse one line."""

    def __init__(self, bad: bytes, seconds: float = 0.0) -> None:
        self.bad = bad
        self.seconds = seconds

    def __call__(self, line: bytes) -> int:
        time.sleep(self.seconds)
        if line == self.bad:
            raise BadDelay("no delay here")
        return int(line.split(b",")[5] or 0)


def full_disk(number: int) -> int:
    if number == 1:
        raise NeedsKeyword(disk="sda")
    return number


def stuck(path: bytes) -> bytes:
    """Say which process this is, and never come back."""
    with open(os.fsdecode(path) + ".part", "w") as file:
        file.write(str(os.getpid()))
    os.replace(os.fsdecode(path) + ".part", os.fsdecode(path))
    time.sleep(600)
    return path
