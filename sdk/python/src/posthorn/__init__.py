"""A client of Posthorn, the mail service for programs and agents: `Posthorn` blocks, `AsyncPosthorn` is for asyncio."""

from ._async.client import AsyncPosthorn
from ._async.download import AsyncDownload
from ._async.pages import AsyncPages
from ._sync.client import Posthorn
from ._sync.download import Download
from ._sync.pages import Pages
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
    "AsyncDownload",
    "AsyncPages",
    "AsyncPosthorn",
    "AuthenticationError",
    "ConflictError",
    "ConnectionFailedError",
    "Download",
    "IdempotencyKeyReusedError",
    "InvalidRequestError",
    "NotFoundError",
    "Pages",
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
