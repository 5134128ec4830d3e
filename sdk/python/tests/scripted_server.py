"""A server on loopback that plays the script of a scenario, and notes each request that differs from it."""

from __future__ import annotations

import base64
import json
import re
import socket
import ssl
import struct
import threading
from typing import Any
from urllib.parse import parse_qsl, urlsplit

Step = dict[str, Any]


def holds(actual: Any, wanted: Any) -> bool:
    """Whether `actual` has the members of `wanted`, at any depth."""
    if isinstance(wanted, dict):
        return isinstance(actual, dict) and all(
            name in actual and holds(actual[name], value) for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(actual, list)
            and len(actual) == len(wanted)
            and all(map(holds, actual, wanted))
        )
    return bool(actual == wanted)


class Request:
    def __init__(self, head: bytes, body: bytes) -> None:
        first, *lines = head.decode("latin-1").split("\r\n")
        self.method, self.target, _ = first.split(" ")
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        self.body = body

    def faults(self, step: Step, cursor: str | None) -> list[str]:
        """Describes each difference from the step. `cursor` is the one that a page must be requested with."""
        parts = urlsplit(self.target)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        found = []
        if f"{self.method} {parts.path}" != step["request"]:
            found.append(f"{self.method} {parts.path} came, not {step['request']}")
        if "query" in step and query != step["query"]:
            found.append(f"the query is {query}, not {step['query']}")
        if cursor is not None and query.get("cursor") != cursor:
            found.append(f"the cursor is {query.get('cursor')}, not {cursor}")
        for name, value in step.get("headers", {}).items():
            if self.headers.get(name) != value:
                found.append(f"{name} is {self.headers.get(name)!r}, not {value!r}")
        if "json" in step and not holds(json.loads(self.body or b"null"), step["json"]):
            found.append(f"the body is {self.body!r}, not {step['json']}")
        return found


class ScriptedServer:
    def __init__(self, script: list[Step], tls: ssl.SSLContext | None = None) -> None:
        self.connection_count = 0
        self._tls = tls
        self.faults: list[str] = []
        self.requests: list[Request] = []
        self._steps = [one for step in script for one in _expand(step)]
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        scheme = "https" if tls else "http"
        self.base_url = f"{scheme}://127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        """Stops, and notes the steps that were not reached."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.close_connections()
        for thread in self._threads:
            thread.join()
        if self._steps:
            self.faults.append(f"{len(self._steps)} requests did not come, the first is {self._steps[0][0]}")

    def close_connections(self) -> None:
        with self._lock:
            for connection in self._open:
                _shut(connection)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # the listener is closed
                return
            thread = threading.Thread(target=self._serve, args=(connection,))
            with self._lock:
                self._open.append(connection)
                self.connection_count += 1
                self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        buffer = b""
        try:
            if self._tls:
                connection = self._tls.wrap_socket(connection, server_side=True)
            while True:
                request, buffer = _read_request(connection, buffer)
                if request is None or not self._answer(connection, request):
                    break
        except OSError:  # the client closed the connection
            pass
        finally:
            _shut(connection)
            connection.close()

    def _answer(self, connection: socket.socket, request: Request) -> bool:
        """Plays the next step. Returns whether the connection stays open."""
        with self._lock:
            self.requests.append(request)
            if not self._steps:
                self.faults.append(f"{request.method} {request.target} came after the last step")
                return False
            step, cursor = self._steps.pop(0)
            self.faults += request.faults(step, cursor)
        if step.get("hang"):
            connection.recv(1)
            return False
        if "raw" in step:
            connection.sendall(step["raw"].encode())
            return False
        if "stream" in step:
            _stream(connection, step)
            return False
        if step.get("reset") == "before":
            # Closing with this option sends a reset.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
            return False
        wire = _write_answer(step.get("answer", {}))
        if step.get("reset") == "middle":
            connection.sendall(wire[: len(wire) // 2])
            return False
        connection.sendall(wire)
        return True


def _expand(step: Step) -> list[tuple[Step, str | None]]:
    """Returns the steps with the cursor that each must be requested with."""
    if "pages" not in step:
        return [(step, None)]
    count, size = step["pages"], step["perPage"]
    expanded: list[tuple[Step, str | None]] = []
    for page in range(1, count + 1):
        items = [{"id": f"item-{number}"} for number in range((page - 1) * size + 1, page * size + 1)]
        following = f"page-{page + 1}" if page < count else None
        answer = {"json": {step["items"]: items, "nextCursor": following}}
        expanded.append(({"request": step["request"], "answer": answer}, f"page-{page}" if page > 1 else None))
    return expanded


def _read_request(connection: socket.socket, buffer: bytes) -> tuple[Request | None, bytes]:
    while b"\r\n\r\n" not in buffer:
        received = connection.recv(65536)
        if not received:
            return None, b""
        buffer += received
    head, _, rest = buffer.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    size = int(length[1]) if length else 0
    while len(rest) < size:
        received = connection.recv(65536)
        if not received:
            return None, b""
        rest += received
    return Request(head, rest[:size]), rest[size:]


def _write_answer(answer: dict[str, Any]) -> bytes:
    status = answer.get("status", 200)
    headers = dict(answer.get("headers", {}))
    body = b""
    if "json" in answer:
        headers.setdefault("content-type", "application/json")
        body = json.dumps(answer["json"]).encode()
    elif "text" in answer:
        body = answer["text"].encode()
    elif "base64" in answer:
        body = base64.b64decode(answer["base64"])
    if status != 204:
        headers["content-length"] = str(len(body))
    lines = [f"HTTP/1.1 {status} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _stream(connection: socket.socket, step: Step) -> None:
    connection.sendall(
        b"HTTP/1.1 200 Scripted\r\ncontent-type: text/event-stream\r\n"
        b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n"
    )
    for text in step["stream"]:
        piece = text.encode()
        connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
    if "reset" not in step:
        connection.sendall(b"0\r\n\r\n")


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:  # it is closed already
        pass
