"""Options that hold for a whole pipeline: tf.data's, all of them, and two of our own.

These have an effect: `deterministic`, `autotune`, and our `switch_interval_seconds` and `storage`. All others are there
so that programs written for tf.data run as they are. Their types are checked, `merge`, `==` and `repr` know them, and
they have **no effect**, because there is nothing here for them to act on:

- `autotune.autotune_algorithm`: there is one, which climbs to where the rate is best; see `aiodata.engine.tuning`.
- `threading` and its fields: every parallel stage has threads of its own, and numpy's threads are not ours.
- `experimental_optimization` and its fields: there is no graph to rewrite.
- `experimental_distribute`, `experimental_service` and their fields: no workers to divide a dataset among; see `shard`.
- `experimental_external_state_policy`, `experimental_symbolic_checkpoint`: every state is small, and is saved whole.
- `experimental_slack`, `experimental_warm_start`, `dataset_name`, `framework_type`: no device to keep free or busy, and
  no monitoring to label.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from functools import cache
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from aiodata.engine.statistics import check_statistics

__all__ = [
    "AutoShardPolicy",
    "AutotuneAlgorithm",
    "AutotuneOptions",
    "DistributeOptions",
    "ExternalStatePolicy",
    "OptimizationOptions",
    "Options",
    "ServiceOptions",
    "StorageOptions",
    "ThreadingOptions",
]

G = TypeVar("G", bound="_Group")


class AutotuneAlgorithm(Enum):
    """How tf.data searches for parallelism and buffer sizes; `tf.data.experimental.AutotuneAlgorithm`."""

    DEFAULT = 0
    HILL_CLIMB = 1
    GRADIENT_DESCENT = 2
    MAX_PARALLELISM = 3
    STAGE_BASED = 4


class AutoShardPolicy(IntEnum):
    """How tf.data divides a dataset among workers; `tf.data.experimental.AutoShardPolicy`."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class ExternalStatePolicy(Enum):
    """What tf.data does about state that it cannot save; `tf.data.experimental.ExternalStatePolicy`."""

    WARN = 0
    IGNORE = 1
    FAIL = 2


@cache
def _kinds(group: type) -> dict[str, tuple[type, ...]]:
    """Give the types that each field of a group takes, by its annotation."""
    hints = get_type_hints(group).items()
    return {name: tuple(get_origin(kind) or kind for kind in get_args(hint) or (hint,)) for name, hint in hints}


def _older_name(name: str) -> property:
    """Declare another name of a field."""
    return property(
        lambda self: getattr(self, name),
        lambda self, value: setattr(self, name, value),
        doc=f"Another name of `{name}`.",
    )


