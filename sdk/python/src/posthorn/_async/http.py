"""Requests and answers over connections that are kept for the next request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from .._io.asynchronous import Connection, Io
from .._origin import Origin
from .._wire import BodyReader, Head, HeadReader, TooLargeError, write_head

MAX_IDLE_CONNECTIONS = 10
# The service closes a connection that was idle for 75 seconds.
MAX_IDLE_S = 30.0


@dataclass(frozen=True)
class Request:
    """`target` is the path with its query. Without a body, `body` is None."""

    method: str
    target: str
    # Reports of errors print the values of variables. They must not contain the key, or mail.
    fields: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(default=None, repr=False)


class AsyncAnswer:
    """An answer whose body is still on its connection. Read it to its end, or close it."""

    def __init__(self, pool: AsyncPool, connection: Connection, method: str, read: tuple[Head, bytes]) -> None:
        head, self._first = read
        self.status, self.fields = head.status, head.fields
        self._pool, self._connection = pool, connection
        self._body = BodyReader(method, head)
        self.keeps_alive = head.keeps_alive
        self._is_open = True

    @property
    def ends_by_close(self) -> bool:
        """Whether nothing says that the body is whole."""
        return self._body.ends_by_close

    async def receive(self, timeout: float) -> bytes:
        """Returns the next bytes of the body; none at its end. Raises OSError and WireError."""
        try:
            chunk = self._body.feed(self._first)
            self._first = b""
            until = self._pool.io.now() + timeout
            while not chunk and not self._body.is_done:
                received = await self._connection.receive(left(until, self._pool.io.now()))
                if received:
                    chunk = self._body.feed(received)
                else:
                    self._body.end()
        except BaseException:
            self.close()
            raise
        if self._body.is_done and self._is_open:
            self._is_open = False
            if self.keeps_alive and self._body.may_reuse:
                self._pool.keep(self._connection)
            else:
                self._connection.close()
        return chunk

    async def read(self, timeout: float, max_bytes: int) -> bytes:
        """Returns the whole body. Raises OSError, WireError, and TooLargeError if it has more than `max_bytes`."""
        until = self._pool.io.now() + timeout
        body = bytearray()
        try:
            while chunk := await self.receive(left(until, self._pool.io.now())):
                body += chunk
                if len(body) > max_bytes:
                    raise TooLargeError(f"the answer has more than {max_bytes} bytes")
        except BaseException:
            self.close()
            raise
        return bytes(body)

    def close(self) -> None:
        """Ends the connection, unless the body was read to its end."""
        if self._is_open:
            self._is_open = False
            self._connection.close()


class AsyncPool:
    """The connections to one server."""

    def __init__(self, io: Io, origin: Origin) -> None:
        self.io, self._origin = io, origin
        self._idle: list[tuple[Connection, float]] = []
        self._is_closed = False

    async def exchange(self, request: Request, timeout: float) -> AsyncAnswer:
        """Returns the answer once its head is there. Raises OSError, WireError, and ValueError before any connection."""
        until = self.io.now() + timeout
        self._write(request)
        connection = self._take() or await self.io.connect(self._origin, timeout)
        try:
            return await self._answer(connection, request, until)
        except BaseException:
            connection.close()
            raise

    def _write(self, request: Request) -> bytes:
        fields = {"host": self._origin.authority, **request.fields}
        if request.body is not None:
            fields |= {"content-type": "application/json", "content-length": str(len(request.body))}
        return write_head(request.method, self._origin.prefix + request.target, fields) + (request.body or b"")

    async def _answer(self, connection: Connection, request: Request, until: float) -> AsyncAnswer:
        broken: OSError | None = None
        try:
            await connection.send(self._write(request), left(until, self.io.now()))
        except TimeoutError:
            raise
        except OSError as error:  # the server may have answered before it stopped reading
            broken = error
        reader = HeadReader()
        while True:
            received = await connection.receive(left(until, self.io.now()))
            if not received:
                raise broken or ConnectionResetError("the server closed the connection without an answer")
            if read := reader.feed(received):
                answer = AsyncAnswer(self, connection, request.method, read)
                # The server may still expect the rest of a request that was not sent whole.
                answer.keeps_alive = answer.keeps_alive and broken is None
                return answer

    def keep(self, connection: Connection) -> None:
        """Keeps the connection for the next request, unless enough are idle."""
        if self._is_closed or len(self._idle) >= MAX_IDLE_CONNECTIONS:
            connection.close()
        else:
            self._idle.append((connection, self.io.now()))

    def _take(self) -> Connection | None:
        while idle := self._pop():
            connection, since = idle
            if self.io.now() - since < MAX_IDLE_S and connection.is_quiet():
                return connection
            connection.close()
        return None

    def _pop(self) -> tuple[Connection, float] | None:
        try:
            return self._idle.pop()
        except IndexError:  # none is left: another thread may have taken the last one
            return None

    def close(self) -> None:
        """Closes idle connections now, and others once their answers are read."""
        self._is_closed = True
        while idle := self._pop():
            idle[0].close()


def left(until: float, now: float) -> float:
    """Returns the seconds until then. Raises TimeoutError if there are none."""
    if until <= now:
        raise TimeoutError("the time for the request is over")
    return until - now
