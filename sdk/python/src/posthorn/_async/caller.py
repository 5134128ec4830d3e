"""Makes calls: keys, attempts, waits, and the errors of answers."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from .._io.asynchronous import Io
from .._origin import read_origin
from .._policy import (
    Call,
    base_of_wait,
    connection_error,
    error_of,
    has_succeeded,
    is_repeated,
    is_unknown,
    read_json,
    spread,
    strange_error,
    write_json,
)
from .._version import VERSION
from .._wire import TooLargeError, WireError, write_head
from ..errors import PosthornError
from .download import AsyncDownload
from .http import AsyncAnswer, AsyncPool, Request

# The texts of a message have up to 16 MiB, which JSON can make six times as long.
MAX_JSON_BYTES = 128 * 1024 * 1024
MAX_REFUSAL_BYTES = 1024 * 1024

Result = TypeVar("Result")


@dataclass(frozen=True)
class Options:
    """Seconds for a call with its retries, and for one attempt."""

    deadline: float
    attempt_timeout: float


def require_length(answer: AsyncAnswer) -> None:
    """Raises WireError if nothing would show that the body was cut off."""
    if answer.ends_by_close:
        answer.close()
        raise WireError("the answer has no length")


class AsyncCaller:
    """Calls operations of one server with one key."""

    def __init__(self, base_url: str, api_key: str, options: Options, io: Io | None) -> None:
        self.io = io or Io()
        self._pool = AsyncPool(self.io, read_origin(base_url))
        self._options = options
        # Without accept-encoding a proxy may choose one.
        fixed = {"accept-encoding": "identity", "user-agent": f"posthorn-python/{VERSION}"}
        self._fields = {"x-api-key": api_key, **fixed}
        # Raises ValueError at once for a key that no request can carry.
        write_head("GET", "/", self._fields)

    async def json(self, call: Call) -> Any:
        """Returns the JSON of the answer. Raises PosthornError, as the other calls do."""

        async def read(answer: AsyncAnswer, timeout: float) -> Any:
            body = await answer.read(timeout, MAX_JSON_BYTES)
            try:
                return read_json(answer.status, answer.fields, body)
            except PosthornError:
                if answer.ends_by_close:
                    # It was probably cut off. The same request may succeed.
                    raise WireError("the answer is not whole") from None
                raise

        return await self._repeat(call, read)

    async def text(self, call: Call) -> str:
        async def read(answer: AsyncAnswer, timeout: float) -> str:
            require_length(answer)
            return (await answer.read(timeout, MAX_JSON_BYTES)).decode("utf-8", "replace")

        return await self._repeat(call, read)

    async def nothing(self, call: Call) -> None:
        async def read(answer: AsyncAnswer, timeout: float) -> None:
            await answer.read(timeout, MAX_REFUSAL_BYTES)

        return await self._repeat(call, read)

    async def download(self, call: Call) -> AsyncDownload:
        """Returns the bytes of the answer, still to be read."""

        async def read(answer: AsyncAnswer, timeout: float) -> AsyncDownload:
            require_length(answer)
            return AsyncDownload(answer, self._options.attempt_timeout)

        return await self._repeat(call, read)

    async def stream(self, call: Call, last_event_id: str | None) -> AsyncAnswer:
        """Returns the answer of one attempt, whose body does not end."""

        async def read(answer: AsyncAnswer, timeout: float) -> AsyncAnswer:
            if not answer.fields.get("content-type", "").lower().startswith("text/event-stream"):
                answer.close()
                raise strange_error("The answer is no stream of events.", answer.status, answer.fields)
            return answer

        request = self._request(call)
        fields = {**request.fields, "accept": "text/event-stream"}
        if last_event_id is not None:
            fields["last-event-id"] = last_event_id
        streamed = Request(request.method, request.target, fields)
        return await self._attempt(streamed, self.attempt_timeout, read)

    @property
    def attempt_timeout(self) -> float:
        return self._options.attempt_timeout

    def close(self) -> None:
        self._pool.close()

    def _request(self, call: Call) -> Request:
        operation = call.operation
        fields = dict(self._fields)
        if operation.takes_key:
            # Made once for all attempts, so that a lost answer never sends a second mail.
            fields["idempotency-key"] = str(uuid.uuid4()) if call.idempotency_key is None else call.idempotency_key
        body = None if call.body is None else write_json(call.body)
        return Request(operation.method, operation.target(call.ids, call.query), fields, body)

    async def _repeat(
        self, call: Call, read: Callable[[AsyncAnswer, float], Awaitable[Result]]
    ) -> Result:
        request = self._request(call)
        wait_s = float(call.query.get("wait", 0))
        deadline = self._options.deadline if call.deadline is None else call.deadline
        until = self.io.now() + deadline + wait_s
        retry, was_unknown = 0, False
        while True:
            try:
                timeout = min(self._options.attempt_timeout + wait_s, until - self.io.now())
                return await self._attempt(request, timeout, read)
            except PosthornError as error:
                if has_succeeded(call.operation, error, was_unknown=was_unknown):
                    return None  # type: ignore[return-value]  # a deletion returns nothing
                if not is_repeated(call.operation, error):
                    raise
                was_unknown = was_unknown or is_unknown(error)
                retry += 1
                pause = spread(base_of_wait(retry, error), self.io.random())
                if self.io.now() + pause >= until:
                    raise
            await self.io.sleep(pause)

    async def _attempt(
        self, request: Request, timeout: float, read: Callable[[AsyncAnswer, float], Awaitable[Result]]
    ) -> Result:
        until = self.io.now() + timeout
        try:
            answer = await self._pool.exchange(request, timeout)
            rest = until - self.io.now()
            if 200 <= answer.status < 300:
                return await read(answer, rest)
            refusal = await answer.read(rest, MAX_REFUSAL_BYTES)
        except TooLargeError as error:
            raise PosthornError(f"Reading was stopped: {error}.", "too_large") from None
        except (OSError, WireError) as error:
            raise connection_error(error) from error
        raise error_of(answer.status, answer.fields, refusal)
