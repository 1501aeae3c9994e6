"""`from_generator` with a signature: values are converted as tf.data does, and what does not fit is an error there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pytest

from aiodata import Dataset, TensorSpec
from aiodata.errors import StructureError
from aiodata.spec import DatasetSpec, NoneTensorSpec
from tests.programs import Boom, Pair, arr, assert_gives, assert_outcomes, assert_same, objects, outcomes, to_list


def of(values: list[Any], types: Any, shapes: Any = None) -> Dataset[Any]:
    return Dataset.from_generator(lambda: iter(values), output_types=types, output_shapes=shapes)


def signed(values: list[Any], signature: Any) -> Dataset[Any]:
    return Dataset.from_generator(lambda: iter(values), output_signature=signature)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (1, "int8", np.int8(1)),
        ([1], "int8", arr([1], np.int8)),
        ((1, 2), "int8", arr([1, 2], np.int8)),
        (1, "float32", np.float32(1)),
        (1, float, np.float64(1)),
        (1.5, "float16", np.float16(1.5)),
        (1.5, "complex64", np.complex64(1.5)),
        (True, "int32", np.int32(1)),
        (True, bool, np.True_),
        ([], "int32", arr([], np.int32)),
        (1e300, "float32", np.float32(np.inf)),
        (arr([1, 2]), "float32", arr([1, 2], np.float32)),
        (arr([1, 2]), "uint8", arr([1, 2], np.uint8)),
        (arr([[1.5]], float), "float32", arr([[1.5]], np.float32)),
        (np.array(3), "int16", np.int16(3)),
        (np.float64(1.5), "float32", np.float32(1.5)),
        (2**64 - 1, "uint64", np.uint64(2**64 - 1)),
        (np.datetime64("2020-01-01", "D"), "M8[ns]", np.datetime64("2020-01-01", "ns")),
        ("a", object, "a"),
        (b"a\0", str, b"a\0"),
        (["a", "bb"], object, objects("a", "bb")),
        (arr(["a", "b"], "U1"), bytes, objects("a", "b")),
        ([], object, objects()),
        (objects("a", b"b"), object, objects("a", b"b")),
    ],
    ids=repr,
)
def test_values_are_converted_to_the_declared_dtype(value: Any, dtype: Any, expected: Any) -> None:
    assert_gives(of([value, value], dtype), [expected, expected])
    assert_gives(signed([(value,)], (TensorSpec(None, dtype),)), [(expected,)])


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        *[(1.5, "int32"), (2.0, "int64"), (np.float64(1.5), "int32"), (arr([1.5], float), "int32")],
        *[(300, "int8"), (-1, "uint8"), (arr([1, 300]), "int8"), (2**70, "int64"), (2**63, "int64")],
        *[(5, bool), (0.5, bool), (arr([1, 2]), bool), (1j, "float32"), ("5", "int32"), ("ERROR", "int64")],
        *[
            (1.5, object),
            (5, object),
            (np.int8(5), object),
            (arr([1.5], float), object),
            (["a", 1], object),
            ([1], object),
        ],
        *[
            (None, "int32"),
            (None, object),
            ([[1], [2, 3]], "int32"),
            ({"a": 1}, "int32"),
            (np.datetime64(1, "s"), "int64"),
        ],
    ],
    ids=repr,
)
def test_a_wrong_type_is_an_error_at_that_element_only(value: Any, dtype: Any) -> None:
    good = "x" if dtype is object else True
    ds = of([good, value, good], dtype)
    got = outcomes(ds)
    assert_same(got[1], StructureError)
    assert_same([got[0], got[2]], to_list(of([good, good], dtype)))
    assert "where the signature says" in str(got[1])
    assert got[1].__notes__ == ["in from_generator(<lambda>), element 1"]


def test_a_wrong_shape_is_an_error_at_that_element_only() -> None:
    values = [[1, 2, 3], [1], [[1]], 5, [4, 5, 6]]
    three, six = arr([1, 2, 3]), arr([4, 5, 6])
    for shape in ([3], (3,), 3):
        assert_outcomes(of(values, "int64", shape), [three, StructureError, StructureError, StructureError, six])
    assert_outcomes(of(values, "int64", [None]), [three, arr([1]), StructureError, StructureError, six])
    assert_gives(of(values, "int64"), [three, arr([1]), arr([[1]]), np.int64(5), six])
    assert "(its shape is (1,))" in str(outcomes(of(values, "int64", [3]))[1])


@pytest.mark.parametrize("value", [[1, 2], (1, 2, 3), 1, {"a": 1, "b": 2}, arr([1, 2]), None, ((1, 2),)], ids=repr)
def test_a_wrong_structure_is_an_error_at_that_element_only(value: Any) -> None:
    ds = of([(0, 0), value, (9, 9)], (np.int64, np.int64))
    assert_outcomes(ds, [(np.int64(0), np.int64(0)), StructureError, (np.int64(9), np.int64(9))])


def test_named_tuples_and_dicts() -> None:
    types = (np.int64, np.int64)
    pair = Pair(np.int64(1), np.int64(2))
    assert_gives(of([Pair(1, 2)], types), [tuple(pair)])
    assert_gives(of([Pair(1, 2)], Pair(*types)), [pair])
    assert_outcomes(of([(1, 2), Pair(1, 2)], Pair(*types)), [StructureError, pair])
    ds = of([{"a": 1, "b": 2}, {"b": 1, "a": 5}, {"a": 1}, {"a": 1, "b": 2, "c": 3}], {"b": np.int64, "a": np.int32})
    expected = [{"b": np.int64(2), "a": np.int32(1)}, {"b": np.int64(1), "a": np.int32(5)}]
    assert_outcomes(ds, [*expected, StructureError, StructureError])
    assert list(to_list(ds.take(1))[0]) == ["b", "a"]


def test_errors_name_the_component() -> None:
    signature = {"x": (TensorSpec((), np.int8), Pair(TensorSpec((2,), float), TensorSpec((), object)))}
    value = {"x": (1, Pair([1, 2], "t"))}
    wrong = [{"x": ("1", value["x"][1])}, {"x": (1, Pair([1], "t"))}, {"x": (1, Pair([1, 2], 3))}, {"x": (1, (1, 2))}]
    got = outcomes(signed([value, *wrong], signature))
    assert_same(got[0], {"x": (np.int8(1), Pair(arr([1, 2], float), "t"))})
    places = ["component ['x'][0]", "component ['x'][1].x", "component ['x'][1].y", "component ['x'][1]"]
    for error, place in zip(got[1:], places, strict=True):
        assert str(error).startswith(f"{place} is ")


def test_none_and_datasets_may_be_declared() -> None:
    assert_outcomes(
        signed([(1, None), (1, 2)], (TensorSpec((), np.int8), NoneTensorSpec())), [(np.int8(1), None), StructureError]
    )
    inner = DatasetSpec(TensorSpec((), np.int64))
    assert_gives(signed([Dataset.range(2)], inner).flat_map(lambda ds: ds), [np.int64(0), np.int64(1)])
    assert_outcomes(signed([5], inner), [StructureError])


def test_an_exception_of_the_generator_still_ends_it() -> None:
    def broken() -> Iterator[Any]:
        yield 1
        yield "x"
        raise Boom(2)

    assert_outcomes(Dataset.from_generator(broken, output_types=np.int8), [np.int8(1), StructureError, Boom(2)])


async def count_later(n: int) -> AsyncIterator[Any]:
    for number in range(n):
        yield number if number != 1 else "x"


def test_async_generators_and_args() -> None:
    ds = Dataset.from_generator(count_later, output_types=np.int8, args=[3])
    assert_outcomes(ds, [np.int8(0), StructureError, np.int8(2)])
    assert_gives(Dataset.from_generator(range, np.int8, (), (2,), None, "mine"), [np.int8(0), np.int8(1)])
    assert_gives(Dataset.from_generator(lambda: [1], args=None), [1])
    assert_gives(Dataset.from_generator(lambda *x: x, args=(4, 5)), [4, 5])


def test_the_spec_is_known() -> None:
    signature = (TensorSpec((), np.int8), {"x": TensorSpec((None, 2), object)})
    assert signed([], signature).element_spec == signature
    ds = of([], (np.int8, {"x": "float32"}), ((), {"x": [None, 2]}))
    assert ds.element_spec == (TensorSpec((), np.int8), {"x": TensorSpec((None, 2), np.float32)})
    assert of([], np.int8).element_spec == TensorSpec(None, np.int8)
    assert Dataset.from_generator(lambda: [1]).element_spec is None
    assert "from_generator(<lambda>, (int8, {'x': float32[None, 2]}))" in repr(ds)
    assert ds.cardinality() == -2


@pytest.mark.parametrize(
    "arguments",
    [
        {"output_types": np.int8, "output_signature": TensorSpec((), np.int8)},
        {"output_shapes": (), "output_signature": TensorSpec((), np.int8)},
        {"output_shapes": ()},
        {"output_signature": np.int8},
        {"output_signature": [TensorSpec((), np.int8)]},
        {"output_types": [np.int8, np.int8]},
        {"output_types": (np.int8, None)},
        {"output_types": "no dtype"},
        {"output_types": np.int8, "output_shapes": "ab"},
        {"output_types": np.int8, "output_shapes": [1.5]},
    ],
    ids=repr,
)
def test_what_is_no_signature_is_refused_at_the_call(arguments: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="from_generator: "):
        Dataset.from_generator(lambda: [1], **arguments)


@pytest.mark.parametrize(
    ("types", "shapes"),
    [((np.int8, np.int8), ([None],)), ({"a": np.int8}, {"b": ()}), ({"a": np.int8}, ()), ((np.int8,), [1])],
)
def test_shapes_of_another_structure_are_refused_at_the_call(types: Any, shapes: Any) -> None:
    with pytest.raises(ValueError, match=r"output_shapes .* has not the structure of output_types"):
        Dataset.from_generator(lambda: [1], types, shapes)


async def test_an_async_generator_in_a_flat_map_is_not_drained() -> None:
    made: list[int] = []

    async def arrays() -> AsyncIterator[Any]:
        for number in range(1000):
            made.append(number)
            yield np.full(1 << 17, number)  # 1 MB

    ds = Dataset.range(3).flat_map(lambda _: Dataset.from_generator(arrays, output_types=np.int64))
    async with ds.take(1).iterate() as iterator:
        assert [int(array[0]) async for array in iterator] == [0]
    assert len(made) <= 2
    assert [int(array[0]) for array in to_list(ds.prefetch(2).take(1))] == [0]
    assert len(made) <= 8
