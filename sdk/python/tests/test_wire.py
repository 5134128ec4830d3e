"""HTTP and server-sent events as bytes: any split reads the same, and hostile bytes end in an error that is expected."""

from __future__ import annotations

import base64
import hmac
import io
import random
import time
import unittest
from email import message

import posthorn
from posthorn._policy import Operation, given, read_filename, write_json
from posthorn._sse import EventParser, SentEvent
from posthorn._wire import BodyReader, Head, HeadReader, WireError, write_head

CHUNKED = (
    b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Request-Id:  req-1 \r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\n"
    b'5;name="a;b"\r\nhello\r\n1\r\n \r\n0006\r\nworld!\r\n0\r\ntrailer: dropped\r\n\r\n'
)
COUNTED = b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\nhello world!"
MALFORMED = [
    b"SSH-2.0-OpenSSH\r\n\r\n",
    b"HTTP/2 200\r\n\r\n",
    b"HTTP/1.1 20 OK\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nname : value\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nname: value\r\n folded\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nname: a\0b\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nname: a\nb: c\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 5\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-length: +3\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnonsense\r\n",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-1\r\n",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"1" * 2000,
    b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 300 + b"\r\n",
    b"HTTP/1.1 200 OK\r\nname: " + b"a" * 70_000,
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n" + b"a: b\r\n" * 5000 + b"\r\n",
]
STREAM = "id: 1\r\ndata: a\n: comment\rdata: ü\r\n\r\nevent: x\nid:2\ndata:b\ndata\n\n\n\nid: 3\n\ndata: c\n\ndata: cut"
EVENTS = [SentEvent("1", "a\nü"), SentEvent("2", "b\n"), SentEvent("3", "c")]


def read(wire: list[bytes]) -> tuple[Head, bytes, BodyReader]:
    """Reads an answer that arrives in these pieces, and then the end of the connection."""
    heads, body = HeadReader(), bytearray()
    head: Head | None = None
    reader: BodyReader | None = None
    for piece in wire:
        if reader is None:
            found = heads.feed(piece)
            if found is None:
                continue
            head, piece = found
            reader = BodyReader("GET", head)
        body += reader.feed(piece)
    if head is None or reader is None:
        raise WireError("there is no head")
    if not reader.is_done:
        reader.end()
    return head, bytes(body), reader


def split(wire: bytes, choice: random.Random) -> list[bytes]:
    cuts = sorted(choice.randrange(len(wire) + 1) for _ in range(choice.randrange(8)))
    return [wire[start:end] for start, end in zip([0, *cuts], [*cuts, len(wire)], strict=True)]


