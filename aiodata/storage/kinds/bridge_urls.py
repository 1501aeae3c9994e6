"""URLs as fsspec has them: `scheme://path`, or several in one another, such as `zip://a.csv::ftp://host/b.zip`."""

from __future__ import annotations

import asyncio
import fnmatch
import re
from typing import TYPE_CHECKING, Any

from aiodata.extras import load
from aiodata.storage.masking import masked

if TYPE_CHECKING:
    from aiodata.storage.kinds.bridge import FsspecStorage

__all__ = ["Link", "listed", "new_filesystem"]

_MAGIC = re.compile(r"[*?[]")


class Link:
    """A URL in its parts.

    Args:
        url: The URL; in one of several links the first that has a path is the one that names the file.
    """

    def __init__(self, url: str) -> None:
        links = url.split("::")
        number = next((number for number, link in enumerate(links) if "://" in link), 0)
        self.text = links[number]
        """The link that names the file."""
        self.scheme, _, self.path = self.text.partition("://")
        self._head = "".join(f"{link}::" for link in links[:number]) + f"{self.scheme}://"
        self._tail = "".join(f"::{link}" for link in links[number + 1 :])
        self.schemes = [link.partition("://")[0] for link in links]
        """Of all links."""

    @property
    def start(self) -> str:
        """What URLs of one file system have in common: all but the path, as far as can be told from the URL."""
        return self.url("" if self._tail else self.path.partition("/")[0])

    def url(self, path: str) -> str:
        """Give the URL of another path."""
        return self._head + path + self._tail


def new_filesystem(url: str, settings: dict[str, Any]) -> Any:
    """Make the file system of a URL by fsspec.

    Raises:
        ImportError: fsspec is not installed, or what it needs for such URLs.
        ValueError: Nothing is known of such URLs.
    """
    first, *inner = Link(url).schemes
    core = load("fsspec.core", "fsspec", f"what begins with {first}://")
    remembers_nothing = {"use_listings_cache": False}
    named = {scheme: {**remembers_nothing, **settings.get(scheme, {})} for scheme in inner}
    try:
        return core.url_to_fs(url, **{**remembers_nothing, **settings, **named})[0]
    except ImportError as error:
        raise ImportError(f"what begins with {first}:// needs another package: {error}", name=error.name) from error
    except ValueError as error:
        if "rotocol not known" not in str(error):
            raise
        raise ValueError(
            f"{masked(url)}: nothing is known of the scheme {str(error).rpartition(' ')[2]!r}, neither here nor by "
            "fsspec; install the package that teaches it to fsspec, or call aiodata.storage.register"
        ) from None


async def listed(storage: FsspecStorage, pattern: str) -> list[str]:
    """List the URLs that match a pattern, sorted."""
    link = Link(pattern)
    fixed, parts = _parted(link.path)
    if not parts:
        try:
            await storage.call(pattern, "info")
        except FileNotFoundError:
            return []
        return [pattern]
    found = [fixed]
    for number, part in enumerate(parts):
        matches = re.compile(fnmatch.translate(part)).match
        is_last = number == len(parts) - 1
        entries = await asyncio.gather(*[_entries(storage, link.url(folder)) for folder in found])
        found = [
            f"{folder}/{name}".removeprefix("/") if folder != "/" else f"/{name}"
            for folder, names in zip(found, entries, strict=True)
            for name, is_folder in names.items()
            if matches(name) and (is_folder or is_last)
        ]
    return sorted(map(link.url, found))


def _parted(path: str) -> tuple[str, list[str]]:
    """Part a pattern: a folder, and the names that are patterns, from the first of these on."""
    names = re.sub(r"\\([*?[])", r"[\1]", path).replace("[^", "[!").split("/")
    first = 1 if re.search("[:@]", names[0]) else 0  # a host, with a port or a login, or such
    while first < len(names) and not _MAGIC.search(names[first]):
        first += 1
    return "/".join(names[:first]) or ("/" if first else ""), names[first:]


async def _entries(storage: FsspecStorage, url: str) -> dict[str, bool]:
    """List a folder: the names in it, and whether those are folders."""
    try:
        found = await storage.call(url, "ls", detail=True)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    names = {str(each["name"]).rstrip("/").rpartition("/")[2]: each["type"] == "directory" for each in found}
    if list(names) == [Link(url).path.rpartition("/")[2]]:  # a file may be listed as if it were in itself
        return names if (await storage.call(url, "info"))["type"] == "directory" else {}
    return names
