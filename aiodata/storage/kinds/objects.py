"""Objects in the stores of clouds, and of what speaks as they do, through obstore."""

from __future__ import annotations

import asyncio
import os
import re
from fnmatch import translate
from functools import partial
from itertools import compress
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn

from aiodata.extras import load
from aiodata.storage.kinds.object_faults import LACKS_PERMISSION, code_of, fault, status_of
from aiodata.storage.kinds.object_settings import Login, client_settings, parted
from aiodata.storage.kinds.object_upload import ObjectUpload, Repeats, Store
from aiodata.storage.masking import MASK, masked
from aiodata.storage.protocol import Answer, FileInfo, Storage, Upload

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from aiodata.options import StorageOptions

    Urls = list[str]  # `list` is a method in the class

__all__ = ["ObjectStorage"]

PIECE_BYTES = 128 * 1024
"""Bytes that are gathered, at least, before they are handed on. Slower than that in `idle_seconds` is silence."""
MOST_PIECE_BYTES = 1024 * 1024
PIECE_SECONDS = 0.25
"""What has been gathered is lost when the connection breaks, so larger pieces must not take longer than this."""
PAGE = 1000
"""Entries of a listing between two moments in which other transfers go on."""
LOOKUPS = 16
"""Empty objects that are looked up at once while listing."""
_SHOWN = frozenset({"endpoint", "region", "default_region", "base_url", "account_name", "skip_signature"})
"""Settings that `repr` shows; all others may be secrets."""
_used_by: int | None = None
"""The process that has used obstore."""


