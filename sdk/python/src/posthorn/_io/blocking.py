"""Connections and pauses that block the calling thread."""

from __future__ import annotations

import os
import random
import socket
import time

from .._origin import Origin
from . import READ_BYTES, is_readable


class Connection:
    """An open connection. Calls raise TimeoutError after `timeout` seconds, and OSError on failure."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._process_id = os.getpid()

    def send(self, chunk: bytes, timeout: float) -> None:
        self._socket.settimeout(timeout)
        self._socket.sendall(chunk)

    def receive(self, timeout: float) -> bytes:
        """Returns the bytes that arrived next; none if the peer closed the connection."""
        self._socket.settimeout(timeout)
        return self._socket.recv(READ_BYTES)

    def is_quiet(self) -> bool:
        """Whether the peer has neither closed the connection nor sent anything unasked."""
        # After a fork two processes have it, and each would read the answers of the other.
        return self._process_id == os.getpid() and not is_readable(self._socket.fileno())

    def close(self) -> None:
        self._socket.close()


class Io:
    """The outside world of a client. Tests replace its methods."""

    def now(self) -> float:
        return time.monotonic()

    def random(self) -> float:
        return random.random()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def connect(self, origin: Origin, timeout: float) -> Connection:
        """Tries each address of the host. Raises OSError, of which TimeoutError is one, if none answers in time."""
        until = time.monotonic() + timeout
        failure = OSError(f"{origin.host} has no address")
        # The resolver of the operating system has a time limit of its own.
        addresses = socket.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
        for left, (family, kind, protocol, _, address) in zip(range(len(addresses), 0, -1), addresses, strict=True):
            raw = socket.socket(family, kind, protocol)
            try:
                # Each gets its share of the time, so that a network without IPv6 does not use up all of it.
                raw.settimeout(max((until - time.monotonic()) / left, 0.001))
                raw.connect(address)
                raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if origin.tls is None:
                    return Connection(raw)
                return Connection(origin.tls.wrap_socket(raw, server_hostname=origin.host))
            except OSError as error:  # the next address may answer
                raw.close()
                failure = error
            except BaseException:
                raw.close()
                raise
        raise failure
