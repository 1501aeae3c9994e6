"""What the documents show is true: their programs run and print what stands below them, their links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import aiodata

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = ["README.md", "docs/design.md", "examples/data/alice/README.md", "examples/data/flights/README.md"]
MARK = "-- next block --"


def programs(text: str) -> list[tuple[str, str]]:
    """Pair each Python block with the text block that follows it at once, or with "" if none does."""
    found = re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", text, re.MULTILINE | re.DOTALL)
    assert len(found) == text.count("```python")
    assert sum(printed != "" for _, printed in found) == text.count("```text")
    return found


def test_the_readme_programs_print_what_stands_below_them(tmp_path: Path) -> None:
    blocks = programs(README)
    assert len(blocks) == 6
    script = tmp_path / "readme.py"
    script.write_text("\n".join(f"{code}\nprint({MARK!r})" for code, _ in blocks), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", script.name], cwd=tmp_path, capture_output=True, text=True, timeout=50
    )
    assert done.stderr == ""
    assert done.returncode == 0
    printed = done.stdout.split(f"{MARK}\n")
    assert printed == [*(expected for _, expected in blocks), ""]


def test_the_readme_stage_resumes_at_every_element() -> None:
    (code,) = (code for code, _ in programs(README) if "def changes" in code)
    namespace: dict[str, object] = {"Dataset": aiodata.Dataset}
    exec(code, namespace)
    squares = namespace["squares"]
    assert isinstance(squares, aiodata.Dataset)
    whole = list(squares)
    assert whole == [0, 1, 3, 5, 7, 9, 11, 13]
    for taken in range(len(whole) + 1):
        with squares.iterate() as iterator:
            before = [next(iterator) for _ in range(taken)]
            assert before + list(squares.iterate(iterator.state_dict())) == whole


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_to_files_and_headings(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if not link.startswith("https://")]
    for link in links:
        path, _, heading = link.partition("#")
        target = (ROOT / document).parent / path if path else ROOT / document
        assert target.exists(), link
        if heading:
            headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert heading in {re.sub(r"[^\w\- ]", "", found.lower()).replace(" ", "-") for found in headings}, link


def test_the_folders_and_methods_that_the_readme_names_exist() -> None:
    folders = re.findall(r"^\| `([\w./]+)` \|", README, re.MULTILINE)
    assert len(folders) > 8
    assert [name for name in folders if not (ROOT / name).exists()] == []
    (listed,) = re.findall(r"^- There are (.*?)\.$", README, re.MULTILINE | re.DOTALL)
    methods = re.findall(r"`(\w+)`", listed)
    assert len(methods) > 20
    assert [name for name in methods if not hasattr(aiodata.Dataset, name) and not hasattr(aiodata, name)] == []
