"""Connections and pauses of asyncio."""

from __future__ import annotations

import asyncio
import os
import random
import time

from .._origin import Origin
from . import READ_BYTES, is_readable


class Connection:
    """An open connection. Calls raise TimeoutError after `timeout` seconds, and OSError on failure."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._loop = asyncio.get_running_loop()
        self._process_id = os.getpid()

    async def send(self, chunk: bytes, timeout: float) -> None:
        async with asyncio.timeout(timeout):
            self._writer.write(chunk)
            await self._writer.drain()

    async def receive(self, timeout: float) -> bytes:
        """Returns the bytes that arrived next; none if the peer closed the connection."""
        async with asyncio.timeout(timeout):
            return await self._reader.read(READ_BYTES)

    def is_quiet(self) -> bool:
        """Whether the peer has neither closed the connection nor sent anything unasked."""
        # A connection belongs to its loop. A client may outlive the loop: asyncio.run() makes a new one each time.
        if self._loop is not asyncio.get_running_loop() or self._writer.is_closing():
            return False
        # After a fork two processes have it, and each would read the answers of the other.
        if self._process_id != os.getpid():
            return False
        # The loop may have read already what the socket no longer has. QUIRK: a StreamReader has no method for that.
        has_read = bool(getattr(self._reader, "_buffer", None)) or self._reader.at_eof()
        return not has_read and not is_readable(self._writer.get_extra_info("socket").fileno())

    def close(self) -> None:
        # Without abort, TLS would wait up to 30 seconds for the peer to close too.
        # After a fork the loop of the parent must not lose it.
        if not self._loop.is_closed() and self._process_id == os.getpid():
            self._writer.transport.abort()


class Io:
    """The outside world of a client. Tests replace its methods."""

    def now(self) -> float:
        return time.monotonic()

    def random(self) -> float:
        return random.random()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def connect(self, origin: Origin, timeout: float) -> Connection:
        """Tries each address of the host. Raises OSError, of which TimeoutError is one, if none answers in time."""
        async with asyncio.timeout(timeout):
            # RFC 8305 5: the next address is tried after a quarter of a second, while the first may still answer.
            reader, writer = await asyncio.open_connection(
                origin.host, origin.port, ssl=origin.tls, happy_eyeballs_delay=0.25
            )
        return Connection(reader, writer)