class WireTest(unittest.TestCase):
    def test_an_answer_reads_the_same_however_it_is_split(self) -> None:
        choice = random.Random(1)
        for wire in (CHUNKED, COUNTED):
            pieces = [[wire[at : at + 1] for at in range(len(wire))]]
            for split_wire in pieces + [split(wire, choice) for _ in range(300)]:
                head, body, reader = read(split_wire)
                self.assertEqual((head.status, body, reader.may_reuse), (200, b"hello world!", True))
        self.assertEqual(read([CHUNKED])[0].fields["x-request-id"], "req-1")
        self.assertEqual(read([CHUNKED])[0].fields["set-cookie"], "a, b")

    def test_a_malformed_answer_is_refused(self) -> None:
        for wire in MALFORMED:
            with self.subTest(wire[:80]), self.assertRaises(WireError):
                read([wire])

    def test_an_answer_that_is_cut_off_is_refused(self) -> None:
        for wire in (CHUNKED, COUNTED):
            for end in range(len(wire)):
                with self.subTest(wire[:end]), self.assertRaises(WireError):
                    read([wire[:end]])

    def test_any_changed_bytes_are_read_or_refused(self) -> None:
        choice = random.Random(2)
        for _ in range(3000):
            wire = bytearray(choice.choice([CHUNKED, COUNTED]))
            for _ in range(choice.randrange(1, 6)):
                wire[choice.randrange(len(wire))] = choice.choice(b"\r\n\0: ;0159afF-\xff")
            try:
                read(split(bytes(wire), choice))
            except WireError:
                pass

    def test_answers_without_a_body_and_answers_that_end_with_the_connection(self) -> None:
        for status in (b"204 No Content", b"304 Not Modified"):
            self.assertTrue(read([b"HTTP/1.1 %b\r\ncontent-length: 5\r\n\r\n" % status])[2].may_reuse)
        _, body, reader = read([b"HTTP/1.1 200 OK\r\n\r\nhel", b"lo"])
        self.assertEqual((body, reader.may_reuse), (b"hello", False))
        _, _, reader = read([COUNTED + b"HTTP/1.1 200 OK\r\n\r\n"])
        self.assertFalse(reader.may_reuse)
        for head in (b"HTTP/1.0 200 OK", b"HTTP/1.1 200 OK\r\nConnection: foo, Close"):
            self.assertFalse(read([head + b"\r\ncontent-length: 0\r\n\r\n"])[0].keeps_alive)

    def test_no_header_or_path_can_end_its_line(self) -> None:
        for target, fields in (
            ("/a\r\nx: y", {}),
            ("/a b", {}),
            ("/ü", {}),
            ("/", {"x-api-key": "a\r\nx: y"}),
            ("/", {"x y": "a"}),
            ("/", {"x-api-key": "ü"}),
        ):
            with self.subTest(target=target, fields=fields), self.assertRaises(ValueError):
                write_head("GET", target, fields)

    def test_ids_cannot_leave_their_path(self) -> None:
        operation = Operation("GET", "/v1/inboxes/{}/threads")
        self.assertEqual(operation.target(("a/../b?c#d",), {}), "/v1/inboxes/a%2F..%2Fb%3Fc%23d/threads")
        for one in ("", ".", ".."):
            with self.assertRaises(ValueError):
                operation.target((one,), {})
        self.assertEqual(operation.target(("a",), {"q": "ü &=+", "n": 1}), "/v1/inboxes/a/threads?q=%C3%BC+%26%3D%2B&n=1")

    def test_arguments_that_were_not_given_are_left_out(self) -> None:
        self.assertEqual(given({"a": None, "b": None, "c": 0}, nullable=("b",)), {"b": None, "c": 0})

    def test_values_that_are_no_json_are_refused(self) -> None:
        for value in (float("nan"), "\ud800", {1}, b"text", io.BytesIO(b"text")):
            with self.subTest(repr(value)), self.assertRaises((ValueError, TypeError)):
                write_json({"text": value})
        with self.assertRaises(TypeError):
            write_json({"attachments": [{"content": io.StringIO("text")}]})

    def test_file_names(self) -> None:
        for disposition, name in (
            ("attachment; filename=\"a_.txt\"; filename*=UTF-8''%C3%A4.txt", "ä.txt"),
            ("attachment; filename=\"a \\\"b\\\".txt\"", 'a "b".txt'),
            ("attachment; filename=a.txt", "a.txt"),
            ("attachment; filename*=utf-8''%FF", "\ufffd"),
            ("attachment", None),
            (None, None),
        ):
            self.assertEqual(read_filename(disposition), name)


class WebhookTest(unittest.TestCase):
    SECRET = "whsec_" + base64.b64encode(b"secret").decode()

    def test_any_headers_and_bodies_are_refused_with_the_errors_of_this_package(self) -> None:
        choice = random.Random(4)
        values = ["", " ", "v1,", "v1,AAAA", "v1,é", "\ud800", "0" * 5000, str(int(time.time())), "１", "-1", "v1, v1"]
        bodies: list[str | bytes] = ["{}", b"\xff", "\ud800", "[" * 9999]
        for _ in range(2000):
            headers = {name: choice.choice(values) for name in ("webhook-id", "webhook-timestamp", "Webhook-Signature")}
            with self.assertRaises(posthorn.WebhookVerificationError):
                posthorn.verify_webhook(self.SECRET, choice.choice(bodies), headers)

    def test_a_signed_body_may_hold_anything(self) -> None:
        for body in (b"", b"[" * 100_000, b"9" * 10_000, b"\xff", b"null", b"[]"):
            now = str(int(time.time()))
            digest = hmac.digest(b"secret", b"id." + now.encode() + b"." + body, "sha256")
            headers = message.Message()  # as http.server has them
            headers["Webhook-Id"], headers["Webhook-Timestamp"] = "id", now
            headers["Webhook-Signature"] = "v1," + base64.b64encode(digest).decode()
            with self.subTest(body[:20]), self.assertRaises(posthorn.WebhookVerificationError) as refused:
                posthorn.verify_webhook(self.SECRET, body, headers)
            self.assertEqual(refused.exception.code, "invalid_body")

    def test_a_secret_that_anybody_could_have_is_refused(self) -> None:
        for secret in ("", "whsec_", "whsec_%"):
            headers = {"webhook-id": "a", "webhook-timestamp": str(int(time.time())), "webhook-signature": "v1,AAAA"}
            with self.subTest(secret), self.assertRaises(ValueError):
                posthorn.verify_webhook(secret, "{}", headers)


class EventTest(unittest.TestCase):
    def test_events_read_the_same_however_they_are_split(self) -> None:
        wire, choice = STREAM.encode(), random.Random(3)
        for pieces in [[wire], [wire[at : at + 1] for at in range(len(wire))], *(split(wire, choice) for _ in range(500))]:
            parser = EventParser()
            self.assertEqual([event for piece in pieces for event in parser.feed(piece)], EVENTS)


if __name__ == "__main__":
    unittest.main()
