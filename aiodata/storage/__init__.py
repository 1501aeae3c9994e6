"""Where bytes come from, and where they go to.

Local files need nothing of this. Remote ones are chosen by the scheme of their URL: `HttpStorage` for `http` and
`https`, `ObjectStorage` for `s3`, `gs` and `az`, `FsspecStorage` for every other scheme that fsspec knows. `register`
makes another class of `Storage` known, or one of these with settings of its own.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from aiodata.storage.masking import masked
from aiodata.storage.protocol import Answer, FileInfo, Storage, Upload
from aiodata.storage.schemes import register
from aiodata.storage.transfer.healing import Trouble

if TYPE_CHECKING:
    from aiodata.storage.kinds.bridge import FsspecStorage
    from aiodata.storage.kinds.http import HttpStorage
    from aiodata.storage.kinds.objects import ObjectStorage

__all__ = [
    "Answer",
    "FileInfo",
    "FsspecStorage",
    "HttpStorage",
    "ObjectStorage",
    "Storage",
    "Trouble",
    "Upload",
    "masked",
    "register",
]

_LATER = {
    "FsspecStorage": "aiodata.storage.kinds.bridge",
    "HttpStorage": "aiodata.storage.kinds.http",
    "ObjectStorage": "aiodata.storage.kinds.objects",
}
"""Classes whose modules are imported when they are asked for."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
