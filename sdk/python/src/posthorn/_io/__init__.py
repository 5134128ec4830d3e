"""The two ways to wait: blocking sockets, and asyncio. Nothing else in this package opens a connection or sleeps."""

from __future__ import annotations

import selectors

READ_BYTES = 64 * 1024


def is_readable(descriptor: int) -> bool:
    """Whether the peer has closed the connection or sent something that was not read yet."""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        return bool(selector.select(0))
