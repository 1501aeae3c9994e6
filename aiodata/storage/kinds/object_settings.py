"""How object stores are reached: which one a URL is in, by which client, with which credentials."""

from __future__ import annotations

import asyncio
import errno
import inspect
import os
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from aiodata.extras import load
from aiodata.storage.masking import masked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Login", "client_settings", "parted"]

CONNECT_SECONDS = 10
_LONG = timedelta(days=3650)
_UNADDRESSED = re.compile(r"^/|/$|//|(^|/)\.{1,2}(/|$)|[\x00-\x1f\x7f]")
"""What keys cannot have for obstore, which would take some for other keys without a word."""
_ENDPOINT = re.compile(r"(AWS|AZURE|GOOGLE)\w*_(ENDPOINT|ENDPOINT_URL|ENDPOINT_URL_S3|BASE_URL)")
_CLOUD = re.compile("(aws|azure_storage|azure|google)_")
_KEYS = frozenset({"access_key_id", "skip_signature"})
_FIXED = _KEYS | {"account_key", "bearer_token", "client_secret", "sas_key", "service_account_key", "token"}
"""Settings that are credentials, or that there are none."""
_FIXED_ENVIRONMENT = {
    "s": {"AWS_ACCESS_KEY_ID", "AWS_SKIP_SIGNATURE"},
    "g": {"GOOGLE_SERVICE_ACCOUNT_KEY", "GOOGLE_SKIP_SIGNATURE"},
    "a": {"AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_KEY", "AZURE_STORAGE_TOKEN", "AZURE_SKIP_SIGNATURE"},
}
"""The same in the environment, by how schemes begin."""
_ENVIRONMENT = (
    *("AWS_ACCESS_KEY_ID", "AWS_SKIP_SIGNATURE", "AWS_WEB_IDENTITY_TOKEN_FILE"),
    *("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
)
"""What says that obstore finds credentials for S3 by itself."""


def parted(url: str) -> tuple[str, str]:
    """Give what a URL begins with, up to the name of the bucket and a slash, and the key, which is what follows.

    Raises:
        ValueError: There is no bucket or no key, or obstore cannot ask for such a key.

    >>> parted("s3://bucket/a folder/100%.csv")
    ('s3://bucket/', 'a folder/100%.csv')
    """
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    bucket, _, key = rest.partition("/")
    if not bucket or not key:
        raise ValueError(f"{masked(url)}: the URL of an object is {scheme}://bucket/key")
    if "@" in bucket and scheme not in ("abfs", "abfss"):
        raise ValueError(f"{masked(url)}: credentials are not taken from URLs")
    if _UNADDRESSED.search(key):
        raise ValueError(
            f"{masked(url)}: obstore cannot ask for a key with an empty part, '.' or '..' as a part, a slash at its "
            "start or end, or control characters"
        )
    return f"{scheme}://{bucket}/", key


def client_settings(
    config: Mapping[str, Any], given: Mapping[str, Any], timeout: timedelta | None = None
) -> dict[str, Any]:
    """Give the options of obstore's HTTP client.

    Args:
        config: The settings of the store.
        given: Options that the user gives.
        timeout: How long a request may take; None leaves that to aiodata, which watches whether something comes.
    """
    named = [value for name, value in config.items() if name.lower().endswith(("endpoint", "base_url"))]
    named += [value for name, value in os.environ.items() if _ENDPOINT.fullmatch(name)]
    plain = any(str(value).startswith("http://") for value in named)
    limits = {"timeout": timeout or _LONG, "connect_timeout": timedelta(seconds=CONNECT_SECONDS)}
    return {**limits, **({"allow_http": True} if plain else {}), **given}


class Login:
    """The credentials of one storage.

    Args:
        provider: The user's own function that gives credentials.
        config: The settings of the store, with which there may be some.
    """

    def __init__(self, provider: Callable[[], Any] | None, config: Mapping[str, Any]) -> None:
        self._provider = provider
        self._names = {_CLOUD.sub("", name.lower()) for name in config}

    async def settings(self, url: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Give what a store is made with because of them: of its configuration, and of other arguments.

        Raises:
            PermissionError: There is a profile of AWS's that has no credentials.
            ImportError: boto3 is needed, and not installed.
        """
        if self._provider is not None:
            return {}, {"credential_provider": _in_thread(self._provider)}
        if not url.startswith(("s3://", "s3a://")) or not self._is_in_files():
            return {}, {}
        return await asyncio.to_thread(self._from_files, url)

    def can_be_renewed(self, url: str) -> bool:
        """Tell whether a URL's credentials may be others when they are asked for again: they were not simply given."""
        if self._provider is not None:
            return True
        return not self._names & _FIXED and _FIXED_ENVIRONMENT[url[0].lower()].isdisjoint(os.environ)

    def _is_in_files(self) -> bool:
        """Tell whether the credentials are in AWS's files, which boto3 reads and obstore does not."""
        if _KEYS & self._names or any(name in os.environ for name in _ENVIRONMENT):
            return False
        return _is_profile_set() or any(map(os.path.exists, _files()))

    def _from_files(self, url: str) -> tuple[dict[str, Any], dict[str, Any]]:
        try:
            auth = load("obstore.auth.boto3", "aws", "reading credentials from AWS's files", package="boto3")
        except ImportError:
            if _is_profile_set() or os.path.exists(_files()[0]):
                raise
            return {}, {}  # there is a configuration only, which may have no credentials
        try:
            provider = auth.Boto3CredentialProvider()
        except Exception as error:
            if "Received None" in str(error):
                return {}, {}
            raise PermissionError(
                errno.EACCES, f"AWS's files have no credentials: {type(error).__name__}", masked(url)
            ) from error
        config = {name: value for name, value in provider.config.items() if name == "region"}
        if self._names & {"region", "default_region"} or {"AWS_REGION", "AWS_DEFAULT_REGION"} & os.environ.keys():
            config = {}  # there is another one
        return config, {"credential_provider": _in_thread(provider)}


def _is_profile_set() -> bool:
    return any(os.environ.get(name) for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE"))


def _files() -> tuple[str, str]:
    names = (("AWS_SHARED_CREDENTIALS_FILE", "credentials"), ("AWS_CONFIG_FILE", "config"))
    credentials, config = (os.path.expanduser(os.environ.get(name) or f"~/.aws/{file}") for name, file in names)
    return credentials, config


def _in_thread(provider: Callable[[], Any]) -> Callable[[], Any]:
    """Give a provider that does not hold the loop up, nor one of obstore's threads."""

    async def provide() -> Any:
        if inspect.iscoroutinefunction(provider) or inspect.iscoroutinefunction(type(provider).__call__):
            return await provider()
        found = await asyncio.to_thread(provider)
        return await found if inspect.isawaitable(found) else found

    return provide
