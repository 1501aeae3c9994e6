"""Which storage reads a URL, by how the URL begins."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from aiodata.storage.masking import masked

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiodata.storage.protocol import Storage

__all__ = ["check_local", "is_remote", "local_path", "new_storage", "register"]

_URL = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)(::[a-zA-Z][a-zA-Z0-9+.:-]*)?://")
_registered: dict[str, Callable[[], Storage]] = {}


def register(prefix: str, storage: Callable[[], Storage]) -> None:
    """Say what reads and writes the URLs that begin in some way, for all pipelines that are begun from now on.

    Args:
        prefix: A scheme, `"myscheme"`, or the beginning of a URL, `"s3://one-bucket"`. The longest that fits a URL is
            taken; what is registered again is replaced.
        storage: Makes the storage: a subclass of `Storage`, or any callable that gives one, such as
            `partial(ObjectStorage, endpoint=...)`. It is called when the first of these URLs is opened, on the loop
            that the storage will be used on.

    Raises:
        ValueError: The prefix is neither a scheme nor the beginning of a URL.
        TypeError: `storage` cannot be called.

    >>> import aiodata
    >>> register("quiet", aiodata.storage.HttpStorage)
    """
    if not callable(storage):
        raise TypeError(f"register: storage must be a class of storages, or make one, not {storage!r:.80}")
    start = prefix if "://" in prefix else prefix + "://"
    if not _URL.match(start):
        raise ValueError(f"register: prefix must be a scheme or begin with one, not {masked(prefix)!r}")
    _registered[_lower_scheme(start)] = storage


def is_remote(path: str) -> bool:
    """Tell whether a path is a URL of something other than a local file."""
    return "://" in path and (found := _URL.match(path)) is not None and found[0].lower() != "file://"


def local_path(path: str) -> str:
    """Give the path that a `file://` URL names; any other path as it is."""
    if path[:7].lower() != "file://":
        return path
    from urllib.request import url2pathname  # takes a while to import

    parts = urlsplit(path)
    if parts.netloc not in ("", "localhost"):
        raise ValueError(f"{path}: a file:// URL must name a file of this machine, as file:///folder/name does")
    return url2pathname(path[7 + len(parts.netloc) :])


def check_local(path: str, method: str, argument: str, instead: str) -> str:
    """Give the path of what has to be a local file or folder.

    Args:
        path: The path, or a `file://` URL.
        method: Who needs it, for the error.
        argument: What it is called there.
        instead: What to do otherwise.

    Raises:
        ValueError: It is a URL of something else.
    """
    if is_remote(path):
        raise ValueError(f"{method}: {argument} must be local, not {masked(path)}; {instead}")
    return local_path(path)


def new_storage(url: str, known: dict[Any, Storage]) -> Storage:
    """Give the storage of a URL.

    Args:
        url: The URL.
        known: Those that have been made, by how their URLs begin and by what makes them; another one is added.

    Raises:
        TypeError: What is registered for the URL gives no storage.
    """
    url = _lower_scheme(url)
    registered = dict(_registered)  # another thread may register one meanwhile
    fitting = [prefix for prefix in registered if _fits(url, prefix)]
    prefix = max(fitting, key=len) if fitting else url.partition("://")[0] + "://"
    make = registered.get(prefix)
    if (prefix, make) not in known:
        known[prefix, make] = _built_in(prefix) if make is None else _made(prefix, make)
    return known[prefix, make]


def _made(prefix: str, make: Callable[[], Storage]) -> Storage:
    from aiodata.storage import Storage  # as users have it

    storage: object = make()
    if not isinstance(storage, Storage):
        raise TypeError(
            f"register: what is registered for {masked(prefix)!r} must give a Storage, and gave {storage!r:.80}"
        )
    return storage


def _fits(url: str, prefix: str) -> bool:
    """Tell whether a URL begins so, and not in the middle of a name: "s3://data" is not for "s3://database/x"."""
    return url.startswith(prefix) and (prefix.endswith("/") or url[len(prefix) :][:1] in ("", "/", "?", "#"))


def _lower_scheme(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    return scheme.lower() + separator + rest


def _built_in(prefix: str) -> Storage:
    scheme = prefix.removesuffix("://")
    if scheme in ("http", "https"):
        from aiodata.storage.kinds.http import HttpStorage

        return HttpStorage()
    if scheme in ("s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss"):
        from aiodata.storage.kinds.objects import ObjectStorage

        return ObjectStorage()
    from aiodata.storage.kinds.bridge import FsspecStorage

    return FsspecStorage()
