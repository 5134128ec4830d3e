"""Connections of both clients: reuse, loss, bounds, threads, tasks and TLS, against servers on loopback."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import posthorn
from posthorn._async import caller as async_caller
from posthorn._io import asynchronous, blocking
from posthorn._sync import caller as blocking_caller
from scripted_server import ScriptedServer, Step

FIXTURES = Path(__file__).parents[3] / "tests/fixtures"
PROFILE: Step = {"request": "GET /v1/me", "answer": {"json": {"organization": {"status": "active"}}}}


class Skipping(blocking.Io):
    """Waits take no time, and the clock advances by them."""

    def __init__(self) -> None:
        self.skipped = 0.0

    def now(self) -> float:
        return super().now() + self.skipped

    def sleep(self, seconds: float) -> None:
        self.skipped += seconds


class AsyncSkipping(asynchronous.Io):
    """The same for asyncio."""

    def __init__(self) -> None:
        self.skipped = 0.0

    def now(self) -> float:
        return super().now() + self.skipped

    async def sleep(self, seconds: float) -> None:
        self.skipped += seconds


class ReuseTest(unittest.TestCase):
    def setUp(self) -> None:
        self.server = ScriptedServer([PROFILE] * 3)
        self.addCleanup(self.server.close)

    def check(self, connections: int) -> None:
        self.assertEqual(self.server.faults, [])
        self.assertEqual(self.server.connection_count, connections)

    def test_blocking_calls_share_a_connection(self) -> None:
        with posthorn.Posthorn(self.server.base_url, "ph_test") as client:
            for _ in range(3):
                client.profile()
        self.check(1)

    def test_calls_of_asyncio_share_a_connection(self) -> None:
        async def call() -> None:
            async with posthorn.AsyncPosthorn(self.server.base_url, "ph_test") as client:
                for _ in range(3):
                    await client.profile()

        asyncio.run(call())
        self.check(1)

    def test_a_connection_that_the_server_closed_is_not_used_again(self) -> None:
        io = Skipping()
        client = posthorn.Posthorn(self.server.base_url, "ph_test", _io=io)
        for _ in range(3):
            client.profile()
            self.server.close_connections()
        client.close()
        self.assertEqual(io.skipped, 0)
        self.check(3)

    def test_a_client_of_asyncio_can_be_used_in_one_loop_after_the_other(self) -> None:
        io = AsyncSkipping()
        client = posthorn.AsyncPosthorn(self.server.base_url, "ph_test", _io=io)
        for _ in range(3):
            asyncio.run(client.profile())
        self.assertEqual(io.skipped, 0)
        self.check(3)

    def test_threads_share_a_client(self) -> None:
        with posthorn.Posthorn(self.server.base_url, "ph_test") as client, ThreadPoolExecutor(3) as pool:
            answers = list(pool.map(lambda _: client.profile(), range(3)))
        self.assertEqual([answer["organization"]["status"] for answer in answers], ["active"] * 3)
        self.assertEqual(self.server.faults, [])

    def test_tasks_share_a_client(self) -> None:
        async def call() -> None:
            async with posthorn.AsyncPosthorn(self.server.base_url, "ph_test") as client:
                await asyncio.gather(*(client.profile() for _ in range(3)))

        asyncio.run(call())
        self.assertEqual(self.server.faults, [])


class CancelTest(unittest.TestCase):
    def test_a_call_that_is_cancelled_leaves_a_usable_client(self) -> None:
        server = ScriptedServer([{"request": "GET /v1/me", "hang": True}, PROFILE])
        self.addCleanup(server.close)

        async def call() -> str:
            async with posthorn.AsyncPosthorn(server.base_url, "ph_test") as client:
                task = asyncio.create_task(client.profile())
                while not server.requests:
                    await asyncio.sleep(0.005)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                return (await client.profile())["organization"]["status"]

        self.assertEqual(asyncio.run(call()), "active")
        self.assertEqual(server.faults, [])


class BoundTest(unittest.TestCase):
    def raw_server(self, answer: bytes, again: bytes) -> str:
        """Starts a server that answers each connection with `answer`, and then with `again` without end."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        self.addCleanup(listener.shutdown, socket.SHUT_RDWR)

        def serve(connection: socket.socket) -> None:
            with connection:
                try:
                    connection.recv(65536)
                    connection.sendall(answer)
                    while True:
                        connection.sendall(again)
                        stop.wait(0.01)
                except OSError:  # the client gave up
                    pass

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:  # the test is over
                    return
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

        stop = threading.Event()
        threading.Thread(target=accept, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    def errors_of(self, base_url: str, attempt_timeout: float = 30.0) -> set[str]:
        """Returns the codes with which both clients give up."""

        async def call() -> None:
            async with posthorn.AsyncPosthorn(
                base_url, "ph_test", deadline=1, attempt_timeout=attempt_timeout, _io=AsyncSkipping()
            ) as client:
                await client.profile()

        codes = set()
        with self.assertRaises(posthorn.PosthornError) as blocked:
            posthorn.Posthorn(
                base_url, "ph_test", deadline=1, attempt_timeout=attempt_timeout, _io=Skipping()
            ).profile()
        codes.add(blocked.exception.code)
        with self.assertRaises(posthorn.PosthornError) as awaited:
            asyncio.run(call())
        codes.add(awaited.exception.code)
        return codes

    def test_an_answer_that_drips_without_end_times_out(self) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n"
        self.assertEqual(self.errors_of(self.raw_server(head, b" "), 0.1), {"timed_out"})
        self.assertEqual(self.errors_of(self.raw_server(b"HTTP/1.1 200 OK\r\n", b"a: b\r\n"), 0.1), {"timed_out"})

    def test_an_answer_without_end_is_not_read_to_its_end(self) -> None:
        head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        base_url = self.raw_server(head, b"ffff\r\n" + b" " * 0xFFFF + b"\r\n")
        with (
            mock.patch.object(async_caller, "MAX_JSON_BYTES", 100_000),
            mock.patch.object(blocking_caller, "MAX_JSON_BYTES", 100_000),
        ):
            self.assertEqual(self.errors_of(base_url), {"too_large"})

    def test_bytes_that_are_no_http_are_a_failed_connection(self) -> None:
        self.assertEqual(self.errors_of(self.raw_server(b"220 mail ESMTP\r\n\r\n", b"x")), {"connection_failed"})

    def test_a_port_without_a_server_is_a_failed_connection(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        self.assertEqual(self.errors_of(f"http://127.0.0.1:{port}"), {"connection_failed"})


class TlsTest(unittest.TestCase):
    def test_the_certificate_of_the_server_must_be_trusted(self) -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(FIXTURES / "tls-cert.pem", FIXTURES / "tls-key.pem")
        server = ScriptedServer([PROFILE] * 2, tls=context)
        self.addCleanup(server.close)
        base_url = server.base_url.replace("127.0.0.1", "localhost")

        async def call() -> str:
            async with posthorn.AsyncPosthorn(base_url, "ph_test") as client:
                return (await client.profile())["organization"]["status"]

        with self.assertRaises(posthorn.ConnectionFailedError) as caught:
            posthorn.Posthorn(base_url, "ph_test", _io=Skipping()).profile()
        self.assertEqual(caught.exception.code, "certificate_invalid")
        with mock.patch.dict(os.environ, {"SSL_CERT_FILE": str(FIXTURES / "tls-cert.pem")}):
            with posthorn.Posthorn(base_url, "ph_test") as client:
                self.assertEqual(client.profile()["organization"]["status"], "active")
            self.assertEqual(asyncio.run(call()), "active")
        self.assertEqual(server.faults, [])


class ClientTest(unittest.TestCase):
    def test_a_base_url_must_name_a_server_and_nothing_else(self) -> None:
        for base_url in ("", "mail.example.com", "ftp://a", "http://", "https://u:p@a", "https://a?b", "https://a#b"):
            with self.subTest(base_url), self.assertRaises(ValueError):
                posthorn.Posthorn(base_url, "ph_test")

    def test_a_key_with_a_line_end_is_refused_and_not_repeated_in_the_error(self) -> None:
        with self.assertRaises(ValueError) as refused:
            posthorn.Posthorn("http://127.0.0.1:1", "ph_secret\r\nx: y").profile()
        self.assertNotIn("secret", str(refused.exception))


if __name__ == "__main__":
    unittest.main()
