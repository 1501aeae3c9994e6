"""Element specs: what they say, how stages change them, and that every element keeps to them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

from aiodata import Dataset, TextLineDataset
from aiodata.spec import (
    DatasetSpec,
    NoneTensorSpec,
    TensorSpec,
    batched,
    generalized,
    row_spec,
    spec_of,
    spec_text,
    unbatched,
)
from aiodata.structure import flatten, same_structure
from tests.programs import Boom, Pair, failing, nested, to_list
from tests.resume.stages import STAGES, write_files

if TYPE_CHECKING:
    from pathlib import Path

INT = TensorSpec((), np.int64)
TEXT = TensorSpec((), object)


class Labeled(NamedTuple):
    image: Any
    label: Any


# TensorSpec


def test_a_spec_normalizes_what_it_is_given() -> None:
    assert TensorSpec([None, 3], "float32") == TensorSpec((None, 3), np.dtype(np.float32))
    assert TensorSpec(3).shape == (3,)
    assert TensorSpec(()).dtype == np.float32
    assert TensorSpec((), str) == TensorSpec((), bytes) == TensorSpec((), "S4") == TEXT
    assert repr(TensorSpec((2,), int)) == "TensorSpec(shape=(2,), dtype=int64)"
    assert TensorSpec((), int, name="x") == INT
    assert hash(TensorSpec((), int)) == hash(INT)


def test_a_spec_that_is_none_is_refused() -> None:
    with pytest.raises(TypeError, match="not understood"):
        TensorSpec((), "no dtype")


@pytest.mark.parametrize(
    ("spec", "value", "fits"),
    [
        (INT, np.int64(3), True),
        (INT, 3, True),
        (INT, np.int32(3), False),
        (INT, np.zeros(1, np.int64), False),
        (TensorSpec((None, 3), np.float32), np.zeros((7, 3), np.float32), True),
        (TensorSpec((None, 3), np.float32), np.zeros((7, 4), np.float32), False),
        (TensorSpec(None, np.float32), np.zeros((7, 4), np.float32), True),
        (TEXT, b"x", True),
        (TEXT, np.zeros(3), True),
        (TensorSpec((2,), object), np.zeros(3), False),
    ],
)
def test_compatibility(spec: TensorSpec, value: Any, fits: bool) -> None:
    assert spec.is_compatible_with(value) is fits


def test_the_spec_of_an_element_has_its_structure() -> None:
    element = {"a": (np.float32(1), None), "b": Pair(b"text", np.zeros((2, 3), np.int8)), "c": 1.5}
    assert spec_of(element) == {
        "a": (TensorSpec((), np.float32), NoneTensorSpec()),
        "b": Pair(TEXT, TensorSpec((2, 3), np.int8)),
        "c": TensorSpec((), np.float64),
    }
    assert spec_of(Dataset.range(3)) == DatasetSpec(INT)


def test_rows_of_columns() -> None:
    assert row_spec((np.zeros((3, 2), np.int8), None)) == (TensorSpec((2,), np.int8), NoneTensorSpec())


def test_batching_adds_an_axis_and_unbatching_takes_it_away() -> None:
    spec = {"x": TensorSpec((3,), np.int8), "n": NoneTensorSpec(), "any": TensorSpec(None, int)}
    wide = {"x": TensorSpec((5, 3), np.int8), "n": NoneTensorSpec(), "any": TensorSpec(None, int)}
    assert batched(spec, 5) == wide
    assert batched(spec, None)["x"] == TensorSpec((None, 3), np.int8)
    assert batched(spec, None, known=False)["x"] == TensorSpec((None, None), np.int8)
    assert batched(None, 5) is None
    assert batched((INT, DatasetSpec(INT)), 5) is None
    assert unbatched(wide) == (spec, 5)
    assert unbatched(batched(INT, None)) == (INT, None)
    assert unbatched(None) == (None, None)


def test_unbatching_what_has_no_rows_is_refused() -> None:
    with pytest.raises(ValueError, match=r"single value.*\(int64\[2\], int64\)"):
        unbatched((TensorSpec((2,), int), INT))
    with pytest.raises(ValueError, match=r"differ in their number of rows: \(int64\[2\], int64\[3\]\)"):
        unbatched((TensorSpec((2,), int), TensorSpec((3,), int)))


def test_the_more_general_of_two_specs() -> None:
    assert generalized({"a": TensorSpec((2, 3), int)}, {"a": TensorSpec((2, 4), int)}) == {
        "a": TensorSpec((2, None), int)
    }
    assert generalized(TensorSpec((2,), int), INT) == TensorSpec(None, int)
    assert generalized(None, INT) is None
    assert generalized(Pair(INT, INT), Pair(INT, INT)) == Pair(INT, INT)
    assert generalized(DatasetSpec(TensorSpec((2,), int)), DatasetSpec(INT)) == DatasetSpec(TensorSpec(None, int))
    with pytest.raises(TypeError, match=r"component \['a'\] is int64 in one and float64 in the other"):
        generalized({"a": INT}, {"a": TensorSpec((), float)})
    with pytest.raises(TypeError, match="tuple of 1 in one and a tuple of 2"):
        generalized((INT,), (INT, INT))


def test_specs_in_short() -> None:
    spec = {"x": (INT,), "y": Pair(TensorSpec((None, 3), np.float32), TensorSpec(None, object)), "n": NoneTensorSpec()}
    assert spec_text(spec) == "{'x': (int64,), 'y': Pair(x=float32[None, 3], y=object[...]), 'n': None}"
    assert spec_text(None) == "?"
    assert spec_text(DatasetSpec(None)) == "Dataset[?]"


# element_spec


def test_what_is_known_without_running() -> None:
    numbers = Dataset.range(10)
    assert numbers.element_spec == INT
    assert Dataset.range(3, output_type=np.float32).element_spec == TensorSpec((), np.float32)
    assert Dataset.from_tensors(([1, 2], b"x", None, 5)).element_spec == (
        TensorSpec((2,), int),
        TEXT,
        NoneTensorSpec(),
        INT,
    )
    assert Dataset.from_tensor_slices({"x": np.zeros((4, 2), np.int8)}).element_spec == {"x": TensorSpec((2,), np.int8)}
    assert Dataset.list_files("x/*").element_spec == TEXT
    assert TextLineDataset(["x"]).element_spec == TextLineDataset("x").batch(2).unbatch().element_spec == TEXT
    assert numbers.batch(3).element_spec == TensorSpec((None,), int)
    assert numbers.batch(3, drop_remainder=True).element_spec == TensorSpec((3,), int)
    assert numbers.batch(3, drop_remainder=True, num_parallel_calls=2).element_spec == TensorSpec((3,), int)
    assert numbers.batch(3).unbatch().shuffle(3).take(2).skip(1).repeat().cache().prefetch(2).element_spec == INT
    assert numbers.enumerate().element_spec == (INT, INT)
    assert numbers.filter(lambda x: True).shard(2, 0).element_spec == INT
    assert Dataset.zip({"a": numbers, "b": (numbers.batch(2),)}).element_spec == {
        "a": INT,
        "b": (TensorSpec((None,), int),),
    }


def test_what_a_function_gives_is_not_known() -> None:
    assert Dataset.range(3).map(float).element_spec is None
    assert Dataset.zip(Dataset.range(3), Dataset.range(3).map(float)).batch(2).element_spec is None


def test_concatenating_checks_dtypes_and_structures_and_joins_shapes() -> None:
    three, four = (Dataset.from_tensor_slices(np.zeros((2, n))) for n in (3, 4))
    assert three.concatenate(four).element_spec == TensorSpec((None,), np.float64)
    assert three.concatenate(four.map(abs)).element_spec is None
    with pytest.raises(TypeError, match=r"concatenate: .* int64 in one and float64\[3\] in the other"):
        Dataset.range(3).concatenate(three)
    with pytest.raises(TypeError, match="concatenate"):
        Dataset.range(3).concatenate(Dataset.zip((Dataset.range(3),) * 2))


def test_unbatch_refuses_what_is_known_to_have_no_rows() -> None:
    with pytest.raises(ValueError, match="single value"):
        Dataset.range(3).unbatch()
    with pytest.raises(ValueError, match="differ in their number of rows"):
        Dataset.from_tensors((np.zeros(2), np.zeros(3))).unbatch()


def test_len_after_batch_and_unbatch() -> None:
    assert len(Dataset.range(10).batch(5, drop_remainder=True).unbatch()) == 10
    assert len(Dataset.from_tensor_slices(np.zeros((4, 3))).unbatch()) == 12
    assert Dataset.range(10).batch(5).unbatch().cardinality() == -2
    assert len(Dataset.range(11).batch(5, drop_remainder=True, num_parallel_calls=2).unbatch()) == 10
    assert len(Dataset.range(11).map(float).batch(5, drop_remainder=True).unbatch()) == 10
    assert len(Dataset.range(11).map(float).batch(5, drop_remainder=True, num_parallel_calls=2).unbatch()) == 10


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_files(tmp_path_factory.mktemp("files"))


@pytest.mark.parametrize("name", STAGES)
def test_every_element_keeps_to_its_datasets_spec(name: str, folder: Path) -> None:
    ds = STAGES[name](folder)
    spec = ds.element_spec
    if spec is None:
        return
    with ds.iterate() as iterator:
        for _ in range(200):
            try:
                element = next(iterator)
            except StopIteration:
                return
            except Exception:
                continue
            assert_covers(spec, element)


def assert_covers(spec: Any, element: Any) -> None:
    assert same_structure(*(map_none(part) for part in (spec, element))) is None
    for expected, leaf in zip(flatten(spec), flatten(element), strict=True):
        if isinstance(expected, TensorSpec):
            assert expected.is_compatible_with(leaf), (spec, element)
        elif isinstance(expected, NoneTensorSpec):
            assert leaf is None
        else:
            assert isinstance(leaf, Dataset)
            for inner in to_list(leaf) if expected.element_spec is not None else []:
                assert_covers(expected.element_spec, inner)


def map_none(x: Any) -> Any:
    """Put a mark in place of every leaf, so that only the structures are compared."""
    if isinstance(x, dict):
        return {key: map_none(part) for key, part in x.items()}
    if isinstance(x, tuple):
        parts = [map_none(part) for part in x]
        kind: Any = type(x)
        return kind._make(parts) if hasattr(x, "_fields") else tuple(parts)
    return 0


# peek


def test_peek_gives_the_first_element_and_learns_its_spec() -> None:
    ds = Dataset.range(3).map(lambda x: {"x": np.full(2, x)})
    assert ds.element_spec is None
    element = asyncio.run(ds.peek())
    assert element["x"].tolist() == [0, 0]
    assert ds.element_spec == {"x": TensorSpec((2,), int)}
    assert ds.batch(2).element_spec == {"x": TensorSpec((None, 2), int)}
    assert [x["x"][0] for x in to_list(ds)] == [0, 1, 2]


def test_what_was_seen_settles_nothing() -> None:
    ds = Dataset.range(1, 5).map(lambda x: np.arange(x))
    assert ds.peek_sync().shape == (1,)
    assert ds.unbatch().cardinality() == -2
    assert ds.concatenate(Dataset.range(2).batch(2)).element_spec is None
    assert len(to_list(ds.unbatch())) == 10


def test_peek_keeps_a_spec_that_was_known() -> None:
    ds = Dataset.range(3).batch(2)
    assert ds.peek_sync().tolist() == [0, 1]
    assert ds.element_spec == TensorSpec((None,), int)


def test_peek_draws_no_seeds() -> None:
    looked, other = (Dataset.range(9).shuffle(9, seed=4) for _ in range(2))
    first = looked.peek_sync()
    assert asyncio.run(looked.peek()) == first
    passes = [to_list(looked), to_list(looked)]
    assert passes == [to_list(other), to_list(other)]
    assert passes[0][0] == first


def test_peek_at_nothing_and_at_an_error() -> None:
    with pytest.raises(ValueError, match="peek: the dataset is empty"):
        Dataset.range(0).peek_sync()
    with pytest.raises(ValueError, match="peek: the dataset is empty"):
        asyncio.run(Dataset.range(0).peek())
    with pytest.raises(Boom):
        failing(Dataset.range(3), 0).peek_sync()


def test_peek_awaits_coroutines_on_the_running_loop() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()

        async def where(x: Any) -> Any:
            assert asyncio.get_running_loop() is loop
            return Labeled(x, 1)

        ds = Dataset.range(3).map(where)
        assert await ds.peek() == Labeled(0, 1)
        assert ds.element_spec == Labeled(INT, INT)

    asyncio.run(main())


# repr


def test_repr_shows_a_line_a_stage_with_specs() -> None:
    ds = Dataset.range(10, name="numbers").map(float).batch(4)
    assert repr(ds) == "<Dataset\nrange(0, 10, 1) 'numbers': int64\nmap(float): ?\nbatch(4): ?>"
    both = Dataset.zip(nested(2).take(1), Dataset.range(2)).prefetch(1)
    assert repr(both).splitlines() == [
        "<Dataset",
        "- from_tensor_slices(['id'] int32[2], ['parts'][0] float32[2, 2], ['parts'][1].x bool[2], "
        "['parts'][1].y int64[2]): {'id': int32, 'parts': (float32[2], Pair(x=bool, y=int64))}",
        "  take(1): {'id': int32, 'parts': (float32[2], Pair(x=bool, y=int64))}",
        "- range(0, 2, 1): int64",
        "zip(): ({'id': int32, 'parts': (float32[2], Pair(x=bool, y=int64))}, int64)",
        "prefetch(1): ({'id': int32, 'parts': (float32[2], Pair(x=bool, y=int64))}, int64)>",
    ]


def test_repr_of_many_inputs_is_short() -> None:
    ds = Dataset.range(1)
    for _ in range(999):
        ds = ds.concatenate(Dataset.range(1))
    lines = repr(ds).splitlines()
    assert len(lines) == 11
    assert lines[-2:] == ["- ... 992 more", "concatenate(): int64>"]


def test_names_do_not_tell_pipelines_apart() -> None:
    named, plain = Dataset.range(5, name="a").batch(2, name="b"), Dataset.range(5).batch(2)
    with plain.iterate() as iterator:
        next(iterator)
        state = iterator.state_dict()
    with named.iterate(state) as iterator:
        assert [x.tolist() for x in iterator] == [[2, 3], [4]]
