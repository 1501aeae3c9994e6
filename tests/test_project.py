"""The rules for the project as a whole: its parts, their imports and sizes, and what it asks to be installed."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import aiodata

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "aiodata"
MODULES = sorted(path.relative_to(ROOT).as_posix() for path in PACKAGE.rglob("*.py"))
STAGE_FOLDERS = ("sinks", "sources", "transforms")
LONGEST_MODULE = 300
LONGEST_FUNCTION = 60
CORE = {"aiofiles", "anyio", "numpy"}

each_module = pytest.mark.parametrize("path", MODULES)


def module_name(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def parse(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), path)


def run_python(*arguments: str, cwd: Path | None = None) -> str:
    """Run a fresh interpreter and return what it printed."""
    done = subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    return done.stdout


def is_type_checking(test: ast.expr) -> bool:
    return getattr(test, "id", getattr(test, "attr", "")) == "TYPE_CHECKING"


def imports(tree: ast.AST, module: str, *, package: bool, type_checking: bool) -> Iterator[str]:
    """Yield the full names of the modules that `tree` imports, at any depth; `type_checking` adds the guarded ones."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and is_type_checking(node.test) and not type_checking:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".") if package else module.split(".")[:-1]
            above = above[: len(above) - (node.level - 1)] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            # `from aiodata.sources import csv` may name a module or something inside one: give the longer name.
            yield from (f"{origin}.{alias.name}" for alias in node.names)
        else:
            yield from imports(node, module, package=package, type_checking=type_checking)


def imports_of(path: str, *, type_checking: bool) -> set[str]:
    package = path.endswith("/__init__.py")
    return set(imports(parse(path), module_name(path), package=package, type_checking=type_checking))


def within(name: str, *parents: str) -> bool:
    return any(name == parent or name.startswith(parent + ".") for parent in parents)


# What may be imported


def test_importing_aiodata_loads_no_third_party_package_beyond_the_core() -> None:
    # The core's own requirements (such as idna) come with the core, so they are loaded before the comparison.
    code = """
import sys, numpy, anyio, aiofiles
before = set(sys.modules)
import aiodata
assert set(aiodata.__all__) <= set(dir(aiodata)) and not any("formats" in name for name in sys.modules)
for name in aiodata.__all__:  # some are imported when they are first asked for
    getattr(aiodata, name)
new = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*sorted(new - sys.stdlib_module_names - {"aiodata", "numpy", "anyio", "aiofiles"}))
"""
    assert run_python("-I", "-c", code).split() == []


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'aiodata' has no attribute 'TextLinesDataset'"):
        getattr(aiodata, "TextLinesDataset")  # noqa: B009 - the type checker knows too


def test_importing_aiodata_takes_less_than_150_ms_beyond_numpy() -> None:
    # Processor time, and the best of several: what other programs do on the machine is not the import's cost.
    code = "import time, numpy; start = time.process_time(); import aiodata; print(time.process_time() - start)"
    assert any(float(run_python("-I", "-c", code)) < 0.15 for _ in range(15))


@pytest.mark.parametrize("path", [path for path in MODULES if path.startswith("aiodata/engine/")])
def test_the_engine_knows_no_stage(path: str) -> None:
    leaves = ("columns", "errors", "options", "structure")
    allowed = ("aiodata.engine", "anyio", "numpy", *(f"aiodata.{name}" for name in leaves))
    foreign = {
        name
        for name in imports_of(path, type_checking=True)
        if not within(name, *allowed) and name.partition(".")[0] not in sys.stdlib_module_names
    }
    assert foreign == set()


