"""Verifies calls of webhooks, as Standard Webhooks has it (https://www.standardwebhooks.com)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol, cast

from .errors import WebhookVerificationError

if TYPE_CHECKING:
    from .types import WebhookEvent

_WINDOW_S = 300
_WHOLE = re.compile(r"[0-9]{1,15}", re.ASCII)


class Headers(Protocol):
    """The headers of a request in any framework: a mapping, or an object like one."""

    def items(self) -> Iterable[tuple[str, str]]: ...


def verify_webhook(secret: str, body: str | bytes, headers: Headers) -> WebhookEvent:
    """Returns the event of a call, with `id`, `type`, `timestamp` and `data`.

    `body` is the raw body, as it came. Raises WebhookVerificationError with the code `missing_header`, `outside_window`,
    `invalid_signature` or `invalid_body`. Remember the `id`: a call can be repeated.
    """
    return _verify(secret, body, headers, time.time())


def _verify(secret: str, body: str | bytes, headers: Headers, now: float) -> WebhookEvent:
    named = {name.lower(): value for name, value in headers.items()}
    found = [named.get(f"webhook-{name}") for name in ("id", "timestamp", "signature")]
    event_id, timestamp, signatures = (value or "" for value in found)
    if not (event_id and timestamp and signatures):
        raise WebhookVerificationError("A header of Standard Webhooks is missing.", "missing_header")
    # A call that somebody recorded must not be accepted for ever.
    if not _WHOLE.fullmatch(timestamp) or abs(int(now) - int(timestamp)) > _WINDOW_S:
        raise WebhookVerificationError("The call is not of the last five minutes.", "outside_window")
    # A stranger chose these texts. Those that are no Unicode have no signature that matches.
    raw = body.encode("utf-8", "replace") if isinstance(body, str) else bytes(body)
    signed = b".".join([event_id.encode("utf-8", "replace"), timestamp.encode(), raw])
    wanted = hmac.new(_read_secret(secret), signed, hashlib.sha256).digest()
    if not any(_is_signature(signature, wanted) for signature in signatures.split(" ")):
        raise WebhookVerificationError("No signature matches.", "invalid_signature")
    return _read_event(event_id, raw)


def _read_secret(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        key = b""
    # Anybody can sign with an empty key.
    if not key:
        raise ValueError("the secret must be whsec_ and base64")
    return key


def _is_signature(written: str, wanted: bytes) -> bool:
    version, _, text = written.partition(",")
    if version != "v1":
        return False
    try:
        # Comparing in constant time, or an attacker could guess a signature byte by byte.
        return hmac.compare_digest(base64.b64decode(text, validate=True), wanted)
    except ValueError:  # not base64
        return False


def _read_event(event_id: str, raw: bytes) -> WebhookEvent:
    try:
        event = json.loads(raw)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict):
        raise WebhookVerificationError("The body is no JSON object.", "invalid_body")
    return cast("WebhookEvent", {**event, "id": event_id})
