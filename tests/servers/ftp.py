"""A real FTP server on loopback, pyftpdlib's, in a thread of its own."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path
from types import TracebackType
from typing import Any, Self

__all__ = ["PASSWORD", "USER", "FtpServer"]

USER, PASSWORD = "ann", "dummy-password"


class FtpServer:
    """Serves a folder. Use it as a context manager.

    Args:
        folder: What is served; `USER` may read and write it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.commands: list[str] = []
        """What clients have asked for: RETR, STOR and so on, with their arguments."""
        self.cut: set[str] = set()
        """Commands at which the connection is closed, once each, without an answer."""

    def __enter__(self) -> Self:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of asyncore, on Python 3.11
            from pyftpdlib.authorizers import DummyAuthorizer
            from pyftpdlib.handlers import FTPHandler
            from pyftpdlib.servers import FTPServer

        outer = self

        class Handler(FTPHandler):  # type: ignore[misc, unused-ignore]
            authorizer = DummyAuthorizer()

            def pre_process_command(self, line: str, command: str, argument: str) -> None:
                outer.commands.append(f"{command} {Path(argument).name}".strip())
                if command in outer.cut:
                    outer.cut.discard(command)
                    self.close()
                else:
                    super().pre_process_command(line, command, argument)

            def log(self, *_: Any, **__: Any) -> None: ...

            logline = logerror = log_cmd = log_exception = log_transfer = log

        Handler.authorizer.add_user(USER, PASSWORD, str(self._folder), perm="elradfmw")
        self._server = FTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.address[1]
        self._ended = False
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        return self

    def _serve(self) -> None:
        try:
            while not self._ended:
                self._server.serve_forever(timeout=0.02, blocking=False, handle_exit=False)
        finally:
            self._server.close_all()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._ended = True
        self._thread.join()

    def url(self, path: str) -> str:
        """Give the URL of a path."""
        return f"ftp://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{path}"
