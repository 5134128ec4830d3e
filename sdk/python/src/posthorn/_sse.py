"""Server-sent events as the HTML standard has them (9.2.6), cut out of bytes."""

from __future__ import annotations

from dataclasses import dataclass

from ._wire import TooLargeError

MAX_EVENT_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class SentEvent:
    """`id` is None until the stream has given one."""

    id: str | None
    data: str


class EventParser:
    """Collects lines to events. A line ends in CR LF, LF or CR. An event ends in an empty line."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._data: list[str] = []
        self._event_bytes = 0
        self._id: str | None = None
        self._after_cr = False

    def feed(self, chunk: bytes) -> list[SentEvent]:
        """Returns the events that end in the chunk. Raises TooLargeError."""
        begins_in_line_end = self._after_cr and chunk[:1] == b"\n"
        self._after_cr = chunk[-1:] == b"\r"
        *ended, rest = chunk[begins_in_line_end:].replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        events = []
        for piece in ended:
            self._add(piece)
            event = self._end_line()
            if event is not None:
                events.append(event)
        self._add(rest)
        return events

    def _add(self, piece: bytes) -> None:
        self._line += piece
        self._event_bytes += len(piece)
        if self._event_bytes > MAX_EVENT_BYTES:
            raise TooLargeError(f"an event has more than {MAX_EVENT_BYTES} bytes")

    def _end_line(self) -> SentEvent | None:
        line = self._line.decode("utf-8", "replace")
        self._line.clear()
        if line == "":
            self._event_bytes = 0
            data, self._data = self._data, []
            return SentEvent(self._id, "\n".join(data)) if data else None
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "id" and "\0" not in value:
            self._id = value or None
        if name != "data" and not self._data:
            # Comments keep the connection open for days, and belong to no event.
            self._event_bytes = 0
        return None
