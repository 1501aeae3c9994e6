"""tf.data's pipeline language, native to asyncio, on numpy.

The map of the package:

- `Dataset`: an immutable description of a pipeline; `Dataset.range`, `.from_tensor_slices`, `.from_generator`,
  `.list_files` begin one, its methods (`map`, `shuffle`, `batch`, `prefetch`, ...) add stages.
- `TextLineDataset`: lines of text files.
- `decode_csv`: CSV lines to columns.
- `set_seed`: the global seed. `Options`: what holds for a whole pipeline.
- `errors`: what bad data raises.
"""

from __future__ import annotations

from aiodata import errors
from aiodata.dataset import Dataset
from aiodata.engine.iterator import DatasetIterator
from aiodata.engine.plan import AUTOTUNE
from aiodata.engine.plan import INFINITE as INFINITE_CARDINALITY
from aiodata.engine.plan import UNKNOWN as UNKNOWN_CARDINALITY
from aiodata.formats.csv import decode_csv
from aiodata.options import Options
from aiodata.random import set_seed
from aiodata.sources.text_line import TextLineDataset

__all__ = [
    "AUTOTUNE",
    "Dataset",
    "DatasetIterator",
    "INFINITE_CARDINALITY",
    "Options",
    "TextLineDataset",
    "UNKNOWN_CARDINALITY",
    "decode_csv",
    "errors",
    "set_seed",
]