@each_module
def test_imports_run_one_way(path: str) -> None:
    """Stages stand on formats, storage and structures, these on the engine; none knows what stands on it."""
    layers = {"aiodata." + name: 0 for name in ("engine", "columns", "errors", "options", "structure")}
    layers |= {"aiodata." + name: 2 for name in STAGE_FOLDERS} | {"aiodata.dataset": 3, "aiodata.experimental": 3}

    def layer(name: str) -> int:
        for prefix, rank in layers.items():
            if within(name, prefix):
                return rank
        top = ROOT / "/".join(name.split(".")[:2])
        if name == "aiodata" or (within(name, "aiodata") and not top.is_dir() and not top.with_suffix(".py").is_file()):
            return 3  # `from aiodata import Dataset`
        return 1 if within(name, "aiodata") else 0

    if path in {"aiodata/__init__.py", "aiodata/dataset.py"}:
        return
    own = layer(module_name(path))
    upward = {name for name in imports_of(path, type_checking=False) if layer(name) > own}
    if subclasses_dataset(path) or path.startswith("aiodata/sources/make_"):  # they make chains of other stages
        upward = {name for name in upward if not within(name, "aiodata.dataset")}
    assert upward == set()


def subclasses_dataset(path: str) -> bool:
    """Tell whether this is a reader class such as `TextLineDataset`, which needs `Dataset` at run time."""
    bases = [base for node in parse(path).body if isinstance(node, ast.ClassDef) for base in node.bases]
    return path.startswith("aiodata/sources/") and any(re.match(r"Dataset\b", ast.unparse(base)) for base in bases)


# File = method


def stage_files(*folders: str) -> list[tuple[str, str]]:
    return [
        (folder, module.name)
        for folder in folders
        for module in pkgutil.iter_modules([str(PACKAGE / folder)])
        if not module.name.startswith("_")
    ]


def origin(owner: Any, name: str) -> str | None:
    """Return the module of what is bound as `owner.name`, looking through properties and static methods."""
    found = inspect.getattr_static(owner, name, None)
    found = getattr(found, "fget", getattr(found, "__func__", found))
    return getattr(found, "__module__", None)


@pytest.mark.parametrize(("folder", "name"), stage_files("sinks", "transforms"))
def test_each_transformation_and_sink_is_a_method_of_its_own_name(folder: str, name: str) -> None:
    import aiodata

    assert origin(aiodata.Dataset, name) == f"aiodata.{folder}.{name}"


@pytest.mark.parametrize(("folder", "name"), stage_files("sources"))
def test_each_source_is_bound_under_its_own_name(folder: str, name: str) -> None:
    """File `range.py` is `Dataset.range`, or `aiodata.range`; file `text_line.py` is `aiodata.TextLineDataset`."""
    import aiodata

    reader = name.replace("_", "") + "dataset"
    readers = [public for public in aiodata.__all__ if public.lower() == reader]
    publics = [public for public in (name, *readers) if hasattr(aiodata, public)]  # which imports it
    bound = [origin(aiodata.Dataset, name), *(origin(aiodata, public) for public in publics)]
    assert f"aiodata.{folder}.{name}" in bound


# Shape of the code


@each_module
def test_public_names_are_sorted_and_exist(path: str) -> None:
    module = importlib.import_module(module_name(path))
    names = list(getattr(module, "__all__", []))
    assert names == sorted(set(names))
    assert [name for name in names if not hasattr(module, name)] == []


