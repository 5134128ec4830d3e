"""The client, and its handles of an inbox and of a message."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from .._io.asynchronous import Io
from .caller import AsyncCaller, Options
from .events import AsyncEvents
from .operations import AsyncBoundMessages, AsyncBoundThread, AsyncOperations
from .waiting import After, AsyncWaiting, Direction, Match

if TYPE_CHECKING:
    from ..types import Message


class AsyncInboxMessages(AsyncBoundMessages):
    """`messages` of an inbox."""

    async def wait(
        self,
        *,
        after: After = "0",
        direction: Direction = "inbound",
        match: Match | None = None,
        timeout: float = 60.0,
    ) -> Message:
        """Returns the first message for which `match` is true, as soon as it is there.

        `after` is a message or its id: only messages filed later count. "0" is the beginning of the inbox, "now" the
        newest message at the time of the call. Raises WaitTimeoutError after `timeout` seconds.
        """
        return await AsyncWaiting(self._caller, self._inbox_id).one(after, direction, match, timeout)

    def watch(
        self, *, after: After = "0", direction: Direction = "inbound", match: Match | None = None
    ) -> AsyncGenerator[Message, None]:
        """Yields messages as `wait` does, without end.

        Store the id of each message after it is finished, and give it as `after` at the next start: then no message is
        missed.
        """
        return AsyncWaiting(self._caller, self._inbox_id).every(after, direction, match)


class AsyncInbox:
    """An inbox, by its id."""

    def __init__(self, caller: AsyncCaller, inbox_id: str) -> None:
        self.id = inbox_id
        self.messages = AsyncInboxMessages(caller, inbox_id)


class AsyncThread(AsyncBoundThread):
    """The thread of a message."""

    def __init__(self, caller: AsyncCaller, message: Mapping[str, object]) -> None:
        super().__init__(caller, str(message["threadId"]), str(message["id"]))
        self._waiting = AsyncWaiting(caller, str(message["inboxId"]))

    async def wait_for_reply(self, *, match: Match | None = None, timeout: float = 60.0) -> Message:
        """Returns the first inbound message of the thread after this message. Raises WaitTimeoutError."""

        def is_reply(message: Message) -> bool:
            return message["threadId"] == self._thread_id and (match is None or match(message))

        return await self._waiting.one(self._target_message_id, "inbound", is_reply, timeout)


class AsyncPosthorn(AsyncOperations):
    """A client of one service, with one key. Use it as a context manager, or close it.

    `deadline` is the time for a call with all its retries, `attempt_timeout` for one request, in seconds.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        deadline: float = 60.0,
        attempt_timeout: float = 30.0,
        _io: Io | None = None,
    ) -> None:
        caller = AsyncCaller(base_url, api_key, Options(deadline, attempt_timeout), _io)
        super().__init__(caller)
        self.events = AsyncEvents(caller)

    def inbox(self, inbox: str | Mapping[str, object]) -> AsyncInbox:
        """Binds an inbox, or its id. Makes no request."""
        return AsyncInbox(self._caller, inbox if isinstance(inbox, str) else str(inbox["id"]))

    def thread(self, message: Mapping[str, object]) -> AsyncThread:
        """Binds a message and its thread. Makes no request."""
        return AsyncThread(self._caller, message)

    async def close(self) -> None:
        """Closes idle connections. The client can still be used."""
        self._caller.close()

    async def __aenter__(self) -> AsyncPosthorn:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
