"""Waits for messages of an inbox, by requests that the service answers once there is mail."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import TYPE_CHECKING, Literal

from .._policy import spread
from ..errors import WaitTimeoutError
from .caller import AsyncCaller
from .operations import AsyncMessages

if TYPE_CHECKING:
    from ..types import Message

LONGEST_WAIT_S = 30
# An empty answer that came sooner comes from a node that stops, or from a proxy.
SOON_S = 1.0

After = str | Mapping[str, object]
Direction = Literal["inbound", "outbound", "any"]
Match = Callable[["Message"], bool]


class AsyncWaiting:
    """Reads the messages of an inbox in the order in which they were filed."""

    def __init__(self, caller: AsyncCaller, inbox_id: str) -> None:
        self._caller, self._inbox_id = caller, inbox_id
        self._messages = AsyncMessages(caller)

    async def one(self, after: After, direction: Direction, match: Match | None, timeout: float) -> Message:
        """Returns the first matching message after that one. Raises WaitTimeoutError after `timeout` seconds."""
        until = self._caller.io.now() + timeout
        last_id = await self._id_of(after, timeout)
        while True:
            left = max(until - self._caller.io.now(), 0.0)
            wait_s = min(math.ceil(left), LONGEST_WAIT_S)
            asked_at = self._caller.io.now()
            # The last answer may come a little after the time is over. The call adds `wait_s`.
            deadline = left + self._caller.attempt_timeout - wait_s
            found = await self._next(last_id, direction, wait_s, deadline)
            for message in found:
                last_id = message["id"]
                if match is None or match(message):
                    return message
            left = until - self._caller.io.now()
            if left <= 0:
                raise WaitTimeoutError(f"No matching message came within {timeout:g} seconds.")
            await self._pause(found, asked_at, left)

    async def every(self, after: After, direction: Direction, match: Match | None) -> AsyncGenerator[Message, None]:
        """Yields matching messages after that one, without end."""
        last_id = await self._id_of(after, None)
        while True:
            asked_at = self._caller.io.now()
            found = await self._next(last_id, direction, LONGEST_WAIT_S, math.inf)
            for message in found:
                last_id = message["id"]
                if match is None or match(message):
                    yield message
            await self._pause(found, asked_at, math.inf)

    async def _next(
        self, last_id: str, direction: Direction, wait_s: int, deadline: float
    ) -> list[Message]:
        chosen = None if direction == "any" else direction
        page = await self._messages.list(
            self._inbox_id, after=last_id, direction=chosen, wait=wait_s, deadline=deadline
        ).first()
        return page["messages"]

    async def _id_of(self, after: After, deadline: float | None) -> str:
        if not isinstance(after, str):
            return str(after["id"])
        if after != "now":
            return after
        newest = (await self._messages.list(self._inbox_id, limit=1, deadline=deadline).first())["messages"]
        return newest[0]["id"] if newest else "0"

    async def _pause(self, found: list[Message], asked_at: float, left: float) -> None:
        """Bounds the load if empty answers come at once."""
        if not found and self._caller.io.now() - asked_at < SOON_S:
            await self._caller.io.sleep(min(spread(SOON_S, self._caller.io.random()), left))
