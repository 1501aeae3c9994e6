"""`Dataset.from_http`: answers of HTTP servers, or the records and events of streaming ones."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.checks import check_parallelism
from aiodata.engine.plan import AUTOTUNE, UNKNOWN, Plan, plan_of
from aiodata.extras import load
from aiodata.functions import is_coroutine_function, name_of
from aiodata.spec import TensorSpec
from aiodata.storage.masking import masked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiodata.dataset import Dataset

__all__ = ["from_http"]

FORMATS = ("events", "lines", "records", "response")
AUTOMATIC_CALLS = 16
_URL = re.compile(r"(?i)https?://[^/?#]")
_METHOD = re.compile(r"[A-Z]+")
_OBJECT = TensorSpec((), object)


def from_http(
    cls: type[Dataset[Any]],
    urls: str | Sequence[str] | Dataset[Any],
    format: str = "response",
    num_parallel_calls: int | None = None,
    name: str | None = None,
    *,
    headers: Mapping[str, str] | Callable[[], Any] | None = None,
    method: str | None = None,
    body: bytes | None = None,
    separator: bytes = b"\n",
    length_bytes: int = 4,
    byte_order: str = "big",
    max_record_bytes: int = 64 * 1024 * 1024,
    reconnect: bool = False,
) -> Dataset[Any]:
    r"""Give what HTTP servers answer: whole answers, or records and events as they come.

    For files that happen to be behind URLs use their readers, such as `TextLineDataset("https://...")`, which read
    ahead by ranges of bytes. This is for answers that are made when they are asked for. An element is, by `format`:

    - "response": the body of one URL's answer, as bytes, uncompressed. `Dataset.zip(urls, from_http(urls))` keeps
      the URLs beside them: an answer that fails is an error in its place.
    - "lines": a line, as bytes without its end. The last one needs no end.
    - "records": a record that stands behind its length, as bytes.
    - "events": a `ServerSentEvent`, a named tuple of the strings `event`, `data` and `id`, by the HTML standard.

    With `num_parallel_calls` so many URLs are asked for at once; the answers come in the order of the URLs, and the
    elements of several streams in turn. A request has a connection that is kept for the next one, and all are closed
    at the end, on a `break` too. Streams are read as their reader goes on; who reads slowly slows the server down.
    Memory, for each URL at once: about 200 KiB, and twice `max_record_bytes` at the most.

    Trouble that may pass (a broken connection, a short body, silence, the status 408, 425, 429, 500, 502, 503, 504) is
    waited out as `options.storage` says, at least as long as the server asks for; each attempt is logged and counted.
    No element is lost or given twice by that, or by loading a state:

    - Lines and records go on behind the last byte that came, by a range, if the server gives a strong ETag; a server
      that ignores ranges has to have the same ETag, and what was given is skipped. Without one all is asked for again,
      and must begin with the very bytes that came before, by their checksum. Anything else is a RemoteError, or a
      StateError where a state is loaded: a live stream cannot be gone on with.
    - Events go on behind the last id that came, by `Last-Event-ID`, after the wait that the server's `retry` asks for.
      Events without ids that came since must come again, unless one with an id follows at once; without any id all must
      come again.
    - What a whole answer had until then is dropped, or gone on with by its ETag.

    Args:
        urls: A URL, a list of URLs, or a dataset of them.
        format: "response", "lines", "records" or "events".
        num_parallel_calls: URLs to ask for at once; `AUTOTUNE` takes 16; None asks for one after the
            other.
        name: A name for the stage, shown in `repr`.
        headers: Headers of each request, such as Authorization; or a function that gives them, which is asked again
            once when a server answers 401 or 403. It is called where the pipeline runs, and may be `async def`. They
            are in no `repr`, error or state, nor are passwords and signatures in URLs; and another origin that a URL is
            redirected to does not get them.
        method: None means "GET", or "POST" with a body. What is asked again after trouble must do no harm twice.
        body: What to send.
        separator: What ends a line, at least one byte. With `\n` a `\r` before it is dropped, too.
        length_bytes: Size of a record's length, which does not count itself: 1, 2, 4 or 8 bytes, unsigned.
        byte_order: "big", as networks have it, or "little".
        max_record_bytes: Bytes that a response, line, record or event may have.
        reconnect: Ask for events again when a stream has ended in good order, as browsers do, until the server answers
            204. If no event had an id, those in between are missed.

    Raises:
        ImportError: aiohttp is not installed.
        TypeError, ValueError: An argument is not what it must be; while iterating: what a dataset gave is no URL.
        FileNotFoundError, PermissionError: While iterating: the server answered 404 or 410, or 401, 403 or 407; the
            next URL follows.
        CorruptRecordError: While iterating: an answer, line, record or event is too long, or the answer ends in the
            middle of a record; the next URL follows.
        RemoteError: While iterating: trouble has lasted as long as the options allow, or the server gave another answer
            that is of no use. After one in place of a response the next URL follows. In a stream it ends the iteration,
            so that nothing is lost in silence; a state goes on where it broke off.

    >>> import aiodata
    >>> aiodata.Dataset.from_http("https://user:secret@example.org/feed?token=secret", format="lines")
    <Dataset
    from_http(https://***@example.org/feed?token=***, lines, separator=b'\n'): object>

    Source: an addition; tf.data has no client.
    """
    # What makes requests and cuts answers is needed by few programs, and takes a while to import.
    from aiodata.formats.framing import framing_of
    from aiodata.sources import _http_client, _http_events, _http_records

    calls = check_parallelism(num_parallel_calls, "from_http", "num_parallel_calls")
    _check(format, headers, method, body, reconnect)
    splitter, cut = framing_of(
        "from_http", format == "records", separator, length_bytes, byte_order, max_record_bytes, needs_end=False
    )
    load("aiohttp", "http", "from_http")
    verb = method or ("GET" if body is None else "POST")
    asking = _http_client.Asking(verb, body, headers, operator.index(max_record_bytes))
    stage: Callable[..., Any] = partial(_http_records.read_response, asking=asking)
    if format == "events":
        stage = partial(_http_events.read_events, asking=asking, reconnect=reconnect)
    elif format != "response":
        stage = partial(_http_records.read_records, asking=asking, splitter=splitter)
    details = [
        format,
        cut if format in ("lines", "records") else "",
        "" if verb == "GET" else verb,
        "reconnect=True" if reconnect else "",
        f"headers={name_of(headers)}" if callable(headers) else "",
    ]
    facts = {
        "detail": ", ".join(filter(None, details)),
        "waits": True,
        "has_coroutines": callable(headers) and is_coroutine_function(headers),
        "spec": partial(_spec, format),
        "count": partial(_count, format),
        "contents": body,
    }
    read = partial(_one, datasets=cls, stage=stage, by_cursor=format == "events", facts=facts)
    if isinstance(urls, str | bytes):
        return cls.of(replace(read(urls).plan, title=name))
    names: Any = urls if plan_of(urls) is not None else _names(cls, urls)
    if calls == AUTOTUNE:
        calls = AUTOMATIC_CALLS
    several = names.flat_map(read) if calls is None else names.interleave(read, calls, num_parallel_calls=calls)
    return cls.of(replace(several.plan, name="from_http", title=name, **facts))


def _check(format: Any, headers: Any, method: Any, body: Any, reconnect: Any) -> None:
    if format not in FORMATS:
        raise ValueError(f"from_http: format must be one of {FORMATS}, not {format!r}")
    if not (headers is None or isinstance(headers, Mapping) or callable(headers)):
        raise TypeError(f"from_http: headers must be a mapping, or a function, not {type(headers).__name__}")
    if method is not None and (not isinstance(method, str) or not _METHOD.fullmatch(method)):
        raise ValueError(f"from_http: method must be a name such as 'POST', not {method!r:.80}")
    if body is not None and not isinstance(body, bytes):
        raise TypeError(f"from_http: body must be bytes, not {type(body).__name__}")
    if reconnect and format != "events":
        raise ValueError("from_http: reconnect is for events")


def _names(datasets: type[Dataset[Any]], urls: Any) -> Dataset[Any]:
    """Give the dataset of a list of URLs, which states know without their secrets."""
    if isinstance(urls, dict | set):
        raise TypeError(f"from_http: urls must be a URL, a list or a dataset of them, not {type(urls).__name__}")
    try:
        given = [_url(url) for url in urls]
    except TypeError as error:
        raise TypeError(f"from_http: urls must be a URL, a list or a dataset of them: {error}") from error
    names = datasets.from_tensor_slices(np.array(given, dtype=object))
    return datasets.of(replace(names.plan, contents=[masked(url) for url in given]))


def _one(url: Any, *, datasets: type[Dataset[Any]], stage: Any, by_cursor: bool, facts: dict[str, Any]) -> Dataset[Any]:
    """Give the dataset of one URL."""
    text = _url(url)
    plan = Plan("from_http", partial(stage, url=text), resumes_by_cursor=by_cursor, **facts)
    return datasets.of(replace(plan, detail=f"{masked(text)}, {plan.detail}"))


def _url(url: Any) -> str:
    text = url.decode() if isinstance(url, bytes) else url
    if not isinstance(text, str):
        raise TypeError(f"from_http: a URL must be a string, not {type(url).__name__}")
    if not _URL.match(text):
        raise ValueError(f"from_http: a URL must begin with http:// or https://, not {masked(text)!r:.80}")
    return text


def _spec(format: str, *names: Any) -> Any:
    from aiodata.formats.event_stream import ServerSentEvent

    text: Any = _OBJECT
    return ServerSentEvent(text, text, text) if format == "events" else text


def _count(format: str, urls: int = 1) -> int:
    """Give the cardinality: an answer for each URL."""
    return urls if format == "response" else UNKNOWN
