"""The bytes of an attachment or of a message, read as they arrive."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType

from .._policy import connection_error, read_filename, read_whole
from .._wire import WireError
from .http import AsyncAnswer


class AsyncDownload:
    """A binary file that can be read once. `size` is in bytes. A stranger chose `filename`: never use it as a path."""

    def __init__(self, answer: AsyncAnswer, timeout: float) -> None:
        self.size = read_whole(answer.fields.get("content-length"))
        self.filename = read_filename(answer.fields.get("content-disposition"))
        self._answer, self._timeout = answer, timeout
        self._unread = b""

    async def read(self, size: int = -1) -> bytes:
        """Returns the next `size` bytes, or all if it is negative; fewer only at the end. Raises ConnectionFailedError."""
        pieces, count = [self._unread], len(self._unread)
        while size < 0 or count < size:
            chunk = await self._receive()
            if not chunk:
                break
            pieces.append(chunk)
            count += len(chunk)
        read = b"".join(pieces)
        cut = len(read) if size < 0 else size
        self._unread = read[cut:]
        return read[:cut]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yields the bytes in pieces, as they arrive."""
        if self._unread:
            unread, self._unread = self._unread, b""
            yield unread
        while chunk := await self._receive():
            yield chunk

    async def _receive(self) -> bytes:
        try:
            return await self._answer.receive(self._timeout)
        except (OSError, WireError) as error:
            raise connection_error(error) from error

    async def close(self) -> None:
        """Ends the download. What was not read is lost."""
        self._answer.close()

    async def __aenter__(self) -> AsyncDownload:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
