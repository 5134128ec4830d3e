"""The server of a client, read from its base URL."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Origin:
    """`authority` is the value of `Host`. `prefix` is the path before `/v1`. `tls` is None for http."""

    host: str
    port: int
    authority: str
    prefix: str
    tls: ssl.SSLContext | None


def read_origin(base_url: str) -> Origin:
    """Reads `https://mail.example.com` or `http://127.0.0.1:8025/prefix`. Raises ValueError for anything else."""
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"the base URL must begin with http:// or https:// and name a host: {base_url!r}")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("the base URL must not have a user, a query or a fragment")
    host = parts.hostname if parts.hostname.isascii() else parts.hostname.encode("idna").decode("ascii")
    is_secure = parts.scheme == "https"
    usual = 443 if is_secure else 80
    port = parts.port or usual
    named = f"[{host}]" if ":" in host else host
    authority = named if port == usual else f"{named}:{port}"
    tls = ssl.create_default_context() if is_secure else None
    return Origin(host, port, authority, parts.path.rstrip("/"), tls)
