"""The errors of this package. `sdk/README.md` says which outcome is which."""

from __future__ import annotations

# The same call may succeed later, although their status alone does not say so.
IN_PROGRESS = frozenset({"idempotency_in_progress", "delivery_in_progress"})


class PosthornError(Exception):
    """`code` is stable, for programs. `status`, `request_id` and `retry_after` (in seconds) are None without them."""

    def __init__(
        self,
        message: str,
        # Has a default, because copying and unpickling call this with the message alone, and set the rest afterwards.
        code: str = "",
        *,
        status: int | None = None,
        request_id: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after

    @property
    def is_temporary(self) -> bool:
        """Whether the same call may succeed later."""
        status = self.status or 0
        return status in (423, 429) or status >= 500 or self.code in IN_PROGRESS

    def __str__(self) -> str:
        about = [part for part in (self.code, self.request_id and f"request {self.request_id}") if part]
        return f"{self.message} ({', '.join(about)})"


class InvalidRequestError(PosthornError):
    """400, 413, 422: the request must change."""


class AuthenticationError(PosthornError):
    """401: the key is wrong, expired or revoked, or may not be used from here."""


class PermissionDeniedError(PosthornError):
    """403: the key or a policy does not allow this."""


class NotFoundError(PosthornError):
    """404, 410: the object does not exist, or not any more."""


class ConflictError(PosthornError):
    """409, 423: the state of the object does not allow this."""


class IdempotencyKeyReusedError(ConflictError):
    """The idempotency key was used for another request (409), or its result was deleted (410): the action has happened."""


class RateLimitError(PosthornError):
    """429: a limit is used up."""


class ServerError(PosthornError):
    """500 and above."""


class ConnectionFailedError(PosthornError):
    """There was no answer. The code is `connection_failed`, `timed_out` or `certificate_invalid`."""

    @property
    def is_temporary(self) -> bool:
        return True


class WaitTimeoutError(PosthornError):
    """No matching message came in time."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "wait_timeout")

    @property
    def is_temporary(self) -> bool:
        return True


class WebhookVerificationError(PosthornError):
    """The call does not come from Posthorn, or comes late."""


_CLASSES: dict[int, type[PosthornError]] = {
    400: InvalidRequestError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    410: NotFoundError,
    413: InvalidRequestError,
    422: InvalidRequestError,
    423: ConflictError,
    429: RateLimitError,
}


def class_of(status: int, code: str) -> type[PosthornError]:
    """Returns the class of an answer's error."""
    if code in ("idempotency_key_reused", "idempotency_result_expired"):
        return IdempotencyKeyReusedError
    return ServerError if status >= 500 else _CLASSES.get(status, PosthornError)
