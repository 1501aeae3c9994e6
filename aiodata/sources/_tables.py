"""How the rows of one Parquet or Arrow file are read: a piece at a time, in the run's threads."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from aiodata.engine.block import Block
from aiodata.engine.plan import Plan
from aiodata.engine.position import Origin, locate
from aiodata.errors import DataError, StateError, StructureError
from aiodata.extras import load
from aiodata.formats.arrow_tables import Request
from aiodata.sources._files import path_of, read_files
from aiodata.sources._promises import Promise, failed_position, position
from aiodata.storage.masking import masked
from aiodata.storage.transfer.seekable_files import SeekableFiles, mark_of_file

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from aiodata.dataset import Dataset
    from aiodata.engine.run import Run
    from aiodata.formats.arrow_tables import Piece, Table
    from aiodata.sources._files import Filenames
    from aiodata.storage.marks import Mark

__all__ = ["FirstTypes", "check_request", "read_tables"]


def check_request(columns: Any, row_filter: Any, null_values: Any, method: str) -> Request:
    """Check what is asked of files.

    Raises:
        ImportError: pyarrow is not installed.
        TypeError, ValueError: An argument is not what it must be.
    """
    load("pyarrow", "arrow", method)
    if columns is not None:
        if isinstance(columns, (str, bytes)) or not all(isinstance(name, str) for name in columns):
            raise TypeError(f"{method}: columns must be a list of names, not {columns!r:.80}")
        columns = tuple(columns)
        if not columns or len(set(columns)) < len(columns):
            raise ValueError(f"{method}: columns must be one or more names, each once, not {list(columns)!r:.80}")
    expression, text = _check_filter(row_filter, method) if row_filter is not None else (None, "")
    values = {} if null_values is None else null_values
    if not isinstance(values, Mapping) or not all(isinstance(name, str) for name in values):
        raise TypeError(f"{method}: null_values must be a dict of a value for each name, not {values!r:.80}")
    if absent := [name for name, value in values.items() if value is None]:
        raise ValueError(f"{method}: null_values gives None, which is no value, for {absent[0]!r}")
    return Request(columns, expression, dict(values), text)


def _check_filter(row_filter: Any, method: str) -> tuple[Any, str]:
    """Give a filter as an expression and in words, the same in every process."""
    from pyarrow import compute, parquet

    if isinstance(row_filter, compute.Expression):
        text = " ".join(str(row_filter).split())
        if "FieldPath(" in text:
            raise ValueError(f"{method}: filter must name columns, not number them: {text}")
        return row_filter, text
    if not isinstance(row_filter, (list, tuple)):
        raise TypeError(
            f"{method}: filter must be a pyarrow expression or a list such as [('x', '>', 3)], not {row_filter!r:.80}; "
            "a function is for the method `filter`"
        )
    conditions = _ordered(row_filter)
    try:
        return parquet.filters_to_expression(conditions), repr(conditions)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{method}: filter is none that pyarrow knows, {row_filter!r:.80}: {error}") from None


def _ordered(part: Any) -> Any:
    """Turn the sets in a filter into lists, whose order is not another one in every process."""
    if isinstance(part, (set, frozenset)):
        return sorted(part, key=repr)
    parts = [_ordered(inner) for inner in part] if isinstance(part, (list, tuple)) else part
    return tuple(parts) if isinstance(part, tuple) else parts


class FirstTypes:
    """The types of the first file of a list, to which the others are held: a batch may take rows of several.

    What they are must not depend on where a run begins, so a run that begins in the middle looks at that file, too. If
    it cannot be read, the next one counts.

    Args:
        filenames: What the reader was given; only a list of paths is one that has a first file.
        table: Makes the table of a path.
    """

    def __init__(self, filenames: Any, table: Callable[[str], Table]) -> None:
        several = isinstance(filenames, (list, tuple)) and len(filenames) > 1
        # As text: what a path object is made of differs between versions of Python, and with it a fingerprint.
        self._paths = [
            os.fspath(name) if isinstance(name, os.PathLike) else name for name in (filenames if several else ())
        ]
        self._table = table
        self._known: weakref.WeakKeyDictionary[Run, tuple[str, dict[str, str]]] = weakref.WeakKeyDictionary()
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what it was made from, which is also what a fingerprint counts."""
        return FirstTypes, (self._paths, self._table)

    @property
    def paths(self) -> list[str]:
        """The paths and URLs of the list."""
        return [path_of(path) for path in self._paths]

    def check(self, run: Run, table: Table, files: SeekableFiles) -> None:
        """Compare an open table with the first one, which `files` opens.

        Raises:
            StructureError: It differs in a column.
        """
        with self._lock:
            if run not in self._known and self._paths:
                self._known[run] = self._look(table, files)
            path, types = self._known.get(run, (table.path, table.types))
        for name in types | table.types:
            one, other = types.get(name, "absent"), table.types.get(name, "absent")
            if one != other:
                raise StructureError(f"{table.path}: column {name!r} is {other}, but {one} in {path}")

    def _look(self, open_table: Table, files: SeekableFiles) -> tuple[str, dict[str, str]]:
        for path in self.paths:
            if path == open_table.url:
                break
            table = self._table(path)
            try:
                table.open(files.open(path))
                return table.path, table.types
            except (OSError, DataError):
                continue
            finally:
                table.close()
        return open_table.path, open_table.types


