"""tf.data's pipeline language, native to asyncio, on numpy.

The map of the package:

- `Dataset`: an immutable description of a pipeline; `Dataset.range`, `.from_tensor_slices`, `.from_generator`,
  `.list_files` begin one, its methods (`map`, `shuffle`, `batch`, `prefetch`, ...) add stages.
- `DatasetIterator`: what iterating over one gives, with its place as a saved state. `Optional`: an element, or that
  there is none.
- `TensorSpec`, `DatasetSpec`, `NoneTensorSpec`: what is known of elements before there are any.
- `TextLineDataset`: lines of text files. `TFRecordDataset`, `TFRecordWriter`: records of TFRecord files.
- `CsvDataset`: records of CSV files; `make_csv_dataset`: batches of their columns, by name. `decode_csv`: CSV lines to
  columns.
- `JsonLinesDataset`: values of JSON Lines files.
- `NpyDataset`: rows of `.npy` and `.npz` files.
- `text_dataset_from_directory`: whole text files, labelled by their folders.
- `FixedLengthRecordDataset`: records of one length. `decode_raw`: bytes to arrays of numbers.
- `TarDataset`: samples in tar archives, as WebDataset lays them out.
- `parse_example`, `parse_single_example`, `parse_sequence_example`, `parse_single_sequence_example`: features out of
  `tf.train.Example`s, by `FixedLenFeature`, `RawFeature`, `FixedLenSequenceFeature`, `VarLenFeature`,
  `RaggedFeature`; `encode_example`, `encode_sequence_example`: back to bytes.
- `ParquetDataset`, `ArrowDataset`: rows of Parquet and Arrow files.
- `BigQueryDataset`: rows of a BigQuery table.
- `SqlDataset`: rows of a query on a SQLite database, as tf.data has it; `Dataset.from_sql`: on any database.
- `read_file`, `aread_file`: the whole of a file.
- `Options`, with `AutotuneOptions`, `StorageOptions` and `ThreadingOptions` in it: what holds for a whole pipeline.
- `Reducer`: what `group_by_reducer` does with a group.
- `SparseTensor`: what `sparse_batch` and `VarLenFeature` give.
- `Vocabulary`: tokens of text to numbers and back.
- `CheckpointManager`: the last states of a training job, on disk.
- `set_seed`: the global seed.
- `errors`: what bad data raises, and the end that `get_next` reports.
- `storage`: object stores, web servers and what else has URLs in place of paths; storages of one's own.
- `image`: images decoded, resized and changed by chance.
- `experimental`: the older forms of methods, as functions for `apply`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from aiodata import errors, storage
from aiodata.dataset import Dataset
from aiodata.engine.plan import AUTOTUNE
from aiodata.engine.plan import INFINITE as INFINITE_CARDINALITY
from aiodata.engine.plan import UNKNOWN as UNKNOWN_CARDINALITY
from aiodata.iterator import DatasetIterator
from aiodata.optional import Optional
from aiodata.options import AutotuneOptions, Options, StorageOptions, ThreadingOptions
from aiodata.random import set_seed
from aiodata.spec import DatasetSpec, NoneTensorSpec, TensorSpec
from aiodata.transforms.group_by_reducer import Reducer

if TYPE_CHECKING:
    from aiodata import experimental, image
    from aiodata.checkpoint import CheckpointManager
    from aiodata.formats.csv import decode_csv
    from aiodata.formats.example import parse_example, parse_single_example
    from aiodata.formats.example_encoding import encode_example, encode_sequence_example
    from aiodata.formats.example_features import (
        FixedLenFeature,
        FixedLenSequenceFeature,
        RaggedFeature,
        RawFeature,
        VarLenFeature,
    )
    from aiodata.formats.example_sequence import parse_sequence_example, parse_single_sequence_example
    from aiodata.formats.raw import decode_raw
    from aiodata.formats.tfrecord_writer import TFRecordWriter
    from aiodata.sources.arrow import ArrowDataset
    from aiodata.sources.bigquery import BigQueryDataset
    from aiodata.sources.csv import CsvDataset
    from aiodata.sources.fixed_length_record import FixedLengthRecordDataset
    from aiodata.sources.json_lines import JsonLinesDataset
    from aiodata.sources.make_csv_dataset import make_csv_dataset
    from aiodata.sources.npy import NpyDataset
    from aiodata.sources.parquet import ParquetDataset
    from aiodata.sources.sql import SqlDataset
    from aiodata.sources.tar import TarDataset
    from aiodata.sources.text_dataset_from_directory import text_dataset_from_directory
    from aiodata.sources.text_line import TextLineDataset
    from aiodata.sources.tf_record import TFRecordDataset
    from aiodata.sparse import SparseTensor
    from aiodata.vocabulary import Vocabulary
    from aiodata.whole_file import aread_file, read_file

_LATER = {
    "ArrowDataset": "aiodata.sources.arrow",
    "BigQueryDataset": "aiodata.sources.bigquery",
    "CheckpointManager": "aiodata.checkpoint",
    "CsvDataset": "aiodata.sources.csv",
    "FixedLenFeature": "aiodata.formats.example_features",
    "FixedLenSequenceFeature": "aiodata.formats.example_features",
    "FixedLengthRecordDataset": "aiodata.sources.fixed_length_record",
    "JsonLinesDataset": "aiodata.sources.json_lines",
    "NpyDataset": "aiodata.sources.npy",
    "ParquetDataset": "aiodata.sources.parquet",
    "RaggedFeature": "aiodata.formats.example_features",
    "RawFeature": "aiodata.formats.example_features",
    "SparseTensor": "aiodata.sparse",
    "SqlDataset": "aiodata.sources.sql",
    "TFRecordDataset": "aiodata.sources.tf_record",
    "TFRecordWriter": "aiodata.formats.tfrecord_writer",
    "TarDataset": "aiodata.sources.tar",
    "TextLineDataset": "aiodata.sources.text_line",
    "VarLenFeature": "aiodata.formats.example_features",
    "Vocabulary": "aiodata.vocabulary",
    "aread_file": "aiodata.whole_file",
    "decode_csv": "aiodata.formats.csv",
    "decode_raw": "aiodata.formats.raw",
    "encode_example": "aiodata.formats.example_encoding",
    "encode_sequence_example": "aiodata.formats.example_encoding",
    "experimental": "aiodata.experimental",
    "image": "aiodata.image",
    "make_csv_dataset": "aiodata.sources.make_csv_dataset",
    "parse_example": "aiodata.formats.example",
    "parse_sequence_example": "aiodata.formats.example_sequence",
    "parse_single_example": "aiodata.formats.example",
    "parse_single_sequence_example": "aiodata.formats.example_sequence",
    "read_file": "aiodata.whole_file",
    "text_dataset_from_directory": "aiodata.sources.text_dataset_from_directory",
}
"""What is imported when it is first asked for, since most programs read one format of many: names and modules."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(_LATER[name])
    value = globals()[name] = module if module.__name__ == f"{__name__}.{name}" else getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


__all__ = [
    "AUTOTUNE",
    "ArrowDataset",
    "AutotuneOptions",
    "BigQueryDataset",
    "CheckpointManager",
    "CsvDataset",
    "Dataset",
    "DatasetIterator",
    "DatasetSpec",
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "FixedLengthRecordDataset",
    "INFINITE_CARDINALITY",
    "JsonLinesDataset",
    "NoneTensorSpec",
    "NpyDataset",
    "Optional",
    "Options",
    "ParquetDataset",
    "RaggedFeature",
    "RawFeature",
    "Reducer",
    "SparseTensor",
    "SqlDataset",
    "StorageOptions",
    "TFRecordDataset",
    "TFRecordWriter",
    "TarDataset",
    "TensorSpec",
    "TextLineDataset",
    "ThreadingOptions",
    "UNKNOWN_CARDINALITY",
    "VarLenFeature",
    "Vocabulary",
    "aread_file",
    "decode_csv",
    "decode_raw",
    "encode_example",
    "encode_sequence_example",
    "errors",
    "experimental",
    "image",
    "make_csv_dataset",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "read_file",
    "set_seed",
    "storage",
    "text_dataset_from_directory",
]
