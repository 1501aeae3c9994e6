"""`Optional`: an element, or that there is none."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from aiodata.conversion import as_element
from aiodata.spec import spec_of

__all__ = ["Optional"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Optional(Generic[T_co]):
    """An element, or that there is none; made by `from_value`, `empty` and `DatasetIterator.get_next_as_optional`.

    >>> import aiodata
    >>> iterator = iter(aiodata.Dataset.range(1))
    >>> first, second = iterator.get_next_as_optional(), iterator.get_next_as_optional()
    >>> first.has_value(), first.get_value(), second.has_value()
    (True, np.int64(0), False)

    Source: `tf.experimental.Optional`.
    """

    __slots__ = ("_element_spec", "_held")

    def __init__(self, held: tuple[()] | tuple[T_co], element_spec: Any) -> None:
        self._held = held
        self._element_spec = element_spec

    @staticmethod
    def empty(element_spec: Any = None) -> Optional[Any]:
        """Give one that has no value.

        Args:
            element_spec: The spec that a value would have; None if it is not known.
        """
        return Optional((), element_spec)

    @staticmethod
    def from_value(value: T) -> Optional[T]:
        """Give one that has a value.

        Args:
            value: An element. It is taken as `Dataset.from_tensors` does: arrays are copied, a list becomes an array.

        Raises:
            TypeError: The value holds a set, which has no order.
            ValueError: It holds a list whose rows have different lengths.

        >>> Optional.from_value([1, 2])
        Optional.from_value(array([1, 2]))
        """
        element = as_element(value)
        return Optional((element,), spec_of(element))

    def has_value(self, name: str | None = None) -> bool:
        """Tell whether there is a value.

        Args:
            name: Accepted as in tf.data; there is no stage that it could name.
        """
        return bool(self._held)

    def get_value(self, name: str | None = None) -> T_co:
        """Give the value.

        Args:
            name: Accepted as in tf.data; there is no stage that it could name.

        Raises:
            ValueError: There is none.
        """
        if not self._held:
            raise ValueError("get_value: the optional is empty; ask has_value() first")
        return self._held[0]

    @property
    def element_spec(self) -> Any:
        """The spec of the value, also where there is none; None if it is not known."""
        return self._element_spec

    def __repr__(self) -> str:
        """Show the value, or the spec of the one that is not there."""
        if self._held:
            return f"Optional.from_value({self._held[0]!r})"
        return f"Optional.empty({'' if self._element_spec is None else repr(self._element_spec)})"
