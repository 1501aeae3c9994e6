"""`options`: what `with_options` has set for a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiodata.engine.plan import merged_options
from aiodata.options import Options

if TYPE_CHECKING:
    from aiodata.dataset import Dataset

__all__ = ["options"]


def options(self: Dataset[Any]) -> Options:
    """Give the options of the pipeline, as new ones: changing them does not change the dataset.

    Those of all inputs hold, the later input's over the earlier one's; but `concatenate` keeps only those of its first
    part.

    >>> import aiodata
    >>> aiodata.Dataset.range(3).with_options(aiodata.Options(deterministic=False)).options()
    Options(deterministic=False)

    Source: `tf.data.Dataset.options`, whose result cannot be changed.
    """
    return Options().merge(merged_options(self.plan))