def read_tables(
    datasets: type[Dataset[Any]],
    filenames: Filenames,
    kind: type[Table],
    request: Request,
    num_parallel_reads: int | None,
    method: str,
    name: str | None,
) -> Plan:
    """Give the plan that reads files of one kind; see `read_files`.

    Args:
        datasets: The class of datasets.
        filenames: A path, a list of paths, or a dataset of them.
        kind: Opens a file.
        request: What is asked of each file.
        num_parallel_reads: As for `read_files`.
        method: The reader's name, for refusing arguments.
        name: The user's own name for the stage.
    """
    table = partial(kind, request=request)
    stage = method.removesuffix("Dataset").lower()
    read = partial(_rows_of, datasets=datasets, table=table, first=FirstTypes(filenames, table), stage=stage)
    plan = read_files(datasets, filenames, read, num_parallel_reads, method, lambda *_: None, name)
    return replace(plan, detail=f"{plan.detail}, {request}".removesuffix(", "))


def _rows_of(
    filename: Any, *, datasets: type[Dataset[Any]], table: Callable[[str], Table], first: FirstTypes, stage: str
) -> Dataset[Any]:
    path = path_of(filename)
    opens = partial(_read_table, name=stage, path=path, open_table=table, first=first)
    return datasets(Plan(stage, opens, detail=masked(path)))


async def _read_table(
    run: Run, *, start: Any, name: str, path: str, open_table: Callable[[str], Table], first: FirstTypes
) -> AsyncIterator[Block[Any]]:
    """Give a file's rows; what goes wrong takes the place of one, and reading goes on where it can.

    A position is `[group, row, known, count, mark]`: the numbers of a group of rows and of a row in it, before any
    filter, what shows that the file has the same columns and rows, and what `Promise` has to know.
    """
    promise = Promise(start, (0, 0, None))
    mark: Mark = None
    counters = run.statistics.counters(name)
    found: list[Block[Any]] = []  # an error that is held by a variable would hold this frame, by its traceback
    given, opened, over = 0, False, False
    files = SeekableFiles(run, counters, [path, *first.paths])
    call = partial(run.in_thread, interrupt=files.interrupt)
    table = open_table(path)
    try:
        while not over:
            try:
                if not opened:
                    mark = await call(_open, run, table, first, promise, files)
                    opened = True
                piece = await call(table.read)
                over = piece is None
                if over:
                    promise.check(_places(table, *promise.where[:2])(0))
            except Exception as error:
                where = (table.group, table.row, table.mark)
                origin = Origin(partial(failed_position, where), _places(table, *where[:2]))
                locate(error, name, given, origin, 0)
                if promise.binds or isinstance(error, StateError):
                    raise
                over = over or not opened or isinstance(error, OSError)
                found.append(Block.failed(error, origin))
            else:
                if piece is not None and piece.length:
                    found.append(_block(piece, table, mark))
                    counters.elements += piece.length
                    counters.blocks += 1
            if found:
                promise.give(found[0].length or 0)
                given += found[0].length or 0
                yield found.pop()
    finally:
        await run.in_thread(_close, table, files)


def _open(run: Run, table: Table, first: FirstTypes, promise: Promise, files: SeekableFiles) -> Mark:
    group, row, known = promise.where
    file = files.open(table.url)
    mark = mark_of_file(table.url, file, promise.mark)
    table.open(file)
    if known is not None and known != table.mark:
        raise StateError(f"{table.path}: the file has other columns or rows than when the state was saved")
    first.check(run, table, files)
    table.seek(group, row)
    return mark


def _close(table: Table, files: SeekableFiles) -> None:
    table.close()
    files.close()


def _block(piece: Piece, table: Table, mark: Mark) -> Block[Any]:
    where = (piece.group, piece.row, table.mark)
    places = _places(table, piece.group, piece.row, piece.numbers)
    origin = Origin(partial(position, where, piece.length, mark), places)
    if piece.elements is None:
        return Block(origin, columns=piece.columns, length=piece.length)
    return Block(origin, computed=piece.elements)


def _places(table: Table, group: int, row: int, numbers: Sequence[int] | None = None) -> Callable[[int], str]:
    """Give what names the places of rows; it holds nothing of the table."""
    return partial(_place, f"{table.path} {table.group_name} {group} row", row, numbers)


def _place(group: str, row: int, numbers: Sequence[int] | None, offset: int) -> str:
    if numbers is not None:
        offset = int(numbers[offset]) if offset < len(numbers) else int(numbers[-1]) + 1
    return f"{group} {row + offset}"