@each_module
def test_a_module_stays_readable_at_one_sitting(path: str) -> None:
    lines = len((ROOT / path).read_text(encoding="utf-8").splitlines())
    assert lines <= LONGEST_MODULE


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of lines of a function, its docstring not counted."""
    lines = (function.end_lineno or 0) - function.lineno + 1
    if ast.get_docstring(function) is not None:
        docstring = function.body[0]
        lines -= (docstring.end_lineno or 0) - docstring.lineno + 1
    return lines


@each_module
def test_a_function_does_one_thing(path: str) -> None:
    found = {function.name: length(function) for function in functions(parse(path))}
    assert {name: lines for name, lines in found.items() if lines > LONGEST_FUNCTION} == {}


@each_module
def test_public_functions_have_docstrings(path: str) -> None:
    tree = parse(path)
    classes = [node.body for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
    bare = [
        function.name
        for body in (tree.body, *classes)
        for function in body
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        and not function.name.startswith("_")
        and not any(ast.unparse(decorator).endswith("overload") for decorator in function.decorator_list)
        and ast.get_docstring(function) is None
    ]
    assert bare == []


# What is installed


def test_only_the_three_core_packages_are_required() -> None:
    required = [line for line in metadata.requires("aiodata-pipeline") or [] if "extra ==" not in line]
    assert {re.split(r"[^\w.-]", line)[0] for line in required} == CORE
    assert not any(";" in line for line in required)


def test_the_metadata_says_what_the_project_says() -> None:
    about = metadata.metadata("aiodata-pipeline")
    assert about["Requires-Python"] == ">=3.11"
    assert about["License-Expression"] == "Apache-2.0"
    assert (PACKAGE / "py.typed").is_file()


# The leak check of conftest.py

LEAKING = """
import asyncio, os, subprocess, sys, threading, time
from hypothesis import given, strategies as st

kept = []

def test_clean(open_descriptors, live_threads, child_processes):
    threading.Thread(target=time.sleep, args=(0.05,)).start()
    subprocess.run([sys.executable, "-c", ""], check=True)
    assert 0 in open_descriptors() and threading.main_thread() in live_threads() and child_processes() == {}

async def test_clean_async():
    task = asyncio.create_task(asyncio.sleep(0.05))
    await asyncio.to_thread(time.sleep, 0.01)
    async def numbers():
        yield 1
        yield 2
    async for number in numbers():
        break

@given(st.integers())
async def test_clean_property(number):
    await asyncio.sleep(0)

def test_leaks_thread():
    threading.Thread(target=time.sleep, args=(30,), daemon=True).start()

def test_leaks_descriptor():
    kept.append(os.open(os.devnull, os.O_RDONLY))

def test_leaks_child():
    kept.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))

async def test_leaks_task():
    kept.append(asyncio.create_task(asyncio.sleep(30)))

@given(st.just(1))
async def test_leaks_property(number):
    kept.append(asyncio.create_task(asyncio.sleep(30)))

async def test_leaks_generator():
    async def numbers():
        yield 1
        yield 2
    kept.append(numbers())
    await anext(kept[-1])

async def test_leaks_logged():
    async def fail():
        raise KeyError
    task = asyncio.create_task(fail())
    await asyncio.sleep(0.01)

def test_zz_clean_again():
    kept[1].communicate()
"""


def test_a_test_that_leaves_something_behind_fails(tmp_path: Path) -> None:
    conftest = (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8")
    assert "PATIENCE_SECONDS = 5.0" in conftest
    hurried = conftest.replace("PATIENCE_SECONDS = 5.0", "PATIENCE_SECONDS = 0.3")
    (tmp_path / "conftest.py").write_text(hurried, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\naddopts = -p no:anyio -p no:cacheprovider\n")
    (tmp_path / "test_leaking.py").write_text(LEAKING, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rA", "--color=no", "-W", "ignore", str(tmp_path)],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))},
        capture_output=True,
        text=True,
        timeout=50,
    )
    errors = dict(re.findall(r"^ERROR test_leaking\.py::test_(\w+) - (?:Failed: )?(.*)$", done.stdout, re.MULTILINE))
    leaks = {name for name in re.findall(r"^(?:async )?def test_(\w+)", LEAKING, re.MULTILINE) if "leaks" in name}
    assert set(errors) == leaks, done.stdout
    passed = set(re.findall(r"^PASSED test_leaking\.py::test_(\w+)", done.stdout, re.MULTILINE))
    assert "failed" not in done.stdout.splitlines()[-1], done.stdout
    assert {"clean", "clean_async", "clean_property", "zz_clean_again"} <= passed
    for what in ("thread 'Thread-", "descriptor ", "child process ", "<Task pending", "<async_gen", "never retrieved"):
        assert what in done.stdout, done.stdout
