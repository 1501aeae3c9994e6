"""`TarDataset`: the samples, or the files, in tar archives."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.dataset import Dataset
from aiodata.engine.plan import Plan
from aiodata.formats.compression import check_compression_type
from aiodata.formats.tar import TarSplitter
from aiodata.formats.tar_samples import SampleSplitter
from aiodata.sources._files import check_buffer_size, path_of, read_files
from aiodata.sources._records import read_records
from aiodata.spec import TensorSpec
from aiodata.storage.masking import masked

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiodata.sources._files import Filenames

__all__ = ["TarDataset"]


class TarDataset(Dataset[Any]):
    r"""The samples in tar archives, as WebDataset lays them out, or the files in them one by one.

    Files that stand together and share a key are one sample, `{"__key__": "train/0001", "jpg": b"...", "cls": b"3"}`.
    The key is the name up to the first dot of its last part, and what follows that dot, in lower case, is the
    extension. Hidden files (`.name`, and macOS's `._name`), files without a dot and folders are left out.

    Archives are read from front to back by the run's own threads, one after the other unless `num_parallel_reads` is
    given; nothing is unpacked to disk. Ustar, pax and GNU archives are read, also several joined in one file. Tar has
    checksums for its headers only: a flipped byte in a content shows nowhere. Memory: a few times `buffer_size`, or
    the largest sample, for each open archive. A state holds the archive and the byte where the next sample begins; in
    a compressed one restoring decompresses from its start.

    Files with the same key that do not stand together are two samples, as in WebDataset. To tell would take the keys
    of all samples so far, in memory and in every state, and a dataset must give the same elements after a restore. So
    write archives sorted (`tar --sort=name`), and if you do not trust them, ask each sample for what it must have: a
    `map` that takes `sample["cls"]` fails where that is missing, and `filter` leaves such samples out.

    These take the place of a sample, and the archive goes on behind them: a link, a device or a pipe in it, and an
    extension that it has twice. Behind a damaged header nothing of that archive can be read, and the next archive
    follows. The error replaces the sample before the damage too, for it may have lost a part.

    Args:
        filenames: A path (str, bytes or path object), a list of them, or a dataset of them.
        compression_type: "" or None, "GZIP" (also several members joined) or "ZLIB".
        buffer_size: Bytes to read at a time; None means 256 KiB at first, then 1 MiB.
        num_parallel_reads: Archives to read at once, their samples taken in turn; None reads one after the other.
        name: A name for the stage, shown in `repr`.
        group: Whether files are grouped into samples. If not, each is an element `(name, content)`, hidden ones too.
        select: The extensions to give, such as `["jpg", "cls"]`, in any case; the content of other files is dropped
            without being copied, and samples that have none of them are left out. None gives all.

    Raises:
        TypeError: `filenames` or `select` is none of these.
        ValueError: An argument is out of its range.
        OSError: While iterating: an archive cannot be read; the next one follows.
        CorruptRecordError: While iterating: an archive is damaged, is cut short (also where only its end of zeros
            misses), has sparse files, or is compressed in another way; it names archive, sample and byte. In an
            archive that is not compressed, a file longer than what is left of it is found before it is read.

    >>> import aiodata, io, os, tarfile, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.tar")
    ...     with tarfile.open(path, "w") as archive:
    ...         for name, content in [("0.txt", b"zero"), ("0.cls", b"7"), ("1.txt", b"one")]:
    ...             info = tarfile.TarInfo(name)
    ...             info.size = len(content)
    ...             archive.addfile(info, io.BytesIO(content))
    ...     list(aiodata.TarDataset(path))
    [{'__key__': '0', 'txt': b'zero', 'cls': b'7'}, {'__key__': '1', 'txt': b'one'}]

    Source: `webdataset.WebDataset`; an addition to tf.data.
    """

    __slots__ = ()

    def __init__(
        self,
        filenames: Filenames,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        *,
        group: bool = True,
        select: Iterable[str] | None = None,
    ) -> None:
        compression = check_compression_type(compression_type, "TarDataset")
        size = check_buffer_size(buffer_size, "TarDataset")
        chosen = None if select is None else _extensions(select)
        read = partial(_records_of, compression=compression, chunk_bytes=size, group=bool(group), select=chosen)
        spec = _sample_spec if group else _file_spec
        super().__init__(read_files(Dataset, filenames, read, num_parallel_reads, "TarDataset", spec, name))


def _extensions(select: Iterable[str]) -> frozenset[str]:
    found = [select] if isinstance(select, (str, bytes)) else list(select)
    if isinstance(select, (str, bytes)) or not all(isinstance(extension, str) for extension in found):
        raise TypeError(f"TarDataset: select must be a list of extensions, such as ['jpg'], not {select!r}")
    if not found or any(extension.startswith(".") or "/" in extension for extension in found):
        raise ValueError(f"TarDataset: select must have extensions without their first dot, not {found!r}")
    return frozenset(extension.lower() for extension in found)


def _sample_spec(*names: Any) -> None:
    """Give no spec: samples need not have the same files."""


def _file_spec(*names: Any) -> tuple[TensorSpec, TensorSpec]:
    return TensorSpec((), object), TensorSpec((), object)


def _records_of(
    filename: Any, *, compression: str, chunk_bytes: int | None, group: bool, select: frozenset[str] | None
) -> Dataset[Any]:
    path = path_of(filename)
    splitter = partial(SampleSplitter if group else TarSplitter, select=select)
    stage = partial(
        read_records,
        path=path,
        compression=compression,
        chunk_bytes=chunk_bytes,
        splitter=splitter,
        is_sized=True,
        stage="tar",
        unit="sample" if group else "file",
        first=0,
    )
    details = [
        masked(path),
        compression,
        "" if group else "group=False",
        "" if select is None else f"select={sorted(select)}",
    ]
    spec = _sample_spec if group else _file_spec
    return Dataset(Plan("tar", stage, detail=", ".join(filter(None, details)), spec=spec))
