"""The responses of one stream of a BigQuery session, each row once, whatever happens on the way."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aiodata.sources._bigquery_service import Attempts
from aiodata.storage.transfer.healing import Trouble, idle_seconds

if TYPE_CHECKING:
    from google.cloud.bigquery_storage_v1 import types

    from aiodata.sources._bigquery_service import Service, Session

__all__ = ["Rows"]


class Rows:
    """The responses of one stream from a row on.

    Args:
        service: The service.
        session: The session.
        stream: The stream's name in the session.
        row: The first row.
    """

    def __init__(self, service: Service, session: Session, stream: str, row: int) -> None:
        self.label = f"{service.reading.label} stream {stream}"
        self.row = row
        """The row behind those that have come."""
        self._service = service
        self._client: Any = None
        self._name = session.full_name(stream)
        self._attempts = Attempts(service, self.label, session.is_restored)
        self._silence = idle_seconds(service.run.options.storage)
        self._call: Any = None

    async def next(self) -> types.ReadRowsResponse | None:
        """Give the next response that has rows; None at the end.

        Raises:
            RemoteError, StateError: As `Attempts.after`.
        """
        from google.api_core.exceptions import GoogleAPICallError

        while True:
            if self._call is None:
                self._client = await self._service.client()
            try:
                return await self._next()
            except (GoogleAPICallError, Trouble) as error:
                self.close()
                await self._attempts.after(error, self._client, self.row)

    async def _next(self) -> types.ReadRowsResponse | None:
        from grpc.aio import EOF

        while True:
            try:
                async with asyncio.timeout(self._silence):
                    if self._call is None:
                        self._service.counters.requests += 1
                        # No limit for the whole stream, and no retries but ours: the client's begin it anew.
                        with self._service.watching():
                            self._call = await self._client.read_rows(
                                read_stream=self._name, offset=self.row, retry=None, timeout=None
                            )
                    response: types.ReadRowsResponse = await self._call.read()
            except TimeoutError as error:
                raise Trouble(f"there was silence for {self._silence:g} s") from error
            if response is EOF:
                self._call = None
                return None
            if response.row_count:
                self._attempts.progress()
                self.row += response.row_count
                return response

    def close(self) -> None:
        """End the request."""
        call, self._call = self._call, None
        if call is not None:
            call.cancel()
