"""A client of Posthorn, the mail service for programs and agents: `Posthorn` blocks, `AsyncPosthorn` is for asyncio."""

from ._async.client import AsyncPosthorn
from ._sync.client import Posthorn
from ._version import VERSION as __version__
from .errors import (
    AuthenticationError,
    ConflictError,
    ConnectionFailedError,
    IdempotencyKeyReusedError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
    PosthornError,
    RateLimitError,
    ServerError,
    WaitTimeoutError,
    WebhookVerificationError,
)
from .webhooks import verify_webhook

__all__ = [
    "AsyncPosthorn",
    "AuthenticationError",
    "ConflictError",
    "ConnectionFailedError",
    "IdempotencyKeyReusedError",
    "InvalidRequestError",
    "NotFoundError",
    "PermissionDeniedError",
    "Posthorn",
    "PosthornError",
    "RateLimitError",
    "ServerError",
    "WaitTimeoutError",
    "WebhookVerificationError",
    "__version__",
    "verify_webhook",
]
