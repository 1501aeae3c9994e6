"""Small Parquet and Arrow files, also such as cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

if TYPE_CHECKING:
    from pathlib import Path


def write_parquet(path: Path, columns: Any, group: int = 1 << 20, **options: Any) -> Path:
    """Write a table or a dict of columns, with a checksum for every page."""
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    parquet.write_table(table, path, row_group_size=group, write_page_checksum=True, **options)
    return path


def write_arrow(
    path: Path, columns: Any, batch: int = 1 << 20, *, stream: bool = False, codec: str | None = None
) -> Path:
    """Write a table or a dict of columns in Arrow's file or stream format."""
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(path, table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(table, max_chunksize=batch)
    return path


def damage(path: Path, needle: bytes) -> Path:
    """Flip a bit in the first place where the content is `needle`."""
    content = bytearray(path.read_bytes())
    content[content.index(needle)] ^= 1
    path.write_bytes(content)
    return path


def write_tables(folder: Path) -> None:
    """Write the files that `tests.resume.stages` reads."""
    numbers = list(range(20))
    plain = pa.table(
        {
            "n": pa.array(numbers, pa.int16()),
            "x": pa.array([[n / 2, -n] for n in numbers], pa.list_(pa.float32(), 2)),
            "s": [{"text": f"text {n % 3}", "odd": n % 2 == 1} for n in numbers],
        }
    )
    loose = {"n": [1, None, 3, 4, None], "list": [[1], [], None, [2, 3], [4]], "name": ["a", None, "c", "d", "e"]}
    write_parquet(folder / "plain.parquet", plain, 6)
    write_parquet(folder / "few.parquet", plain.slice(3, 4), 3)
    write_parquet(folder / "none.parquet", plain.slice(0, 0))
    write_parquet(folder / "loose.parquet", loose, 4)
    marked = pa.table({"n": numbers, "text": [f"number {n:02}" for n in numbers]})
    damage(write_parquet(folder / "damaged.parquet", marked, 4, use_dictionary=False, compression="none"), b"number 09")
    write_arrow(folder / "plain.arrow", plain, 6)
    write_arrow(folder / "loose.arrow", loose, 4, codec="lz4")
    write_arrow(folder / "plain.arrows", plain, 6, stream=True)
    content = write_arrow(folder / "cut.arrows", marked, 4, stream=True).read_bytes()
    (folder / "cut.arrows").write_bytes(content[: len(content) * 2 // 3])
