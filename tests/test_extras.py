"""Optional dependencies."""

from __future__ import annotations

import math

import pytest

from aiodata.extras import load


def test_a_module_that_is_there() -> None:
    assert load("math", "numbers", "sum") is math


def test_a_module_that_is_missing_says_how_to_install_it() -> None:
    with pytest.raises(ImportError) as raised:
        load("no_such_package.part", "things", "ThingDataset")
    assert str(raised.value) == "ThingDataset needs no_such_package: pip install 'aiodata-pipeline[things]'"
    assert raised.value.name == "no_such_package.part"
    with pytest.raises(ImportError, match="ThingDataset needs such-a-package: pip"):
        load("no_such_package.part", "things", "ThingDataset", "such-a-package")
