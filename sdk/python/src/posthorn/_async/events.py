"""The stream of events, which goes on after interruptions."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, cast

from .._policy import Call, Operation, base_of_wait, is_repeated, read_json, spread
from .._sse import EventParser
from .._wire import TooLargeError, WireError
from ..errors import PosthornError
from .caller import AsyncCaller
from .http import AsyncAnswer

if TYPE_CHECKING:
    from ..types import StreamEvent

# The service sends something every 15 seconds.
SILENCE_S = 45.0
_STREAM = Operation("GET", "/v1/events")


class AsyncEvents:
    """`events` of a client."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def watch(self, *, last_event_id: str | None = None) -> AsyncGenerator[StreamEvent, None]:
        """Yields every event after the one with that id, without end, over interruptions. Without an id: from now on.

        Each event has `id`, `type`, `timestamp` and `data`. After `stream.reset` events may be missing: read the state
        again. Raises PosthornError if the service refuses the stream for good.
        """
        last_id, retry = last_event_id, 0
        while True:
            failure: PosthornError | None = None
            try:
                answer = await self._caller.stream(Call(_STREAM), last_id)
            except PosthornError as error:
                if not is_repeated(_STREAM, error):
                    raise
                failure = error
            else:
                async with aclosing(self._read(answer)) as events:
                    async for event in events:
                        last_id, retry = event["id"] or last_id, 0
                        yield event
            retry += 1
            await self._caller.io.sleep(spread(base_of_wait(retry, failure), self._caller.io.random()))

    async def _read(self, answer: AsyncAnswer) -> AsyncGenerator[StreamEvent, None]:
        """Yields the events of one connection, until it ends or breaks."""
        parser = EventParser()
        try:
            while chunk := await self._receive(answer):
                for sent in parser.feed(chunk):
                    event = read_json(answer.status, answer.fields, sent.data.encode())
                    yield cast("StreamEvent", {**event, "id": sent.id})
        except TooLargeError as error:
            raise PosthornError(f"Reading was stopped: {error}.", "too_large") from None
        finally:
            answer.close()

    async def _receive(self, answer: AsyncAnswer) -> bytes:
        try:
            return await answer.receive(SILENCE_S)
        except (OSError, WireError):  # the stream goes on over the next connection
            return b""
