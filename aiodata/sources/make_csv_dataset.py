"""`make_csv_dataset`: batches of columns by name, from CSV files."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.checks import check_integer, check_parallelism
from aiodata.dataset import Dataset
from aiodata.engine.plan import AUTOTUNE
from aiodata.formats.compression import check_compression_type
from aiodata.formats.csv_schema import CsvForm, common_header, infer_defaults
from aiodata.sources.csv import CsvDataset
from aiodata.spec import batched
from aiodata.storage.blocking import matching_paths
from aiodata.storage.masking import masked
from aiodata.transforms.map import mapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiodata.options import StorageOptions

    Pattern = str | bytes | os.PathLike[str]

__all__ = ["make_csv_dataset"]

_METHOD = "make_csv_dataset"


def make_csv_dataset(
    file_pattern: Pattern | Sequence[Pattern],
    batch_size: int,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[Any] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[int | str] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: str | None = None,
    ignore_errors: bool = False,
    encoding: str = "utf-8",
    *,
    storage: StorageOptions | None = None,
) -> Dataset[Any]:
    r"""Read CSV files into batches: dicts of one array per column, by name.

    It repeats for ever unless `num_epochs` is given, and shuffles unless told not to: tf.data's defaults. The stages
    are `shuffle` of the paths, `interleave` of a `CsvDataset` each, `shuffle`, `repeat`, `batch`, `prefetch`; batches
    reach over the end of an epoch, and the last one is smaller if its rows run out.

    Unlike all other sources this one reads files at once, if names or types are not given: a dataset has to know its
    structure. The names are those of the first record of every file, which must agree. A column's type is the first of
    int32, int64, float32, float64 and text that fits all of its fields in the first rows; `nan` and `inf` are text, as
    in tf.data. Missing fields have no say, and become 0 or `b""`.

    Args:
        file_pattern: A glob pattern, or a list of them. The files are listed at once, sorted by name.
        batch_size: Rows in a batch, at least 1.
        column_names: Names of all the columns of the files, in order; None takes the files' headers.
        column_defaults: One entry per selected column, as for `CsvDataset`; None finds out the types.
        label_name: Name of a column to give apart, as the second part of a tuple.
        select_columns: Names or indexes of the columns to read, in any order; all of them by default.
        field_delim: As for `CsvDataset`.
        use_quote_delim: As for `CsvDataset`.
        na_value: As for `CsvDataset`.
        header: Whether the first record of every file is a header.
        num_epochs: How often to read the files; None or -1 for ever.
        shuffle: Whether to shuffle the files and the rows.
        shuffle_buffer_size: As for `Dataset.shuffle`, in rows.
        shuffle_seed: As for `Dataset.shuffle`.
        prefetch_buffer_size: As for `Dataset.prefetch`, in batches; None means `AUTOTUNE`.
        num_parallel_reads: Files to read at once, their rows taken in turn; None means 1.
        sloppy: Whether to take rows as they become ready, where several files are read at once.
        num_rows_for_inference: Rows to find out types from, of the first files; None takes all of all files.
        compression_type: "" or None, "GZIP" or "ZLIB"; with ZLIB, names and defaults must be given.
        ignore_errors: Whether to leave out what cannot be read, rows and the rest of files.
        encoding: The encoding of the files' names of columns; text in rows stays the bytes that it is.
        storage: How remote files are looked at before there is a pipeline: listed, and read for names and
            types. `with_options` says how the pipeline reads them.

    Returns:
        A dataset of dicts of arrays (batch_size,), in the files' order of columns, or of tuples of such a dict and the
        label's array (batch_size,).

    Raises:
        TypeError: An argument has a type that cannot work.
        ValueError: An argument is out of its range, or names are unknown or not unique.
        FileNotFoundError: No file matches.
        OSError: A file cannot be read.
        DataError: Headers differ, or a row of those that types are found out from is bad; it names file and line.
            A file is compressed and `compression_type` does not say so. While iterating: as for `CsvDataset`.

    >>> import aiodata, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("carrier,delay\nUA,7\nB6,2.5\n")
    ...     ds = aiodata.make_csv_dataset(path, 2, label_name="delay", num_epochs=1, shuffle=False)
    ...     list(ds)
    [({'carrier': array([b'UA', b'B6'], dtype=object)}, array([7. , 2.5], dtype=float32))]

    Source: `tf.data.experimental.make_csv_dataset`.
    """
    check_integer(batch_size, _METHOD, "batch_size", 1)
    reads = check_parallelism(num_parallel_reads, _METHOD, "num_parallel_reads") or 1
    if num_rows_for_inference is not None:
        check_integer(num_rows_for_inference, _METHOD, "num_rows_for_inference", 0)
    compression = check_compression_type(compression_type, _METHOD)
    CsvDataset([], [bytes], None, None, header, field_delim, use_quote_delim, na_value)  # checks them before reading
    _check_known(column_names, column_defaults, header, compression)
    paths = _paths(file_pattern, storage)
    form = CsvForm(field_delim, use_quote_delim, compression, encoding, storage)
    names = common_header(paths, form) if column_names is None else list(column_names)
    selected, kept = _selected(select_columns, names, label_name)
    defaults, rows = column_defaults, num_rows_for_inference
    if defaults is None:
        defaults = infer_defaults(paths, len(names), selected, header, na_value, rows, ignore_errors, form)
    if len(defaults) != len(kept):
        raise ValueError(f"{_METHOD}: column_defaults must have {len(kept)} entries, not {len(defaults)}")
    read = partial(
        CsvDataset,
        record_defaults=defaults,
        compression_type=compression,
        header=header,
        field_delim=field_delim,
        use_quote_delim=use_quote_delim,
        na_value=na_value,
        select_cols=selected,
    )
    dataset = _rows(paths, read, shuffle, shuffle_seed, reads, sloppy, ignore_errors)
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        dataset = dataset.repeat(num_epochs)
    dataset = dataset.batch(batch_size, drop_remainder=num_epochs is None)
    spec = batched(read(paths[0]).element_spec, batch_size if num_epochs is None else None)
    dataset = _by_name(dataset, kept, label_name, spec)
    return dataset.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def _check_known(column_names: Any, column_defaults: Any, header: bool, compression: str) -> None:
    """Make sure that what is not given can be found out."""
    if column_names is None and not header:
        raise ValueError(f"{_METHOD}: column_names must be given where header is False")
    if compression == "ZLIB" and (column_names is None or column_defaults is None):
        raise ValueError(f"{_METHOD}: column_names and column_defaults must be given for ZLIB files")


def _paths(file_pattern: Any, storage: StorageOptions | None) -> list[str]:
    """List the files that match, sorted."""
    is_one = isinstance(file_pattern, (str, bytes, os.PathLike))
    patterns = [os.fsdecode(pattern) for pattern in ([file_pattern] if is_one else file_pattern)]
    if not patterns:
        raise ValueError(f"{_METHOD}: file_pattern is empty")
    paths = sorted(path for pattern in patterns for path in matching_paths(pattern, storage))
    if not paths:
        raise FileNotFoundError(f"{_METHOD}: no file matches {', '.join(repr(masked(each)) for each in patterns)}")
    return paths


def _selected(
    select_columns: Sequence[int | str] | None, names: list[str], label_name: str | None
) -> tuple[list[int] | None, list[str]]:
    """Give the indexes of selected columns, in order, None where all are; and their names."""
    if len(set(names)) < len(names):
        raise ValueError(f"{_METHOD}: names of columns must be unique, not {names!r}")
    found = []
    for column in [] if select_columns is None else select_columns:
        at = names.index(column) if column in names else column
        if isinstance(at, str) or not 0 <= at < len(names):
            raise ValueError(f"{_METHOD}: select_columns must be names or indexes of {names!r}, not {column!r}")
        found.append(at)
    if select_columns is not None and (len(set(found)) < len(found) or not found):
        raise ValueError(f"{_METHOD}: select_columns must be different columns, at least one, not {select_columns!r}")
    selected = None if select_columns is None else sorted(found)
    kept = names if selected is None else [names[at] for at in selected]
    if label_name is not None and label_name not in kept:
        raise ValueError(f"{_METHOD}: label_name must be one of the columns {kept!r}, not {label_name!r}")
    return selected, kept


def _rows(
    paths: list[str], read: Any, shuffle: bool, seed: int | None, reads: int, sloppy: bool, ignore_errors: bool
) -> Dataset[Any]:
    """Read the rows of all files."""

    def rows(path: str) -> Dataset[Any]:
        dataset: Dataset[Any] = read(path)
        return dataset.ignore_errors() if ignore_errors else dataset

    files = Dataset.from_tensor_slices(paths)
    if shuffle:
        files = files.shuffle(len(paths), seed)
    plan = files.interleave(rows, reads, 1, None if reads == 1 else reads, not sloppy).plan
    return Dataset(replace(plan, contents=(rows("").plan.mark, ignore_errors)))


def _by_name(dataset: Dataset[Any], names: list[str], label_name: str | None, spec: Any) -> Dataset[Any]:
    named = partial(_named, names, label_name)
    detail = ", ".join(names) + ("" if label_name is None else f", label_name={label_name!r}")
    return mapped(dataset, named, detail=detail, spec=lambda _: named(*spec))


def _named(names: list[str], label_name: str | None, *columns: Any) -> Any:
    """Give a row or batch of columns by name, the label apart."""
    features = dict(zip(names, columns, strict=True))
    return features if label_name is None else (features, features.pop(label_name))
