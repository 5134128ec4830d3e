"""Faults that the shared scenarios do not have: proxies, forks, answers without a length, and secrets in reports."""

from __future__ import annotations

import copy
import os
import pickle
import unittest
from typing import Any

import posthorn
from posthorn import errors
from posthorn._async.http import Request
from scripted_server import ScriptedServer, Step
from test_scenarios import BlockingClock

PROFILE: Step = {"request": "GET /v1/me", "answer": {"json": {"organization": {"status": "active"}}}}
MESSAGE: dict[str, Any] = {"to": [{"email": "ada@example.com"}], "subject": "S", "text": "T"}


class FaultTest(unittest.TestCase):
    def serve(self, *steps: Step) -> posthorn.Posthorn:
        self.server, self.clock = ScriptedServer(list(steps)), BlockingClock()
        self.addCleanup(self.server.close)
        client = posthorn.Posthorn(self.server.base_url, "ph_test", _io=self.clock)
        self.addCleanup(client.close)
        return client

    def test_a_deletion_does_not_succeed_by_the_404_of_a_proxy(self) -> None:
        for answer in (
            {"status": 404, "text": "<h1>default backend</h1>"},
            {"status": 404, "json": {"error": "route_not_found", "message": "There is no such path."}},
        ):
            request = "DELETE /v1/webhooks/whk_1"
            client = self.serve({"request": request, "answer": {"status": 502}}, {"request": request, "answer": answer})
            with self.assertRaises(posthorn.NotFoundError):
                client.webhooks.delete("whk_1")

    def test_an_expired_result_says_that_the_action_has_happened(self) -> None:
        body = {"error": "idempotency_result_expired", "message": "The result was deleted."}
        request = "POST /v1/inboxes/inb_1/messages"
        client = self.serve({"request": request, "answer": {"status": 410, "json": body}})
        with self.assertRaises(posthorn.IdempotencyKeyReusedError):
            client.messages.send("inb_1", **MESSAGE, idempotency_key="job-4711")

    def test_a_key_that_is_empty_is_sent_as_it_is(self) -> None:
        step: Step = {"request": "POST /v1/inboxes/inb_1/messages", "headers": {"idempotency-key": ""}}
        body = {"error": "invalid_idempotency_key", "message": "8 to 200 characters."}
        client = self.serve({**step, "answer": {"status": 400, "json": body}})
        with self.assertRaises(posthorn.InvalidRequestError):
            client.messages.send("inb_1", **MESSAGE, idempotency_key="")
        self.assertEqual(self.server.faults, [])

    def test_a_send_whose_answer_has_no_length_and_is_cut_is_repeated(self) -> None:
        request = "POST /v1/inboxes/inb_1/messages"
        whole = {"status": 202, "json": {"message": {"id": "msg_1"}, "replayed": True}}
        client = self.serve(
            {"request": request, "raw": "HTTP/1.0 202 Accepted\r\n\r\n{\"message\": {\"id"},
            {"request": request, "answer": whole},
        )
        self.assertTrue(client.messages.send("inb_1", **MESSAGE)["replayed"])
        self.assertEqual(len({one.headers["idempotency-key"] for one in self.server.requests}), 1)

    def test_a_download_without_a_length_is_refused(self) -> None:
        step: Step = {"request": "GET /v1/messages/msg_1/source", "raw": "HTTP/1.0 200 OK\r\n\r\nFrom: a"}
        client = self.serve(*[step] * 12)
        with self.assertRaises(posthorn.ConnectionFailedError):
            client.messages.source("msg_1")

    def test_a_page_is_not_a_stream_of_events(self) -> None:
        client = self.serve({"request": "GET /v1/events", "answer": {"text": "<h1>Sign in</h1>"}})
        with self.assertRaises(posthorn.PosthornError) as refused:
            next(client.events.watch())
        self.assertEqual(refused.exception.code, "http_200")

    def test_no_coding_is_accepted(self) -> None:
        client = self.serve({**PROFILE, "headers": {"accept-encoding": "identity"}})
        client.profile()
        self.assertEqual(self.server.faults, [])

    @unittest.skipUnless(hasattr(os, "fork"), "needs fork")
    def test_a_process_does_not_use_the_connection_of_its_parent(self) -> None:
        client = self.serve(*[PROFILE] * 3)
        client.profile()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                client.profile()
                status = 0
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        client.profile()
        self.assertEqual(self.server.connection_count, 2)
        self.assertEqual(self.server.faults, [])


class SecretTest(unittest.TestCase):
    def test_a_printed_request_has_neither_key_nor_body(self) -> None:
        printed = repr(Request("POST", "/v1/send", {"x-api-key": "ph_secret"}, b"secret"))
        self.assertNotIn("secret", printed)


class ErrorTest(unittest.TestCase):
    def test_every_error_can_be_copied_and_sent_to_another_process(self) -> None:
        error = errors.class_of(429, "rate_limited")("Wait.", "rate_limited", status=429, retry_after=3, request_id="r")
        waited = posthorn.WaitTimeoutError("None came.")
        others = [kind("Text.", "code") for kind in (posthorn.PosthornError, posthorn.ConnectionFailedError)]
        for one in [error, waited, *others, posthorn.WebhookVerificationError("Text.", "invalid_body")]:
            for other in (pickle.loads(pickle.dumps(one)), copy.copy(one)):
                self.assertEqual((type(other), other.__dict__, str(other)), (type(one), one.__dict__, str(one)))


if __name__ == "__main__":
    unittest.main()