class ObjectStorage(Storage):
    """Reads and writes objects in S3, Google Cloud Storage and Azure, and in what is compatible with them.

    URLs begin with `s3://bucket/` or `s3a://`, `gs://bucket/`, and `az://container/`, `azure://`, `adl://`, `abfs://`,
    `abfss://` or `abfss://container@account.dfs.core.windows.net/`. What follows is the key, as it is: a space, `%20`,
    `?` and `#` are those characters. obstore cannot ask for keys with an empty part (`a//b`), `.` or `..` as a part, a
    `/` at the start or the end, or control characters.

    Without arguments everything comes from the standard places, as obstore reads them: the environment (`AWS_...`,
    `GOOGLE_...`, `AZURE_...`), Google's application default credentials, the services of machines and containers; and
    from AWS's files and profiles (`~/.aws`), as boto3 reads them. Nothing of that is shown anywhere, or pickled.

    Listing takes a request for each 1,000 objects: those in the folder if only the last part of a pattern has
    wildcards, else all below the folder that the first wildcard is in.

    A new object of up to 8 MiB is sent at once, a larger one in parts of 8 MiB, four of them at once, so that it takes
    up to 64 MiB of memory, and may have 80 GB. Parts are repeated by obstore within the limits of `StorageOptions`, but
    neither logged nor counted. obstore does not show how far it is, so a request that sends a part may take five times
    `idle_seconds`, a smaller one less: what is slower than 2 MiB in `idle_seconds` is taken for silent. What a killed
    process leaves of an upload is not seen; a lifecycle rule of the bucket should remove it.

    Args:
        credential_provider: Gives credentials when they are needed, and anew when they have run out or are refused, as
            obstore takes it: a dict with `expires_at`. It may be `async def`; a plain function is called in a thread.
        client_options: For obstore's HTTP client, such as `{"proxy_url": ...}`; `allow_http` is set by itself if the
            endpoint is an `http://` URL.
        **config: For the store, as `obstore.store.from_url` takes it: `endpoint`, `region`, `skip_signature`...

    >>> from functools import partial
    >>> import aiodata
    >>> minio = partial(ObjectStorage, endpoint="http://127.0.0.1:9000", region="us-east-1")
    >>> aiodata.storage.register("s3://one-bucket", minio)
    """

    def __init__(
        self,
        *,
        credential_provider: Callable[[], Any] | None = None,
        client_options: Mapping[str, Any] | None = None,
        **config: Any,
    ) -> None:
        self._from_url = load("obstore.store", "cloud", "reading object stores").from_url
        self._obstore = load("obstore", "cloud", "reading object stores")
        self._login = Login(credential_provider, config)
        self._client = dict(client_options or {})
        self._config = config
        self._stores: dict[tuple[str, Repeats | None], Store] = {}
        """Stores by the beginnings of URLs, and by how they repeat requests by themselves."""
        self._piece_bytes = PIECE_BYTES
        self._making = asyncio.Lock()
        self._refusals = 0
        """Requests that were refused, and that `renew` has not been asked about."""

    def __repr__(self) -> str:
        given = self._config.items()
        shown = (f"{name}={masked(str(value))!r}" if name in _SHOWN else f"{name}={MASK}" for name, value in given)
        return f"ObjectStorage({', '.join(shown)})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an ObjectStorage is not pickled, as it may have secrets; make it where it is used")

    async def open(self, url: str, offset: int, length: int | None) -> Answer:
        """Ask for bytes of a file; see `Storage.open`."""
        store, key = await self._store(url)
        options: dict[str, Any] = {}
        if length is not None:
            options["range"] = (offset, offset + length)
        elif offset:
            options["range"] = {"offset": offset}
        is_range = is_there = True
        try:
            result = await self._obstore.get_async(store.it, key, options=options)
        except Exception as error:
            is_there = status_of(error) != 416
            is_range = "non-partial response" not in str(error)
            if is_there and is_range:
                self._fail(error, url, store)
        if not is_there:  # the object ends before `offset`
            return Answer(await self.info(url), _nothing(), offset)
        if not is_range:  # the server knows no ranges
            try:
                result = await self._obstore.get_async(store.it, key)
            except Exception as error:
                self._fail(error, url, store)
        pieces = self._pieces(result.stream(self._piece_bytes), url, store)
        return Answer(_info(result.meta), pieces, offset if is_range else 0, is_range)

    async def info(self, url: str) -> FileInfo:
        """Look a file up."""
        store, key = await self._store(url)
        try:
            return _info(await self._obstore.head_async(store.it, key))
        except Exception as error:
            self._fail(error, url, store)

    async def list(self, pattern: str) -> Urls:
        """List the URLs that match a pattern, sorted by bytes."""
        start, key = parted(pattern)
        names = re.sub(r"\\([*?[])", r"[\1]", key).replace("[^", "[!").split("/")
        fixed = next((number for number, name in enumerate(names) if re.search(r"[*?[]", name)), len(names))
        matches = [re.compile(translate(name)).match for name in names[fixed:]]
        if not matches:
            return [pattern] if await self._is_there(pattern) else []
        store, _ = await self._store(pattern)
        found: Urls = []
        unsure: Urls = []
        try:
            async for page in self._listed(store, "/".join(names[:fixed]), is_deep=len(matches) > 1):
                for entry in page:
                    parts = entry["path"].split("/")[fixed:]
                    if len(parts) == len(matches) and all(map(_call, matches, parts)):
                        (found if entry["size"] else unsure).append(start + entry["path"])
        except Exception as error:
            self._fail(error, pattern, store)
        return sorted(found + await self._files(unsure), key=str.encode)

    async def _files(self, urls: Urls) -> Urls:
        """Leave out empty objects that mark folders: their keys end with a slash, which obstore does not tell."""
        turns = asyncio.Semaphore(LOOKUPS)

        async def is_file(url: str) -> bool:
            async with turns:
                return await self._is_there(url)

        return [*compress(urls, await asyncio.gather(*map(is_file, urls)))]

    async def create(self, url: str, options: StorageOptions) -> Upload:
        """Begin a new object."""
        parted(url)
        return ObjectUpload(self._obstore.put_async, partial(self._store, url), url, self._fail, options)

    async def delete(self, url: str) -> None:
        """Remove an object; one that is not there is no error."""
        store, key = await self._store(url)
        try:
            await self._obstore.delete_async(store.it, key)
        except Exception as error:
            if not isinstance(fault(error, url), FileNotFoundError):
                self._fail(error, url, store)

    async def renew(self) -> bool:
        """Tell whether a request was refused that may be granted now that credentials will be asked for anew."""
        self._refusals -= 1
        if self._refusals >= 0:
            return True
        self._refusals = 0
        return False

    async def aclose(self) -> None:
        """Let go of the stores, and so of their connections."""
        for store in self._stores.values():
            store.it = None
        self._stores.clear()

    async def _store(self, url: str, repeats: Repeats | None = None) -> tuple[Store, str]:
        """Give the store of a URL, and the key.

        Args:
            url: The object.
            repeats: How the store repeats requests by itself; None if it does not.
        """
        start, key = parted(url)
        if (start, repeats) not in self._stores:
            async with self._making:
                if (start, repeats) not in self._stores:
                    self._stores[start, repeats] = await self._new_store(start, repeats)
        return self._stores[start, repeats], key

    async def _new_store(self, start: str, repeats: Repeats | None) -> Store:
        global _used_by
        config, arguments = await self._login.settings(start)
        if _used_by not in (None, os.getpid()):
            raise RuntimeError(
                "obstore does not work in a fork of a process that has used it: have processes started by 'spawn' or "
                "'forkserver'"
            )
        _used_by = os.getpid()
        if start.startswith("s3"):
            config["disable_bulk_delete"] = True  # objects are removed one by one, whose errors are plain ones
        arguments["client_options"] = client_settings(self._config, self._client, repeats.timeout if repeats else None)
        arguments["retry_config"] = repeats.settings() if repeats else {"max_retries": 0}
        try:
            return Store(self._from_url(start.removesuffix("/"), config={**config, **self._config}, **arguments))
        except Exception as error:
            raise fault(error, start) from None

    def _fail(self, error: Exception, url: str, store: Store) -> NoReturn:
        """Raise what an error of a store's means. It is no cause: its message may have secrets."""
        found = fault(error, url)
        is_refused = isinstance(found, PermissionError) and code_of(error) not in LACKS_PERMISSION
        if is_refused and self._login.can_be_renewed(url):
            self._refusals += 1
            for name in [name for name, each in self._stores.items() if each is store]:
                del self._stores[name]
        try:
            raise found from None
        finally:
            del found, error  # else they and this frame, which their tracebacks hold, would be a cycle

    async def _pieces(self, stream: AsyncIterator[bytes], url: str, store: Store) -> AsyncIterator[bytes]:
        begun, size, is_waiting = monotonic(), 0, True
        try:
            async for piece in stream:
                size += len(piece)
                is_waiting = False
                yield piece
                is_waiting = True
            is_waiting = False
        except Exception as error:
            self._fail(error, url, store)
        finally:
            if is_waiting:  # it broke, or was given up because nothing came
                self._piece_bytes = PIECE_BYTES
            elif size >= PIECE_BYTES:
                fitting = int(size * PIECE_SECONDS / (monotonic() - begun))
                self._piece_bytes = max(PIECE_BYTES, min(fitting, MOST_PIECE_BYTES))

    async def _listed(self, store: Store, folder: str, is_deep: bool) -> AsyncIterator[Any]:
        """Give the objects in a folder, or also those in the folders below it, page by page."""
        if is_deep:
            async for page in self._obstore.list(store.it, folder or None, chunk_size=PAGE):
                yield page
            return
        found = (await self._obstore.list_with_delimiter_async(store.it, folder or None))["objects"]
        for first in range(0, len(found), PAGE):
            yield found[first : first + PAGE]
            await asyncio.sleep(0)

    async def _is_there(self, url: str) -> bool:
        try:
            await self.info(url)
        except FileNotFoundError:
            return False
        return True


def _call(match: Callable[[str], Any], part: str) -> Any:
    return match(part)


def _info(meta: Mapping[str, Any]) -> FileInfo:
    when = meta["last_modified"]
    tag = meta["e_tag"] or meta["version"] or (str(when) if when.timestamp() else "")
    return FileInfo(meta["size"], tag)


async def _nothing() -> AsyncIterator[bytes]:
    """Give no bytes."""
    return
    yield b""