@dataclass(repr=False)
class _Group:
    """Fields that can be set, each checked when it is; None leaves the choice to the library."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field.

        Raises:
            AttributeError: There is no such field.
            TypeError: The field has another type.
            ValueError: The value is out of range.
        """
        owner: type = type(self)
        kinds = _kinds(owner)
        if name in kinds:
            # A bool is an int to Python, but True is no number of cores.
            if not isinstance(value, kinds[name]) or (isinstance(value, bool) and bool not in kinds[name]):
                wanted = " or ".join("None" if kind is NoneType else kind.__name__ for kind in kinds[name])
                raise TypeError(f"{owner.__name__}.{name} must be {wanted}, not {type(value).__name__}")
            least = self.__dataclass_fields__[name].metadata.get("least")
            if least is not None and value is not None and not value >= least:
                raise ValueError(f"{owner.__name__}.{name} must be at least {least}, not {value}")
            if name == "frozen" and value is not None:
                value = check_statistics(value, f"{owner.__name__}.frozen")
        elif not isinstance(getattr(owner, name, None), property):  # an older name of a field
            raise AttributeError(f"{owner.__name__} has no option {name!r}; it has {', '.join(kinds)}")
        object.__setattr__(self, name, value)

    def _assigned(self) -> dict[str, Any]:
        """Give the fields that are set, and the groups in which something is."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {
            name: value
            for name, value in values.items()
            if (value._assigned() if isinstance(value, _Group) else value is not None)
        }

    def __repr__(self) -> str:
        """Show what is set."""
        shown = ", ".join(f"{name}={value!r}" for name, value in self._assigned().items())
        return f"{type(self).__name__}({shown})"

    def merge(self: G, options: G) -> G:
        """Give new options: these, with what `options` sets in place of what is set here, field by field."""
        merged = copy.deepcopy(self)
        for name, value in options._assigned().items():
            own = getattr(merged, name)
            setattr(merged, name, own.merge(value) if isinstance(value, _Group) else copy.copy(value))
        return merged


@dataclass(repr=False)
class AutotuneOptions(_Group):
    """What an automatic parallelism or buffer size (`AUTOTUNE`) may be; `tf.data.experimental.AutotuneOptions`.

    Nothing here changes which elements come, nor their order. `frozen` is an addition.

    Args:
        enabled: False fixes what `AUTOTUNE` means: the number of cores for plain functions and 16 for coroutines,
            whatever the budget, and one element for `prefetch`, which then does not grow. None means True.
        autotune_algorithm: No effect.
        cpu_budget: The most calls that all automatic stages may run at once, at least 1; each may run one in any case.
            None means no limit but those of `map`.
        ram_budget: Bytes that all automatic stages may have ready. Each may have one element in any case, a `map` two
            for each of its first calls, and an `interleave` a portion for each open dataset. None means a quarter of
            the memory that is available when the run begins, and at least 64 MiB.
        initial_parallelism: Calls of an automatic stage at first, within the budgets. None means `cpu_budget`, or the
            number of cores, for plain functions, and 16 for coroutines.
        min_parallelism: The fewest calls of an automatic stage, within the budgets; 1.
        frozen: What `statistics()` of an iterator gave, which is copied: the automatic stages that it names keep the
            parallelism and capacity that they had then, whatever the budgets. Stages of another name are free.
    """

    enabled: bool | None = None
    autotune_algorithm: AutotuneAlgorithm | None = None
    cpu_budget: int | None = field(default=None, metadata={"least": 1})
    ram_budget: int | None = field(default=None, metadata={"least": 0})
    initial_parallelism: int | None = field(default=None, metadata={"least": 0})
    min_parallelism: int | None = field(default=None, metadata={"least": 0})
    frozen: list[dict[str, Any]] | None = None


@dataclass(repr=False)
class ThreadingOptions(_Group):
    """Sizes of thread pools, at least 0. No effect; `tf.data.ThreadingOptions`."""

    private_threadpool_size: int | None = field(default=None, metadata={"least": 0})
    max_intra_op_parallelism: int | None = field(default=None, metadata={"least": 0})


@dataclass(repr=False)
class OptimizationOptions(_Group):
    """Rewrites of the graph. No effect; `tf.data.experimental.OptimizationOptions`."""

    apply_default_optimizations: bool | None = None
    filter_fusion: bool | None = None
    filter_parallelization: bool | None = None
    inject_prefetch: bool | None = None
    map_and_batch_fusion: bool | None = None
    map_and_filter_fusion: bool | None = None
    map_fusion: bool | None = None
    map_parallelization: bool | None = None
    noop_elimination: bool | None = None
    parallel_batch: bool | None = None
    seq_interleave_prefetch: bool | None = None
    shuffle_and_repeat_fusion: bool | None = None


@dataclass(repr=False)
class DistributeOptions(_Group):
    """Division among workers. No effect; `tf.data.experimental.DistributeOptions`."""

    auto_shard_policy: AutoShardPolicy | None = None
    num_devices: int | None = field(default=None, metadata={"least": 0})


@dataclass(repr=False)
class ServiceOptions(_Group):
    """Options of the tf.data service. No effect; `tf.data.experimental.ServiceOptions`."""

    pinned: bool | None = None


@dataclass(repr=False)
class StorageOptions(_Group):
    """How files in remote storage are read; an addition. None is the default that is named.

    Trouble that may pass (a broken connection, a short body, silence, the status 408, 425, 429, 500, 502, 503 or 504)
    is waited out: the first time for up to `first_wait_seconds`, then up to twice as long each time, by chance between
    half of that and all of it, and at least as long as the server asks for. Reading goes on behind the last byte that
    came.

    Args:
        max_attempts: Requests in a row that may bring nothing, at least 1; 10.
        first_wait_seconds: 0.2.
        max_wait_seconds: The longest wait that is chosen here; 10.
        give_up_seconds: How long it may go on that nothing comes, from the first failure on; 120. The last request may
            still be silent for `idle_seconds`. A server that asks to wait for longer is not asked again.
        idle_seconds: How long a request may be silent: without a connection, an answer, or a further byte of it; 30.
        requests_per_host: Requests that may be under way at once to one host or bucket, those of all pipelines of the
            process together; 100.
        chunk_bytes: Bytes of a file to ask for in one request; 2 MiB.
        read_ahead_bytes: Bytes of one file that may be asked for before they are read, at least a chunk; 8 MiB. A
            reader begins with a chunk, and doubles that as it goes on.
        memory_bytes: Bytes that all open files of the process may hold or have asked for, before reading ahead stops;
            256 MiB. Each file may have one chunk in any case, so it is never less than `chunk_bytes` times their
            number.
    """

    max_attempts: int | None = field(default=None, metadata={"least": 1})
    first_wait_seconds: float | int | None = field(default=None, metadata={"least": 0})
    max_wait_seconds: float | int | None = field(default=None, metadata={"least": 0})
    give_up_seconds: float | int | None = field(default=None, metadata={"least": 0})
    idle_seconds: float | int | None = field(default=None, metadata={"least": 0})
    requests_per_host: int | None = field(default=None, metadata={"least": 1})
    chunk_bytes: int | None = field(default=None, metadata={"least": 1})
    read_ahead_bytes: int | None = field(default=None, metadata={"least": 0})
    memory_bytes: int | None = field(default=None, metadata={"least": 0})


@dataclass(repr=False)
class Options(_Group):
    """What `with_options` sets for a whole pipeline; None leaves the choice to the library.

    Every value is checked when it is set: an unknown field is an `AttributeError`, another type a `TypeError`, a
    number out of range a `ValueError`.

    Args:
        deterministic: False lets parallel stages give elements in the order in which they become ready, where the
            stage itself does not say. None means True.
        autotune: What `AUTOTUNE` may choose.
        threading: No effect, like all that follow but the last two; the module's documentation says why.
        experimental_optimization: No effect.
        experimental_distribute: No effect.
        experimental_service: No effect.
        experimental_external_state_policy: No effect.
        experimental_slack: No effect.
        experimental_symbolic_checkpoint: No effect.
        experimental_warm_start: No effect.
        dataset_name: No effect.
        framework_type: No effect.
        switch_interval_seconds: Sets `sys.setswitchinterval` while the pipeline runs, at least 0.000001: a smaller one
            than Python's 0.005 makes a loop answer sooner beside busy pure-Python threads. None leaves it alone.
        storage: How files in remote storage are read.

    >>> options = Options()
    >>> options.deterministic = False
    >>> options.autotune.cpu_budget = 1
    >>> options
    Options(deterministic=False, autotune=AutotuneOptions(cpu_budget=1))
    >>> options == Options(deterministic=False, autotune=AutotuneOptions(cpu_budget=1))
    True

    Source: `tf.data.Options`; `switch_interval_seconds` and `storage` are additions.
    """

    deterministic: bool | None = None
    autotune: AutotuneOptions = field(default_factory=AutotuneOptions)
    threading: ThreadingOptions = field(default_factory=ThreadingOptions)
    experimental_optimization: OptimizationOptions = field(default_factory=OptimizationOptions)
    experimental_distribute: DistributeOptions = field(default_factory=DistributeOptions)
    experimental_service: ServiceOptions = field(default_factory=ServiceOptions)
    experimental_external_state_policy: ExternalStatePolicy | None = None
    experimental_slack: bool | None = None
    experimental_symbolic_checkpoint: bool | None = None
    experimental_warm_start: bool | None = None
    dataset_name: str | None = None
    framework_type: list[str] | None = None
    switch_interval_seconds: float | int | None = field(default=None, metadata={"least": 1e-6})
    storage: StorageOptions = field(default_factory=StorageOptions)

    experimental_deterministic = _older_name("deterministic")
    experimental_threading = _older_name("threading")
