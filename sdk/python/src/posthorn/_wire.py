"""HTTP/1.1 as bytes (RFC 9112): writes requests, and cuts heads and bodies out of what a connection brings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

MAX_HEAD_BYTES = 64 * 1024
MAX_FIELDS = 200
_MAX_CHUNK_LINE_BYTES = 1024
_MAX_TRAILER_BYTES = 16 * 1024

_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: [^\r\n]*)?")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*)")
_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?")
_LENGTH = re.compile(r"[0-9]{1,15}")
# A control character in a path or a header would end its line, and inject another one.
_UNSAFE = re.compile(r"[^\x21-\x7e]")
_UNSAFE_VALUE = re.compile(r"[^\t\x20-\x7e]")


class WireError(Exception):
    """The answer is not HTTP, or it was cut off."""


class TooLargeError(Exception):
    """The answer has more bytes than the client reads."""


@dataclass(frozen=True)
class Head:
    """The status and the fields of an answer. Names of fields are in lower case; repeated ones are joined by commas."""

    status: int
    fields: Mapping[str, str]
    is_http_1_0: bool = False

    @property
    def keeps_alive(self) -> bool:
        options = [option.strip().lower() for option in self.fields.get("connection", "").split(",")]
        return not self.is_http_1_0 and "close" not in options


def write_head(method: str, target: str, fields: Mapping[str, str]) -> bytes:
    """Returns the head of a request. Raises ValueError for characters that could end a line."""
    if _UNSAFE.search(target):
        raise ValueError("the path has a character that must be percent-encoded")
    lines = [f"{method} {target} HTTP/1.1"]
    for name, value in fields.items():
        if _UNSAFE.search(name) or _UNSAFE_VALUE.search(value):
            raise ValueError(f"the header {name!r} has a character that a header must not have")
        lines.append(f"{name}: {value}")
    return "\r\n".join([*lines, "", ""]).encode("ascii")


class HeadReader:
    """Collects the head of an answer, and skips informational ones (RFC 9110 15.2)."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._read_bytes = 0

    def feed(self, chunk: bytes) -> tuple[Head, bytes] | None:
        """Returns the head and the bytes after it, once both are there. Raises WireError."""
        self._buffer += chunk
        self._read_bytes += len(chunk)
        while (end := self._buffer.find(b"\r\n\r\n", 0, MAX_HEAD_BYTES)) >= 0:
            head = parse_head(bytes(self._buffer[:end]))
            rest = bytes(self._buffer[end + 4 :])
            if head.status >= 200:
                return head, rest
            if head.status == 101:
                raise WireError("the server switched protocols unasked")
            self._buffer = bytearray(rest)
        if self._read_bytes > MAX_HEAD_BYTES:
            raise WireError(f"the head of the answer has more than {MAX_HEAD_BYTES} bytes")
        return None


def parse_head(block: bytes) -> Head:
    """Reads a head without its last two line ends. Raises WireError."""
    first, *lines = block.split(b"\r\n")
    status = _STATUS_LINE.fullmatch(first)
    if status is None:
        raise WireError("the answer does not begin with an HTTP/1.1 status line")
    if len(lines) > MAX_FIELDS:
        raise WireError(f"the answer has more than {MAX_FIELDS} header fields")
    fields: dict[str, str] = {}
    for line in lines:
        field = _FIELD.fullmatch(line)
        # RFC 9112 5.2: folded lines are obsolete, and nothing here may guess what they mean.
        if field is None:
            raise WireError("the answer has a malformed header field")
        name = field[1].decode("ascii").lower()
        value = field[2].decode("latin-1").rstrip(" \t")
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return Head(int(status[2]), fields, status[1] == b"0")


class BodyReader:
    """Cuts the body of one answer out of the bytes that follow its head (RFC 9112 6.3)."""

    def __init__(self, method: str, head: Head) -> None:
        self._buffer = bytearray()
        self._left: int | None = None
        self._is_chunked = False
        self._trailer_bytes: int | None = None
        self.is_done = False
        fields = head.fields
        length, coding = fields.get("content-length"), fields.get("transfer-encoding")
        if method == "HEAD" or head.status in (204, 304):
            self.is_done = True
        elif coding is not None:
            # RFC 9112 6.3: both at once is how answers are smuggled, and no other coding was asked for.
            if coding.lower() != "chunked" or length is not None:
                raise WireError("the answer has a transfer-encoding that was not asked for")
            self._is_chunked = True
        elif length is not None:
            if _LENGTH.fullmatch(length) is None:
                raise WireError("the answer has a malformed content-length")
            self._left = int(length)
            self.is_done = self._left == 0
        self.ends_by_close = not self.is_done and not self._is_chunked and self._left is None

    @property
    def has_excess(self) -> bool:
        """Whether the peer sent more than the body, so that the connection cannot be used again."""
        return self.is_done and len(self._buffer) > 0

    @property
    def may_reuse(self) -> bool:
        return self.is_done and not self.ends_by_close and not self.has_excess

    def feed(self, chunk: bytes) -> bytes:
        """Returns the bytes of the body in the chunk, which may be none. Raises WireError."""
        if self.ends_by_close:
            return chunk
        self._buffer += chunk
        return self._take_chunks() if self._is_chunked else self._take_left()

    def end(self) -> None:
        """Says that the peer closed the connection. Raises WireError if the body is incomplete."""
        if not self.ends_by_close and not self.is_done:
            raise WireError("the connection closed before the end of the answer")
        self.is_done = True

    def _take_left(self) -> bytes:
        if self.is_done or self._left is None:
            return b""
        taken = bytes(self._buffer[: self._left])
        del self._buffer[: len(taken)]
        self._left -= len(taken)
        self.is_done = self._left == 0 and not self._is_chunked
        return taken

    def _take_chunks(self) -> bytes:
        taken = []
        while not self.is_done:
            if self._left:
                piece = self._take_left()
                if not piece:
                    break
                taken.append(piece)
            elif self._left == 0:
                if len(self._buffer) < 2:
                    break
                if self._buffer[:2] != b"\r\n":
                    raise WireError("a chunk of the answer has no end")
                del self._buffer[:2]
                self._left = None
            elif not self._begin_chunk():
                break
        return b"".join(taken)

    def _begin_chunk(self) -> bool:
        """Reads a line: the size of the next chunk, or a trailer field, which is dropped. False: it is not there yet."""
        end = self._buffer.find(b"\r\n", 0, _MAX_CHUNK_LINE_BYTES)
        if end < 0:
            if len(self._buffer) >= _MAX_CHUNK_LINE_BYTES:
                raise WireError("a line between chunks of the answer is too long")
            return False
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        if self._trailer_bytes is not None:
            self._trailer_bytes += end + 2
            if self._trailer_bytes > _MAX_TRAILER_BYTES:
                raise WireError("the trailer of the answer is too long")
            self.is_done = end == 0
            return True
        size = _CHUNK_LINE.fullmatch(line)
        if size is None:
            raise WireError("a chunk of the answer has a malformed size")
        self._left = int(size[1], 16)
        if self._left == 0:
            self._left, self._trailer_bytes = None, 0
        return True
