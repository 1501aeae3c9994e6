"""The dataset: a frozen handle on the description of a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from aiodata.display import chain_lines
from aiodata.engine.plan import Plan
from aiodata.iterator import DatasetIterator
from aiodata.sinks import aget_single_element as _aget_single_element
from aiodata.sinks import areduce as _areduce
from aiodata.sinks import as_numpy_iterator as _as_numpy_iterator
from aiodata.sinks import asave as _asave
from aiodata.sinks import cardinality as _cardinality
from aiodata.sinks import element_spec as _element_spec
from aiodata.sinks import fingerprint as _fingerprint
from aiodata.sinks import get_single_element as _get_single_element
from aiodata.sinks import options as _options
from aiodata.sinks import peek as _peek
from aiodata.sinks import peek_sync as _peek_sync
from aiodata.sinks import reduce as _reduce
from aiodata.sinks import save as _save
from aiodata.sources import choose_from_datasets as _choose_from_datasets
from aiodata.sources import counter as _counter
from aiodata.sources import from_generator as _from_generator
from aiodata.sources import from_http as _from_http
from aiodata.sources import from_list as _from_list
from aiodata.sources import from_socket as _from_socket
from aiodata.sources import from_sql as _from_sql
from aiodata.sources import from_tensor_slices as _from_tensor_slices
from aiodata.sources import from_tensors as _from_tensors
from aiodata.sources import list_files as _list_files
from aiodata.sources import load as _load
from aiodata.sources import random as _random
from aiodata.sources import range as _range
from aiodata.sources import sample_from_datasets as _sample_from_datasets
from aiodata.sources import zip as _zip
from aiodata.transforms import apply as _apply
from aiodata.transforms import assert_cardinality as _assert_cardinality
from aiodata.transforms import batch as _batch
from aiodata.transforms import batch_by_size as _batch_by_size
from aiodata.transforms import bucket_by_sequence_length as _bucket_by_sequence_length
from aiodata.transforms import cache as _cache
from aiodata.transforms import concatenate as _concatenate
from aiodata.transforms import enumerate as _enumerate
from aiodata.transforms import filter as _filter
from aiodata.transforms import flat_map as _flat_map
from aiodata.transforms import group_by_reducer as _group_by_reducer
from aiodata.transforms import group_by_window as _group_by_window
from aiodata.transforms import ignore_errors as _ignore_errors
from aiodata.transforms import interleave as _interleave
from aiodata.transforms import map as _map
from aiodata.transforms import pad_to_cardinality as _pad_to_cardinality
from aiodata.transforms import padded_batch as _padded_batch
from aiodata.transforms import prefetch as _prefetch
from aiodata.transforms import ragged_batch as _ragged_batch
from aiodata.transforms import random_map as _random_map
from aiodata.transforms import rebatch as _rebatch
from aiodata.transforms import rejection_resample as _rejection_resample
from aiodata.transforms import repeat as _repeat
from aiodata.transforms import scan as _scan
from aiodata.transforms import shard as _shard
from aiodata.transforms import shard_files as _shard_files
from aiodata.transforms import shuffle as _shuffle
from aiodata.transforms import skip as _skip
from aiodata.transforms import snapshot as _snapshot
from aiodata.transforms import sparse_batch as _sparse_batch
from aiodata.transforms import split as _split
from aiodata.transforms import take as _take
from aiodata.transforms import take_while as _take_while
from aiodata.transforms import unbatch as _unbatch
from aiodata.transforms import unique as _unique
from aiodata.transforms import window as _window
from aiodata.transforms import with_options as _with_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiodata.engine.plan import Stage

__all__ = ["Dataset"]

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """An immutable description of a pipeline; making one does no I/O and runs no function.

    Iterate over it with `async for` or with `for`, as often as you like: each loop runs it anew.

    >>> import aiodata
    >>> ds = aiodata.Dataset.range(10).map(lambda x: x + 1).batch(4)
    >>> for batch in ds:
    ...     print(batch)
    [1 2 3 4]
    [5 6 7 8]
    [ 9 10]
    """

    __slots__ = ("__weakref__", "_plan")

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    @staticmethod
    def of(plan: Plan) -> Dataset[Any]:
        """Give a dataset of a plan; what the constructors make, also when called on a reader's class."""
        return Dataset(plan)

    @property
    def plan(self) -> Plan:
        """The description, for stages that read this dataset."""
        return self._plan

    def then(
        self,
        name: str,
        stage: Stage,
        *,
        inputs: Sequence[Plan] | None = None,
        detail: str = "",
        **facts: Any,
    ) -> Dataset[Any]:
        """Give a dataset with one more stage.

        This is how every transformation is made, those outside the package too.

        Args:
            name: The stage's name in `repr`, errors and statistics.
            stage: Opens it: `stage(run, source, start=None)` gives an async iterator of blocks; see
                `aiodata.engine.plan.Stage`.
            inputs: The plans to read instead of this dataset's own.
            detail: The arguments in short. Together with the name it tells pipelines apart when a state is loaded.
            **facts: Further fields of `aiodata.engine.plan.Plan`, such as `count`, `waits`, `resumes_by_cursor`.
        """
        return Dataset(Plan(name, stage, tuple([self._plan] if inputs is None else inputs), detail, **facts))

    def iterate(self, state: dict[str, Any] | None = None) -> DatasetIterator[T_co]:
        """Give an iterator over the elements, for `async for` or `for`, with state and statistics.

        Args:
            state: What `state_dict()` of an iterator over an equal pipeline gave, to go on exactly there.

        Raises:
            StateError: `state` is of another pipeline; the first difference is named.
        """
        return DatasetIterator(self._plan, state)

    def __aiter__(self) -> DatasetIterator[T_co]:
        """Give a new iterator, as `iterate` does."""
        return DatasetIterator(self._plan)

    def __iter__(self) -> DatasetIterator[T_co]:
        """Give a new iterator, as `iterate` does."""
        return DatasetIterator(self._plan)

    def __len__(self) -> int:
        """Give the number of elements.

        Raises:
            TypeError: It is infinite or unknown; `cardinality()` tells which.
        """
        count = self._plan.cardinality()
        if count < 0:
            raise TypeError(f"the dataset's length is {'infinite' if count == -1 else 'unknown'}")
        return count

    def __bool__(self) -> bool:
        """Give True: a dataset is not a container, as in tf.data."""
        return True

    def __repr__(self) -> str:
        """Show the chain, a stage a line, with the specs that are known."""
        return "<Dataset\n" + "\n".join(chain_lines(self._plan)) + ">"

    aget_single_element = _aget_single_element.aget_single_element
    apply = _apply.apply
    areduce = _areduce.areduce
    as_numpy_iterator = _as_numpy_iterator.as_numpy_iterator
    asave = _asave.asave
    assert_cardinality = _assert_cardinality.assert_cardinality
    batch = _batch.batch
    batch_by_size = _batch_by_size.batch_by_size
    bucket_by_sequence_length = _bucket_by_sequence_length.bucket_by_sequence_length
    cache = _cache.cache
    cardinality = _cardinality.cardinality
    choose_from_datasets = classmethod(_choose_from_datasets.choose_from_datasets)
    concatenate = _concatenate.concatenate
    counter = classmethod(_counter.counter)
    element_spec = property(_element_spec.element_spec)
    enumerate = _enumerate.enumerate
    filter = _filter.filter
    fingerprint = _fingerprint.fingerprint
    flat_map = _flat_map.flat_map
    from_generator = classmethod(_from_generator.from_generator)
    from_http = classmethod(_from_http.from_http)
    from_list = classmethod(_from_list.from_list)
    from_socket = classmethod(_from_socket.from_socket)
    from_sql = classmethod(_from_sql.from_sql)
    from_tensor_slices = classmethod(_from_tensor_slices.from_tensor_slices)
    from_tensors = classmethod(_from_tensors.from_tensors)
    get_single_element = _get_single_element.get_single_element
    group_by_reducer = _group_by_reducer.group_by_reducer
    group_by_window = _group_by_window.group_by_window
    ignore_errors = _ignore_errors.ignore_errors
    interleave = _interleave.interleave
    list_files = classmethod(_list_files.list_files)
    load = classmethod(_load.load)
    map = _map.map
    options = _options.options
    pad_to_cardinality = _pad_to_cardinality.pad_to_cardinality
    padded_batch = _padded_batch.padded_batch
    peek = _peek.peek
    peek_sync = _peek_sync.peek_sync
    prefetch = _prefetch.prefetch
    ragged_batch = _ragged_batch.ragged_batch
    random = classmethod(_random.random)
    random_map = _random_map.random_map
    range = classmethod(_range.range)
    rebatch = _rebatch.rebatch
    reduce = _reduce.reduce
    rejection_resample = _rejection_resample.rejection_resample
    repeat = _repeat.repeat
    sample_from_datasets = classmethod(_sample_from_datasets.sample_from_datasets)
    save = _save.save
    scan = _scan.scan
    shard = _shard.shard
    shard_files = _shard_files.shard_files
    shuffle = _shuffle.shuffle
    skip = _skip.skip
    snapshot = _snapshot.snapshot
    sparse_batch = _sparse_batch.sparse_batch
    split = _split.split
    take = _take.take
    take_while = _take_while.take_while
    unbatch = _unbatch.unbatch
    unique = _unique.unique
    window = _window.window
    with_options = _with_options.with_options
    zip = classmethod(_zip.zip)
