"""Decisions without input or output: which outcome is repeated, after which wait, and how answers and bodies are read."""

from __future__ import annotations

import base64
import json
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote, urlencode

from .errors import IN_PROGRESS, ConnectionFailedError, PosthornError, class_of

_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 8.0
_UNKNOWN = (502, 503, 504)
_WHOLE = re.compile(r"[0-9]{1,9}", re.ASCII)
_EXTENDED_NAME = re.compile(r"filename\*\s*=\s*utf-8'[^']*'([^;\s]*)", re.IGNORECASE)
_PLAIN_NAME = re.compile(r'filename\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s"]+))', re.IGNORECASE)


@dataclass(frozen=True)
class Operation:
    """An operation of the API. `path` has `{}` for each id. `takes_key` and `is_once` are those of operations.json."""

    method: str
    path: str
    takes_key: bool = False
    is_once: bool = False

    def target(self, ids: tuple[str, ...], query: Mapping[str, Any]) -> str:
        """Returns the path with its query. Raises ValueError for an empty id, which would name another operation."""
        # "/v1/inboxes/.." is another path, and so is "/v1/inboxes/".
        if any(one in ("", ".", "..") for one in ids):
            raise ValueError("an id must not be empty")
        quoted = [quote(one, safe="") for one in ids]
        written = {name: _write_value(value) for name, value in query.items()}
        return self.path.format(*quoted) + (f"?{urlencode(written)}" if written else "")


def _write_value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class Call:
    """One use of an operation. `deadline` is in seconds; None: that of the client."""

    operation: Operation
    ids: tuple[str, ...] = ()
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    idempotency_key: str | None = None
    deadline: float | None = None


class Omitted:
    """The type of an argument that was not given, where None has a meaning of its own."""

    def __repr__(self) -> str:
        return "OMITTED"


OMITTED = Omitted()


def given(members: Mapping[str, Any], nullable: tuple[str, ...] = ()) -> dict[str, Any]:
    """Returns the members that the caller gave. None is a value for the nullable ones alone."""
    return {
        name: value
        for name, value in members.items()
        if value is not OMITTED and (value is not None or name in nullable)
    }


def write_json(body: Mapping[str, Any]) -> bytes:
    """Returns the body, with the content of attachments as base64. Raises ValueError, TypeError."""
    if "attachments" in body:
        body = {**body, "attachments": [_write_attachment(one) for one in body["attachments"]]}
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _write_attachment(attachment: Mapping[str, Any]) -> dict[str, Any]:
    content = attachment["content"]
    if hasattr(content, "read"):
        content = content.read()
        if isinstance(content, str):
            raise TypeError("a file of text cannot be attached: open it as binary, with the mode 'rb'")
    if isinstance(content, (bytes, bytearray, memoryview)):
        content = base64.b64encode(content).decode("ascii")
    return {**attachment, "content": content}


def read_json(status: int, fields: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """Returns the object of a success. Raises PosthornError if it is none: the answer does not come from Posthorn."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    if isinstance(answer, dict):
        return answer
    raise strange_error("The answer is no JSON object.", status, fields)


def strange_error(message: str, status: int, fields: Mapping[str, str]) -> PosthornError:
    """Returns the error of a success that does not come from Posthorn."""
    return PosthornError(message, f"http_{status}", status=status, request_id=fields.get("x-request-id"))


def error_of(status: int, fields: Mapping[str, str], body: bytes) -> PosthornError:
    """Returns the error of an answer that is no success."""
    try:
        refusal = json.loads(body)
        code, message = refusal["error"], refusal["message"]
        if not (isinstance(code, str) and isinstance(message, str)):
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):  # a proxy answered
        code, message = f"http_{status}", f"The server answered {status}."
    return class_of(status, code)(
        message,
        code,
        status=status,
        request_id=fields.get("x-request-id"),
        retry_after=read_whole(fields.get("retry-after")),
    )


def read_whole(text: str | None) -> int | None:
    """Returns a whole number of up to nine digits, or None for anything else."""
    return int(text) if text is not None and _WHOLE.fullmatch(text) else None


def connection_error(error: Exception) -> ConnectionFailedError:
    """Returns the error of a request without an answer."""
    if isinstance(error, TimeoutError):
        return ConnectionFailedError("The server did not answer in time.", "timed_out")
    if isinstance(error, ssl.SSLCertVerificationError):
        return ConnectionFailedError(f"The certificate is not valid here: {error}", "certificate_invalid")
    return ConnectionFailedError(f"There is no answer: {error}", "connection_failed")


def is_repeated(operation: Operation, error: PosthornError) -> bool:
    """Whether another request may succeed, and has no second effect."""
    if error.status == 429:
        return True
    if operation.is_once:
        return False
    if isinstance(error, ConnectionFailedError):
        return True
    return error.status == 423 or is_unknown(error) or (error.status == 409 and error.code in IN_PROGRESS)


def is_unknown(error: PosthornError) -> bool:
    """Whether the request may have had its effect."""
    return isinstance(error, ConnectionFailedError) or error.status in _UNKNOWN


def has_succeeded(operation: Operation, error: PosthornError, *, was_unknown: bool) -> bool:
    """Whether the error says that an earlier request of the same deletion had its effect."""
    # The 404 of a proxy that has lost the service has another code.
    return operation.method == "DELETE" and was_unknown and error.status == 404 and error.code == "not_found"


def base_of_wait(retry: int, error: PosthornError | None) -> float:
    """Returns the shortest wait before the retry of that number, from 1, in seconds."""
    if error is not None and error.retry_after is not None:
        return float(error.retry_after)
    return float(min(_FIRST_WAIT_S * 2 ** min(retry - 1, 10), _LONGEST_WAIT_S))


def spread(base: float, random: float) -> float:
    """Returns the wait, so that clients that failed together do not come back together. `random` is from 0 up to 1."""
    return base * (1 + random / 2)


def read_filename(disposition: str | None) -> str | None:
    """Returns the name in a content-disposition (RFC 6266), or None."""
    if disposition is None:
        return None
    # RFC 6266 4.3: the extended form wins.
    if extended := _EXTENDED_NAME.search(disposition):
        return unquote(extended[1], errors="replace")
    if plain := _PLAIN_NAME.search(disposition):
        return re.sub(r"\\(.)", r"\1", plain[1]) if plain[1] is not None else plain[2]
    return None
