"""Giving up on a database that does not answer."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aforesaid.store.postgres.connection import Connection


@contextmanager
def cut_after(connection: Connection, seconds: float | None) -> Iterator[None]:
    """Cut a connection when the block takes longer than this: what waits for an answer then fails at once.

    The server's own timeouts do not help with a server that hangs, and cancelling the task would wait for it, too.
    """
    if seconds is None:
        yield
        return
    timer = asyncio.get_running_loop().call_later(max(seconds, 0.0), _cut, connection)
    try:
        yield
    finally:
        timer.cancel()


def _cut(connection: Connection) -> None:
    if not connection.closed:
        # A copy of the descriptor: closing the copy leaves the connection's own to libpq.
        with suppress(OSError), socket.socket(fileno=os.dup(connection.pgconn.socket)) as copy:
            copy.shutdown(socket.SHUT_RDWR)
